"""A version as dpkg and rpm have it: both sort it as Python does."""

import itertools
import shutil
import subprocess
import sys

import pytest
from packaging.version import Version

from tests.release.releases import ROOT

# In the order in which they come out.
VERSIONS = (
    "0.9.9",
    "1.0.0.dev1",
    "1.0.0a1",
    "1.0.0b2",
    "1.0.0rc1.dev3",
    "1.0.0rc1",
    "1.0.0rc2",
    "1.0.0rc10",
    "1.0.0",
    "1.0.1",
)


def of_the_packages() -> list[str]:
    """By the release's own code, which is no part of the product."""
    program = "import sys, stage; print(*map(stage.package_version, sys.argv[1:]))"
    argv = [sys.executable, "-c", program, *VERSIONS]
    return subprocess.check_output(argv, env={"PYTHONPATH": f"{ROOT / '.release'}:{ROOT}"}, text=True).split()


def test_dpkg_and_rpm_sort_versions_as_python_does() -> None:
    assert sorted(VERSIONS, key=Version) == list(VERSIONS)
    written = of_the_packages()
    assert written[VERSIONS.index("1.0.0rc1")] == "1.0.0~rc1"
    if shutil.which("dpkg") is None or shutil.which("rpm") is None:
        pytest.skip("no dpkg or no rpm here")
    for earlier, later in itertools.pairwise(written):
        revised = (f"{earlier}-1+deb12", "lt", f"{later}-1+deb12")
        assert subprocess.run(["dpkg", "--compare-versions", *revised]).returncode == 0, revised
        asked = f'%{{lua:print(rpm.vercmp("{earlier}", "{later}"))}}'
        assert subprocess.check_output(["rpm", "--eval", asked], text=True) == "-1\n", asked
