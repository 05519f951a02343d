"""The gap that ended a run (`until` of a result), as a text or HTML page shows it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from tunectl.shapes import Jitter, WaitedFor
from tunectl.wording import few, nanoseconds, plural

BEFORE = 6  # events shown before the gap; the document has more
EDGE = 12  # events shown from the gap's begin, and from its end
GAPS = 4  # of another CPU
THERE = 8  # other CPUs that are named


@dataclass(frozen=True)
class Story:
    """What to say first, (when, what) in order, what was on each other CPU, and what could not be seen."""

    headline: str
    rows: Sequence[tuple[str, str]] = ()
    others: Sequence[str] = ()
    unseen: Sequence[str] = ()


def story(result: Jitter) -> Story | None:
    """None where nobody asked for one."""
    if not result.until:
        return None
    gap, least = result.until.gap, nanoseconds(result.until.least_ns)
    if not gap:
        ended = "a signal ended the run" if result.interrupted else "the run ended after its time"
        return Story(f"no gap of {least} or longer (--until): {ended}")
    when = f"CPU {gap.cpu} was away for {nanoseconds(gap.length_ns)}, {nanoseconds(gap.at_ns)} after the start"
    cause = f": {gap.cause}" if gap.cause else ""
    headline = f"a gap of {least} or longer ended the run (--until): {when}{cause}"
    others = []  # a sentence for each other probed CPU that was away, too, and one for all that were not
    for other in gap.others:
        if other.gaps:
            each = [f"from {_when(at)} for {nanoseconds(ns)}{f' ({why})' if why else ''}" for at, ns, why in other.gaps]
            others.append(f"CPU {other.cpu} was away, too: {few(each, GAPS, '; ')}")
    if there := [f"CPU {other.cpu}" for other in gap.others if not other.gaps]:
        others.append(f"not away at that time: {few(there, THERE)}")
    return Story(headline, _rows(gap), others, gap.unseen)


def _rows(gap: WaitedFor) -> list[tuple[str, str]]:
    if not gap.before and not gap.events:
        return []
    before = [(_when(at), what) for at, what in gap.before[-BEFORE:]]
    within = [(_when(at), what) for at, what in gap.events]
    if hidden := gap.events_left_out + max(len(within) - 2 * EDGE, 0):
        within = [*within[:EDGE], ("", f"... {plural(hidden, 'event')} more ..."), *within[-EDGE:]]
    begin, end = (_when(0), f"CPU {gap.cpu} goes away"), (_when(gap.length_ns), f"CPU {gap.cpu} is back")
    return [*before, begin, *within, end]


def _when(ns: int) -> str:
    return f"{'+' if ns > 0 else ''}{nanoseconds(ns)}" if ns else "0"
