"""Has a knob drifted from what the host file asks? As `tunectl verify` judges, round and round.

Every knob is judged within [monitor] drift_interval_s, a share in each look; an event, a manager that starts, another
set of interrupts or a run of apply has all of them judged at once. What that costs bounds how often it may be.
"""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Iterable, Iterator
from itertools import chain

from tunectl.errors import TunectlError
from tunectl.model import Finding, Outcome
from tunectl.monitor.model import Health, Sample
from tunectl.monitor.sources.knobs import Knobs
from tunectl.monitor.watched_host import Eyes, Source

_NAME = "drift"
_EVENTFUL = frozenset({"cpu", "net", "queues", "pci"})
_SHARE = 0.02  # of one CPU, while something changes all the time
_HEALTH = {Outcome.UNREADABLE: Health.NO_DATA, Outcome.UNSUPPORTED: Health.ABSENT}


class _Kept:
    """What is to be done next, and the samples of what was found."""

    def __init__(self, eyes: Eyes) -> None:
        self.knobs = Knobs(eyes)
        self.urgent = True
        self.problem = ""
        self.next_at = eyes.look_at  # not before
        self.worked_at = eyes.look_at
        self.round: list[str | list[str]] = []  # paths of knobs with many; other knobs
        self.place = 0
        self.owed = 0.0
        self.dirty: set[str] = set()
        self.trigger: object = None
        self.landed = 0
        self.once_bad: set[str] = set()
        self.samples: dict[str, list[Sample]] = {}

    def look(self, eyes: Eyes) -> None:
        """Judges what is due."""
        today = max(eyes.session.today, datetime.datetime.now(datetime.UTC).date().isoformat())  # waivers end
        trigger = (eyes.table.shapes, _written(self.knobs.session.journal.path), today)
        told = any(event.subsystem in _EVENTFUL for event in eyes.events)
        self.urgent |= told or eyes.cpus_changed or eyes.suspicious or trigger != self.trigger
        self.trigger, eyes.suspicious = trigger, False
        now, interval = eyes.look_at, eyes.wishes.monitor.drift_interval_s
        if len(eyes.table.landed) != self.landed and "irq.affinity" in self.samples:
            self.dirty.add("irq.affinity")  # one that came nowhere was harmless
        self.landed = len(eyes.table.landed)
        self.dirty |= eyes.doubtful & self.samples.keys()
        eyes.doubtful = set()
        if self.urgent and now >= self.next_at:
            self.next_at = now + interval  # where it fails, it is not tried in every look
            self.problem = "unfinished"
            self._judge_all(now, interval, today)
            self.problem = ""
        elif self.problem:
            raise TunectlError(self.problem)
        else:
            self._work(now, interval)
        if self.dirty and now >= self.next_at:
            start = time.thread_time()
            self.knobs.judge(self.dirty)
            self._show(self.dirty)
            self.dirty = set()
            self.next_at = now + min((time.thread_time() - start) / _SHARE, interval)

    def _judge_all(self, now: float, interval: float, today: str) -> None:
        self.knobs.judge_all(today)
        self.urgent, self.dirty = False, set()
        self.next_at = now + min(self.knobs.cost_s / _SHARE, interval)
        self.samples = {}
        self._show(self.knobs.findings)
        paths, few = list(self.knobs.owners), self.knobs.few
        step = max(len(paths) // max(len(few), 1), 1)
        self.round = [*paths]
        for number, names in enumerate(few):  # spread evenly: each costs as much as many files
            self.round.insert(min(number * (step + 1), len(self.round)), names)
        self.place, self.owed, self.worked_at = 0, 0.0, now

    def _work(self, now: float, interval: float) -> None:
        """This look's share of the round, for half of the time since the last look at most.

        On a starved host the share takes longer than looks are apart, and the next look would owe more: in the end each
        would make the whole round, and everything else (a clock that is held down) would be seen as seldom.
        """
        size, elapsed, knobs = len(self.round), now - self.worked_at, self.knobs
        self.owed = min(self.owed + size * elapsed / interval, float(size))
        self.worked_at = now
        begun = time.monotonic()
        while self.owed > 0:
            item = self.round[self.place]
            if isinstance(item, list):
                knobs.judge(item)
                self._show(item)
            elif knobs.differs(item):
                self.dirty.add(knobs.owners[item])
            self.place = (self.place + 1) % size
            self.owed -= 1
            if time.monotonic() - begun > elapsed / 2:
                break

    def _show(self, names: Iterable[str]) -> None:
        for name in names:
            self.samples[name] = list(self._samples(name, self.knobs.findings.get(name, ())))

    def _samples(self, name: str, findings: tuple[Finding, ...]) -> Iterator[Sample]:
        """What is not as wanted, and what once was not; of all the others one sample a knob."""
        quiet = 0
        for finding in findings:
            if _bad(finding):
                self.once_bad.add(finding.target)
            if _bad(finding) or finding.target in self.once_bad or finding.target == name:
                yield _sample(finding)
            else:
                quiet += 1
        if quiet and quiet == len(findings):
            all_well = Finding(name, name, Outcome.COMPLIANT)
            yield Sample("knob", name, "compliant", _NAME, reason=f"{quiet} targets", seen=all_well)


def _bad(finding: Finding) -> bool:
    if finding.outcome is Outcome.REFUSED:
        return finding.harmful
    return finding.outcome not in (Outcome.COMPLIANT, Outcome.UNSUPPORTED)


def _sample(finding: Finding) -> Sample:
    # A refusal without an effect is how that machine is (docs/interface.md, "Outcomes").
    harmless = finding.outcome is Outcome.REFUSED and not finding.harmful
    value = Outcome.COMPLIANT if harmless else finding.outcome
    health = _HEALTH.get(finding.outcome, Health.FRESH)
    reason = "" if health is Health.FRESH else _why_unknown(finding)
    return Sample("knob", finding.target, str(value), _NAME, health, reason, seen=finding)


def _why_unknown(finding: Finding) -> str:
    values = f"observed {finding.observed}, desired {finding.desired}"
    return f"{values}: {finding.reason}" + (f"; fix: {finding.fix}" if finding.fix else "")


def _written(path: str) -> float:
    """When the journal was written last: apply or restore ran."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def read(eyes: Eyes) -> Iterable[Sample]:
    """One sample a target that is not compliant, or was not since the start; one a knob of which all are."""
    kept = eyes.keep(_NAME, lambda: _Kept(eyes))
    try:
        kept.look(eyes)
    except Exception as error:
        kept.problem = kept.problem and str(error)
        raise
    return chain.from_iterable(kept.samples.values())


SOURCE = Source(
    _NAME,
    ("every file that `tunectl verify` reads",),
    "nobody: what would interrupt an isolated CPU (energy_performance_preference) is not read of one",
    "at most [monitor] drift_interval_s old; older on a starved host, where it gets half of a look at most",
    read,
)
