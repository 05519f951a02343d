"""What is unknown: whether a CPU is slow, and what a silent source watches. Unknown is never good. Pure."""

from collections.abc import Iterator

from tunectl.fix import to_decide
from tunectl.monitor.model import Condition, Freshness, Health
from tunectl.monitor.rules.clocks import Package, survey
from tunectl.monitor.rules.history import History, number, silent_sources
from tunectl.monitor.rules.thermal import rises

NAME = "FrequencyUnknown"
_TELL = to_decide(
    "see `tunectl show`; name a CPU in [monitor.sentinel], or set thermal.base_frequency_khz in the host file"
)

_ONCE = to_decide("what it watches is unknown now: tunectl monitor --once -v")
# The sentinel and the application's socket: no other process has them.
_RESIDENT = ("clock", "latency")
_DAEMONS = to_decide("what it watches is unknown now; only the daemon sees it: its journal and /metrics say more")


def judge_frequency(history: History) -> Iterator[Condition]:
    """FrequencyUnknown: would a slow CPU be seen at all? One that is held down to nobody knows what would not."""
    heats, found = history.once(rises), history.once(survey)
    # A single CPU without a known package must not turn the whole host unknown.
    absorbed = {"host"} if len(found) > 1 and "host" in found and not found["host"].high else set()
    for subject in sorted({*heats, *found} - absorbed) or ["host"]:
        package, heat = found.get(subject, Package()), heats.get(subject)
        if not package.doubts and (package.can_tell or (heat and heat.can_tell)):
            yield Condition(NAME, subject, Health.GOOD, source="frequency")
        else:
            why = next(iter(package.doubts or package.unknown.values()), "") or (heat.unknown if heat else "")
            summary = f"{subject}: nobody knows whether its CPUs run slow"
            summary += f": {why}" if why else ""
            yield Condition(NAME, subject, Health.BAD, source="frequency", summary=summary, fix=_TELL)


def judge_sources(history: History) -> Iterator[Condition]:
    """SourceLost: one condition for each source that was read."""
    trips = history.get("trip_mc")
    # A zone without a trip is shown and not judged: it may come and go with its device.
    lost = {
        sample.source: f"{sample.subject}: {sample.reason}"
        for (quantity, subject), sample in history.lost.items()
        if quantity != "temperature_mc" or number(trips.get(subject)) is not None
    }
    # Stale is a state of its own: the rules that need a fresh value say so themselves.
    silent = silent_sources(history.now).items()
    lost |= {source: reason for source, (freshness, reason) in silent if freshness is Freshness.NO_DATA}
    for source in dict.fromkeys(sample.source for sample in history.now.samples):
        if source not in lost:
            yield Condition("SourceLost", source, Health.GOOD, source=source)
            continue
        why = lost[source]
        summary = f"source {source} has no data" + (f": {why}" if why else "")
        fix = _DAEMONS if source in _RESIDENT else _ONCE
        yield Condition("SourceLost", source, Health.BAD, "no-data", "fresh", source, summary, fix)
