"""The names of test sessions' machines and saved states: they say which process's they are, so a dead one's can go."""

import os
import shutil
from pathlib import Path

from . import process
from .shell import cache

PREFIX = "pytest"


def session_name(worker: str) -> str:
    """The name of this test process's machine."""
    return f"{PREFIX}-{worker}-{os.getpid()}"


def states_name(platform: str) -> str:
    """The name for a platform's states, shared by all workers of this session: by the process that started them."""
    return f"{PREFIX}-{platform}-{os.getppid() if 'PYTEST_XDIST_WORKER' in os.environ else os.getpid()}"


def forget_states() -> None:
    """Remove what this session's workers saved."""
    for folder in (cache() / "run").glob(f"{states_name('*')}.saved"):
        shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """End and remove the machines of sessions that no longer run."""
    for folder in (cache() / "run").glob(f"{PREFIX}-*"):
        session = folder.name.removesuffix(".saved").rpartition("-")[2]
        if Path("/proc", session).exists():
            continue
        if owned := process.load(folder / "process.json"):
            owned.kill()
        shutil.rmtree(folder, ignore_errors=True)
