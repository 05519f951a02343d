"""Known interruptions: runs of `tunectl-probe jitter` that are interrupted on purpose, for `selftest` to judge."""

import errno
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tunectl.errors import TunectlError
from tunectl.probe.raw import Run, read_raw
from tunectl.probe.selftest import Phase

# What the program writes with these words, as JSON; it asks `answer` what to reply to a line on its standard error.
Measure = Callable[[Sequence[str], Callable[[str], str | None] | None], dict[str, Any]]

STOP_S = 2.5
_LEAD_S = 0.3  # on either side of the stop
_LIMIT_S = 120  # a run ends when all is injected
_SPARE = 32  # injected before those that count: a spinner that says so may still have to wait for its CPU


class Asked(NamedTuple):
    """One kind of interruption."""

    name: str
    kind: str
    asked_ns: int  # how long each is at least; 0: as short as they come
    injected: int
    pause_ns: int = 0
    list_capacity: int = 65536  # gaps the recorder may list


STOP = Asked(f"stopped for {STOP_S} s", "stop", round(STOP_S * 1e9), 1)
PHASES = (
    Asked("interrupt from another CPU", "ipi", 0, 500, 200_000),
    Asked("20 us", "preemption", 20_000, 200, 1_000_000),
    Asked("100 us", "preemption", 100_000, 200, 1_000_000),
    Asked("500 us", "preemption", 500_000, 200, 1_000_000),
    Asked("50,000 in a row", "count", 0, 50_000, 95_000),
    Asked("5,000 with room for 1,000", "loss", 0, 5_000, 95_000, 1_000),
)


def injected(measure: Measure, cpu: int, asked: Asked) -> Phase:
    """One phase as `selftest` judges it."""
    how = "ipi" if asked.kind == "ipi" else "preemption"
    what = f"{how},{asked.injected + _SPARE},{asked.asked_ns},{asked.pause_ns}"
    words = [*_words(cpu, _LIMIT_S), "--events", str(asked.list_capacity), "--inject", what]
    return phase_of(asked, read_raw(measure(words, None)))


def phase_of(asked: Asked, run: Run) -> Phase:
    """What was injected, of the interruptions that count, and what was recorded. Pure."""
    head = (asked.name, asked.kind, asked.asked_ns, asked.injected)
    if error := _why_not(asked, run):
        return Phase(*head, error)
    (cpu,) = run.cpus
    before = sum(start < cpu.tsc_start for start, _ in run.injected.truths[:_SPARE])
    truths = run.injected.truths[before : before + asked.injected]
    if len(truths) < asked.injected:
        raise TunectlError("the self-test was interrupted")
    return Phase(*head, recorded=cpu, truths=truths)


def stopped(measure: Measure, cpu: int) -> tuple[dict[str, Any], Phase]:
    """The same of a program that is stopped and continued, with the program's document.

    Under SCHED_FIFO where that is allowed, so that it does not wait for a CPU first that others want as well.
    """
    for words in (["--fifo", "1"], []):
        stop = _Stop(cpu)
        try:
            document = measure([*_words(cpu, STOP_S + 2 * _LEAD_S), "--wait-for-go", *words], stop.answer)
        except TunectlError:
            if not words:
                raise
            continue
        break
    run = read_raw(document)
    least, most = (round(ns * run.clock.hz / 1e9) for ns in stop.length_ns)
    (recorded,) = run.cpus
    head = (STOP.name, STOP.kind, STOP.asked_ns, STOP.injected)
    return document, Phase(*head, recorded=recorded, stopped_ticks=(least, most), waited_ns=stop.waited_ns)


class _Stop:
    """Stops the program while it measures, and continues it; with stamps on either side of both signals."""

    def __init__(self, cpu: int) -> None:
        self._cpu = cpu
        self.length_ns = (0, 0)  # at least, and at most but for `waited_ns`
        self.waited_ns = 0  # a thread that is continued may have to wait for its CPU
        self._stopping: threading.Thread | None = None

    def answer(self, line: str) -> str | None:
        """What the program is told next; None where the line is none of the dialogue (native/src/jitter/run.h)."""
        word, *rest = line.split()
        if word == "ready":
            spinner = int(rest[1].partition(":")[2])
            self._stopping = threading.Thread(target=self._stop, args=(int(rest[0]), spinner), daemon=True)
            self._stopping.start()
            return "go\n"
        if word == "done" and self._stopping:
            self._stopping.join()
            return ""
        return None

    def _stop(self, pid: int, spinner: int) -> None:
        with suppress(OSError):
            time.sleep(_LEAD_S)
            stamps = [_now()]
            os.kill(pid, signal.SIGSTOP)
            while Path(f"/proc/{pid}/task/{spinner}/stat").read_text().rpartition(")")[2].split()[0] not in "Tt":
                time.sleep(0.0002)
            stamps.append(_now())
            time.sleep(STOP_S)
            waited = _waited_ns(pid, spinner)
            stamps.append(_now())
            os.kill(pid, signal.SIGCONT)
            stamps.append(_now())
            self.length_ns = (stamps[2] - stamps[1], stamps[3] - stamps[0])
            time.sleep(_LEAD_S / 2)
            self.waited_ns = _waited_ns(pid, spinner) - waited


def _now() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def _waited_ns(pid: int, tid: int) -> int:
    """How long the thread has been ready and not running."""
    return int(Path(f"/proc/{pid}/task/{tid}/schedstat").read_text().split()[1])


def _words(cpu: int, duration_s: float) -> list[str]:
    return ["jitter", "--intrude", "--cpus", str(cpu), "--duration", f"{duration_s:g}"]


def _why_not(asked: Asked, run: Run) -> str:
    """Why a phase did not run; "" where it did."""
    number = run.injected.errno
    if asked.kind == "ipi" and not run.facts.main_thread:
        return "there is no other CPU to interrupt from"
    if asked.kind == "ipi" and number in (errno.ENOSYS, errno.EINVAL, errno.EPERM):
        return "this kernel has no membarrier(2) that interrupts"
    if number == errno.EPERM:
        return "SCHED_FIFO is not allowed: it needs CAP_SYS_NICE or `ulimit -r`"
    return os.strerror(number) if number else ""
