"""The source archive and the wheels: whole, true to their tags, and the same bytes wherever they are made."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from elftools.elf.elffile import ELFFile
from packaging.tags import Tag
from packaging.utils import parse_wheel_filename

import tunectl
from tests.release.conftest import release
from tests.release.releases import EPOCH, ROOT, copy_of_the_tree

pytestmark = pytest.mark.slow

# zig compiles the whole of musl for each machine, which takes a minute: the other one is in the long set.
MACHINES = ("x86_64", pytest.param("aarch64", marks=pytest.mark.long))


@pytest.fixture(scope="module")
def of_every_machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same folder, with the wheel of each machine."""
    return release(ROOT, "wheels", str(tmp_path_factory.mktemp("every") / "out"))


@pytest.fixture
def folder(request: pytest.FixtureRequest, machine: str) -> Path:
    """The folder that has this machine's wheel."""
    found = request.getfixturevalue("wheels" if machine == "x86_64" else "of_every_machine")
    assert isinstance(found, Path)
    return found


def wheel_of(folder: Path, machine: str) -> Path:
    (wheel,) = folder.glob(f"*_{machine}.whl")
    return wheel


def unpacked(wheel: Path, place: Path) -> Path:
    """The probe of a wheel, ready to be started."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith("/scripts/tunectl-probe"))
        program = Path(archive.extract(name, place))
    program.chmod(0o755)
    return program


def test_two_builds_in_two_folders_have_the_same_bytes(wheels: Path, tmp_path: Path) -> None:
    """Also under another umask, and with another name of the folder."""
    tree = copy_of_the_tree(tmp_path / "another name")
    before = os.umask(0o077)
    try:
        again = release(tree, "wheels", "--machine", "x86_64", str(tmp_path / "out"))
    finally:
        os.umask(before)
    assert (again / "SHA256SUMS").read_text() == (wheels / "SHA256SUMS").read_text()


def test_the_sums_are_those_of_the_artefacts(wheels: Path) -> None:
    listed = [line.split("  ") for line in (wheels / "SHA256SUMS").read_text().splitlines()]
    found = sorted(wheels.glob("tunectl*"))
    assert listed == [[hashlib.sha256(path.read_bytes()).hexdigest(), path.name] for path in found]
    assert len(found) == 2, "the source archive and a wheel"


def test_the_source_archive_is_the_whole_tree(wheels: Path, tmp_path: Path) -> None:
    tree = copy_of_the_tree(tmp_path / "tree")
    (archive,) = wheels.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    source = tmp_path / archive.name.removesuffix(".tar.gz")
    (source / "PKG-INFO").unlink()
    said = subprocess.run(["diff", "--recursive", "--no-dereference", tree, source], capture_output=True, text=True)
    assert said.returncode == 0, said.stdout
    assert os.readlink(source / "roles") == "ansible/roles"


@pytest.mark.parametrize("machine", MACHINES)
def test_a_wheel_is_for_every_c_library(folder: Path, machine: str) -> None:
    """One file for glibc since 2.17 and musl since 1.1, because its only program is linked against none."""
    tags = parse_wheel_filename(wheel_of(folder, machine).name)[3]
    kinds = ("manylinux2014", "manylinux_2_17", "musllinux_1_1")
    assert tags == {Tag("py3", "none", f"{kind}_{machine}") for kind in kinds}


@pytest.mark.parametrize("machine", MACHINES)
def test_the_probe_of_a_wheel_needs_no_library_and_starts(folder: Path, tmp_path: Path, machine: str) -> None:
    program = unpacked(wheel_of(folder, machine), tmp_path)
    with program.open("rb") as file:
        kinds = {segment["p_type"] for segment in ELFFile(file).iter_segments()}
    assert not kinds & {"PT_INTERP", "PT_DYNAMIC"}
    emulator = [] if machine == os.uname().machine else [f"qemu-{machine}-static"]
    if emulator and shutil.which(emulator[0]) is None:
        pytest.skip(f"no {emulator[0]} here (Debian: qemu-user-static)")
    said = subprocess.run([*emulator, program, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout == f"tunectl-probe {tunectl.__version__}\n"


@pytest.mark.parametrize("machine", MACHINES)
def test_the_bill_of_materials_is_valid_and_names_what_is_linked(folder: Path, machine: str) -> None:
    with zipfile.ZipFile(wheel_of(folder, machine)) as archive:
        (name,) = (one for one in archive.namelist() if "/sboms/" in one)
        text = archive.read(name).decode()
    assert name.rpartition("/")[0] == f"tunectl_host-{tunectl.__version__}.dist-info/sboms"
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    document = json.loads(text)
    assert document["metadata"]["timestamp"].startswith("2023-11-14T22:13:20")
    assert {one["name"] for one in document["components"]} == {"tunectl-probe", "musl", "compiler_rt"}
    needs = {one["ref"].partition("@")[0]: one.get("dependsOn", []) for one in document["dependencies"]}
    assert {one.partition("@")[0] for one in needs["tunectl-probe"]} == {"musl", "compiler_rt"}


@pytest.fixture(scope="module")
def by_gcc(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel from the source archive where only gcc is; not static, as on a system without a static C library."""
    place = tmp_path_factory.mktemp("gcc")
    (archive,) = wheels.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(place, filter="data")
    words = ["-m", "build", "--no-isolation", "--wheel", "--outdir", str(place / "out")]
    environment = {"PATH": "/usr/bin:/bin", "LDFLAGS": "", "SOURCE_DATE_EPOCH": EPOCH}
    source = place / archive.name.removesuffix(".tar.gz")
    done = subprocess.run([sys.executable, *words, source], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (place / "out").glob("*.whl")
    return wheel


def test_a_wheel_that_needs_glibc_says_which(by_gcc: Path) -> None:
    """Ours is the tag that auditwheel would give it, so that an older system's pip refuses it."""
    said = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", "--json", by_gcc], capture_output=True, text=True, check=True
    )
    (tag,) = parse_wheel_filename(by_gcc.name)[3]
    assert tag.platform == json.loads(said.stdout)["overall_tag"]
    assert "manylinux" in tag.platform


def test_a_release_refuses_a_wheel_that_needs_a_library(by_gcc: Path) -> None:
    program = "import pathlib, sys, wheels; wheels._audit(pathlib.Path(sys.argv[1]))"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / '.release'}:{ROOT}"}
    done = subprocess.run([sys.executable, "-c", program, by_gcc], env=environment, capture_output=True, text=True)
    assert "says that it runs everywhere, and needs {'libc.so.6'" in done.stderr


def test_a_release_writes_into_an_empty_folder_only(tmp_path: Path) -> None:
    (tmp_path / "earlier.whl").touch()
    done = subprocess.run([sys.executable, ".release", "wheels", tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        1,
        f"release: {tmp_path} is not empty: name another folder, or remove it\n",
    )
