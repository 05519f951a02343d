"""Whether the tick of a CPU is off while a thread spins there, judged by the timer interrupts that arrived. Pure.

The counts come from two readings of /proc/interrupts, or from tunectl-probe, which takes its own around its run. Each
CPU has its own count, its own time and its own finding: `check` and `preflight` both judge by these functions.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from tunectl.checking.outcomes import Settled
from tunectl.checking.window import Window, is_timer_row
from tunectl.command import write
from tunectl.cpulist import CpuSet
from tunectl.fix import Fix, to_decide
from tunectl.host.timers import PERF_CLOCK, TICK
from tunectl.model import Finding, Match, Outcome, Severity
from tunectl.shapes import Jitter

CHECK = "check.tick_off"
SEVERITY = Severity.INTERRUPT  # of that check
# The slowest tick a kernel can be built with is 100 a second (kernel/Kconfig.hz), what remains without a tick
# about one: ten stands clear of both.
TICKS_PER_S = 10.0
_SLOWEST_TICK_PER_S = 100.0
# In a shorter time a few single timers look like a tick: what may come in half a second may always come.
SHORTEST_S = 0.5
_NOT_NAMED = "what can bring them: the tick itself, for {tick}; or a timer of its own, such as a perf clock event"
_KEEPS = "a second runnable thread or a POSIX CPU timer"
_SERVES = "a second runnable thread, a POSIX CPU timer or the deadline server for ordinary threads (fair server)"
_NOT_READ = "/proc/interrupts could not be read"  # the probe's own warning: it lists what came, and so nothing
_ALONE = to_decide(
    "give that CPU all of its time (other threads off it; in a virtual machine, a core of its own from the host "
    "below), or waive check.tick_off"
)
_CLEAR = 2.0  # the slowest tick would have made this many times what is allowed, or nothing is proved
Serves = Callable[[int], bool | None]  # by CPU (host/fairserver.py, may_serve)


def no_server(_: int) -> bool | None:
    """A kernel without fair servers."""
    return False


class Spun(NamedTuple):
    """Who spun on a CPU, and for how long: what is left of its time, without waiting and sleep."""

    seconds: float
    by: str = "tunectl-probe"


class TickCount(NamedTuple):
    """The timer interrupts of one CPU. `ticks` is None where this host does not count them."""

    cpu: int
    ticks: int | None
    seconds: float  # between the two readings
    spun: Spun

    @property
    def allowed(self) -> float:
        """How many timer interrupts a CPU without a tick may take in this time."""
        return TICKS_PER_S * max(self.seconds, SHORTEST_S)

    @property
    def per_s(self) -> float:
        """Timer interrupts a second."""
        return (self.ticks or 0) / self.seconds if self.seconds > 0 else 0.0

    @property
    def proves(self) -> bool:
        """Was a thread there for long enough that even the slowest tick would be told from none?"""
        return self.spun.seconds * _SLOWEST_TICK_PER_S >= _CLEAR * self.allowed


def judge_probe(result: Jitter, nohz_full: CpuSet, serves: Serves = no_server) -> list[Finding]:
    """A finding for each CPU with nohz_full, by the spinner's own account: a tunectl.probe.jitter/1 document."""
    findings = []
    for count in (count for count in counted_by_probe(result) if count.cpu in nohz_full):
        settled = settle(count, serves=serves)
        shown = settled.observed, settled.desired, settled.reason, settled.fix
        finding = Finding(CHECK, str(count.cpu), settled.outcome, *shown, severity=SEVERITY, match=settled.match)
        findings.append(finding)
    return findings


def with_longer_look(findings: Iterable[Finding], longer: Iterable[Finding]) -> list[Finding]:
    """The findings of the checks, those on the tick replaced by those of a longer look at the same CPU.

    Drift that either of them saw stays; what could not be found out gives way to what could, waived or not.
    """
    unknown = (Outcome.UNREADABLE, Outcome.WAIVED)
    known = (finding for finding in longer if finding.outcome not in unknown or _is_drift(finding))
    later = {(finding.knob, finding.instance): finding for finding in known}
    return [
        finding if _is_drift(finding) else later.get((finding.knob, finding.instance), finding) for finding in findings
    ]


def _is_drift(finding: Finding) -> bool:
    """Did it see the tick? A drift that is waived keeps what was observed."""
    is_waived = finding.outcome is Outcome.WAIVED and finding.observed is not None
    return finding.outcome is Outcome.DRIFTED or is_waived


def counted(window: Window, spun: Mapping[int, Spun]) -> list[TickCount]:
    """The timer interrupts in a window, for each CPU of `spun`."""
    return [TickCount(cpu, window.timer_interrupts(cpu), window.seconds, spun[cpu]) for cpu in sorted(spun)]


def counted_by_probe(result: Jitter) -> list[TickCount]:
    """Those that the probe counted itself. tunectl.probe.jitter/1

    It reads the interrupts before its threads begin and when the last has ended: a thread that had to wait for its CPU
    was there for less than the time between the readings, which is at least the time that was asked for.
    """
    names = result.irq_descriptions
    read = not any(line.startswith(_NOT_READ) for line in result.warnings)
    asked_s = 0.0 if result.interrupted else result.duration_requested_s
    found = []
    for cpu in result.cpus:
        ticks = sum(n for row, n in cpu.counted.irq.items() if is_timer_row(row, names.get(row, "")))
        there_s = cpu.duration_ns / 1e9
        spun = Spun(max(there_s - cpu.stolen_ns / 1e9, 0.0))
        found.append(TickCount(cpu.cpu, ticks if read and cpu.counters else None, max(there_s, asked_s), spun))
    return found


def settle(count: TickCount, seen: Collection[str] = (), serves: Serves = no_server) -> Settled:
    """The verdict on one CPU, with the reason."""
    cpu, ticks, by = count.cpu, count.ticks, count.spun.by
    if ticks is None:
        return Settled(Outcome.UNREADABLE, f"this host does not count the timer interrupts of CPU {cpu}")
    measured = f"{ticks} timer interrupts in {count.seconds:.1f} s"
    if ticks > count.allowed:
        served = serves(cpu)
        not_named = _NOT_NAMED.format(tick=_KEEPS if served is False else _SERVES)
        causes = f": {'; '.join(seen)}" if seen else f"; {not_named}"
        reason = f"CPU {cpu} took {measured} ({count.per_s:.0f} a second) under a spinner{causes}"
        fix = _mends(cpu, served)
        return Settled(Outcome.DRIFTED, reason, fix, round(count.per_s, 1), TICKS_PER_S, Match.AT_MOST)
    if not count.proves:
        spun = f"{by} spun there for {count.spun.seconds:.2f} of {count.seconds:.1f} s"
        why = "a CPU that idles, or that others use, proves nothing of its tick"
        return Settled(Outcome.UNREADABLE, f"nothing spun on CPU {cpu} for long enough: {spun}, and {why}", _ALONE)
    return Settled(Outcome.COMPLIANT, f"CPU {cpu} took {measured} while {by} spun there for {count.spun.seconds:.1f} s")


def _mends(cpu: int, served: bool | None) -> Fix:
    alone = f"leave one runnable thread on CPU {cpu}, no POSIX CPU timer (setitimer, timer_create) and no perf event"
    if served:
        off = write("0", f"/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime")
        lasts = "(until the next boot; the knob kernel.fair_server_runtime_ns in the host file does it at each)"
        return to_decide(f"{alone}; then: {off} {lasts}")
    unknown = "; or see as root whether a fair server serves there: tunectl check"
    return to_decide(alone + unknown if served is None else alone)


def meaning_of(functions: Collection[str], perf: Sequence[str]) -> list[str]:
    """What the kernel's timer functions are, in words; `perf` are the processes that hold perf events."""
    if not functions:
        return []
    others = sorted(set(functions) - TICK - {PERF_CLOCK})
    held = f" (perf events are held by {', '.join(perf)})" if perf else ""
    found = [f"a perf clock event is set there{held}"] if PERF_CLOCK in functions else []
    found += [f"the timer {name} is set there" for name in others]
    return found + (["the tick itself is set there"] if TICK & set(functions) else ["the tick itself is off"])
