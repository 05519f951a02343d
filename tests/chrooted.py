"""A recorded host as the whole machine of a child process: there the product is live, and runs the host's programs."""

import ctypes
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
_CLONE_NEWNS, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x20000, 4096, 16384, 1 << 18  # sched.h, linux/mount.h


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
    """What `act` returns in a child for which the tree is `/`. It imports nothing there: Python is outside.

    Of the kernel's own /proc it has its descriptors; all else there is the tree's. For tests marked needs_mounts.
    """
    (tree / "proc/self/fd").mkdir(parents=True, exist_ok=True)
    read, write = os.pipe()
    if not (pid := os.fork()):
        try:
            _mount_descriptors(tree)
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


def _mount_descriptors(tree: Path) -> None:
    """In a mount namespace of this process, which ends with it."""
    libc = ctypes.CDLL(None, use_errno=True)
    for words in (
        (libc.unshare, _CLONE_NEWNS),
        (libc.mount, None, b"/", None, _MS_REC | _MS_PRIVATE, None),
        (libc.mount, b"/proc/self/fd", bytes(tree / "proc/self/fd"), None, _MS_BIND, None),
    ):
        call, *arguments = words
        if call(*arguments):
            raise OSError(ctypes.get_errno(), "cannot mount /proc/self/fd")
