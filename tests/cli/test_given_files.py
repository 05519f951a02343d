"""What a user names is a file or a pipe; what never answers or never ends is refused."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.places import PROGRAM, complaint, environment
from tests.probe.samples import raw_cpu, raw_run
from tests.ran import Ran

Run = Callable[..., Ran]


@pytest.fixture
def result(tmp_path: Path) -> Path:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(raw_run(raw_cpu(2))))
    return path


def bash(script: str, place: Path) -> Ran:
    """`tunectl` is the program."""
    words = ["bash", "-c", f'tunectl() {{ "${{program[@]}}" "$@"; }}; program=("$@"); {script}', "bash", *PROGRAM]
    done = subprocess.run(words, cwd=place, env=environment(), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return Ran(done.returncode, done.stdout, done.stderr)


def test_process_substitution(tunectl: Run, result: Path, tmp_path: Path) -> None:
    done = bash("tunectl report <(sleep 0.2; cat result.json) --format html", tmp_path)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("<!doctype html>")


def test_a_fifo_with_a_writer(result: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    script = "timeout 60 sh -c 'cat result.json >fifo' & tunectl report fifo --format html"
    tries = (bash(script, tmp_path) for _ in range(3))  # the writer has 5 s to begin: a busy machine may take longer
    assert any((done.code, done.err) == (0, "") for done in tries)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("compare {fifo} {result}", 1, "cannot read {fifo}: is a pipe, and nothing came in time"),
        ("fleet open --hosts {fifo}", 2, "--hosts {fifo}: is a pipe, and nothing came in time"),
        ("fleet open --hosts /dev/zero", 2, "--hosts /dev/zero: not a regular file"),
        ("compare /dev/zero {result}", 1, "cannot read /dev/zero: not a regular file"),
    ],
)
def test_what_never_answers_or_never_ends(
    tunectl: Run, result: Path, tmp_path: Path, words: str, code: int, said: str
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    given = [word.format(fifo=fifo, result=result) for word in words.split()]
    assert complaint(tunectl(*given), code) == said.format(fifo=fifo)


def test_stdin_has_a_limit_too(tmp_path: Path) -> None:
    done = bash("yes | tunectl fleet open --hosts - --store store", tmp_path)
    assert complaint(done, 2) == "--hosts -: is larger than 64 MiB"


def test_stdin_is_still_read(tmp_path: Path) -> None:
    done = bash("(sleep 0.2; echo tx-01) | tunectl fleet open --hosts - --store store --name a", tmp_path)
    assert (done.code, done.err) == (0, "")
    assert json.loads((tmp_path / "store/a/session.json").read_text())["hosts"] == ["tx-01"]


def test_a_fifo_among_the_documents_of_a_fleet(tunectl: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tx-01.json")
    done = tunectl("fleet", "report", tmp_path, "--format", "json")
    assert (done.code, done.err) == (1, "")
    assert "tx-01.json is not a regular file" in done.out
