"""One look at the host: every source in turn. A source that fails says so, and the others still look."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from tunectl.monitor.eyes import Eyes
from tunectl.monitor.model import Health, Look, Sample
from tunectl.monitor.sources import SOURCES, Source


def take_look(eyes: Eyes, sources: Iterable[Source] = SOURCES) -> Look:
    """What every source says now. Never raises for what a source does.

    A source that failed is one sample of quantity `source`, NO_DATA, with the reason; the samples it gave before it
    failed count.
    """
    eyes.begin()
    samples: list[Sample] = []
    for source in sources:
        try:
            samples.extend(source.read(eyes))
        except Exception as error:  # whatever it is, the cycle goes on and says so
            reason = f"{type(error).__name__}: {error}"
            samples.append(Sample("source", source.name, None, source.name, Health.NO_DATA, reason))
    at = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Look(eyes.look_at, at, tuple(samples))
