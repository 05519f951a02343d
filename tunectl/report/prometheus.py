"""Prometheus text format, for node_exporter's textfile collector.

No time stamps: the collector skips a whole file that has one. Every series has the label `report`, because the
collector merges all files of its directory and refuses the same series twice. Only findings that fail a gate are
series of their own, so that a good host with 4,096 interrupts has none.

Source: prometheus/docs, docs/practices/naming.md; node_exporter, collector/textfile.go.
"""

import math
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
from tunectl.shapes import LIMITS, OF_HOST, Budget, Feed, Jitter
from tunectl.verdict import SECTIONS, fails_gate

MAX_TARGETS = 100  # series per knob; tunectl_drifted_targets has the whole count
_VERDICTS = {
    "preflight": ("go", "no-go", "pending-reboot", "unknown"),
    "thermal": ("ok", "throttled", "unknown"),
}
_TUNED = ("compliant", "drifted", "pending-reboot", "unreadable")
_JUDGED = ("within", "broken")  # verdicts of a budget
_SECOND = 1e9  # nanoseconds
_PPM = 1e6
_OF_HOST = {key: key.replace("_per_s", "_per_second") for key in OF_HOST}
Sample = tuple[Any, *tuple[str, ...]]  # a number, then labels


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


def _gauge(document: Document, name: str, text: str, samples: Iterable[Sample], *labels: str) -> Metric:
    """A metric of this document; each sample is its value, then what its labels are."""
    family = GaugeMetricFamily(f"tunectl_{name}", text, labels=("report", *labels))
    for value, *named in samples:
        family.add_metric([document.name, *map(printable, named)], value)
    return family


def _about(document: Document) -> Iterator[Metric]:
    yield _gauge(document, "build_info", "The tunectl that made this report.", [(1, __version__)], "version")
    try:
        at = datetime.fromisoformat(document.at).timestamp()
    except ValueError:
        return
    yield _gauge(document, "report_timestamp_seconds", "When this report was made, since the epoch.", [(at,)])
    if document.body.get("unconfirmed"):
        yield _gauge(document, "unconfirmed", "1 where a change waits for its confirmation.", [(1,)])


def _findings(document: Document) -> Iterator[Metric]:
    outcomes = [(count, outcome.value) for outcome, count in counts(document.findings).items()]
    yield _gauge(document, "findings", "Findings by outcome.", outcomes, "outcome")
    strict = bool(document.body.get("strict"))
    failing = dict.fromkeys((each.knob, each.target) for each in document.findings if fails_gate(each, strict))
    per_knob = [(count, knob) for knob, count in Counter(knob for knob, _ in failing).items()]
    yield _gauge(document, "drifted_targets", "Targets that fail the gate, by knob.", per_knob, "knob")
    text = f"1 for a target that fails the gate; the first {MAX_TARGETS} of a knob."
    listed: Counter[str] = Counter()
    drifted = []
    for knob, target in failing:
        listed[knob] += 1
        if listed[knob] <= MAX_TARGETS:
            drifted.append((1, knob, target))
    yield _gauge(document, "drifted", text, drifted, "knob", "target")


def _verdicts(document: Document) -> Iterator[Metric]:
    body, own = document.body, _VERDICTS.get(document.name, _TUNED)
    text = "1 for the report's verdict, 0 for the others."
    yield _gauge(document, "verdict", text, [(body.get("verdict") == word, word) for word in own], "verdict")
    sections = [
        (body[name].get("verdict") == word, name, word)
        for name in SECTIONS
        if isinstance(body.get(name), Mapping)
        for word in _VERDICTS.get(name, _TUNED)
    ]
    if sections:
        text = "1 for the verdict of a section."
        yield _gauge(document, "section_verdict", text, sections, "section", "verdict")


def _terms(document: Document, probe: Jitter | None) -> Iterator[Metric]:
    """On what terms a preflight's verdict was reached."""
    waivers = document.body.get("waivers")
    if not isinstance(waivers, Mapping):
        return
    yield _gauge(document, "waivers", "How many waivers of the host file stand.", [(waivers["standing"],)])
    if waivers["next"]:
        text = "When the day ends (UTC) on which the next waiver expires, since the epoch."
        last_day = datetime.fromisoformat(waivers["next"]["until"]).replace(tzinfo=UTC)
        end = (last_day + timedelta(days=1)).timestamp()
        yield _gauge(document, "waiver_next_expiry_timestamp_seconds", text, [(end,)])
    text = "How many times as much a limit of the budget permits as the profile's; only of limits that are looser."
    each = ((one["limit"], one["profile_limit"], one["key"]) for one in document.body.get("looser", ()))
    looser = [(limit / least if least else math.inf, key) for limit, least, key in each]
    yield _gauge(document, "probe_budget_looser_ratio", text, looser, "limit")
    text = "1 where the probe was held to its limits, 0 where nothing was judged."
    yield _gauge(document, "probe_judged", text, [(probe is not None and probe.budget.verdict in _JUDGED,)])


def _feed(document: Document, feed: Feed | None) -> Iterator[Metric]:
    """Of the feed that was asked for: whether it was judged, also where it was not measured."""
    if document.body.get("is_feed_asked"):
        text = "1 where feed was held to its limit, 0 where nothing was judged."
        yield _gauge(document, "feed_judged", text, [(feed is not None and feed.budget.verdict in _JUDGED,)])
    if not feed:
        return
    known = [(case.at(name), case.name, name) for case in feed.cases for name in ("50", "99", "99.9")]
    taken = [(value / _SECOND, case, name) for value, case, name in known if value is not None]
    text = "Percentiles of what a message takes from when it was due to the book."
    yield _gauge(document, "feed_due_to_book_seconds", text, taken, "case", "percentile")
    if (allowed := feed.budget.limits.get("due_to_book_p99_9_ns")) is not None:
        text = "The limit of the percentile 99.9."
        yield _gauge(document, "feed_budget_due_to_book_p99_9_seconds", text, [(allowed / _SECOND,)])
    text = "How many cases of feed broke its limit."
    yield _gauge(document, "feed_budget_broken", text, [(len(feed.budget.broken),)])


def _probe(document: Document, probe: Jitter | None) -> Iterator[Metric]:
    if not probe:
        return
    for name, text, measure, scale in (
        ("max_gap_seconds", "The longest time a CPU was away.", "max_ns", _SECOND),
        ("stolen_ratio", "The share of time a CPU was away.", "stolen_ppm", _PPM),
        ("interruptions_per_second", "How often a CPU was away.", "interruptions_per_s", 1),
    ):
        figures = [(probe.figure(cpu, measure), str(cpu.cpu)) for cpu in probe.cpus]
        known = [(value / scale, cpu) for value, cpu in figures if value is not None]
        yield _gauge(document, f"probe_{name}", text, known, "cpu")
    for key, name in _OF_HOST.items():
        if (rate := probe.worst(key)) is not None:
            text = f"{LIMITS[key].label} of the host; no sample where nobody counts them."
            yield _gauge(document, name, text, [(rate,)])
    gaps, arrivals = ([(cpu, getattr(cpu, field)) for cpu in probe.cpus] for field in ("gap_ns", "arrival_ns"))
    for name, each, text in (
        ("gap", gaps, "Percentiles of how long a CPU was away, by interruption."),
        ("arrival", arrivals, "Percentiles of the wait of a message that arrives at a random moment."),
    ):
        taken = [(ns / _SECOND, str(cpu.cpu), rank) for cpu, percentiles in each for rank, ns in percentiles.items()]
        yield _gauge(document, f"probe_{name}_seconds", text, taken, "cpu", "percentile")
    yield from _budget(document, probe.budget)


def _budget(document: Document, budget: Budget) -> Iterator[Metric]:
    for limit, name, scale in (
        ("max_ns", "max_gap_seconds", _SECOND),
        ("p99_9_ns", "arrival_p99_9_seconds", _SECOND),
        ("interruptions_per_s", "interruptions_per_second", 1),
        ("stolen_ppm", "stolen_ratio", _PPM),
        *((key, name, 1) for key, name in _OF_HOST.items()),
    ):
        if (allowed := budget.limits.get(limit)) is not None:
            text = f"The budget's {limit}, in base units."
            yield _gauge(document, f"probe_budget_{name}", text, [(allowed / scale,)])
    text = "How many limits of the budget the probe broke."
    yield _gauge(document, "probe_budget_broken", text, [(len(budget.broken),)])
