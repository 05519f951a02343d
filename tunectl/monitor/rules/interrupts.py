"""What arrives on isolated CPUs: a device's interrupt, or the monitor's own readings. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tunectl.cpulist import named_cpus
from tunectl.fix import APPLY, in_turn, to_decide
from tunectl.monitor.model import Condition, Freshness, Health
from tunectl.monitor.rules.history import History, number, unknown
from tunectl.monitor.rules.subjects import cpu_of

_MOVE = in_turn(to_decide("see who moved it (irqbalance, a driver that was reset, a new device)"), APPLY)
_REPORT = to_decide("report this to tunectl with `tunectl snapshot`; until then raise monitor.interval_s")
# A smaller share is chance: what comes to an isolated CPU anyway also comes during our own cycle.
_SHARE = 0.5


def judge_devices(history: History) -> Iterator[Condition]:
    """InterruptOnIsolatedCpu: an interrupt was delivered to an isolated CPU since the last snapshot.

    An interrupt that was not is left out: what no condition mentions is over.
    """
    before = history.previous("interrupts")
    for subject, sample in history.get("interrupts").items():
        if (
            before.get(subject) is sample and sample.freshness is Freshness.FRESH
        ) or sample.freshness is Freshness.ABSENT:
            continue
        rise = history.rise(sample)
        if rise is None and subject not in before and _was_read(history):
            # A snapshot ago it had never come to an isolated CPU: all that it counts has come since.
            rise = int(number(sample) or 0)
        if rise is None:
            yield unknown("InterruptOnIsolatedCpu", sample)
            continue
        health = Health.BAD if rise else Health.GOOD
        name = f"{subject} ({sample.kind})" if sample.kind else subject
        where = f"isolated {named_cpus(sample.cpus)}" if sample.cpus else "an isolated CPU"
        summary = (
            f"{name} was delivered to {where} {rise} time{'s' * (rise != 1)} since the last snapshot" if rise else ""
        )
        yield Condition("InterruptOnIsolatedCpu", subject, health, rise, 0, sample.source, summary, _MOVE, sample.cpus)


def _was_read(history: History) -> bool:
    """Did the snapshot before read the table? Where no device interrupt ever came here, its other rows show it."""
    tables = (history.previous(quantity) for quantity in ("interrupts", "timer_ticks", "function_calls"))
    return any(sample.freshness is Freshness.FRESH for table in tables for sample in table.values())


def judge_own(history: History) -> Iterator[Condition]:
    """MonitorDisturbs: most of what interrupted isolated CPUs came during the monitor's own few milliseconds."""
    samples = history.get("own_interruptions")
    if not samples:
        return
    source = next(iter(samples.values())).source
    counts = {subject: count for subject, sample in samples.items() if (count := number(sample)) is not None}
    if not counts:
        yield unknown("MonitorDisturbs", next(iter(samples.values())))._replace(subject="monitor")
        return
    own = float(sum(counts.values()))
    total = max(_total(history), own) if own else 0.0
    hit = frozenset(cpu for subject, count in counts.items() if count and (cpu := cpu_of(subject)) is not None)
    is_own = own > 0 and own >= _SHARE * total
    most = max(counts, key=counts.__getitem__)
    summary = (
        f"{own:g} of {total:g} interruptions of isolated {named_cpus(hit)} came during the monitor's own cycle"
        f"; on {most}, {samples[most].reason}"
    )
    yield Condition(
        "MonitorDisturbs",
        "monitor",
        Health.BAD if is_own else Health.GOOD,
        own,
        0,
        source,
        summary if is_own else "",
        _REPORT,
        hit,
    )


def _total(history: History) -> float:
    """All that came to isolated CPUs since the last snapshot: function calls, reschedules and ticks."""
    return sum(
        history.rise(sample) or 0
        for quantity in ("function_calls", "reschedules", "timer_ticks")
        for sample in history.get(quantity).values()
    )
