"""A recorded host as the whole machine of a child process: there the product is live, and runs the host's programs."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import tunectl

PROFILES = Path(tunectl.__file__).parent / "profiles"
Answer = TypeVar("Answer")
_SHELL = "/bin/sh"


def furnish(tree: Path) -> None:
    """/bin/sh with the libraries that it needs, so that scripts run in the tree, and the profiles that we ship."""
    needed = subprocess.run(["ldd", _SHELL], capture_output=True, text=True, check=True).stdout
    for path in (_SHELL, *re.findall(r"/\S+", needed)):
        target = tree / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.copytree(PROFILES, tree / str(PROFILES).lstrip("/"))
    (tree / "dev").mkdir(exist_ok=True)
    (tree / "dev/null").touch()


def script(tree: Path, path: str, *lines: str) -> None:
    """An executable shell script at `path` in the tree."""
    target = tree / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    target.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    target.chmod(0o755)


def inside(tree: Path, act: Callable[[], Answer]) -> Answer:
    """What `act` returns in a child for which the tree is `/`. It imports nothing there: Python is outside."""
    read, write = os.pipe()
    if not (pid := os.fork()):
        try:
            os.chroot(tree)
            os.chdir("/")
            answer: object = act()
        except BaseException as error:
            answer = AssertionError(f"{type(error).__name__}: {error}")
        with open(write, "wb") as pipe:
            pipe.write(pickle.dumps(answer))
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        answer = pickle.loads(pipe.read())
    os.waitpid(pid, 0)
    if isinstance(answer, AssertionError):
        raise answer
    return answer  # type: ignore[return-value]
