"""A trace of the kernel beside a run of the probe: our own instance, made before, read while it is written, removed.

The native program says on its standard error when its threads stand ready, and waits. What is asked of it, and what it
says, is a dialogue of lines (native/src/jitter/dialogue.c):

    ready 700 2:701 3:702    the program's main thread, and of each CPU the thread that will measure there
    fault                    asked: how long does a page fault take?
    fault 1234               in ticks of the counter
    go                       asked: measure
    until 3 123 456 tsc      a gap of the length of --until ended the run: on CPU 3, with its stamps of that counter
    done                     measured; what comes now is not of interest

The buffers are read on a timer, and never waited for: a reader that polls or blocks makes the kernel interrupt the CPU
that writes, to wake it (kernel/trace/ring_buffer.c, rb_wakeups). Between two looks a buffer has room for a second of
50,000 events; what finds no room is counted, and the pages say where it is missing.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType

from tunectl.cpulist import CpuSet
from tunectl.host.procs import hidden_threads
from tunectl.host.sysroot import Sysroot
from tunectl.host.tracefs import OwnInstance, TracePipe, events_of, find_place, mark
from tunectl.probe.attribution import CpuTrace, Traced
from tunectl.probe.traceclock import CLOCKS, CLOCKSOURCE, COUNTER, RAW, refusal
from tunectl.probe.tracepages import WANTED, Kernel, Layout, events_lost, parse_page, with_a_hole

_BUFFER_KIB = 4096
_LOOK_S = 0.1
# What is kept: a CPU lists 65,536 gaps unless it is asked for more, and this holds two million events.
_KEPT_MOST = 64 << 20
_MEMORY_SHARE = 8
_AS_TRACED = {"tsc": COUNTER}  # what tracing calls a counter of the probe, where it has it
_FAULT = "exceptions/page_fault_user"
# Nothing but events in the pages, and the latest ones kept, whatever options the host's main instance has.
_OPTIONS = ("overwrite", "nostacktrace", "nouserstacktrace")
_OTHER_NUMBERS = "the trace has the host's numbers of threads, and the probe's are others in this PID namespace"
_NO_TRACEFS = "tracefs is not mounted (mount -t tracefs nodev /sys/kernel/tracing)"


class Tracer:
    """Answers the native program, and traces the CPUs that it measures. For one run, within a `with`.

    With `keeps_last`, where there is not room for all of the trace, its end is kept; otherwise its begin.
    """

    def __init__(self, root: Sysroot, keeps_last: bool = False) -> None:
        self._root = root
        self._keeps_last = keeps_last
        self._clock = ""
        self._reason = "the probe ended before it was traced"
        self._left_behind = ""
        self._main = 0
        self._threads: Mapping[int, int] = {}
        self._instance: OwnInstance | None = None
        self._faults: list[int] = []
        self._events: list[str] = []
        self._place = ""
        self._readers: list[_Reader] = []
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Tracer:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    def answer(self, line: str) -> str | None:
        """What the program is told next; None where the line is none of the dialogue's."""
        word, _, rest = line.partition(" ")
        if word == "until":
            self._mark(rest)
            return ""
        if word == "done":
            self._switch_off()
            return ""
        if word not in ("ready", "fault"):
            return None
        try:
            return self._prepare(rest) if word == "ready" else self._next(int(rest))
        except OSError as error:
            self._reason = f"tracing could not be set up: {error.strerror}"
        return "go\n"

    def result(self) -> Traced:
        """What was traced, once the program has ended; the instance is gone then."""
        if self._reason:
            self._end()
            return Traced(self._reason, left_behind=self._left_behind)
        self._switch_off()
        self._stop_reading()
        try:
            traced = self._traced()
        except OSError as error:
            traced = Traced(f"the trace cannot be read: {error.strerror}")
        self._end()
        return traced._replace(left_behind=self._left_behind)

    def _mark(self, words: str) -> None:
        """Into our own trace, by way of a CPU that is not measured, and into the host's own."""
        if self._instance:
            with suppress(OSError):
                self._instance.confine(frozenset(self._threads) | frozenset(os.sched_getaffinity(0)))
                self._instance.write("trace_marker", marker(words))
        mark(self._root, marker(words))

    def _prepare(self, words: str) -> str:
        """An instance, off, for the CPUs of `700 2:701 3:702`. OSError, with self._reason, where that cannot be had."""
        main, *pairs = words.split()
        self._main = int(main)
        self._threads = {int(cpu): int(tid) for cpu, _, tid in (pair.partition(":") for pair in pairs)}
        if hidden_threads(self._root):
            self._reason = _OTHER_NUMBERS
            return "go\n"
        place = find_place(self._root)
        if place is None:
            self._reason = _NO_TRACEFS
            return "go\n"
        self._place = place
        try:
            self._instance = OwnInstance(self._root, place)
        except OSError as error:
            self._reason = f"an instance of the kernel's tracing cannot be made in /{place}: {error.strerror}"
            return "go\n"
        if refused := self._choose_clock(self._instance):
            self._reason = f"this kernel's tracing has no clock that can be compared with the probe's: {refused}"
            return "go\n"
        for option in _OPTIONS:
            with suppress(OSError):
                self._instance.write("trace_options", option)
        return "fault\n"

    def _choose_clock(self, instance: OwnInstance) -> str:
        """Has the stamps be of the probe's counter, or of a clock that the kernel makes of it; why not, or ""."""
        refused = []
        for clock in CLOCKS:
            if clock == RAW and (why := refusal(self._root.get(CLOCKSOURCE))):
                refused.append(why)
                continue
            try:
                instance.write("trace_clock", clock)
            except OSError as error:
                refused.append(f"{clock}: {error.strerror}")
            else:
                self._clock = clock
                return ""
        return "; ".join(refused)

    def _next(self, ticks: int) -> str:
        """A page fault is the one traced thing that a thread brings about at will: timed without its event and with."""
        assert self._instance
        self._faults.append(ticks)
        if len(self._faults) == 1:
            self._enable(self._instance)
            if not self._events:
                self._reason = "this kernel has none of the events"
                return "go\n"
            if _FAULT in self._events:
                return "fault\n"
        self._instance.switch(False)
        self._begin(self._instance)
        return "go\n"

    def _enable(self, instance: OwnInstance) -> None:
        """Switching events on patches the kernel's code, which interrupts every CPU for a moment: before the run."""
        instance.confine(frozenset(os.sched_getaffinity(self._main)))
        for event in events_of(self._root, self._place, WANTED):
            with suppress(OSError):
                instance.write(f"events/{event}/enable", "1")
                self._events.append(event)
        instance.switch(True)

    def _begin(self, instance: OwnInstance) -> None:
        cpus: CpuSet = frozenset(self._threads)
        instance.confine(cpus)
        for cpu in cpus:
            instance.write(f"per_cpu/cpu{cpu}/buffer_size_kb", str(_BUFFER_KIB))
        layout = parse_page(self._root.read_text(f"{self._place}/events/header_page"))
        available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGESIZE")
        most = min(_KEPT_MOST, available // _MEMORY_SHARE // max(len(cpus), 1))
        for cpu in sorted(cpus):
            self._readers.append(_Reader(cpu, TracePipe(instance, cpu), layout, most, self._keeps_last))
        instance.switch(True)
        self._reason = ""
        self._thread = threading.Thread(target=self._read, name="tunectl-trace", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._is_over.wait(_LOOK_S):
            for reader in self._readers:
                reader.look()

    def _traced(self) -> Traced:
        assert self._instance
        for reader in self._readers:
            reader.look()
        cpus = {}
        for reader in self._readers:
            stats = self._instance.read(f"per_cpu/cpu{reader.cpu}/stats")
            lost = events_lost(stats, reader.is_full)
            cpus[reader.cpu] = CpuTrace(self._threads[reader.cpu], reader.kept(), lost, reader.is_full, reader.is_late)
        at = f"{self._place}/events"
        formats = {event: self._root.read_text(f"{at}/{event}/format") for event in self._events}
        symbols = self._root.get_text("proc/kallsyms")
        kernel = Kernel(self._root.read_text(f"{at}/header_page"), formats, symbols)
        first, last = self._faults[0], self._faults[-1]
        cost = last - first if last > first > 0 else None
        return Traced("", kernel, cpus, _BUFFER_KIB, cost, clock=self._clock)

    def _switch_off(self) -> None:
        if self._instance:
            with suppress(OSError):
                self._instance.switch(False)

    def _stop_reading(self) -> None:
        self._is_over.set()
        if self._thread:
            self._thread.join()

    def _end(self) -> None:
        """Removes what is left of it; more than once is no harm."""
        self._stop_reading()
        for reader in self._readers:
            reader.pipe.close()
        if self._instance:
            try:
                self._instance.remove()
            except OSError:
                self._left_behind = self._instance.path
            self._instance = None


class _Reader:
    """Takes the pages of one CPU's buffer, up to `most` bytes.

    What comes then is left there, or, with `keeps_last`, the first pages are let go for it.
    """

    def __init__(self, cpu: int, pipe: TracePipe, layout: Layout, most: int, keeps_last: bool) -> None:
        self.cpu, self.pipe = cpu, pipe
        self.is_full = self.is_late = False
        self._pages: deque[bytes] = deque()
        self._layout, self._room, self._keeps_last = layout, most, keeps_last

    def look(self) -> None:
        """What is there by now. Never waits; OSErrors end the reading."""
        while not self.is_full and (page := self.pipe.take()):
            page = page[: self._layout.used(page)]
            self._pages.append(page)
            self._room -= len(page)
            while self._keeps_last and self._room <= 0 and len(self._pages) > 1:
                self._room += len(self._pages.popleft())
                self.is_late = True
            self.is_full = self._room <= 0 and not self._keeps_last

    def kept(self) -> list[bytes]:
        """In the order of time; the first one says whether others were before it."""
        pages = list(self._pages)
        return [with_a_hole(pages[0], self._layout), *pages[1:]] if self.is_late else pages


def marker(words: str) -> str:
    """The line that a trace gets at the end of a run, from `3 123 456 tsc`: CPU and stamps of the gap that ended it."""
    cpu, start, end, counter = words.split()
    return f"tunectl: CPU {cpu} was away from {start} to {end} ({_AS_TRACED.get(counter, counter)}): --until"
