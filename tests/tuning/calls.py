"""The system calls by which Python reaches files, each handed to a watcher before it is made.

The work runs in a forked child, so that it can be killed and leaves nothing behind in this process.
"""

import builtins
import os
import pickle
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
Kind = Callable[[str, tuple[Any, ...]], bool]
Watcher = Callable[[str, tuple[Any, ...], dict[str, Any]], None]

CHANGING = (
    *("write", "pwrite", "fsync", "rename", "replace", "link", "symlink", "unlink", "mkdir", "rmdir"),
    *("ftruncate", "truncate", "fchmod", "chmod", "fchown"),
)
READING = ("read", "pread", "readlink", "listdir", "scandir", "stat", "lstat", "fstat", "lseek")
_FOR_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def changes(name: str, args: tuple[Any, ...]) -> bool:
    """Can this call change a file, or what a later one writes? An open for reading cannot."""
    if name == "open":
        return bool(args[1] & _FOR_WRITING)
    return name in CHANGING


def looks(name: str, args: tuple[Any, ...]) -> bool:
    """Does this call only read?"""
    return not changes(name, args)


@contextmanager
def watched(before: Watcher | None = None, after: Callable[..., None] | None = None) -> Iterator[None]:
    """Inside, `before` is called ahead of each call, and `after` with its result behind each that succeeded."""
    patch = pytest.MonkeyPatch()

    def around(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if before:
                before(name, args, kwargs)
            result = real(*args, **kwargs)
            if after:
                after(name, args, result)
            return result

        return call

    for name in ("open", *CHANGING, *READING):
        patch.setattr(os, name, around(name, getattr(os, name)))
    patch.setattr(builtins, "open", around("builtins.open", builtins.open))
    try:
        yield
    finally:
        patch.undo()


def in_child(work: Callable[[], T]) -> T | None:
    """What `work` returns in a forked child; None where the child was killed. AssertionError where it raised."""
    with tempfile.TemporaryFile() as answer:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                pickle.dump(work(), answer)
                answer.flush()
                status = 0
            except BaseException:
                traceback.print_exc()
            os._exit(status)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            return None
        assert status == 0
        answer.seek(0)
        result: T = pickle.load(answer)
        return result


def killed_at(count: int, work: Callable[[], object]) -> bool:
    """Runs `work` in a child that is killed before its count-th changing call. True if it was, False if it ended."""
    left = count

    def kill(name: str, args: tuple[Any, ...], _: dict[str, Any]) -> None:
        nonlocal left
        left -= changes(name, args)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def child() -> bool:
        with watched(kill):
            work()
        return True

    return in_child(child) is None


def count_calls(kind: Kind, work: Callable[[], object]) -> int:
    """How many calls of a kind `work` makes; what it does is done."""
    calls = 0

    def count(name: str, args: tuple[Any, ...], _: dict[str, Any]) -> None:
        nonlocal calls
        calls += kind(name, args)

    def child() -> int:
        with watched(count):
            work()
        return calls

    return in_child(child) or 0


def failing_at(place: int, kind: Kind, number: int, work: Callable[[], T], *, lasting: bool = False) -> T | None:
    """What `work` returns when its place-th call of a kind (0: each of them) fails with this errno.

    With `lasting` all later ones that need space on the disk fail, too.
    """
    left = place

    def fail(name: str, args: tuple[Any, ...], _: dict[str, Any]) -> None:
        nonlocal left
        left -= kind(name, args)
        if ((left == 0 or not place) and kind(name, args)) or (lasting and left <= 0 and needs_space(name, args)):
            where = next((arg for arg in args if isinstance(arg, str)), None)
            raise OSError(number, os.strerror(number), where)

    def child() -> T:
        with watched(fail):
            return work()

    return in_child(child)


def on(name: str, ending: str) -> Kind:
    """The calls of this name on a path that ends so."""
    return lambda called, args: called == name and bool(args) and str(args[0]).endswith(ending)


def needs_space(name: str, args: tuple[Any, ...]) -> bool:
    """May a full disk refuse this call? An unlink or a read it does not."""
    if name == "open":
        return bool(args[1] & os.O_CREAT)
    return name in ("write", "pwrite", "fsync", "rename", "replace", "link", "symlink", "mkdir")
