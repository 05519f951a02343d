"""A probe while it runs: when it measures, on which CPUs its threads are, and what a stop of it must look like.

Nothing here waits for a fixed time. A busy machine starts a process late, and lets its threads wait for a CPU; the
kernel says both, in /proc/PID/task/TID/schedstat and stat (proc(5), Documentation/scheduler/sched-stats.rst).
"""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tunectl.cpulist import CpuSet, parse_cpulist

# A run that a test ends itself. Bounded, so that a signal that is never heard fails the test, and blocks nobody.
ENDED_BY_TEST_S = 60
PATIENCE_S = 60  # for what comes at once where nobody else wants the CPU
# Calibration, warm-up and the wait for the common start take a worker some 30 ms of CPU time.
_MEASURING_NS = 60_000_000


class Thread(NamedTuple):
    tid: int
    name: str
    allowed: CpuSet
    cpu: int  # where it runs, or ran last
    ran_ns: int
    waited_ns: int  # ready to run, and not running


def numbered(folder: str | Path) -> list[Path]:
    """What has a number in a folder of /proc, by that; nothing once the folder is gone (Path.glob may raise then)."""
    with suppress(OSError):
        found = [path for path in Path(folder).iterdir() if path.name.isdecimal()]
        return sorted(found, key=lambda path: int(path.name))
    return []


def threads(pid: int) -> list[Thread]:
    """The threads of a process, its main thread first; none once it has ended."""
    found = []
    for task in numbered(f"/proc/{pid}/task"):
        with suppress(OSError, IndexError):  # a thread may end meanwhile
            status = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
            last_cpu = int((task / "stat").read_text().rpartition(")")[2].split()[36])
            ran_ns, waited_ns, _ = map(int, (task / "schedstat").read_text().split())
            allowed = parse_cpulist(status["Cpus_allowed_list"])
            found.append(Thread(int(task.name), status["Name"], allowed, last_cpu, ran_ns, waited_ns))
    return found


def until_measuring(pid: int, workers: int = 1, *, has_main: bool = True) -> list[Thread]:
    """The threads that measure, once each has used more CPU time than what comes before the measuring takes.

    The main thread is none of them, unless the process is all workers (`has_main=False`). None where it ended before it
    had so much, as a short run does on a very busy machine.
    """
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and not has_ended(pid):
        busy = [one for one in threads(pid) if not (has_main and one.tid == pid) and one.ran_ns > _MEASURING_NS]
        if len(busy) >= workers:
            return busy
        time.sleep(0.005)
    return []


def has_ended(pid: int) -> bool:
    """Gone, or a zombie that nobody has asked about yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def until_ended(pid: int, limit_s: float = PATIENCE_S) -> bool:
    """Whether it has ended within so long."""
    deadline = time.monotonic() + limit_s
    while not (ended := has_ended(pid)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return ended


def links(pid: int) -> dict[int, str]:
    """What the open descriptors of a process are, by number."""
    found = {}
    for path in numbered(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):  # it may be closed meanwhile
            found[int(path.name)] = os.readlink(path)
    return found


def until_child(pid: int) -> int:
    """The process that this one starts."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for task in numbered(f"/proc/{pid}/task"):
            with suppress(OSError):  # a thread may end meanwhile
                if children := (task / "children").read_text().split():
                    return int(children[0])
        time.sleep(0.005)
    raise AssertionError(f"process {pid} starts none")


def until_named(pid: int, *names: str) -> list[Thread]:
    """The threads of these names, once all are there; AssertionError where the process ends before."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and not has_ended(pid):
        found = [one for one in threads(pid) if one.name in names]
        if len(found) == len(names):
            return found
        time.sleep(0.005)
    stands = "has ended" if has_ended(pid) else f"runs, with {threads(pid)}"
    raise AssertionError(f"process {pid} has no threads {names}: it {stands}")


def until_pinned(pid: int, cpu: int) -> Thread:
    """The process's first thread, once it may run on this CPU alone: what it follows and heeds is set by then."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and not has_ended(pid):
        if (found := threads(pid)) and found[0].allowed == {cpu}:
            return found[0]
        time.sleep(0.005)
    raise AssertionError(f"process {pid} is not on CPU {cpu} alone: {threads(pid)}")


class Stop(NamedTuple):
    """How long a stopped process was away, by stamps on both sides of either signal."""

    least_ns: int
    most_ns: int  # right only while the process goes on


def stop_for(child: subprocess.Popen[str], seconds: float) -> Stop:
    """Stops the process for so long.

    What waits for a busy CPU meanwhile moves the ends of the stop. The spinner may have been waiting when the stop
    came, or wait when it is woken, and its gap is longer; the thread that takes the signal for all may wait before it
    does, and the gap is shorter.
    """
    waited = _waited_ns(child.pid)
    before_stop = time.monotonic_ns()
    child.send_signal(signal.SIGSTOP)
    after_stop = time.monotonic_ns()
    time.sleep(seconds)
    late = _waited_ns(child.pid) - waited
    before_continue = time.monotonic_ns()
    child.send_signal(signal.SIGCONT)
    after_continue = time.monotonic_ns()
    _until_running(child.pid)  # so that the spinner's wait is counted
    waited = _waited_ns(child.pid) - waited
    return Stop(before_continue - after_stop - late, after_continue - before_stop + waited)


def _until_running(pid: int) -> None:
    before = sum(one.ran_ns for one in threads(pid))
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and sum(one.ran_ns for one in threads(pid)) < before + 20_000_000:
        if has_ended(pid):
            return
        time.sleep(0.005)


def _waited_ns(pid: int) -> int:
    return sum(one.waited_ns for one in threads(pid))
