"""What a release is made for: architectures, and the systems that get a package. A new one is a new row here."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
HERE = ROOT / ".release"


class ReleaseError(Exception):
    """Why there is no release, in one line."""


class System(NamedTuple):
    """One system that gets a package of its own."""

    name: str
    packager: str  # "deb" or "rpm", as nFPM calls it
    python: str  # of its virtual environment, and of the compiled wheels in it
    program: str  # that Python, by its path there
    glibc: int  # 36 for 2.36: the newest platform tag that it takes
    revision: str  # behind the version: what an upgrade of the system compares
    depends: tuple[str, ...]
    needs_first: tuple[str, ...] = ()  # without these dpkg does not even unpack it, and so replaces no other version


def _debian(name: str, number: int, python: int, glibc: int) -> System:
    fits = (f"python3 (>= 3.{python})", f"python3 (<< 3.{python + 1})")
    program, revision = f"/usr/bin/python3.{python}", f"1+deb{number}"
    return System(name, "deb", f"3.{python}", program, glibc, revision, ("libc6 (>= 2.28)",), fits)


SYSTEMS = (
    _debian("bookworm", 12, 11, 36),
    _debian("trixie", 13, 13, 41),
    System("el9", "rpm", "3.11", "/usr/bin/python3.11", 34, "1.el9", ("python3.11",)),
)
# The kernel's name of each machine, and Debian's; nFPM makes the .rpm's of Debian's.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def platforms(system: System, machine: str) -> list[str]:
    """The platform tags of wheels that run there, for pip, which compares them as text."""
    return [*(f"manylinux_2_{minor}_{machine}" for minor in range(system.glibc, 4, -1)), f"manylinux2014_{machine}"]


def pip_options(system: System, machine: str) -> list[str]:
    """Pip's options for that system's Python instead of the one that runs."""
    named = [word for platform in platforms(system, machine) for word in ("--platform", platform)]
    return ["--only-binary=:all:", "--implementation", "cp", "--python-version", system.python, *named]


def run(argv: list[str], where: Path = ROOT, variables: dict[str, str] | None = None) -> str:
    """The output of a program. ReleaseError with the end of what it said where it fails."""
    done = subprocess.run(argv, cwd=where, env=variables, text=True, capture_output=True, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr)[-2000:].strip()
        raise ReleaseError(f"{' '.join(argv)} failed with {done.returncode}: {said}")
    return done.stdout
