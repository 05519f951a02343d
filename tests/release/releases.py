"""A whole release of this tree, and one of a version before it: what is tried in bare systems and in the lab."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.lab.image import locked
from tests.lab.machine import BOARDS
from tests.lab.platforms import SUITES

ROOT = Path(__file__).parents[2]
EPOCH = "1700000000"
OLDER = "0.0.9"
# What a package says where it is removed from a host that is tuned.
RESTORE = 'run "sudo tunectl restore"'


class Released(NamedTuple):
    """Both of them, below `place`, and the wheels that they need."""

    place: Path
    version: str  # as dpkg and rpm have it

    def deb(self, suite: str, architecture: str = "x86_64") -> str:
        """Of a Debian, for a processor; what is below is for x86-64."""
        suffix = f"deb{SUITES[suite].number}_{BOARDS[architecture].debian}"
        return f"{self.place}/now/tunectl_{self.version}-1+{suffix}.deb"

    def older_deb(self, suite: str) -> str:
        """Of the version before."""
        return f"{self.place}/before/tunectl_{OLDER}-1+deb{SUITES[suite].number}_amd64.deb"

    def rpm(self) -> str:
        """For RHEL 9."""
        return f"{self.place}/now/tunectl-{self.version}-1.el9.x86_64.rpm"

    def older_rpm(self) -> str:
        """Of the version before."""
        return f"{self.place}/before/tunectl-{OLDER}-1.el9.x86_64.rpm"


def copy_of_the_tree(place: Path) -> Path:
    """What a commit of this tree would hold, in another folder."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    place.mkdir(parents=True)
    tar = f"tar -c --null --no-recursion -T - | tar -x -C '{place}'"
    subprocess.run(["bash", "-euo", "pipefail", "-c", tar], cwd=ROOT, input=names, check=True)
    return place


def make(tree: Path, out: str, **variables: str) -> str:
    """`.ci/release OUT` in a tree; what it said."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH, **variables}
    done = subprocess.run([tree / ".ci/release", out], env=environment, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def both(factory: pytest.TempPathFactory) -> Released:
    """Made once, whichever worker asks first."""
    shared = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    place = shared / "released"
    with locked(shared / "released.lock"):
        if not place.exists():
            cache = Path(make(ROOT, "--fetch").splitlines()[-1])
            half = shared / "released.part"
            shutil.copytree(cache / "wheels", half / "wheels")
            make(ROOT, str(half / "now"))
            older = copy_of_the_tree(shared / "older")
            source = older / "tunectl/__init__.py"
            source.write_text(re.sub(r'(__version__ = )".*"', rf'\1"{OLDER}"', source.read_text()))
            make(older, str(half / "before"))
            half.rename(place)
    (package,) = place.glob("now/*+deb12_amd64.deb")
    return Released(place, package.name.split("_")[1].partition("-")[0])
