"""Where results go: to a regular file or a new name, and to a standard output that takes them, or one line says why."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.places import IS_ROOT, PROGRAM, complaint, environment
from tests.ran import JITTER, Ran

Run = Callable[..., Ran]


def a_fifo(path: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def a_device(path: Path) -> None:
    if not IS_ROOT:
        pytest.skip("only root may make a device")
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 7))  # what /dev/full is


WRITERS = {
    "snapshot": ["snapshot", "-o"],
    "propose": ["propose", "--output"],
    "propose --force": ["propose", "--force", "--output"],
    "report": ["report", "result.json", "-o"],
    "probe": [*JITTER, "--cpus", "0", "--duration", "0.1", "--output"],
    "probe wake": ["probe", "wake", "--output"],
}


def written(tunectl: Run, stock: Path, command: str, output: Path) -> Ran:
    at = [] if command.startswith("probe") else ["--root", stock]
    return tunectl(*WRITERS[command], output, *at)


@pytest.mark.parametrize("make", [a_fifo, a_socket, a_device])
@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("command", WRITERS)
def test_no_result_takes_the_place_of_what_is_no_regular_file(
    tunectl: Run, stock: Path, tmp_path: Path, command: str, linked: bool, make: Callable[[Path], None]
) -> None:
    there = tmp_path / "there"
    make(there)
    before = there.lstat()
    output = there
    if linked:
        output = tmp_path / "link"
        output.symlink_to(there)
    said = complaint(written(tunectl, stock, command, output), 2)
    assert said == f"--output {output}: not a regular file"
    assert there.lstat() == before
    assert output.is_symlink() is linked
    assert len(list(tmp_path.iterdir())) == 1 + linked


@pytest.mark.parametrize("command", ["snapshot", "propose --force"])
def test_a_link_stays_and_the_file_that_it_points_to_is_written(
    tunectl: Run, stock: Path, tmp_path: Path, command: str
) -> None:
    (tmp_path / "below").mkdir()
    there, link = tmp_path / "below/there", tmp_path / "link"
    there.write_text("old")
    link.symlink_to("below/there")
    assert written(tunectl, stock, command, link).code == 0
    assert link.is_symlink()
    assert there.is_file()
    assert there.stat().st_size > 3
    there.unlink()  # a link that points to nothing yet is a new name
    assert written(tunectl, stock, command, link).code == 0
    assert link.is_symlink()
    assert there.is_file()
    assert [path.name for path in (tmp_path / "below").iterdir()] == ["there"]


def run_into(where: str, *words: object) -> Ran:
    """The program with a standard output as the shell opens it."""
    command = ["sh", "-c", f'exec "$@" {where}', "sh", *PROGRAM, *map(str, words)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120)
    return Ran(done.returncode, done.stdout, done.stderr)


PLACES = {">/dev/full": "No space left on device", ">&-": "standard output is closed"}


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("fmt", ["text", "json"])
def test_a_result_that_cannot_be_written(stock: Path, where: str, fmt: str) -> None:
    said = complaint(run_into(where, "verify", "--root", stock, "--format", fmt), 1)
    assert said == f"the result could not be written: {PLACES[where]}"


@pytest.mark.parametrize("words", ["--help", "--version", "verify --help", "probe jitter --help"])
def test_a_help_text_that_cannot_be_written(words: str) -> None:
    said = complaint(run_into(">/dev/full", *words.split()), 1)
    assert said == "the output could not be written: No space left on device"


@pytest.mark.parametrize("where", PLACES)
def test_nagios_is_told_that_nothing_is_known(stock: Path, where: str) -> None:
    said = complaint(run_into(where, "verify", "--root", stock, "--format", "nagios"), 3)
    assert said == f"the result could not be written: {PLACES[where]}"


@pytest.mark.parametrize("where", PLACES)
def test_apply_says_that_its_changes_were_made(lab4: Path, where: str) -> None:
    said = complaint(run_into(where, "apply", "--yes", "--root", lab4), 1)
    journal = lab4 / "var/lib/tunectl/journal.jsonl"
    result = f"the result could not be written: {PLACES[where]}"
    assert said == f"{result} (the changes were made, and the journal is {journal})"
    assert journal.exists()
    said = complaint(run_into(where, "apply", "--yes", "--root", lab4), 1)
    assert said == f"{result} (nothing was changed)"


@pytest.mark.parametrize("where", [">&- 2>&-", "<&- >&- 2>&-"])
def test_with_everything_closed_it_still_fails(stock: Path, where: str) -> None:
    assert run_into(where, "verify", "--root", stock) == Ran(1, "", "")


def test_apply_without_a_standard_input_does_not_ask(lab4: Path) -> None:
    said = complaint(run_into("<&-", "apply", "--root", lab4), 2)
    assert said.startswith("apply asks before it writes, and there is no terminal to ask on")
