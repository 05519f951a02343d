"""Where an installation's programs and files are looked for: wherever pip put them."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import tunectl

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
