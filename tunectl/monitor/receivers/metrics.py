"""A board as metrics. Names begin with tunectl_; no metric has a time stamp, since a textfile must not have one."""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tunectl import __version__
from tunectl.host.counters import rises
from tunectl.monitor.model import Sample, Severity, Snapshot, Status
from tunectl.monitor.receivers.metric_rows import MOST, ROWS, Row, label, number_of
from tunectl.monitor.receivers.naming import ANNOTATIONS, LABELS, annotations_of, labels_of
from tunectl.monitor.rules.history import number

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


class _Families:
    """The library's families of one board. Each series stands once, and of each metric no more than `most` do."""

    def __init__(self) -> None:
        self.metrics: list[Metric] = []
        self.dropped: dict[tuple[str, ...], float] = {}  # by metric: how many series it has too many of

    def add(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        series: Mapping[Any, float],  # by the values of its labels
        *,
        counter: bool = False,
        most: int = MOST,
    ) -> None:
        """A metric of the first series, by the values of its labels."""
        kind = CounterMetricFamily if counter else GaugeMetricFamily
        metric = kind(f"tunectl_{name}", text, labels=labels)
        for values, value in islice(series.items(), most):
            metric.add_metric(values, value)
        if len(series) > most:
            self.dropped[(f"{metric.name}{'_total' * counter}",)] = len(series) - most
        self.metrics.append(metric)


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
        self._counts: dict[str, int] = {}
        self._scores: dict[str, float] = {}
        self._last: Snapshot | None = None

    def first(self, snapshot: Snapshot) -> Iterable[Sample]:
        """All samples, those of the busiest interrupts before those of others."""
        counts = {
            sample.subject: int(number(sample) or 0) for sample in snapshot.samples if sample.quantity == _INTERRUPTS
        }
        if snapshot is not self._last:
            # Of one that was not there before nobody knows when it came.
            came, self._last = rises(self._counts, counts), snapshot
            self._scores = {subject: self._scores.get(subject, 0.0) / 2 + came.get(subject, 0) for subject in counts}
            self._counts = counts
        if len(counts) <= MOST:
            return snapshot.samples

        def rank(sample: Sample) -> tuple[float, float]:
            if sample.quantity != _INTERRUPTS:
                return 0.0, 0.0
            return -self._scores.get(sample.subject, 0.0), -counts[sample.subject]

        return sorted(snapshot.samples, key=rank)


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
            return iter(families(self._board, self._tally, self._busiest, self._cut))


def families(status: Status | None, tally: Tally, busiest: Busiest, cut: Mapping[str, int]) -> list[Metric]:
    """Every metric of a board; before the first, only who we are, and whom an endpoint did not serve."""
    made = _Families()
    made.add("monitor_info", "The tunectl that watches.", ["version"], {(__version__,): 1})
    if status is not None:
        _add_samples(made, list(busiest.first(status.snapshot)))
        _add_judged(made, status, tally)
        _add_firing(made, status)
        _add_about(made, status)
        text = "Series that a metric has too many of to be shown."
        made.add("monitor_series_dropped", text, ["metric"], dict(made.dropped))
    if cut:
        text = "Clients of this endpoint that were cut: not done in time, to make room, or too long a request."
        clients = {(reason,): count for reason, count in cut.items()}
        made.add("monitor_scrapes_cut", text, ["reason"], clients, counter=True)
    return made.metrics


def _add_samples(made: _Families, samples: Sequence[Sample]) -> None:
    shown: dict[str, tuple[Row, dict[tuple[str, ...], float]]] = {}
    for sample in samples:
        for row in ROWS.get(sample.quantity, ()):
            value = row.value(sample)
            if value is not None:
                labels = tuple(make(sample) for make in row.labels.values())
                shown.setdefault(row.name, (row, {}))[1].setdefault(labels, value)
    for row, series in shown.values():
        made.add(row.name, row.text, [*row.labels], series, counter=row.counter, most=row.most)
    known = Counter((label(sample.source), label(sample.quantity), sample.freshness.value) for sample in samples)
    text = "Samples of the last cycle by how well they are known."
    made.add("samples", text, ["source", "quantity", "health"], dict(sorted(known.items())), most=10 * MOST)


def _add_judged(made: _Families, status: Status, tally: Tally) -> None:
    text = "Interruptions of isolated CPUs that came while the monitor itself was at work."
    own = {(cpu,): count for cpu, count in tally.own_interruptions.items()}
    made.add("own_interruptions", text, ["cpu"], own, counter=True, most=10 * MOST)
    text = "CPUs, NICs and queues that came or went."
    made.add("device_events", text, ["kind", "action"], dict(sorted(tally.events.items())), counter=True)
    judged = Counter((label(condition.rule), condition.health.value) for condition in status.conditions)
    text = "Subjects by what a rule says of them."
    made.add("conditions", text, ["rule", "verdict"], dict(sorted(judged.items())), most=10 * MOST)
    firing = Counter(alert.severity for alert in status.firing)
    totals = {(severity.value,): firing[severity] for severity in Severity}
    made.add("alerts_firing", "How many alerts fire.", ["severity"], totals)


def _add_firing(made: _Families, status: Status) -> None:
    """Each alert with its labels and its text, the worst first."""
    shown: dict[tuple[str, ...], float] = {}
    began: dict[tuple[str, ...], float] = {}
    order = list(Severity)
    for alert in sorted(status.firing, key=lambda each: (order.index(each.severity), each.rule, each.subject)):
        said = {**labels_of(alert, status.host), **annotations_of(alert, status.host)}
        shown[tuple(said.get(name, "") for name in _INFO)] = 1.0
        if (at := _epoch(alert.since)) is not None:
            began[tuple(said.get(name, "") for name in LABELS[:3])] = at
    made.add("alert_info", f"1 for an alert that fires, with what it says; the first {MOST}.", _INFO, shown)
    made.add("alert_since_timestamp_seconds", "When what fires began, since the epoch.", LABELS[:3], began)


def _add_about(made: _Families, status: Status) -> None:
    """Which CPUs are whose, and what the monitor says of itself.

    `cycle_seconds` and `outbox_depth[webhook-x]`: the brackets hold the receiver; its label is `notifier`.
    """
    text = "1 for an isolated CPU, 0 for a housekeeping CPU."
    cpus = {(str(cpu),): float(cpu in status.isolated) for cpu in sorted(status.isolated | status.housekeeping)}
    made.add("cpu_isolated", text, ["cpu"], cpus, most=10 * MOST)
    if (at := _epoch(status.snapshot.at)) is not None:
        text = "When the last cycle ended, since the epoch."
        made.add("monitor_last_cycle_timestamp_seconds", text, [], {(): at})
    own: dict[str, dict[tuple[str, ...], float]] = {}
    for key, value in status.own.items():
        name, _, receiver = key.removesuffix("]").partition("[")
        own.setdefault(name, {})[(label(receiver),) if receiver else ()] = value
    for name, series in own.items():
        text = _OWN.get(name, f"The monitor's own {name}.")
        labels = ["notifier"] if any(series) else []
        made.add(f"monitor_{name.removesuffix('_total')}", text, labels, series, counter=name.endswith("_total"))


def _epoch(at: str) -> float | None:
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return None
