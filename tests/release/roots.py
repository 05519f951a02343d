"""Bare Debian systems to install into: each built once for all runs, and never written to.

A command runs in mount, network and process namespaces of its own: the system below, a test's own layer above it. So
nothing stays mounted, and an installation reaches no network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab.image import locked, mirror
from tests.lab.shell import LabError, digest, run
from tests.ran import Ran

_KEPT = Path(os.environ.get("TUNECTL_ROOTS_CACHE") or "/var/tmp/tunectl-roots")
# What a host has that runs tunectl: no compiler. systemd is there to judge the units, procps for the `kill` in them.
_PACKAGES = ("procps", "python3", "python3-venv", "systemd")
# Words: the system, the layer, the artefacts, then the command. rpm changes roots by itself.
_ENTER = """
set -e
mount -t overlay -o "lowerdir=$0,upperdir=$1/upper,workdir=$1/work" none "$1/root"
mount -t proc -o ro none "$1/root/proc"
mount -t sysfs -o ro none "$1/root/sys"
mount --bind "$2" "$1/root/mnt"
layer=$1; shift 2
if [ "$1" = rpm ]; then shift; exec rpm --root "$layer/root" --nodeps --nosignature "$@"; fi
set -- PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
exec chroot "$layer/root" /usr/bin/env -i "$@"
"""


@dataclass(frozen=True)
class Root:
    """One system, as one test has changed it. The artefacts are in /mnt."""

    system: Path
    layer: Path
    artefacts: Path

    def run(self, *argv: str, check: bool = True) -> Ran:
        """A command there, as root."""
        entering = ["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c", _ENTER]
        entering += [str(self.system), str(self.layer), str(self.artefacts)]
        done = subprocess.run([*entering, *argv], text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    def has(self, name: str) -> bool:
        """Does the file exist there?"""
        return self.run("test", "-e", name, check=False).code == 0


def root(suite: str, layer: Path, artefacts: Path) -> Root:
    """A new Debian of that suite. Skips where one cannot be made."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a system to install into")
    if shutil.which("debootstrap", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip("no debootstrap here")
    for name in ("upper", "work", "root"):
        (layer / name).mkdir(parents=True)
    return Root(_system(suite), layer, artefacts)


def _system(suite: str) -> Path:
    folder = _KEPT / f"{suite}-{digest([' '.join(_PACKAGES).encode()])[:12]}"
    with locked(_KEPT / "build.lock"):
        if folder.exists():
            return folder
        half, archives = folder.with_suffix(".part"), _KEPT / "debs"
        shutil.rmtree(half, ignore_errors=True)
        archives.mkdir(exist_ok=True)
        words = ["--variant=minbase", f"--cache-dir={archives}", f"--include={','.join(_PACKAGES)}"]
        try:
            run(["debootstrap", *words, suite, half, mirror(suite)], env={"DEBIAN_FRONTEND": "noninteractive"})
        except LabError as error:
            pytest.fail(f"no Debian {suite}: {error}")
        half.rename(folder)
    return folder
