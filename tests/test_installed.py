"""Where an installation's programs and files are looked for: wherever pip put them."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import tunectl
from tests.ansible import wheels
from tests.ran import Ran
from tests.trees import differences, picture
from tunectl.knobs.drivers.confined import starting

ASKS = "from tunectl import installed as i; print(i.scripts(), i.data())"
# The Python that the virtual environment was made of: one in an environment sees no --user installation.
PYTHON = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"


def said(python: Path | str, **variables: str) -> list[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [python, "-c", ASKS], env={**environment, **variables}, cwd="/", capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def put(place: Path) -> None:
    place.mkdir(parents=True)
    (place / "tunectl").symlink_to(Path(tunectl.__file__).parent)


def test_in_an_environment_as_sysconfig_has_it() -> None:
    assert said(sys.executable) == [sysconfig.get_path("scripts"), sysconfig.get_path("data")]


@pytest.mark.skipif(not PYTHON.exists(), reason=f"there is no {PYTHON}")
def test_of_one_user(tmp_path: Path) -> None:
    put(tmp_path / "lib" / PYTHON.name / "site-packages")
    assert said(PYTHON, PYTHONUSERBASE=str(tmp_path)) == [f"{tmp_path}/bin", str(tmp_path)]


def test_below_a_target(tmp_path: Path) -> None:
    put(tmp_path / "all")
    (tmp_path / "all/bin").mkdir()
    (tmp_path / "all/bin/tunectl-probe").touch()
    assert said(sys.executable, PYTHONPATH=f"{tmp_path}/all") == [f"{tmp_path}/all/bin", f"{tmp_path}/all"]


OURS = Path(tunectl.__file__).parent
AGAIN = "nothing is done: pip uninstall tunectl, then install tunectl-host again (pip install --force-reinstall)"


class Environment:
    """A virtual environment, into which pip installs wheels of both projects."""

    def __init__(self, place: Path) -> None:
        self.place, self.python = place, place / "bin/python3"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
        self.packages = place / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"

    def install(self, name: str, files: dict[str, str]) -> None:
        entry = {f"{name}-1.1.0.dist-info/entry_points.txt": "[console_scripts]\ntunectl = tunectl.cli.start:main\n"}
        wheel = wheels.make(self.place / "wheels", name, "1.1.0", files | entry)
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "-q", "--force-reinstall"]
        subprocess.run([*pip, "--no-index", "--no-deps", str(wheel)], check=True, capture_output=True)

    def ours(self) -> None:
        names = [path for path in OURS.rglob("*") if path.suffix in (".py", ".toml", ".in") and path.is_file()]
        self.install("tunectl_host", {str(path.relative_to(OURS.parent)): path.read_text() for path in names})

    def theirs(self) -> None:
        self.install("tunectl", {"tunectl/__init__.py": '__version__ = "1.1.0"\n', "tunectl/ui.py": ""})

    def run(self, *words: str | Path) -> Ran:
        done = subprocess.run([self.python, "-I", *words], cwd="/", capture_output=True, text=True, check=False)
        return Ran(done.returncode, done.stdout, done.stderr)

    def asks(self) -> Ran:
        """What a unit asks before it starts us."""
        before, _ = starting((str(self.python), "-I", f"{self.place}/bin/tunectl")).split("\n")
        assert before.startswith("ExecStartPre=")
        return self.run(*before.partition("=")[2].split()[2:])


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "venv")


@pytest.mark.slow
def test_the_other_project_among_our_files_is_named_and_nothing_is_written(
    environment: Environment, lab4: Path
) -> None:
    (environment.packages / "needs.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    program, root = environment.place / "bin/tunectl", picture(lab4)
    environment.theirs()
    environment.ours()  # ours is the last, and starts
    for words in (["apply", "--yes"], ["verify"], ["--version"]):
        assert environment.run(program, "--root", str(lab4), *words) == Ran(
            1,
            "",
            f"tunectl: tunectl 1.1.0 of another project is installed among our files in {environment.packages}, "
            f"and {AGAIN}\n",
        )
    assert environment.asks().code == 1
    assert not differences(root, lab4)
    shutil.rmtree(environment.packages / "tunectl-1.1.0.dist-info")
    assert environment.asks() == Ran(0, "", "")
    assert environment.run(program, "--root", str(lab4), "plan").out


@pytest.mark.slow
def test_a_unit_does_not_start_what_lies_over_our_files(environment: Environment) -> None:
    environment.ours()
    assert environment.asks() == Ran(0, "", "")
    environment.theirs()
    over = environment.packages / "tunectl/__init__.py"
    assert environment.asks() == Ran(1, "", f"tunectl: {over} is not the file that was installed, and {AGAIN}\n")
    environment.ours()
    gone = environment.packages / "tunectl/model.py"
    gone.unlink()
    assert environment.asks().err.startswith(f"tunectl: {gone}: No such file or directory, and ")


def test_what_a_package_manager_installed_is_its_own_to_judge(environment: Environment) -> None:
    (environment.packages / "tunectl").symlink_to(OURS)
    info = environment.packages / "tunectl_host-1.dist-info"
    assert environment.asks().err == f"tunectl: {environment.place} has no tunectl-host, and {AGAIN}\n"
    info.mkdir()
    (info / "METADATA").write_text("Name: tunectl-host\nVersion: 1\n")
    (info / "INSTALLER").write_text("deb\n")
    assert environment.asks() == Ran(0, "", "")


def test_ours_of_before_it_had_another_name_is_no_stranger(environment: Environment) -> None:
    (environment.packages / "tunectl").symlink_to(OURS)
    earlier = environment.packages / "tunectl-1.0.0rc1.dist-info"
    earlier.mkdir()
    (earlier / "RECORD").write_text("../../../bin/tunectl-probe,sha256=x,1\n")
    asks = "from tunectl.installed import stranger; print(stranger())"
    assert environment.run("-c", asks) == Ran(0, "\n", "")
    (earlier / "RECORD").unlink()
    assert "of another project" in environment.run("-c", asks).out
