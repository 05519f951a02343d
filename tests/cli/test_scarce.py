"""Too few open files, too little memory: one line on stderr, and no traceback, whatever fails first."""

import subprocess
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from pathlib import Path

import pytest

from tests.cli.places import PROGRAM, complaint, environment
from tests.hosts.builder import HostFactory
from tests.ran import Ran
from tunectl.cli import helped
from tunectl.cli.main import _unexpected
from tunectl.cli.start import _say
from tunectl.report import nagios


def limited(limit: str, *words: object) -> Ran:
    command = ["sh", "-c", f'ulimit {limit} && exec "$@"', "sh", *PROGRAM, *map(str, words)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("files", [6, 8, 12, 20])
def test_too_few_open_files_are_one_line(tmp_path: Path, files: int) -> None:
    assert complaint(limited(f"-n {files}", "snapshot", "-o", tmp_path / "s.tgz"), 1).endswith(": Too many open files")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_enough_open_files_are_not_talked_about(tmp_path: Path) -> None:
    done = limited("-n 256", "snapshot", "-o", tmp_path / "s.tgz")
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize("kilobytes", [32_000, 35_000, 40_000])
def test_too_little_memory_is_one_line(host_root: HostFactory, kilobytes: int) -> None:
    """How much is too little depends on the Python, and so does where it fails."""
    done = limited(f"-v {kilobytes}", "--root", host_root("lab4"), "check")
    assert done.code != 1 or complaint(done, 1)
    assert "Traceback" not in done.err


def test_a_limit_that_leaves_too_little_to_begin_with_is_named() -> None:
    """Further on the interpreter itself may end with it: CPython 3.11 calls itself until its stack is full."""
    assert "ulimit -v" in complaint(limited("-v 20000", "--version"), 1)


def test_a_limit_that_leaves_enough_is_not_talked_about() -> None:
    assert limited("-v 60000", "--version").err == ""


def test_a_library_that_cannot_be_loaded_is_no_fault_of_ours(tmp_path: Path) -> None:
    """Where memory ends while a library is mapped, the linker says so, as it does of a damaged file."""
    damaged = tmp_path / "damaged.so"
    damaged.write_bytes(b"\x7fELF")
    with pytest.raises(ImportError) as raised:
        ExtensionFileLoader("damaged", str(damaged)).create_module(ModuleSpec("damaged", None, origin=str(damaged)))
    assert _unexpected(raised.value) == f"a library cannot be loaded: {damaged}: file too short"


def test_last_words_are_one_line_whatever_is_in_them(capfd: pytest.CaptureFixture[str]) -> None:
    _say(OSError(24, "Too many\nopen files", "a\x1b"))
    _say(MemoryError())
    first, second = capfd.readouterr().err.splitlines()
    assert first.startswith("tunectl: OSError: [Errno 24] Too many\\nopen files: ")
    assert second == "tunectl: MemoryError"


def test_the_code_for_nagios_is_that_of_its_format() -> None:
    assert nagios.exit_code(None) == helped.NAGIOS_UNKNOWN
