"""The C part's own tests, and what its Makefile promises."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import NATIVE


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", "-C", str(NATIVE), *arguments], capture_output=True, text=True, check=False)


def sources() -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in NATIVE.rglob("*") if "build" not in path.parts}


def test_unit_tests_pass_and_leave_the_tree_alone(tmp_path: Path) -> None:
    before = sources()
    done = make("test", f"OUT={tmp_path}/out", f"BUILD={tmp_path}/build")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failed" in done.stdout
    assert sources() == before


def skip_without_sanitizers(tmp_path: Path, *kinds: str) -> None:
    source = tmp_path / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    for kind in kinds:
        argv = ["cc", f"-fsanitize={kind}", "-o", str(tmp_path / "empty"), str(source)]
        if subprocess.run(argv, capture_output=True, check=False).returncode != 0:
            pytest.skip(f"this compiler cannot link -fsanitize={kind}")


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BUILD for the three programs that share the objects made for the address sanitizer."""
    place = tmp_path_factory.mktemp("sanitized")
    skip_without_sanitizers(place, "address,undefined", "thread")
    return place


@pytest.mark.slow
def test_unit_tests_and_a_run_pass_under_the_sanitizers(sanitized: Path, cpu: int) -> None:
    done = make("sanitize", f"BUILD={sanitized}", f"TEST_CPU={cpu}")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_mangled_text_breaks_no_parser(sanitized: Path) -> None:
    done = make("fuzz", f"BUILD={sanitized}", "FUZZ_ROUNDS=50000")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_parser_that_breaks_is_found(sanitized: Path, tmp_path: Path) -> None:
    native = Path(shutil.copytree(NATIVE, tmp_path / "native"))
    build = shutil.copytree(sanitized, tmp_path / "build")  # with its times: only what is broken is compiled again
    source = native / "src" / "tracetext.c"
    check = "line.length <= COMM_COLUMNS || "
    assert check in source.read_text()
    source.write_text(source.read_text().replace(check, ""))
    argv = ["make", "-C", str(native), "fuzz", f"BUILD={build}", "FUZZ_ROUNDS=50000"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "AddressSanitizer" in done.stderr


@pytest.mark.parametrize("compiler", ["clang", "gcc"])
def test_compilers_have_no_complaint_and_the_version_is_the_builders(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    done = make(f"CC={compiler}", "CFLAGS=-O3", "VERSION=9.8.7", f"OUT={tmp_path}")
    assert done.returncode == 0, done.stderr
    said = subprocess.run([tmp_path / "tunectl-probe", "--version"], capture_output=True, text=True, check=True)
    assert said.stdout == "tunectl-probe 9.8.7\n"
