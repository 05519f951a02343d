"""The one place that starts another program: an argument list, never a shell, a clean environment."""

import os
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from functools import partial
from typing import IO, NamedTuple

from tunectl.errors import TunectlError, cut_line
from tunectl.host.ending import ENDING

# sbin is where update-grub, ethtool and irqbalance live, and is not in a user's PATH on Debian.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


# A program that outlives a killed tunectl still changes the host: with the lock's descriptor it holds the lock, too.
INHERITED: set[int] = set()
_LOOK_S, _LOOKS = 0.01, 200  # until what was killed is gone


class Completed(NamedTuple):
    """A program that has ended: its arguments, exit status and output."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    interrupted: bool = False  # by our Ctrl-C


def run(
    argv: Sequence[str],
    *,
    timeout_s: float | None = None,
    env: Mapping[str, str] | None = None,
    on_stderr: Callable[[str], None] | None = None,
    stdin: str | None = None,
    answer: Callable[[str], str | None] | None = None,
    capture: bool = True,
    group: int | None = None,
    keep: int | None = None,
) -> Completed:
    """Runs a program to its end, its output captured; `on_stderr` is handed each line of stderr as it comes.

    `stdin` is what it reads. With `answer` it reads what that gives for a line of its stderr, each at once; a line that
    is answered is no part of the output, and None is no answer. Without `capture` its output is thrown away, however
    long; `group` is the open cgroup.procs of the control group it starts in; `keep` is a descriptor that stays open in
    the program.
    An exit status other than 0 is the caller's to judge.
    TunectlError where the program cannot be started or outlives `timeout_s`: it and what
    it started are then killed. Ctrl-C is passed on as SIGINT, and what the program then says returned.
    KeyboardInterrupt for a second one, which leaves it alone.
    """
    ENDING.heed()
    output = subprocess.PIPE if capture else subprocess.DEVNULL
    try:
        child = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL if stdin is None and answer is None else subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=_clean(env or {}),
            text=True,
            errors="backslashreplace",
            pass_fds=(*INHERITED, *(() if keep is None else (keep,))),
            start_new_session=True,  # the terminal's Ctrl-C is ours to pass on, once
            preexec_fn=_entry(group),
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise _unstarted(argv, error) from error
    return _collect(child, tuple(argv), timeout_s, on_stderr, stdin, answer)


class Resident:
    """A program that stays and writes lines; reading them never waits. Ends with close(), or with this object."""

    MOST_BYTES = 1 << 16  # of what it says without a newline, and of its last words

    def __init__(
        self,
        argv: Sequence[str],
        place: AbstractContextManager[int | None] | None = None,
        env: Mapping[str, str] | None = None,
        keep: int | None = None,
    ) -> None:
        """TunectlError where it cannot be started. To be called by a thread that lasts (PR_SET_PDEATHSIG).

        `place` gives the open cgroup.procs of the control group it lives in, and is left once it has ended; `keep` is a
        descriptor that stays open in it.
        """
        left = ExitStack()
        group = left.enter_context(place) if place else None
        try:
            self._child = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=_clean(env or {}),
                pass_fds=() if keep is None else (keep,),
                start_new_session=True,
                preexec_fn=_entry(group),
            )
        except (OSError, subprocess.SubprocessError) as error:
            left.close()
            raise _unstarted(argv, error) from error
        self._rest = self._words = b""
        for stream in (self._child.stdout, self._child.stderr):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
        self._end = weakref.finalize(self, _end, self._child, left)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    def lines(self) -> list[str]:
        """The whole lines that came since; one without an end is kept for the next time, and cut if it is long."""
        *whole, self._rest = (self._rest + self._read(self._child.stdout)).split(b"\n")
        self._rest = self._rest[-self.MOST_BYTES :]
        return [line.decode("utf-8", "backslashreplace") for line in whole]

    def ended(self) -> str | None:
        """Why it is not there any more: its last words, or its exit status; None while it runs."""
        lines = [line for line in self.words() if line.strip()]
        if self._child.poll() is None:
            return None
        return reason_of(self._child.returncode, lines)

    def words(self) -> list[str]:
        """The lines of its stderr so far, the last of them."""
        self._words = (self._words + self._read(self._child.stderr))[-self.MOST_BYTES :]
        return self._words.decode("utf-8", "backslashreplace").splitlines()

    def finish(self, patience_s: float) -> int | None:
        """Asks it to end, and kills it and what it started after `patience_s`. Its exit status; None if it was killed.

        Its last words can still be read; close() is still needed.
        """
        self._child.terminate()
        try:
            status: int | None = self._child.wait(patience_s)
        except subprocess.TimeoutExpired:
            status = None
        if status is None:
            self._child.kill()
            self._child.wait()
        try:
            os.kill(self._child.pid, 0)  # somebody else may have its number by now
        except ProcessLookupError:
            _kill_all(self._child.pid)  # it led a session of its own
        except PermissionError:
            pass
        return status

    def close(self) -> None:
        """Ends it and waits until it has."""
        self._end()

    def _read(self, stream: IO[bytes] | None) -> bytes:
        assert stream is not None
        return (stream.read(self.MOST_BYTES) or b"") if not stream.closed else b""


def _kill_all(group: int) -> None:
    """Kills what is left of a group of processes, and waits until nothing is; one that the kernel holds may stay."""
    for _ in range(_LOOKS):
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            return
        time.sleep(_LOOK_S)


def reason_of(returncode: int, lines: Sequence[str]) -> str:
    """Why a program failed: its last words, or else how it ended. One that was killed had no time for words."""
    if returncode < 0:
        name = f"signal {-returncode}"
        with suppress(ValueError):  # those of real time have no names
            name = signal.Signals(-returncode).name
        return f"it was killed by {name}"
    return cut_line(lines[-1]) if lines else f"it ended with status {returncode}"


def _clean(more: Mapping[str, str]) -> dict[str, str]:
    """The environment: nothing of the caller's but where its home is."""
    return {"PATH": PATH, "LC_ALL": "C", "HOME": os.environ.get("HOME", "/"), **more}


def _entry(group: int | None) -> Callable[[], object] | None:
    """What puts a program into a control group. "0": the writer itself."""
    # One write(2) between fork and exec takes no lock that another thread may hold.
    return None if group is None else partial(os.write, group, b"0")


def _unstarted(argv: Sequence[str], error: Exception) -> TunectlError:
    """A SubprocessError says that the control group would not take it."""
    return TunectlError(f"cannot start {argv[0]}: {getattr(error, 'strerror', error)}")


def _end(child: subprocess.Popen[bytes], left: ExitStack) -> None:
    child.terminate()
    try:
        child.wait(2)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()
    left.close()


def _collect(
    child: subprocess.Popen[str],
    argv: tuple[str, ...],
    timeout_s: float | None,
    on_stderr: Callable[[str], None] | None,
    stdin: str | None,
    answer: Callable[[str], str | None] | None,
) -> Completed:
    out: list[str] = []
    err: list[str] = []
    told = child.stdin if answer else None

    def drain_stdout() -> None:
        if child.stdout:
            out.append(child.stdout.read())

    def drain_stderr() -> None:
        # Closed, whatever happens: the program then waits for nothing any more.
        with suppress(OSError), told or nullcontext():
            for line in child.stderr or ():
                if answer and (said := answer(line.rstrip("\n"))) is not None:
                    _say(told, said)
                    continue
                err.append(line)
                if on_stderr:
                    on_stderr(line.rstrip("\n"))

    fed = None if told else child.stdin
    work = ((child.stdout, drain_stdout), (child.stderr, drain_stderr), (fed, partial(_fill, child, stdin)))
    threads = [threading.Thread(target=each, daemon=True) for pipe, each in work if pipe]
    _begin(threads, child, argv[0])
    try:
        interrupted = _waited(child, timeout_s)
    except subprocess.TimeoutExpired as error:
        _kill(child)
        raise TunectlError(f"{argv[0]} did not end within {timeout_s:g} s and was stopped") from error
    for thread in threads:
        thread.join(timeout=5)
    return Completed(argv, child.returncode, "".join(out), "".join(err), interrupted)


def _begin(threads: Sequence[threading.Thread], child: subprocess.Popen[str], name: str) -> None:
    try:
        for thread in threads:
            thread.start()
    except RuntimeError as error:  # of threads or memory there is no more
        _kill(child)
        raise TunectlError(f"{name} was stopped: {error} to read what it says") from error


def _fill(child: subprocess.Popen[str], text: str | None) -> None:
    with suppress(OSError):  # a program need not read what it is given
        if child.stdin:
            with child.stdin as pipe:
                pipe.write(text or "")


def _say(told: IO[str] | None, text: str) -> None:
    with suppress(OSError):  # it may have ended
        if told and text:
            told.write(text)
            told.flush()


def _kill(child: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)  # it leads a session of its own: what it started goes with it
    child.wait()


def _waited(child: subprocess.Popen[str], timeout_s: float | None) -> bool:
    """Until it has ended; was it asked to, by Ctrl-C?"""
    try:
        with ENDING.awaited():
            child.wait(timeout_s)
        return False
    except KeyboardInterrupt:
        child.send_signal(signal.SIGINT)
        child.wait(10)
        return True
