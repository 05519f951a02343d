"""Machines of test sessions that were killed: their names say which session, so a dead one's can go."""

import os
import shutil
from pathlib import Path

from . import process
from .shell import cache

PREFIX = "pytest"


def session_name(worker: str) -> str:
    """The name of this test process's machine."""
    return f"{PREFIX}-{worker}-{os.getpid()}"


def sweep() -> None:
    """End and remove the machines of sessions that no longer run."""
    for folder in (cache() / "run").glob(f"{PREFIX}-*"):
        session = folder.name.removesuffix(".saved").rpartition("-")[2]
        if Path("/proc", session).exists():
            continue
        if owned := process.load(folder / "process.json"):
            owned.kill()
        shutil.rmtree(folder, ignore_errors=True)
