"""A board as metrics. Names begin with tunectl_; no metric has a time stamp, since a textfile must not have one."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tunectl import __version__
from tunectl.monitor.model import Alert, Sample, Severity, Snapshot, Status
from tunectl.monitor.receivers.metric_rows import MOST, ROWS, Row, label, number, number_of
from tunectl.monitor.receivers.naming import ANNOTATIONS, LABELS, annotations_of, labels_of

_OWN = {
    "cycle_seconds": "How long the last cycle took.",
    "cycle_cpu_seconds": "CPU time of the last cycle.",
    "cpu_seconds_total": "CPU time of the monitor.",
    "cycles_total": "Cycles since the monitor started.",
    "outbox_depth": "Alerts that wait for a receiver.",
    "outbox_unsaved": "Alerts that wait in memory only, because the disk takes none.",
    "outbox_oldest_seconds": "How long the oldest alert has waited for a receiver.",
    "outbox_delivered_total": "Alerts that a receiver acknowledged.",
    "outbox_failures_total": "Deliveries that were not acknowledged.",
    "outbox_lost_total": "Alerts that will never be delivered: refused, or more than the outbox holds.",
}


_INFO = (*LABELS, *ANNOTATIONS)
_INTERRUPTS = "interrupts"
_TALLIED = frozenset({"own_interruptions", "device"})


class _Family:
    """A metric whose series are bounded, and none of which comes twice."""

    def __init__(self, name: str, text: str, labels: Iterable[str] = (), *, counter: bool = False) -> None:
        kind = CounterMetricFamily if counter else GaugeMetricFamily
        self.metric = kind(f"tunectl_{name}", text, labels=tuple(labels))
        self.name = f"tunectl_{name}{'_total' if counter else ''}"
        self.dropped = 0
        self._seen: set[tuple[str, ...]] = set()

    def add(self, values: tuple[str, ...], value: float, most: int = MOST) -> None:
        if values in self._seen:
            return
        if len(self._seen) >= most:
            self.dropped += 1
            return
        self._seen.add(values)
        self.metric.add_metric(values, value)


class Tally:
    """What one board cannot say and a scrape must not miss: counts over all boards of one process."""

    def __init__(self) -> None:
        self.own_interruptions: Counter[str] = Counter()  # by CPU
        self.events: Counter[tuple[str, str]] = Counter()  # (net, add)
        self._last: Snapshot | None = None

    def add(self, status: Status) -> None:
        """Counts a board once, however often it is shown."""
        if status.snapshot is self._last:
            return
        self._last = status.snapshot
        for sample in [each for each in status.snapshot.samples if each.quantity in _TALLIED]:  # of ten thousand
            if sample.quantity == "device":
                self.events[label(sample.subject.partition("/")[0]), label(str(sample.value))] += 1
            elif (count := number(sample)) is not None:
                self.own_interruptions[number_of(sample.subject)] += int(count)


class Busiest:
    """Which interrupts are shown, where there is room for some: those that came most, lately before long ago.

    Each look at a new snapshot halves what was counted for an interrupt and adds its rise: one that is loud now has a
    place at once, and keeps it for a while.
    """

    def __init__(self) -> None:
        self._counts: dict[str, float] = {}
        self._scores: dict[str, float] = {}
        self._last: Snapshot | None = None

    def first(self, snapshot: Snapshot) -> Iterable[Sample]:
        """All samples, those of the busiest interrupts before those of others."""
        counts = {one.subject: number(one) or 0.0 for one in snapshot.samples if one.quantity == _INTERRUPTS}
        if snapshot is not self._last:
            before, self._last = self._counts, snapshot
            self._scores = {
                subject: self._scores.get(subject, 0.0) / 2 + _rise(before.get(subject), count)
                for subject, count in counts.items()
            }
            self._counts = counts
        if len(counts) <= MOST:
            return snapshot.samples

        def rank(sample: Sample) -> tuple[float, float]:
            if sample.quantity != _INTERRUPTS:
                return 0.0, 0.0
            return -self._scores.get(sample.subject, 0.0), -counts[sample.subject]

        return sorted(snapshot.samples, key=rank)


def _rise(before: float | None, now: float) -> float:
    """Since the last look; of one that was not there before nobody knows when it came."""
    if before is None:
        return 0.0
    return now - before if now >= before else now


class Shown:
    """The last board as a registry that the library can write out.

    `cut` counts, by reason, whom an endpoint did not serve to the end; a file has nobody.
    """

    def __init__(self, cut: Mapping[str, int] | None = None) -> None:
        self._cut = cut or {}
        self._board: Status | None = None
        self._tally = Tally()
        self._busiest = Busiest()
        self._lock = threading.Lock()
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    def see(self, status: Status) -> None:
        """Cheap: called in each cycle."""
        with self._lock:
            self._tally.add(status)
            self._board = status

    def collect(self) -> Iterator[Metric]:
        """For the library."""
        with self._lock:
            return iter((*families(self._board, self._tally, self._busiest), *_unserved(self._cut)))


def families(status: Status | None, tally: Tally, busiest: Busiest) -> Iterator[Metric]:
    """Every metric of a board; before the first, only who we are."""
    info = _Family("monitor_info", "The tunectl that watches.", ("version",))
    info.add((__version__,), 1)
    yield info.metric
    if status is None:
        return
    made = [*_samples(busiest.first(status.snapshot)), *_tallied(tally), *_judged(status), *_about(status)]
    dropped = _Family("monitor_series_dropped", "Series that a metric has too many of to be shown.", ("metric",))
    for family in made:
        yield family.metric
        if family.dropped:
            dropped.add((family.name,), family.dropped)
    yield dropped.metric


def _unserved(cut: Mapping[str, int]) -> Iterator[Metric]:
    text = "Clients of this endpoint that were cut: not done in time, to make room, or too long a request."
    family = _Family("monitor_scrapes_cut", text, ("reason",), counter=True)
    for reason, count in cut.items():
        family.add((reason,), count)
    if cut:
        yield family.metric


def _samples(samples: Iterable[Sample]) -> Iterable[_Family]:
    found: dict[str, _Family] = {}
    freshness = Counter((sample.source, sample.quantity, sample.freshness) for sample in samples)
    for sample in samples:
        for row in ROWS.get(sample.quantity, ()):
            value = row.value(sample)
            if value is not None:
                _family(found, row).add(row.of(sample), value, row.most)
    counts = _Family(
        "samples", "Samples of the last cycle by how well they are known.", ("source", "quantity", "health")
    )
    for (source, quantity, state), count in sorted(freshness.items()):
        counts.add((label(source), label(quantity), state.value), count, 10 * MOST)
    return [*found.values(), counts]


def _family(found: dict[str, _Family], row: Row) -> _Family:
    if row.name not in found:
        found[row.name] = _Family(row.name, row.text, row.labels, counter=row.counter)
    return found[row.name]


def _tallied(tally: Tally) -> Iterator[_Family]:
    text = "Interruptions of isolated CPUs that came while the monitor itself was at work."
    own = _Family("own_interruptions", text, ("cpu",), counter=True)
    for cpu, count in tally.own_interruptions.items():
        own.add((cpu,), count, 10 * MOST)
    yield own
    events = _Family("device_events", "CPUs, NICs and queues that came or went.", ("kind", "action"), counter=True)
    for values, count in sorted(tally.events.items()):
        events.add(values, count)
    yield events


def _judged(status: Status) -> Iterator[_Family]:
    conditions = _Family("conditions", "Subjects by what a rule says of them.", ("rule", "verdict"))
    said = Counter((label(each.rule), each.health.value) for each in status.conditions)
    for values, count in sorted(said.items()):
        conditions.add(values, count, 10 * MOST)
    yield conditions
    totals = _Family("alerts_firing", "How many alerts fire.", ("severity",))
    for severity in Severity:
        totals.add((severity.value,), sum(alert.severity is severity for alert in status.firing))
    yield totals
    yield from _firing(status)


def _firing(status: Status) -> Iterator[_Family]:
    """Each alert with its labels and its text."""
    info = _Family("alert_info", f"1 for an alert that fires, with what it says; the first {MOST}.", _INFO)
    text = "When what fires began, since the epoch."
    since = _Family("alert_since_timestamp_seconds", text, ("alertname", "host", "subject"))
    for alert in sorted(status.firing, key=_worst_first):
        said = {**labels_of(alert, status.host), **annotations_of(alert, status.host)}
        info.add(tuple(said.get(name, "") for name in _INFO), 1)
        if (at := _epoch(alert.since)) is not None:
            since.add(tuple(said[name] for name in LABELS[:3]), at)
    yield info
    yield since


def _worst_first(alert: Alert) -> tuple[int, str, str]:
    return list(Severity).index(alert.severity), alert.rule, alert.subject


def _about(status: Status) -> Iterator[_Family]:
    isolated = _Family("cpu_isolated", "1 for an isolated CPU, 0 for a housekeeping CPU.", ("cpu",))
    for cpu in sorted(status.isolated | status.housekeeping):
        isolated.add((str(cpu),), float(cpu in status.isolated), 10 * MOST)
    yield isolated
    if (at := _epoch(status.snapshot.at)) is not None:
        last = _Family("monitor_last_cycle_timestamp_seconds", "When the last cycle ended, since the epoch.")
        last.add((), at)
        yield last
    yield from _own(status.own).values()


def _own(own: Mapping[str, float]) -> dict[str, _Family]:
    """`cycle_seconds` and `outbox_depth[webhook-x]`: the brackets hold the receiver; its label is `notifier`."""
    found: dict[str, _Family] = {}
    for key, value in own.items():
        name, _, receiver = key.removesuffix("]").partition("[")
        counter = name.endswith("_total")
        text = _OWN.get(name, f"The monitor's own {name}.")
        labels = ("notifier",) if receiver else ()
        if name not in found:
            found[name] = _Family(f"monitor_{name.removesuffix('_total')}", text, labels, counter=counter)
        found[name].add((label(receiver),) if receiver else (), value)
    return found


def _epoch(at: str) -> float | None:
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return None
