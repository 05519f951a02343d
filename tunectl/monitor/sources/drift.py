"""Has a knob drifted from what the host file asks? As `tunectl verify` judges, again and again.

Every knob is judged within [monitor] drift_interval_s, a share of them in each snapshot. An event, another tuner that
starts, another set of interrupts or a run of apply has all of them judged at once. The more that costs, the less often
it happens.
"""

import datetime
import os
import time
from collections.abc import Iterable
from itertools import chain

from tunectl.errors import TunectlError
from tunectl.knobs import KNOBS
from tunectl.model import Finding, Outcome
from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.sources.knobs import Knobs
from tunectl.monitor.watched_host import Source, WatchedHost
from tunectl.wording import standing

_NAME = "drift"
_EVENTFUL = frozenset({"cpu", "net", "queues", "pci"})
_SHARE = 0.02  # of one CPU, while something changes all the time
_FRESHNESS = {Outcome.UNREADABLE: Freshness.NO_DATA, Outcome.UNSUPPORTED: Freshness.ABSENT}


class _Kept:
    """What has to be judged next, and the samples of what was found."""

    def __init__(self, host: WatchedHost) -> None:
        self.knobs = Knobs(host)
        self.urgent = True
        self.problem = ""
        self.next_at = host.taken_at  # not before
        self.worked_at = host.taken_at
        self.round: list[str | list[str]] = []  # paths of knobs with many; other knobs
        self.place = 0
        self.owed = 0.0
        self.dirty: set[str] = set()
        self.trigger: object = None
        self.landed = 0
        self.once_bad: set[str] = set()
        self.samples: dict[str, list[Sample]] = {}

    def look(self, host: WatchedHost) -> None:
        """Judges what is due."""
        today = max(host.inspection.today, datetime.datetime.now(datetime.UTC).date().isoformat())  # waivers end
        trigger = (host.table.shapes, _written(self.knobs.inspection.journal.path), today)
        announced = any(event.subsystem in _EVENTFUL for event in host.events)
        self.urgent |= announced or host.cpus_changed or host.suspicious or trigger != self.trigger
        self.trigger, host.suspicious = trigger, False
        now, interval = host.taken_at, host.config.monitor.drift_interval_s
        if len(host.table.landed) != self.landed and "irq.affinity" in self.samples:
            self.dirty.add("irq.affinity")  # an interrupt that never came to an isolated CPU was harmless until now
        self.landed = len(host.table.landed)
        self.dirty |= host.doubtful & self.samples.keys()
        host.doubtful = set()
        if self.urgent and now >= self.next_at:
            self.next_at = now + interval  # where it fails, it is not tried in every snapshot
            self.problem = "unfinished"
            self._judge_all(host, interval, today)
            self.problem = ""
        elif self.problem:
            raise TunectlError(self.problem)
        else:
            with self.knobs.root.one_look():
                self._work(now, interval)
        if self.dirty and now >= self.next_at:
            start = time.thread_time()
            self.knobs.judge(self.dirty)
            self._show(self.dirty)
            self.dirty = set()
            self.next_at = now + min((time.thread_time() - start) / _SHARE, interval)

    def _judge_all(self, host: WatchedHost, interval: float, today: str) -> None:
        now, watched = host.taken_at, not host.is_once
        self.knobs.judge_all(today, watched=watched)
        self.urgent, self.dirty = False, set()
        self.next_at = now + min(self.knobs.cost_s / _SHARE, interval)
        self.samples = {}
        self._show(self.knobs.findings)
        paths, few = list(self.knobs.owners), self.knobs.few  # none of either where nothing is watched
        step = max(len(paths) // max(len(few), 1), 1)
        self.round = [*paths]
        for number, names in enumerate(few):  # spread evenly: each costs as much as many files do
            self.round.insert(min(number * (step + 1), len(self.round)), names)
        self.place, self.owed, self.worked_at = 0, 0.0, now

    def _work(self, now: float, interval: float) -> None:
        """This snapshot's share of the round, for at most half of the time since the last snapshot.

        On a starved host the share takes longer than the time between two snapshots, and the next one would owe more.
        In the end each would make the whole round, and everything else (a clock that is held down) would be seen late.
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
        """What is not as wanted, and what once was not; of a knob all of whose targets are well, one sample."""
        for name in names:
            findings = self.knobs.findings.get(name, ())
            self.once_bad |= {finding.target for finding in findings if _bad(finding)}
            told = [finding for finding in findings if finding.target in self.once_bad or not finding.instance]
            self.samples[name] = [_sample(finding) for finding in told]
            if findings and not told:
                all_well = Finding(name, "", Outcome.COMPLIANT, severity=KNOBS[name].severity)
                well = Sample("knob", name, "compliant", _NAME, reason=f"{len(findings)} targets", seen=all_well)
                self.samples[name] = [well]


def _bad(finding: Finding) -> bool:
    if finding.outcome is Outcome.REFUSED:
        return finding.harmful
    return finding.outcome not in (Outcome.COMPLIANT, Outcome.UNSUPPORTED)


def _sample(finding: Finding) -> Sample:
    # A refusal without an effect is how that machine is (docs/interface.md, "Outcomes").
    harmless = finding.outcome is Outcome.REFUSED and not finding.harmful
    value = Outcome.COMPLIANT if harmless else finding.outcome
    freshness = _FRESHNESS.get(finding.outcome, Freshness.FRESH)
    reason = ""
    if freshness is not Freshness.FRESH:
        reason = ": ".join(filter(None, [standing(finding), finding.reason]))
        reason += f"; fix: {finding.fix}" if finding.fix else ""
    return Sample("knob", finding.target, str(value), _NAME, freshness, reason, seen=finding)


def _written(path: str) -> float:
    """When the journal was written last: apply or restore ran."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def read(host: WatchedHost) -> Iterable[Sample]:
    """One sample a target that is not compliant, or was not since the start; one a knob of which all are."""
    kept = host.keep(_NAME, lambda: _Kept(host))
    try:
        kept.look(host)
    except Exception as error:
        kept.problem = kept.problem and str(error)
        raise
    return chain.from_iterable(kept.samples.values())


SOURCE = Source(
    _NAME,
    ("every file that `tunectl verify` reads",),
    "nobody: what would interrupt an isolated CPU (energy_performance_preference) is not read of one",
    "at most [monitor] drift_interval_s old; older on a starved host, where it gets at most half of a snapshot's time",
    read,
)
