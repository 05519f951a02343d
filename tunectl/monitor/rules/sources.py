"""A source that can read nothing: what it watches is unknown, and unknown is not well. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tunectl.monitor.model import Condition, Health, Verdict
from tunectl.monitor.rules.history import History, silent_sources


def judge(history: History) -> Iterator[Condition]:
    """SourceLost: one condition a source that was asked."""
    lost = history.once(_lost)
    for source in dict.fromkeys(sample.source for sample in history.now.samples):
        if source not in lost:
            yield Condition("SourceLost", source, Verdict.GOOD, source=source)
            continue
        why = lost[source]
        summary = f"source {source} has no data" + (f": {why}" if why else "")
        fix = "what it watches cannot be told now: tunectl monitor --once -v"
        yield Condition("SourceLost", source, Verdict.BAD, "no-data", "fresh", source, summary, fix)


def _lost(history: History) -> dict[str, str]:
    # Stale is a state of its own: the rules that need a fresh value say themselves that they cannot tell.
    return {
        source: reason for source, (health, reason) in silent_sources(history.now).items() if health is Health.NO_DATA
    }
