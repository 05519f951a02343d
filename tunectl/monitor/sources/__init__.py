"""Where the monitor learns of the host: one file a source, and one look at all of them in turn.

To add one, write its file and name it here. They are read in this order: the interrupt table first, because others use
it; the frequency late, when the CPU this runs on has been busy for a while; the audit last, because it judges the rest.
"""

from collections.abc import Iterable

from tunectl.monitor.model import Freshness, Sample, Snapshot
from tunectl.monitor.moments import moment_now
from tunectl.monitor.sources import (
    audit,
    cards,
    clock,
    drift,
    events,
    frequency,
    hosttime,
    interrupts,
    latency,
    limits,
    smi,
    thermal,
    throttle,
    trial,
    tuners,
)
from tunectl.monitor.watched_host import Source, WatchedHost

SOURCES: tuple[Source, ...] = (
    interrupts.SOURCE,
    events.SOURCE,
    throttle.SOURCE,
    limits.SOURCE,
    thermal.SOURCE,
    tuners.SOURCE,
    trial.SOURCE,
    drift.SOURCE,
    hosttime.SOURCE,
    smi.SOURCE,
    cards.SOURCE,
    frequency.SOURCE,
    clock.SOURCE,
    latency.SOURCE,
    audit.SOURCE,
)

# What tells of heat and of the clock, and starts nothing: preflight looks at these alone.
HEAT: tuple[Source, ...] = (interrupts.SOURCE, throttle.SOURCE, limits.SOURCE, thermal.SOURCE, frequency.SOURCE)


def take_snapshot(host: WatchedHost, sources: Iterable[Source] = SOURCES) -> Snapshot:
    """What every source says now. Never raises for what a source does.

    A source that failed is one sample of quantity `source`, NO_DATA, with the reason; the samples it gave before it
    failed count.
    """
    host.begin()
    now = moment_now()
    samples: list[Sample] = []
    for source in sources:
        try:
            samples.extend(source.read(host))
        except Exception as error:  # whatever it is, the cycle goes on and says so
            reason = f"{type(error).__name__}: {error}"
            samples.append(Sample("source", source.name, None, source.name, Freshness.NO_DATA, reason))
    return Snapshot(host.taken_at, now.at, tuple(samples), now.boot)
