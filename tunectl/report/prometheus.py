"""Prometheus text format, for node_exporter's textfile collector.

No time stamps: the collector skips a whole file that has one. Every series has the label `report`, because the
collector merges all files of its directory and refuses the same series twice. Only findings that fail a gate are
series of their own, so that a good host with 4,096 interrupts has none.

Source: prometheus/docs, docs/practices/naming.md; node_exporter, collector/textfile.go.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from tunectl import __version__
from tunectl.model import Document
from tunectl.report.escape import printable
from tunectl.report.figures import feed_of, probe_of
from tunectl.report.findings import counts
from tunectl.shapes import Budget, Feed, Jitter
from tunectl.verdict import SECTIONS, fails_gate

MAX_TARGETS = 100  # series per knob; tunectl_drifted_targets has the whole count
_VERDICTS = {
    "preflight": ("go", "no-go", "pending-reboot", "unknown"),
    "thermal": ("ok", "throttled", "unknown"),
}
_TUNED = ("compliant", "drifted", "pending-reboot", "unreadable")
_SECOND = 1e9  # nanoseconds
_PPM = 1e6


class _Collected:
    """Hands finished metrics to a registry of their own."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = tuple(metrics)

    def collect(self) -> Iterator[Metric]:
        yield from self._metrics


def render(document: Document, *, width: int = 0, colour: bool = False) -> str:
    """Every metric of the document, in base units."""
    registry, probe, feed = CollectorRegistry(auto_describe=False), probe_of(document), feed_of(document)
    known = (*_about(document), *_findings(document), *_verdicts(document))
    measured = (*_probe(document, probe), *_feed(document, feed))
    registry.register(_Collected([*known, *_terms(document, probe), *measured]))
    return generate_latest(registry).decode()


def _gauge(document: Document, name: str, text: str, labels: tuple[str, ...] = ()) -> tuple[GaugeMetricFamily, Any]:
    family = GaugeMetricFamily(f"tunectl_{name}", text, labels=("report", *labels))

    def add(value: float, *label_values: str) -> None:
        family.add_metric([document.name, *(printable(value) for value in label_values)], value)

    return family, add


def _about(document: Document) -> Iterator[Metric]:
    build, add = _gauge(document, "build_info", "The tunectl that made this report.", ("version",))
    add(1, __version__)
    yield build
    try:
        at = datetime.fromisoformat(document.at).timestamp()
    except ValueError:
        return
    made, add = _gauge(document, "report_timestamp_seconds", "When this report was made, since the epoch.")
    add(at)
    yield made
    if document.body.get("unconfirmed"):
        waits, add = _gauge(document, "unconfirmed", "1 where a change waits for its confirmation.")
        add(1)
        yield waits


def _findings(document: Document) -> Iterator[Metric]:
    total, add = _gauge(document, "findings", "Findings by outcome.", ("outcome",))
    for outcome, count in counts(document.findings).items():
        add(count, outcome.value)
    yield total
    strict = bool(document.body.get("strict"))
    failing = dict.fromkeys((each.knob, each.target) for each in document.findings if fails_gate(each, strict))
    per_knob = Counter(knob for knob, _ in failing)
    targets, add = _gauge(document, "drifted_targets", "Targets that fail the gate, by knob.", ("knob",))
    for knob, count in per_knob.items():
        add(count, knob)
    yield targets
    text = f"1 for a target that fails the gate; the first {MAX_TARGETS} of a knob."
    drifted, add = _gauge(document, "drifted", text, ("knob", "target"))
    listed: Counter[str] = Counter()
    for knob, target in failing:
        listed[knob] += 1
        if listed[knob] <= MAX_TARGETS:
            add(1, knob, target)
    yield drifted


def _verdicts(document: Document) -> Iterator[Metric]:
    verdict, add = _gauge(document, "verdict", "1 for the report's verdict, 0 for the others.", ("verdict",))
    for word in _VERDICTS.get(document.name, _TUNED):
        add(document.body.get("verdict") == word, word)
    yield verdict
    sections = [name for name in SECTIONS if isinstance(document.body.get(name), Mapping)]
    section, add = _gauge(document, "section_verdict", "1 for the verdict of a section.", ("section", "verdict"))
    for name in sections:
        for word in _VERDICTS.get(name, _TUNED):
            add(document.body[name].get("verdict") == word, name, word)
    if sections:
        yield section


def _terms(document: Document, probe: Jitter | None) -> Iterator[Metric]:
    """On what terms a preflight's verdict was reached."""
    waivers = document.body.get("waivers")
    if not isinstance(waivers, Mapping):
        return
    standing, add = _gauge(document, "waivers", "How many waivers of the host file stand.")
    add(waivers["standing"])
    yield standing
    if waivers["next"]:
        text = "When the day ends (UTC) on which the next waiver expires, since the epoch."
        expiry, add = _gauge(document, "waiver_next_expiry_timestamp_seconds", text)
        last_day = datetime.fromisoformat(waivers["next"]["until"]).replace(tzinfo=UTC)
        add((last_day + timedelta(days=1)).timestamp())
        yield expiry
    text = "How many times as much a limit of the budget permits as the profile's; only of limits that are looser."
    looser, add = _gauge(document, "probe_budget_looser_ratio", text, ("limit",))
    for one in document.body.get("looser", ()):
        add(one["limit"] / one["profile_limit"], one["key"])
    yield looser
    judged, add = _gauge(
        document, "probe_judged", "1 where the probe was held to its limits, 0 where nothing was judged."
    )
    add(probe is not None and probe.budget.verdict in ("within", "broken"))
    yield judged


def _feed(document: Document, feed: Feed | None) -> Iterator[Metric]:
    """Of the feed that was asked for: whether it was judged, also where it was not measured."""
    if document.body.get("is_feed_asked"):
        text = "1 where feed was held to its limit, 0 where nothing was judged."
        judged, add = _gauge(document, "feed_judged", text)
        add(feed is not None and feed.budget.verdict in ("within", "broken"))
        yield judged
    if not feed:
        return
    text = "Percentiles of what a message takes from when it was due to the book."
    family, add = _gauge(document, "feed_due_to_book_seconds", text, ("case", "percentile"))
    for case in feed.cases:
        for percentile in ("50", "99", "99.9"):
            if (value := case.at(percentile)) is not None:
                add(value / _SECOND, case.name, percentile)
    yield family
    if (allowed := feed.budget.limits.get("due_to_book_p99_9_ns")) is not None:
        limit, add = _gauge(document, "feed_budget_due_to_book_p99_9_seconds", "The limit of the percentile 99.9.")
        add(allowed / _SECOND)
        yield limit
    broken, add = _gauge(document, "feed_budget_broken", "How many cases of feed broke its limit.")
    add(len(feed.budget.broken))
    yield broken


def _probe(document: Document, probe: Jitter | None) -> Iterator[Metric]:
    if not probe:
        return
    plain = (
        ("max_gap_seconds", "The longest time a CPU was away.", "max_ns", _SECOND),
        ("stolen_ratio", "The share of time a CPU was away.", "stolen_ppm", _PPM),
        ("interruptions_per_second", "How often a CPU was away.", "interruptions_per_s", 1),
    )
    for name, text, measure, scale in plain:
        family, add = _gauge(document, f"probe_{name}", text, ("cpu",))
        for cpu in probe.cpus:
            value = probe.figure(cpu, measure)
            if value is not None:
                add(value / scale, str(cpu.cpu))
        yield family
    yield from _percentiles(document, probe)
    yield from _budget(document, probe.budget)


def _percentiles(document: Document, probe: Jitter) -> Iterator[Metric]:
    gap = [(cpu, cpu.gap_ns) for cpu in probe.cpus]
    arrival = [(cpu, cpu.arrival_ns) for cpu in probe.cpus]
    for field, each, text in (
        ("gap", gap, "Percentiles of how long a CPU was away, by interruption."),
        ("arrival", arrival, "Percentiles of the wait of a message that arrives at a random moment."),
    ):
        family, add = _gauge(document, f"probe_{field}_seconds", text, ("cpu", "percentile"))
        for cpu, percentiles in each:
            for percentile, value in percentiles.items():
                add(value / _SECOND, str(cpu.cpu), percentile)
        yield family


def _budget(document: Document, budget: Budget) -> Iterator[Metric]:
    for limit, name, scale in (
        ("max_ns", "max_gap_seconds", _SECOND),
        ("p99_9_ns", "arrival_p99_9_seconds", _SECOND),
        ("interruptions_per_s", "interruptions_per_second", 1),
        ("stolen_ppm", "stolen_ratio", _PPM),
    ):
        if (allowed := budget.limits.get(limit)) is not None:
            family, add = _gauge(document, f"probe_budget_{name}", f"The budget's {limit}, in base units.")
            add(allowed / scale)
            yield family
    broken, add = _gauge(document, "probe_budget_broken", "How many limits of the budget the probe broke.")
    add(len(budget.broken))
    yield broken
