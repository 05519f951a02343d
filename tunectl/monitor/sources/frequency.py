"""The frequency of housekeeping CPUs, and through them of their package. cpuN/cpufreq/scaling_cur_freq

The file holds a measurement only where the CPU's tick took a sample in the last 20 ms. Otherwise it shows what was
asked for, the minimum, or 0 (docs/kernel-facts.md, "Frequency"; arch/x86/kernel/cpu/aperfmperf.c and
drivers/cpufreq/cpufreq.c). So it is read of CPUs that tick, and believed where it looks like a measurement. A package
that is throttled slows these as well.
"""

from collections.abc import Iterator, Mapping

from tunectl.cpulist import CpuSet, format_cpulist, parse_shown
from tunectl.errors import UsageError
from tunectl.host.counters import rises
from tunectl.host.plausible import FREQUENCY
from tunectl.monitor.interrupt_table import TIMER
from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.open_files import Numbers
from tunectl.monitor.watched_host import Source, WatchedHost

_NAME = "frequency"
_CPUFREQ = "sys/devices/system/cpu/cpu{}/cpufreq"
_CONSTANTS = ("scaling_min_freq", "scaling_max_freq", "cpuinfo_min_freq", "cpuinfo_max_freq")
_CONSTANTS_S = 10.0
_TICKS_PER_S = 50  # a sample is good for 20 ms
_SAME = 3  # a measurement never shows the same number of kHz so many times in a row
_IDLE = (3, 4)  # of /proc/stat idle and iowait, of user nice system idle iowait irq softirq steal ...
_BUSY = 0.8


class _Cpu:
    """One housekeeping CPU whose file may be read."""

    def __init__(self, package: int) -> None:
        self.package = package
        self.constants: dict[int, str] = {}  # kHz: the file that holds it
        self.governor = ""
        self.last: int | None = None
        self.same = 0


class _Kept:
    """The files, and what was seen of each CPU."""

    def __init__(self, host: WatchedHost) -> None:
        self.refused: dict[int, str] = {}
        self.cpus: dict[int, _Cpu] = {}
        for package, members in host.packages.items():
            for cpu in sorted(members - host.isolated):
                if reason := _refusal(host, cpu):
                    self.refused[cpu] = reason
                elif host.root.exists(f"{_CPUFREQ.format(cpu)}/scaling_cur_freq"):
                    self.cpus[cpu] = _Cpu(package)
        self.numbers = Numbers(host.root, {cpu: f"{_CPUFREQ.format(cpu)}/scaling_cur_freq" for cpu in self.cpus})
        self.constants_at = -_CONSTANTS_S
        self.ticks: Mapping[int, int] = {}
        self.ticks_at = 0.0
        self.rates: dict[int, float] = {}
        self.times: dict[int, tuple[int, int]] = {}  # busy and in all, in clock ticks since boot

    def refresh(self, host: WatchedHost) -> None:
        """What changes seldom, and how often each CPU ticked since the last reading of the table."""
        if host.taken_at - self.constants_at >= _CONSTANTS_S:
            self.constants_at = host.taken_at
            for number, cpu in self.cpus.items():
                place = _CPUFREQ.format(number)
                cpu.governor = host.root.get(f"{place}/scaling_governor").strip()
                shown = {name: host.root.get(f"{place}/{name}").strip() for name in _CONSTANTS}
                cpu.constants = {int(text): name for name, text in reversed(shown.items()) if text.isdecimal()}
        if host.table_read:
            ticks, before = host.table.on(TIMER), self.ticks
            seconds = host.taken_at - self.ticks_at
            came = rises(before, ticks) if seconds > 0 else {}
            self.rates = {cpu: came[cpu] / seconds for cpu in self.cpus if cpu in came}
            self.ticks, self.ticks_at = ticks, host.taken_at

    def busy(self, text: str) -> set[int]:
        """The CPUs that were busy since /proc/stat was read before; `text` is what it holds now."""
        before, self.times = self.times, {}
        found = set()
        for cpu in self.cpus:
            start = text.find(f"\ncpu{cpu} ")
            fields = text[start : text.find("\n", start + 1)].split()[1:9] if start >= 0 else []
            if len(fields) <= max(_IDLE) or not all(map(str.isdecimal, fields)):
                continue  # a CPU that is off has no line
            times = [int(field) for field in fields]
            total = sum(times)
            busy = total - sum(times[index] for index in _IDLE)
            self.times[cpu] = (busy, total)
            busy_then, total_then = before.get(cpu, (busy, total))
            if total > total_then and (busy - busy_then) / (total - total_then) >= _BUSY:
                found.add(cpu)
        return found


def _refusal(host: WatchedHost, cpu: int) -> str:
    """Why the CPU's file is not read, or ""."""
    if cpu in host.quiet:
        return "the kernel isolates it or keeps no tick on it: its file would show a fallback, or interrupt it"
    try:
        shared = parse_shown(host.root.get(f"{_CPUFREQ.format(cpu)}/affected_cpus").replace(" ", ","))
    except UsageError:
        shared = frozenset[int]()
    if shared & host.quiet:  # the policy's first CPU is the one that answers
        return f"it shares its frequency policy with the isolated CPUs {format_cpulist(shared & host.quiet)}"
    return ""


def read(host: WatchedHost) -> Iterator[Sample]:
    """frequency_khz of each housekeeping CPU that is on, sentinel_khz of each package."""
    kept = host.keep(_NAME, lambda: _Kept(host), anew=host.cpus_changed)
    kept.refresh(host)
    own = _own_cpu(host)
    ticking = [cpu for cpu in kept.cpus if cpu == own or kept.rates.get(cpu, 0.0) >= _TICKS_PER_S]
    kept.numbers.refresh(ticking)
    samples = {cpu: _sample(kept, cpu, cpu in ticking) for cpu in kept.cpus}
    yield from samples.values()
    for cpu, reason in kept.refused.items():
        yield Sample("frequency_khz", f"cpu{cpu}", None, _NAME, Freshness.STALE, reason, frozenset({cpu}))
    yield from _sentinels(host, kept, samples)


def _own_cpu(host: WatchedHost) -> int:
    """The CPU this thread runs on: it is busy now, so it ticks. -1 on a recorded host."""
    if not host.root.live:
        return -1
    fields = host.root.get("proc/thread-self/stat").rpartition(")")[2].split()
    return int(fields[36]) if len(fields) > 36 else -1


def _sample(kept: _Kept, number: int, ticks: bool) -> Sample:
    cpu, subject, cpus = kept.cpus[number], f"cpu{number}", frozenset({number})
    if not ticks:
        rate = kept.rates.get(number)
        reason = "how often it ticks is not known yet" if rate is None else f"it ticks {rate:.0f} times a second: idle"
        return Sample("frequency_khz", subject, None, _NAME, Freshness.STALE, reason, cpus)
    khz = kept.numbers.value[number]
    if khz is None or not FREQUENCY.holds(khz):
        reason = kept.numbers.problem.get(number, f"the file holds {khz}: no clock (0 on kernels 5.3 to 5.18)")
        return Sample("frequency_khz", subject, None, _NAME, Freshness.NO_DATA, reason, cpus)
    cpu.same = cpu.same + 1 if khz == cpu.last else 1
    cpu.last = khz
    if reason := _fallback(cpu, khz):
        return Sample("frequency_khz", subject, khz, _NAME, Freshness.STALE, reason, cpus)
    return Sample("frequency_khz", subject, khz, _NAME, cpus=cpus)


def _fallback(cpu: _Cpu, khz: int) -> str:
    """Why this is no measurement, or "". A ratio of two counters times the TSC's frequency is hardly ever round."""
    if name := cpu.constants.get(khz):
        return f"a fallback: exactly {name}"
    if khz % 1000 == 0:
        return "a fallback: a frequency in whole MHz is one that was asked for, not measured"
    if cpu.same >= _SAME:
        return f"a fallback: the same number of kHz {cpu.same} times in a row"
    return ""


def _sentinels(host: WatchedHost, kept: _Kept, samples: Mapping[int, Sample]) -> Iterator[Sample]:
    """The fastest that was measured in each package: where even that one is slow, the package is."""
    eager = {cpu for cpu, one in kept.cpus.items() if one.governor == "performance"}
    if len(eager) < len(kept.cpus):
        eager |= kept.busy(host.root.get_text("proc/stat"))
    for package, members in host.packages.items():
        isolated = members & host.isolated
        # An efficient core at its best is slower than a fast one's base, and says nothing of it; nor the other way.
        bases = {host.cpus[cpu].base_khz for cpu in isolated or members}
        mine = {cpu: samples[cpu] for cpu in members if cpu in samples and host.cpus[cpu].base_khz in bases}
        yield _sentinel(host, f"package{package}", mine, isolated or members, eager)


def _sentinel(host: WatchedHost, subject: str, mine: Mapping[int, Sample], cpus: CpuSet, eager: set[int]) -> Sample:
    fresh = {cpu: float(sample.value or 0) for cpu, sample in mine.items() if sample.freshness is Freshness.FRESH}
    if not mine:
        reason = "no housekeeping CPU of this package and kind shows its frequency"
        return Sample("sentinel_khz", subject, None, _NAME, Freshness.ABSENT, reason, cpus)
    if not fresh:
        reasons = {sample.reason: cpu for cpu, sample in sorted(mine.items(), reverse=True)}
        reason = "; ".join(f"CPU {cpu}: {why}" for why, cpu in list(reasons.items())[-2:])
        return Sample("sentinel_khz", subject, None, _NAME, Freshness.STALE, f"no measurement: {reason}", cpus)
    best = max(fresh, key=fresh.__getitem__)
    willing = [cpu for cpu in fresh if cpu in eager]
    base = max((host.cpus[cpu].base_khz or 0 for cpu in mine), default=0)
    least = (host.config.thermal.base_frequency_khz or base) * host.config.thermal.min_ratio
    if fresh[best] >= least > 0 or willing:
        best = best if fresh[best] >= least > 0 else max(willing, key=fresh.__getitem__)
        reason = f"measured by CPU {best}'s tick"
        return Sample("sentinel_khz", subject, int(fresh[best]), _NAME, reason=reason, cpus=cpus)
    reason = f"CPU {best} was measured, but may be slow on purpose: it is not busy, and its governor is not performance"
    return Sample("sentinel_khz", subject, int(fresh[best]), _NAME, Freshness.STALE, reason, cpus)


SOURCE = Source(
    _NAME,
    ("/sys/devices/system/cpu/cpuN/cpufreq/scaling_cur_freq", "/proc/stat where a governor is not performance"),
    "before 5.19 the housekeeping CPU it is asked of; never one whose policy an isolated CPU shares",
    "where the CPU ticked in the last 20 ms, and the number is not one that was asked for",
    read,
)
