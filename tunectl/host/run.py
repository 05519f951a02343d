"""The one place that starts another program: an argument list, never a shell, a clean environment."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from tunectl.errors import TunectlError

# sbin is where update-grub, ethtool and irqbalance live, and is not in a user's PATH on Debian.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


# A program that outlives a killed tunectl still changes the host: with the lock's descriptor it holds the lock, too.
INHERITED: set[int] = set()


class Completed(NamedTuple):
    """A program that has ended: its arguments, exit status and output."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str


def run(
    argv: Sequence[str],
    *,
    timeout_s: float | None = None,
    env: Mapping[str, str] | None = None,
    on_stderr: Callable[[str], None] | None = None,
    stdin: str | None = None,
    capture: bool = True,
) -> Completed:
    """Runs a program to its end, its output captured; `on_stderr` is handed each line of stderr as it comes.

    `stdin` is what it reads; without `capture` its output is thrown away, however long. An exit status other than 0
    is the caller's to judge. TunectlError where the program cannot be started or outlives `timeout_s`: it and what
    it started are then killed. Ctrl-C is passed on as SIGINT, and what the program then says returned.
    """
    output = subprocess.PIPE if capture else subprocess.DEVNULL
    clean = {"PATH": _PATH, "LC_ALL": "C", "HOME": os.environ.get("HOME", "/"), **(env or {})}
    try:
        child = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=clean,
            text=True,
            errors="backslashreplace",
            pass_fds=tuple(INHERITED),
            start_new_session=True,  # the terminal's Ctrl-C is ours to pass on, once
        )
    except OSError as error:
        raise TunectlError(f"cannot start {argv[0]}: {error.strerror}") from error
    return _collect(child, tuple(argv), timeout_s, on_stderr, stdin)


def _collect(
    child: subprocess.Popen[str],
    argv: tuple[str, ...],
    timeout_s: float | None,
    on_stderr: Callable[[str], None] | None,
    stdin: str | None,
) -> Completed:
    out: list[str] = []
    err: list[str] = []

    def drain_stdout() -> None:
        if child.stdout:
            out.append(child.stdout.read())

    def drain_stderr() -> None:
        for line in child.stderr or ():
            err.append(line)
            if on_stderr:
                on_stderr(line.rstrip("\n"))

    work = ((child.stdout, drain_stdout), (child.stderr, drain_stderr), (child.stdin, partial(_fill, child, stdin)))
    threads = [threading.Thread(target=each, daemon=True) for pipe, each in work if pipe]
    for thread in threads:
        thread.start()
    if not _ended(child, timeout_s):
        raise TunectlError(f"{argv[0]} did not end within {timeout_s:g} s and was stopped")
    for thread in threads:
        thread.join(timeout=5)
    return Completed(argv, child.returncode, "".join(out), "".join(err))


def _fill(child: subprocess.Popen[str], text: str | None) -> None:
    with suppress(OSError):  # a program need not read what it is given
        if child.stdin:
            with child.stdin as pipe:
                pipe.write(text or "")


def _ended(child: subprocess.Popen[str], timeout_s: float | None) -> bool:
    try:
        _wait(child, timeout_s)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # it leads a session of its own: what it started goes with it
        child.wait()
        return False
    return True


def _wait(child: subprocess.Popen[str], timeout_s: float | None) -> None:
    try:
        child.wait(timeout_s)
    except KeyboardInterrupt:
        child.send_signal(signal.SIGINT)
        child.wait(10)
