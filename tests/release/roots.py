"""Bare Debian systems to install into: each built once for all runs, and never written to.

A command runs in mount, network and process namespaces of its own: the system below, a test's own layer above it. So
nothing stays mounted, and an installation reaches no network. The programs of another architecture are emulated.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab import foreign
from tests.lab.image import bootstrap, locked
from tests.lab.shell import LabError, digest, missing_programs
from tests.ran import Ran

_KEPT = Path(os.environ.get("TUNECTL_ROOTS_CACHE") or "/var/tmp/tunectl-roots")
# What a host has that runs tunectl: no compiler. systemd is there to judge the units, procps for the `kill` in them.
_PACKAGES = ("procps", "python3", "python3-venv", "systemd")
# Words: the system, the layer, the artefacts, then the command.
_ENTER = """
set -e
mount -t overlay -o "lowerdir=$0,upperdir=$1/upper,workdir=$1/work" none "$1/root"
mount -t proc -o ro none "$1/root/proc"
mount -t sysfs -o ro none "$1/root/sys"
mount --bind "$2" "$1/root/mnt"
shift 2
exec "$@"
"""


@dataclass(frozen=True)
class Root:
    """One system, as one test has changed it. The artefacts are in /mnt."""

    system: Path
    layer: Path
    artefacts: Path
    architecture: str

    def run(self, *argv: str, check: bool = True) -> Ran:
        """A command there, as root."""
        entering = ["unshare", "--mount", "--net", "--pid", "--mount-proc", "--fork", "sh", "-c", _ENTER]
        entering += [str(self.system), str(self.layer), str(self.artefacts)]
        words = [*entering, *self._within(argv)]
        done = subprocess.run(words, text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    def _within(self, argv: Sequence[str]) -> list[str | Path]:
        there = self.layer / "root"
        if argv[0] == "rpm":  # it changes roots by itself
            return ["rpm", "--root", there, "--nodeps", "--nosignature", *argv[1:]]
        return foreign.chroot(self.architecture, there, "env", "HOME=/root", "LC_ALL=C.UTF-8", *argv)

    def has(self, name: str) -> bool:
        """Does the file exist there?"""
        return self.run("test", "-e", name, check=False).code == 0


def root(suite: str, layer: Path, artefacts: Path, architecture: str = "x86_64") -> Root:
    """A new Debian of that suite. Skips where one cannot be made."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a system to install into")
    if missing := missing_programs(("debootstrap", *foreign.emulator(architecture))):
        pytest.skip(f"not installed: {', '.join(missing)} (Debian: debootstrap, qemu-user-static)")
    for name in ("upper", "work", "root"):
        (layer / name).mkdir(parents=True)
    return Root(_system(suite, architecture), layer, artefacts, architecture)


def _system(suite: str, architecture: str) -> Path:
    folder = _KEPT / f"{suite}-{architecture}-{digest([' '.join(_PACKAGES).encode()])[:12]}"
    if folder.exists():  # and waits for nobody who builds another
        return folder
    with locked(_KEPT / "build.lock"):
        if folder.exists():
            return folder
        half = folder.with_suffix(".part")
        shutil.rmtree(half, ignore_errors=True)
        try:
            bootstrap(half, suite, architecture, _PACKAGES, _KEPT / "debs")
        except LabError as error:
            pytest.fail(f"no Debian {suite} for {architecture}: {error}")
        half.rename(folder)
    return folder
