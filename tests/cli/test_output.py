"""A result is written whole or not at all, and what cannot be written is printed all the same."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.places import PROGRAM, answering, environment, started, wait_until_it_waits
from tests.probe.samples import raw_cpu, raw_run
from tests.ran import JITTER, Ran
from tunectl.cli.probing import write_result

Run = Callable[..., Ran]
pytestmark = pytest.mark.pins

CPU = max(os.sched_getaffinity(0))


@pytest.fixture
def measuring(tmp_path: Path) -> dict[str, str]:
    """The environment in which tunectl-probe has measured the last CPU."""
    return answering(tmp_path, raw_run(raw_cpu(CPU)))


# No file of the process that this starts may be larger than a block; Python would take a cut .pyc of its for whole.
FULL = ["prlimit", "--fsize=512", "env", "--ignore-signal=XFSZ", "PYTHONDONTWRITEBYTECODE=1"]


def test_an_earlier_file_stands_where_the_new_one_has_no_room(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text("earlier")
    script = "import sys; from tunectl.cli.probing import write_result; write_result(sys.argv[1], [0] * 10_000)"
    done = subprocess.run([*FULL, sys.executable, "-c", script, str(path)], capture_output=True, text=True)
    assert f"cannot write {path}" in done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["result.json"]
    assert path.read_text() == "earlier"


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(("out", "why"), [("knobs.json", "File too large"), ("/dev/full", "No space left on device")])
def test_a_result_that_was_cut_short_is_no_success(tmp_path: Path, unbuffered: str, out: str, why: str) -> None:
    """Also of an unbuffered stream, whose write says how much of it was written, and nothing else."""
    with (tmp_path / out).open("wb") as file:
        words = [*FULL, *PROGRAM, "knobs", "--format", "json"]
        env = environment({"PYTHONUNBUFFERED": unbuffered})
        done = subprocess.run(words, env=env, stdout=file, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, f"tunectl: the result could not be written: {why}\n")


def test_a_read_only_place_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    words = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o ro none "$0" && exec "$@"', str(tmp_path)]
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("needs unshare(1), and to be allowed to mount")
    output = tmp_path / "result.json"
    words += [*PROGRAM, "probe", "jitter", "--intrude", "--cpus", str(CPU), "--output", str(output)]
    env = environment({"TUNECTL_PROBE": "/bin/false"})
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"tunectl: --output {output}: Read-only file system\n"


def test_a_link_stays_and_the_mode_of_what_it_leads_to(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("earlier")
    target.chmod(0o640)
    link.symlink_to(target)
    write_result(str(link), {"a": 1})
    assert link.is_symlink()
    assert (json.loads(target.read_text()), target.stat().st_mode & 0o777) == ({"a": 1}, 0o640)


def test_what_cannot_be_written_is_printed(tunectl: Run, measuring: dict[str, str]) -> None:
    words = ("--format", "json", *JITTER, "--cpus", CPU, "--duration", "0.2")
    done = tunectl(*words, "--output", "/proc/result.json", env=measuring)
    assert (done.code, done.json["cpus"][0]["cpu"]) == (1, CPU)
    assert "cannot write /proc/result.json" in done.err


def test_a_file_without_a_name_is_refused_before_anything_is_measured(tunectl: Run, measuring: dict[str, str]) -> None:
    done = tunectl(*JITTER, "--cpus", CPU, "--output", "", env=measuring)
    assert (done.code, done.out) == (2, "")
    assert "--output: expected the name of a file" in done.err
    done = tunectl(*JITTER, "--cpus", CPU, "--pause", "nan", env=measuring)
    assert (done.code, done.out) == (2, "")


@pytest.mark.slow
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_second_signal_while_the_result_is_printed_says_what_became_of_it(
    measuring: dict[str, str], tmp_path: Path, is_kept: bool
) -> None:
    output = tmp_path / "result.json"
    words = ("probe", "jitter", "--intrude", "--cpus", CPU, "--duration", "0.1", "--format", "json")
    out, unread = os.pipe()
    os.write(unread, bytes(fcntl.fcntl(out, fcntl.F_SETPIPE_SZ, 4096)))  # full: the program waits for a reader
    child = started(*words, *(["--output", output] if is_kept else []), env=measuring, stdout=unread)
    for _ in range(2):
        wait_until_it_waits(child)
        child.send_signal(signal.SIGINT)
    said = child.communicate(timeout=60)[1]
    os.close(out)
    os.close(unread)
    place = f"the result is in {output}" if is_kept else "what was measured is lost"
    assert (child.returncode, said.strip()) == (1, f"tunectl: interrupted again: {place}")
    assert output.exists() == is_kept
