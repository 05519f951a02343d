"""What arrives on isolated CPUs: a device's interrupt, or the monitor's own readings. Pure."""

from collections.abc import Iterator

from tunectl.cpulist import named_cpus
from tunectl.fix import APPLY, in_turn, to_decide
from tunectl.monitor.model import Condition, Freshness, Health, Sample
from tunectl.monitor.rules.history import History, number, unknown
from tunectl.monitor.rules.subjects import cpu_of, members
from tunectl.wording import plural

_DEVICES = "InterruptOnIsolatedCpu"
_MOVE = in_turn(to_decide("see who moved it (irqbalance, a driver that was reset, a new device)"), APPLY)
_REPORT = to_decide("report this to tunectl with `tunectl snapshot`; until then raise monitor.interval_s")
# A smaller share is chance: what comes to an isolated CPU anyway also comes during our own cycle.
_SHARE = 0.5


def judge_devices(history: History) -> Iterator[Condition]:
    """InterruptOnIsolatedCpu: an interrupt was delivered to an isolated CPU since the last snapshot.

    An interrupt that was not is left out: what no condition mentions is over.
    """
    before = history.previous("interrupts")
    came: dict[str, list[tuple[Sample, int | None]]] = {}
    for subject, sample in history.get("interrupts").items():
        is_same = before.get(subject) is sample and sample.freshness is Freshness.FRESH
        if not is_same and sample.freshness is not Freshness.ABSENT:
            came.setdefault(sample.whole or subject, []).append((sample, _arrived(history, sample)))
    for subject, parts in came.items():
        count, first = sum(times or 0 for _, times in parts), parts[0][0]
        dark = next((sample for sample, times in parts if times is None), None)
        if dark is not None and not count:
            yield unknown(_DEVICES, dark)._replace(subject=subject)
            continue
        cpus = frozenset(cpu for sample, times in parts if times for cpu in sample.cpus)
        name = f"{subject} ({first.kind})" if first.kind else subject
        where = f"isolated {named_cpus(cpus)}" if cpus else "an isolated CPU"
        summary = f"{name} was delivered to {where} {plural(count, 'time')} since the last snapshot" if count else ""
        health = Health.BAD if count else Health.GOOD
        yield Condition(_DEVICES, subject, health, count, 0, first.source, summary, _MOVE, cpus)


def _arrived(history: History, sample: Sample) -> int | None:
    """How often it came to this CPU since the last snapshot; None where that is unknown."""
    rise, now = history.rise(sample), number(sample)
    if rise is not None or now is None:
        return rise
    # It had never come here, or was requested anew: all that it counts has come since, if the snapshot before read
    # this CPU's counts. Where no interrupt ever came to it, its other rows show that.
    before = history.previous(sample.quantity).get(sample.subject)
    tables = (history.previous(quantity) for quantity in ("interrupts", "timer_ticks", "function_calls"))
    of_cpu = (other for table in tables for other in table.values() if sample.cpus <= members(other))
    is_new = any(other.freshness is Freshness.FRESH for other in (of_cpu if before is None else (before,)))
    return int(now) if is_new else None


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
    rows = ("function_calls", "reschedules", "timer_ticks")  # all that came to isolated CPUs since the last snapshot
    came = sum(history.rise(sample) or 0 for quantity in rows for sample in history.get(quantity).values())
    total = max(came, own) if own else 0.0
    hit = frozenset(cpu for subject, count in counts.items() if count and (cpu := cpu_of(subject)) is not None)
    is_own = own > 0 and own >= _SHARE * total
    most = max(counts, key=counts.__getitem__)
    summary = (
        f"{own:g} of {total:g} interruptions of isolated {named_cpus(hit)} came during the monitor's own cycle"
        f"; on {most}, {samples[most].reason}"
    )
    health, said = (Health.BAD, summary) if is_own else (Health.GOOD, "")
    yield Condition("MonitorDisturbs", "monitor", health, own, 0, source, said, _REPORT, hit)
