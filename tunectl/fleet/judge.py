"""What each host's answer amounts to, and all of them together. Pure.

A host is GO only with a complete document of its own that was made between the beginning of the session and now, and
that nothing in it contradicts (tunectl.probe.doubt). Everything else that does not answer the question is UNKNOWN,
with the reason. No host is left out.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

from tunectl.command import as_data, quoted
from tunectl.fleet.records import VERDICTS, Asked, Session, Summary
from tunectl.probe.doubt import moment_of
from tunectl.wording import few, natural, plural

CLOCK_SKEW = timedelta(minutes=5)  # a clock that is further off is reported
ROUND = timedelta(hours=12)  # documents that lie further apart are not of one session


class Judged(NamedTuple):
    """One host: its verdict among VERDICTS, and why."""

    asked: Asked
    verdict: str
    reasons: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its name in the inventory."""
        return self.asked.name


def judge(session: Session, asked: Iterable[Asked], now: str) -> tuple[Judged, ...]:
    """Every host, the worst verdict first, then by name. `now`: UTC, RFC 3339; a document of later is none.

    Where nobody knows when the session began, ROUND before its newest document is taken for it.
    """
    every = list(asked)
    newest = "" if moment_of(session.at) else _newest(every, now)
    judged = _without_twins([_judge(one, session.at, now, newest) for one in every])
    return tuple(sorted(judged, key=lambda one: (VERDICTS.index(one.verdict), natural(one.name), one.name)))


def fleet_verdict(judged: Sequence[Judged]) -> str:
    """The worst of all verdicts; unknown without any host."""
    found = {one.verdict for one in judged}
    return next((verdict for verdict in VERDICTS if verdict in found), "unknown")


def counts(judged: Iterable[Judged]) -> dict[str, int]:
    """How many hosts of each verdict, zeros included."""
    return dict.fromkeys(VERDICTS, 0) | Counter(one.verdict for one in judged)


def _newest(asked: Iterable[Asked], now: str) -> str:
    """When the newest document was made that is not of the future; "" where none is."""
    made = {moment: one.document.at for one in asked if one.document and (moment := moment_of(one.document.at))}
    today = moment_of(now)
    past = [moment for moment in made if not today or moment - today <= CLOCK_SKEW]
    return made[max(past)] if past else ""


def _judge(asked: Asked, since: str, now: str, newest: str) -> Judged:
    document = asked.document
    if document is None:
        return Judged(asked, "unknown", (asked.problem,))
    if document.verdict not in VERDICTS:
        problem = f"its verdict is {quoted(document.verdict)}, which tunectl does not know"
        return Judged(asked, "unknown", (problem, *document.reasons))
    if problem := mistimed(document.at, since, now, newest):
        return Judged(asked, "unknown", (problem,))
    if document.verdict == "go" and document.doubt:
        return Judged(asked, "unknown", (f"it says GO, and {document.doubt}",))
    reasons = () if document.verdict == "go" else document.reasons or ("it gives no reason",)
    return Judged(asked, document.verdict, reasons)


def mistimed(at: str, since: str, now: str, newest: str = "") -> str:
    """Why the document is not of this session; "" where it is. `newest`: of the documents of a session of which
    nobody knows when it began; without one any age will do there.
    """
    began, made, today, last = map(moment_of, (since, at, now, newest))
    if made is None:
        return f"its document does not say when it was made: {quoted(at)}"
    said = f"its document is of {as_data(at)}"
    if today and made - today > CLOCK_SKEW:
        return f"{said}, and now it is {now}: the host's clock is wrong, or this one's"
    if began and began - made > CLOCK_SKEW:
        return f"{said}, and the session began at {since}: it is old, or the host's clock is wrong"
    if last and last - made > ROUND:
        return f"{said}, and the newest of these is of {as_data(newest)}: they are not of one session"
    return ""


def oldest(since: str, made: Iterable[tuple[str, str]], now: str) -> str:
    """How old the oldest of the documents is, by host and time; "" where it is known when the session began.

    Nothing else bounds their age then.
    """
    known = [(found, name, at) for name, at in made if (found := moment_of(at))]
    today = moment_of(now)
    if moment_of(since) or not known or not today:
        return ""
    found, name, at = min(known)
    said = f"is of {as_data(at)}, {_age(today - found)} ago"
    return f"nothing says when they were asked: the oldest document, {name}'s, {said}"


def _age(age: timedelta) -> str:
    minutes = max(int(age.total_seconds() // 60), 0)
    for unit, length in (("day", 1440), ("hour", 60)):
        if minutes >= 2 * length:
            return f"{minutes // length:,} {unit}s"
    return plural(minutes, "minute")


def _without_twins(judged: list[Judged]) -> list[Judged]:
    """Two names that led to the same boot of one machine: one host was not examined, and it is unknown which."""
    seen = by_machine((one.name, one.asked.document) for one in judged)
    for place, one in enumerate(judged):
        others = [name for name in seen.get(_machine(one.asked.document), []) if name != one.name]
        if others and one.verdict != "no-go":
            reason = f"the machine that answered is {few(others)}, too: one name leads to another's machine"
            judged[place] = one._replace(verdict="unknown", reasons=(reason, *one.reasons))
    return judged


def by_machine(documents: Iterable[tuple[str, Summary | None]]) -> dict[str, list[str]]:
    """The names whose documents one boot of a machine left."""
    found: dict[str, list[str]] = {}
    for name, document in documents:
        if boot := _machine(document):
            found.setdefault(boot, []).append(name)
    return found


def _machine(document: Summary | None) -> str:
    """The boot that answered; what it calls itself is its own choice. "" where it says none."""
    return document.host.boot_id.strip().lower() if document else ""
