"""What `tunectl-probe jitter` writes: raw facts of a run, in ticks of its counter. Read once, and checked there."""

from functools import cached_property
from typing import Annotated

import msgspec
from msgspec import Meta

from tunectl.cpulist import CpuSet, parse_shown
from tunectl.errors import TunectlError, UsageError
from tunectl.probe.hostfiles import Counted, Machine, machine_of
from tunectl.probe.lengths import Lengths
from tunectl.shapes import Count, Host, LeftOut, Maybe

SCHEMA = "tunectl.probe.jitter.raw/1"
# Clocks that the kernel reads from the counter that the probe reads: one cannot disagree with the other.
SAME_COUNTER = {"tsc": ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page"), "cntvct_el0": ("arch_sys_counter",)}


class Clock(msgspec.Struct, frozen=True):
    """The counter; `kernel_source` is the kernel's clocksource, "" where unknown."""

    source: str
    kernel_source: str
    hz: Annotated[float, Meta(gt=0)]
    granule_ns: float
    drift_ppm: float
    error_ppm: Annotated[float, Maybe] = 0.0  # of hz
    initial_error_ppm: Annotated[float, Maybe] = 0.0  # of what drift_ppm is told against

    @property
    def is_the_clocksource(self) -> bool:
        """Is the counter itself what the kernel's clocks are made of, and not a hypervisor's account of it?"""
        return self.kernel_source == SAME_COUNTER.get(self.source, ("",))[0]

    @property
    def is_the_kernels(self) -> bool:
        """Does the kernel's own clock read the same counter?"""
        return self.kernel_source in SAME_COUNTER.get(self.source, ())


class Facts(msgspec.Struct, frozen=True):
    """The host before the run; CPUs as lists of numbers."""

    online: list[int]
    isolated: list[int]
    nohz_full: list[int]
    main_thread: list[int]  # the CPUs of the probe's threads that do not measure; empty: it shares a probed one
    throttled_us: Count | None  # how long a cpu.max stopped the spinners; None: one may stand outside what is seen
    user_hz: Annotated[int, Meta(gt=0, le=1000), Maybe] = 100  # the unit of /proc/stat


class Switches(msgspec.Struct, frozen=True):
    """How often the spinner left its CPU."""

    voluntary: int
    involuntary: int


class Counters(msgspec.Struct, frozen=True):
    """What the kernel counted of the spinner itself."""

    context_switches: Switches
    page_faults: int


class Until(msgspec.Struct, frozen=True):
    """What --until asked for; `reached` is the gap that ended the run, as its CPU and both stamps, or empty."""

    least_ns: Count
    reached: Annotated[list[Count], Meta(max_length=3)]


class Series(msgspec.Struct, frozen=True):
    """The run in equal intervals: gaps that began in one, stolen ticks, the longest gap that took any of it."""

    tsc_start: Count
    interval_s: int
    intervals: list[tuple[int, int, int]]


class Cpu(msgspec.Struct, frozen=True):
    """One probed CPU."""

    cpu: int
    tsc_start: Count
    tsc_end: Count
    interruptions: Count
    stolen_ticks: Count
    max_ticks: Count
    turns: Count
    turns_merged: Count  # gaps that touch are one
    quiet_turns: Count
    quiet_ticks: Count
    steps_back: Count
    step_ticks: float
    recording_ticks: float
    cycles_per_tick_before: float
    cycles_per_tick_after: float
    clock_readings: tuple[tuple[int, int], tuple[int, int]]  # before and after: ticks, CLOCK_MONOTONIC_RAW in ns
    memory_locked: bool
    stayed: bool
    migrations: int | None
    waited_ns: Count  # runnable, while another thread had the CPU
    governor: str
    fair_server_runtime: str  # as in debugfs, in ns; "" where there is none
    core_cpus: str  # the CPUs of its core, as in topology/thread_siblings_list
    counters: Counters
    histogram: list[tuple[int, int, int, int]]  # from, to, count, sum
    series: Series
    events_lost: Count
    events: list[tuple[int, int, int]]
    events_lost_max_ticks: Annotated[Count, Maybe] = 0
    complete_until: Annotated[Count, Maybe] = 0  # on the counter: all gaps before are listed; 0 in older documents
    latest: Annotated[list[tuple[Count, Count]], Maybe] = []  # of the gaps that are not among `events` the last ones
    clock_half_widths: Annotated[tuple[Count, Count] | None, Maybe] = None  # how far off each of clock_readings may be

    @property
    def never_moved(self) -> bool:
        """Not known where the kernel does not count moves."""
        return self.stayed and self.migrations == 0

    @property
    def siblings(self) -> CpuSet:
        """The other hardware threads of its core."""
        try:
            return parse_shown(self.core_cpus) - {self.cpu}
        except UsageError:
            return frozenset()

    @property
    def run_ticks(self) -> int:
        """From the first stamp to the last."""
        return self.tsc_end - self.tsc_start

    def lengths(self) -> Lengths:
        """Of all gaps, in ticks: exact while all are listed, else each bucket at the mean of its gaps."""
        if not self.events_lost:
            return Lengths((float(end - start), 1) for start, end, _ in self.events)
        return Lengths((total / count, count) for _, _, count, total in self.histogram)


class Injected(msgspec.Struct, frozen=True):
    """What was done to the first CPU on purpose."""

    errno: Annotated[Count, Maybe] = 0  # why not all of it was
    truths: Annotated[list[tuple[int, int]], Maybe] = []  # from its first stamp to its last, in order of time


class Run(msgspec.Struct, frozen=True, dict=True):
    """A whole run."""

    schema: str
    tunectl_version: str
    host: Annotated[Host, Meta(extra_json_schema={"required": ["hostname", "kernel", "boot_id", "machine"]})]
    at: str
    threshold_ns: Count
    threshold_ticks: Count
    default_threshold_ns: Count
    duration_requested_s: float
    interrupted: bool
    fifo_priority: int
    clock: Clock
    facts: Facts
    host_files: dict[str, str]  # before the run, by path
    files_before: dict[str, str]  # the kernel's counters around the run
    files_after: dict[str, str]
    cpus: list[Cpu]
    not_measured: list[LeftOut]
    long_ticks: Annotated[Count, Maybe] = 0  # gaps so long are listed beyond complete_until, too; 0: none are
    until: Annotated[Until | None, Maybe] = None
    injected: Annotated[Injected, Maybe] = Injected()

    @cached_property
    def machine(self) -> Machine:
        """What its files say of the host."""
        return machine_of(self.host_files)

    @cached_property
    def counted(self) -> Counted:
        """What the kernel counted during the run."""
        return Counted(self.files_before, self.files_after, self.facts.user_hz)

    @cached_property
    def irq_descriptions(self) -> dict[str, str]:
        """Of the interrupts that came on the measured CPUs."""
        return self.counted.descriptions(cpu.cpu for cpu in self.cpus)

    @property
    def probed(self) -> frozenset[int]:
        """The CPUs that were asked for, measured or left."""
        return frozenset([cpu.cpu for cpu in self.cpus] + [left_out.cpu for left_out in self.not_measured])

    def ns(self, ticks: float) -> int:
        """Whole ns, rounded down."""
        return min(int(ticks * 1e9 / self.clock.hz), (1 << 63) - 1)

    def listed_until(self, cpu: Cpu, least: float = 0) -> int:
        """So far, on the counter, every gap of `least` ticks and more is listed."""
        if not cpu.events_lost:
            return cpu.tsc_end
        complete = max(cpu.complete_until, cpu.tsc_start)
        if least < self.long_ticks:
            return complete
        if cpu.events_lost_max_ticks < self.long_ticks:
            return cpu.tsc_end
        return max(cpu.events[-1][0] if cpu.events else 0, complete)

    def seconds(self, cpu: Cpu) -> float:
        """How long this CPU was measured."""
        return cpu.run_ticks / self.clock.hz

    def timer_interrupts(self, cpu: Cpu) -> int:
        """x86 "LOC", arm64 the rows of "arch_timer"."""
        names = self.irq_descriptions
        return sum(
            n
            for key, n in self.counted.moved("irq", cpu.cpu).items()
            if key == "LOC" or "arch_timer" in names.get(key, "")
        )

    def steal_ms(self, cpu: int) -> int:
        """What the hypervisor took from a CPU, as far as the kernel was told; 0 where nothing is known."""
        return self.counted.times.get(cpu, (0, 0, 0))[2]


def conservation_ppm(loop: Cpu, hz: float) -> float:
    """How far turns and gaps, added up one by one, miss the run's length on the kernel's clock."""
    (before, before_ns), (after, after_ns) = loop.clock_readings
    outside = loop.tsc_start - before + after - loop.tsc_end
    counted_ns = (loop.quiet_ticks + loop.stolen_ticks + outside) * 1e9 / hz
    return (counted_ns / (after_ns - before_ns) - 1) * 1e6 if after_ns > before_ns else 0.0


def read_raw(document: object) -> Run:
    """The run in a document of this schema. TunectlError, naming the place, where a field is missing or wrong."""
    try:
        run = msgspec.convert(document, Run)
    except msgspec.ValidationError as error:
        raise TunectlError(f"{SCHEMA}: {error}") from error
    if run.until and len(run.until.reached) not in (0, 3):
        raise TunectlError(f"{SCHEMA}: until: reached is no CPU with two stamps")
    for place, cpu in enumerate(run.cpus):
        if problem := _contradiction(cpu):
            raise TunectlError(f"{SCHEMA}: cpus[{place}]: {problem}")
    return run


def _contradiction(cpu: Cpu) -> str:
    """What no type says: a file that was edited, or cut and mended, does not add up."""
    if not cpu.tsc_start < cpu.tsc_end:
        return "tsc_end is not after tsc_start"
    if sum(total for _, _, _, total in cpu.histogram) != cpu.stolen_ticks:
        return "stolen_ticks is not what the histogram holds"
    low, high = (cpu.histogram[-1][0], cpu.histogram[-1][1]) if cpu.histogram else (0, 1)
    return "" if low <= cpu.max_ticks < high else "max_ticks is not in the last bucket of the histogram"
