"""A program that is run to its end with everything that it starts: nothing of that stays, whatever session it is in.

Run as a file of its own, by an interpreter without packages: `python -I -S reaper.py PROGRAM WORD...`. Who loses his
parent below it becomes its child (PR_SET_CHILD_SUBREAPER, for which nobody has to be root), and so is found and ended.
SIGTERM is passed on; what does not heed it is killed. It ends as the program did. Source: prctl(2).
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

PATIENCE_S = 8.0  # from SIGTERM until what is left is killed
UNWILLING = 125  # the exit status where the program had to be killed
_KILLED_S = 5.0  # until what was killed is gone; what the kernel holds may stay
_LOOK_S = 0.01
_SUBREAPER, _DEATHSIG = 36, 1  # PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG of linux/prctl.h
_HEARD = (signal.SIGTERM, signal.SIGCHLD)


def main(argv: Sequence[str]) -> NoReturn:
    """Runs this program."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    program = os.fork()
    if not program:
        prctl(_DEATHSIG, signal.SIGTERM, 0, 0, 0)  # for the case that this one is killed
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
        os.execv(argv[0], [*argv])  # noqa: S606  # an argument list
    status = _ended(program)
    _kill_all()
    if status is None:
        os._exit(UNWILLING)
    if (code := os.waitstatus_to_exitcode(status)) < 0 and -code not in (signal.SIGSTOP, signal.SIGKILL):
        signal.signal(-code, signal.SIG_DFL)
    if code < 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [-code])
        os.kill(os.getpid(), -code)
    os._exit(max(code, 0))


def _ended(program: int) -> int | None:
    """How it ended; None where it did not do so within the patience after SIGTERM."""
    deadline = float("inf")
    while (now := time.monotonic()) < deadline:
        heard = signal.sigtimedwait(_HEARD, min(deadline - now, 3600.0))
        if heard and heard.si_signo == signal.SIGTERM:
            deadline = min(deadline, time.monotonic() + PATIENCE_S)
            os.kill(program, signal.SIGTERM)
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == program:
                    return found[1]
    return None


def _kill_all() -> None:
    """Kills all children; theirs are ours then.

    By /proc/PID/stat, field 4: the kernel's own list of them is an option of its configuration.
    """
    deadline = time.monotonic() + _KILLED_S
    while time.monotonic() < deadline:
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with suppress(OSError), open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                if file.read().rpartition(")")[2].split()[1] == str(os.getpid()):
                    os.kill(int(name), signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(_LOOK_S)


if __name__ == "__main__":
    main(sys.argv[1:])
