"""From conditions to alerts: a transition when trouble begins, one when it is over, none between. Pure.

Each (rule, subject) fires when N of its last M looks that could tell were bad, and resolves after some good looks in a
row. What is unknown does neither. The whole state can be saved and loaded, so that a restart neither fires again nor
forgets to resolve.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from tunectl.cpulist import format_cpulist, parse_shown
from tunectl.monitor.model import Alert, AlertState, Condition, Health, Moment, Severity, Snapshot
from tunectl.monitor.rules import FAILED, RULES, Rule
from tunectl.monitor.rules.history import silent_sources

Identity = tuple[str, str]
VERSION = 1


class _TrackDocument(msgspec.Struct):
    """A track, as `save` gives it."""

    rule: str
    subject: str
    recent: str
    good: int
    alert: Alert | None
    since: str = ""  # where 1.0.0rc1 wrote it
    began: Moment | None = None


@dataclass(slots=True)
class Track:
    """What is remembered of one identity that is not well: all others need no memory."""

    recent: str = ""  # the last M looks, the newest last: "x" was bad
    good: int = 0  # looks in a row that were good, or did not mention it
    began: Moment | None = None  # the first of the bad looks that count
    alert: Alert | None = None  # as it fired


class Alerts:
    """Which alerts fire. `step` once a snapshot."""

    def __init__(self, rules: Sequence[Rule] = RULES) -> None:
        self._rules = {rule.name: rule for rule in rules}
        self._order = {rule.name: number for number, rule in enumerate(rules)}
        self._looking_again = {rule.name for rule in rules if rule.looks_again}
        self._tracks: dict[Identity, Track] = {}
        self._doubtful: set[Identity] = set()
        self.is_in_doubt = False  # something came to be doubtful in the last snapshot, and the next would tell

    @property
    def firing(self) -> tuple[Alert, ...]:
        """The alerts that fire now, as each fired, but with every CPU that it came to stand for; the oldest first."""
        return tuple(track.alert for track in self._tracks.values() if track.alert is not None)

    def step(self, snapshot: Snapshot, conditions: Iterable[Condition]) -> tuple[Alert, ...]:
        """The transitions of one snapshot. Of two conditions of one identity the first counts; unknown rules do not."""
        conditions = tuple(conditions)
        between = [condition for condition in conditions if condition.health is Health.BETWEEN]
        doubtful = {(each.rule, each.subject) for each in between if each.rule in self._looking_again}
        self.is_in_doubt, self._doubtful = not doubtful <= self._doubtful, doubtful
        silent = silent_sources(snapshot) if self._tracks else {}
        failed = {condition.rule for condition in conditions if condition.subject == FAILED}
        mentioned: set[Identity] = set()
        transitions: list[Alert] = []
        bad: list[tuple[Condition, Track]] = []
        for condition in conditions:
            track = self._track(condition, mentioned)
            if track is None:
                continue
            self._count(track, condition, silent, snapshot)
            if condition.health is Health.BAD and track.alert is None:
                bad.append((condition, track))
            elif self._is_over(track, condition.rule):
                transitions.append(_resolved(track, snapshot, condition))
            elif condition.health is Health.BAD and track.alert is not None:
                track.alert = _grown(track.alert, condition)
        transitions += self._count_missing(snapshot, mentioned, failed, silent)
        for condition, track in sorted(bad, key=lambda pair: self._order[pair[0].rule]):
            rule = self._rules[condition.rule]
            if track.recent.count("x") >= rule.bad[0] and not self._is_explained(condition, rule):
                track.alert = _fired(condition, rule.severity, track.began or snapshot.moment, snapshot)
                transitions.append(track.alert)
        self._tracks = {name: track for name, track in self._tracks.items() if track.alert or "x" in track.recent}
        return tuple(transitions)

    def _track(self, condition: Condition, mentioned: set[Identity]) -> Track | None:
        """What is remembered of it; None where it is well, or has been counted in this snapshot."""
        identity = (condition.rule, condition.subject)
        track = self._tracks.get(identity)
        if track is None:
            if condition.health is not Health.BAD or condition.rule not in self._rules:
                return None
            track = self._tracks[identity] = Track()
        elif identity in mentioned:
            return None
        mentioned.add(identity)
        return track

    def _count(self, track: Track, condition: Condition, silent: Collection[str], snapshot: Snapshot) -> None:
        health, rule = condition.health, self._rules.get(condition.rule)
        # Good by other sources, while the one that fired the alert says nothing, is not known to be over.
        is_blind = health is Health.GOOD and track.alert is not None and _is_silent(track.alert, silent)
        if is_blind or health is Health.UNKNOWN:
            return
        is_bad = health is Health.BAD
        track.recent = (track.recent + ("x" if is_bad else "."))[-(rule.bad[1] if rule else 1) :]
        track.good = track.good + 1 if health is Health.GOOD else 0
        if track.alert is None and "x" not in track.recent:
            track.began = None
        elif is_bad and not track.began:
            track.began = snapshot.moment

    def _is_over(self, track: Track, name: str) -> bool:
        rule = self._rules.get(name)
        return track.alert is not None and (rule is None or track.good >= rule.good)

    def _is_explained(self, condition: Condition, rule: Rule) -> bool:
        """Does an alert that fires already stand for the same CPUs? Then this is its evidence, and no second alert."""
        for alert in self.firing if rule.explained_by else ():
            is_same = alert.subject == condition.subject or not alert.cpus or not condition.cpus
            if alert.rule in rule.explained_by and (is_same or condition.cpus <= parse_shown(alert.cpus)):
                return True
        return False

    def _count_missing(
        self, snapshot: Snapshot, mentioned: set[Identity], failed: set[str], silent: Collection[str]
    ) -> Iterator[Alert]:
        """A subject nobody mentions any more is over (an interrupt that was freed), unless nobody could have."""
        for identity, track in self._tracks.items():
            if identity in mentioned:
                continue
            rule = self._rules.get(identity[0])
            track.recent = (track.recent + ".")[-(rule.bad[1] if rule else 1) :]
            if track.alert is None:
                continue
            if rule is not None and (rule.lasts or rule.name in failed or _is_silent(track.alert, silent)):
                continue
            track.good += 1
            if self._is_over(track, identity[0]):
                yield _resolved(track, snapshot, None)

    def save(self) -> dict[str, Any]:
        """The state as plain data, for JSON."""
        tracks = [
            {"rule": rule, "subject": subject, **msgspec.to_builtins(track)}
            for (rule, subject), track in self._tracks.items()
        ]
        return {"version": VERSION, "tracks": tracks}

    @classmethod
    def load(cls, saved: object, rules: Sequence[Rule] = RULES) -> Alerts:
        """The state `save` gave; what is not of that shape is left out, since a monitor must start."""
        alerts = cls(rules)
        rows = saved.get("tracks") if isinstance(saved, Mapping) and saved.get("version") == VERSION else None
        for row in rows if isinstance(rows, list) else ():
            with suppress(msgspec.ValidationError):
                track = msgspec.convert(row, _TrackDocument)
                began = track.began or (Moment(track.since) if track.since else None)
                alerts._tracks[track.rule, track.subject] = Track(track.recent, track.good, began, track.alert)
        return alerts


def alert_of(document: object) -> Alert | None:
    """The alert whose fields these are; None for what is damaged, or another version's."""
    try:
        return msgspec.convert(document, Alert)
    except msgspec.ValidationError:
        return None


def _is_silent(alert: Alert, silent: Collection[str]) -> bool:
    return any(source in alert.source for source in silent)


def _fired(condition: Condition, severity: Severity, began: Moment, snapshot: Snapshot) -> Alert:
    return Alert(
        rule=condition.rule,
        subject=condition.subject,
        status=AlertState.FIRING,
        severity=severity,
        since=began.at,
        at=snapshot.at,
        observed=condition.observed,
        expected=condition.expected,
        source=condition.source,
        summary=condition.summary,
        fix=str(condition.fix),
        cpus=format_cpulist(condition.cpus),
        began=began,
        came=snapshot.moment,
    )


def _grown(alert: Alert, condition: Condition) -> Alert:
    """The same event, which by now concerns more CPUs: whoever looks at it later must find them all named."""
    if not condition.cpus > parse_shown(alert.cpus):
        return alert
    return replace(
        alert,
        observed=condition.observed,
        summary=condition.summary,
        fix=str(condition.fix),
        cpus=format_cpulist(condition.cpus),
    )


def _resolved(track: Track, snapshot: Snapshot, condition: Condition | None) -> Alert:
    """The same event, over: with what is seen now, where that is known."""
    fired = track.alert
    assert fired is not None
    track.alert, track.recent, track.began, track.good = None, "", None, 0
    seen = condition.observed if condition is not None else None
    over = {"status": AlertState.RESOLVED, "at": snapshot.at, "came": snapshot.moment}
    return replace(fired, **over, observed=seen, summary=f"over; it said: {fired.summary}", fix="")
