"""Programs on this side of the lab, the folder it keeps its state in, and its one error."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = (
    "qemu-img",
    "debootstrap",
    "iasl",
    "mkfs.ext4",
    "sfdisk",
    "ssh",
    "ssh-keygen",
)
SBIN = ("/usr/sbin", "/sbin")


class LabError(Exception):
    """The lab itself failed (not the product in it); the text says what to do or shows the console."""


class EmulatorError(LabError):
    """QEMU failed, and the text proves it: what the test saw says nothing of the product."""


def cache() -> Path:
    """The folder for images and running machines: $TUNECTL_LAB_CACHE or ~/.cache/tunectl-lab."""
    return Path(os.environ.get("TUNECTL_LAB_CACHE") or Path.home() / ".cache" / "tunectl-lab").absolute()


def missing_programs(programs: Sequence[str] = PROGRAMS) -> list[str]:
    """Programs the lab needs and this machine does not have."""
    path = os.pathsep.join((os.environ.get("PATH", ""), *SBIN))
    return [name for name in programs if shutil.which(name, path=path) is None]


def run(argv: Sequence[str | Path], env: Mapping[str, str] | None = None, timeout: float = 1200) -> str:
    """Run a program on this machine and return its output; LabError with the end of that if it fails."""
    path = os.pathsep.join((os.environ.get("PATH", ""), *SBIN))
    try:
        done = subprocess.run(
            [str(word) for word in argv],
            env={**os.environ, "PATH": path, "LC_ALL": "C", **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as error:
        raise LabError(f"{argv[0]} is not installed; see tests/lab/packages.txt") from error
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{argv[0]} did not end within {timeout:.0f} s") from error
    if done.returncode != 0:
        raise LabError(f"{argv[0]} ended with {done.returncode}:\n{tail(done.stdout)}")
    return done.stdout


def tail(text: str, lines: int = 30) -> str:
    """The last lines of a log, indented for an error message."""
    return "\n".join("    " + line for line in text.splitlines()[-lines:])


def digest(parts: Iterable[bytes]) -> str:
    """A short name for a content: changes whenever one of the parts does."""
    sha = hashlib.sha256()
    for part in parts:
        sha.update(len(part).to_bytes(8, "little") + part)
    return sha.hexdigest()[:16]
