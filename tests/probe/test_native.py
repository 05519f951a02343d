"""The C part's own tests, and what its Makefile promises. tests/artefacts.py compiles each program once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import artefacts
from tests.artefacts import NATIVE, make

FUZZ_ROUNDS = 50_000


@pytest.mark.slow
@pytest.mark.pins
def test_unit_tests_pass() -> None:
    build = artefacts.built("{BUILD}/test-native")
    done = make("test", f"OUT={build}", f"BUILD={build}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failed" in done.stdout


def skip_without_sanitizers(tmp_path: Path, *kinds: str) -> None:
    source = tmp_path / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    for kind in kinds:
        argv = ["cc", f"-fsanitize={kind}", "-o", str(tmp_path / "empty"), str(source)]
        if subprocess.run(argv, capture_output=True, check=False).returncode != 0:
            pytest.skip(f"this compiler cannot link -fsanitize={kind}")


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BUILD with the programs made for the sanitizers."""
    skip_without_sanitizers(tmp_path_factory.mktemp("sanitizers"), "address,undefined", "thread")
    return artefacts.built("sanitized")


@pytest.mark.slow
@pytest.mark.alone  # a CPU that another test's thread has is left to it
def test_unit_tests_and_a_run_pass_under_the_sanitizers(sanitized: Path, cpu: int) -> None:
    done = make("sanitize", f"BUILD={sanitized}", f"TEST_CPU={cpu}")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_mangled_text_breaks_no_parser(sanitized: Path) -> None:
    done = make("fuzz", f"BUILD={sanitized}", f"FUZZ_ROUNDS={FUZZ_ROUNDS}")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_parser_that_breaks_is_found(sanitized: Path, tmp_path: Path) -> None:
    native = Path(shutil.copytree(NATIVE, tmp_path / "native"))
    build = shutil.copytree(sanitized, tmp_path / "build")  # with its times: only what is broken is compiled again
    source = native / "src" / "lib" / "host.c"
    check = "isspace((unsigned char)*at)"
    assert check in source.read_text()
    source.write_text(source.read_text().replace(check, f"(!*at || {check})"))
    argv = ["make", "-C", str(native), "fuzz", f"BUILD={build}", f"FUZZ_ROUNDS={FUZZ_ROUNDS}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "AddressSanitizer" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("static", ["", "-static"], ids=["shared", "static"])
@pytest.mark.parametrize("compiler", ["clang", "gcc"])
def test_compilers_have_no_complaint_and_the_version_is_the_builders(compiler: str, static: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    build = artefacts.built("all", f"CC={compiler}", "CFLAGS=-O3", f"LDFLAGS={static}", "VERSION=9.8.7")
    said = subprocess.run([build / "tunectl-probe", "--version"], capture_output=True, text=True, check=True)
    assert said.stdout == "tunectl-probe 9.8.7\n"


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["x86_64", pytest.param("aarch64", marks=pytest.mark.long)])
def test_zig_and_musl_have_no_complaint(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ziglang", reason="zig is not installed: .[test] has it")
    monkeypatch.setenv("ZIG_LIB_DIR", str(artefacts.zig_library()))
    compiler = f"{sys.executable} -m ziglang cc"
    assert artefacts.built("all", f"CC={compiler} -target {machine}-linux-musl", "LDFLAGS=-static")


def test_a_build_is_kept_while_nothing_that_decides_it_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    native = Path(shutil.copytree(NATIVE, tmp_path / "native"))
    (native / "Makefile").write_text("all:\n\techo made >> $(OUT)/tunectl-probe\n")
    monkeypatch.setattr(artefacts, "NATIVE", native)
    first = artefacts.program()
    assert artefacts.program() == first
    assert first.read_text() == "made\n"
    os.truncate(native / "src" / "main.c", 0)
    assert artefacts.program() != first
    assert artefacts.built("all", "CFLAGS=-O3") != artefacts.built("all")
