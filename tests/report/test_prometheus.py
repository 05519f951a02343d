"""Prometheus: what node_exporter's textfile collector takes, read back by the client's own parser and by promtool."""

import math
import re
import shutil
import subprocess
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from tests.report.documents import NAMES, body, document, findings, hostile, verify_of
from tunectl.model import Document, Finding, HostId, Outcome
from tunectl.report import render
from tunectl.report.figures import limits_of
from tunectl.report.prometheus import MAX_TARGETS
from tunectl.shapes import SMIS, Jitter, typed

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def series(rendered: str) -> Series:
    """Every sample by name and labels; a duplicate or a time stamp fails."""
    assert rendered.endswith("\n")
    found: Series = {}
    for family in text_string_to_metric_families(rendered):
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found
            assert sample.timestamp is None
            found[key] = sample.value
    return found


def value(found: Series, name: str, **labels: str) -> float | None:
    return found.get((f"tunectl_{name}", frozenset(labels.items())))


def of_name(found: Series, name: str) -> list[dict[str, str]]:
    return [dict(labels) for each, labels in found if each == f"tunectl_{name}"]


def test_strict_counts_unreadable() -> None:
    found = series(render(document("verify", strict=True), "prometheus"))
    assert value(found, "drifted_targets", report="verify", knob="kernel.sched_rt_runtime_us") == 1


def test_four_thousand_drifted_interrupts_are_bounded_and_counted() -> None:
    many = [Finding("irq.affinity", str(irq), Outcome.DRIFTED) for irq in range(4096)]
    found = series(render(verify_of([*many, many[0]]), "prometheus"))
    assert len(of_name(found, "drifted")) == MAX_TARGETS
    assert value(found, "drifted_targets", report="verify", knob="irq.affinity") == 4096
    assert value(found, "findings", report="verify", outcome="drifted") == 4097


def test_on_what_terms_a_verdict_was_reached() -> None:
    found = series(render(document("preflight"), "prometheus"))
    assert value(found, "waivers", report="preflight") == 2
    last_day_ends = datetime(2027, 1, 1, tzinfo=UTC).timestamp()
    assert value(found, "waiver_next_expiry_timestamp_seconds", report="preflight") == last_day_ends
    assert value(found, "probe_budget_looser_ratio", report="preflight", limit="interruptions_per_s") == 2
    assert value(found, "probe_judged", report="preflight") == 1
    none = {"waivers": {"standing": 0, "expired": 1, "next": None}, "looser": []}
    unjudged = {**body("probe.jitter"), "budget": {"limits": {}, "verdict": "not-judged", "broken": []}}
    found = series(render(document("preflight", **none, probe=unjudged), "prometheus"))
    assert value(found, "waivers", report="preflight") == 0
    assert value(found, "probe_judged", report="preflight") == 0
    assert not [name for name, _ in found if name.endswith(("_looser_ratio", "_expiry_timestamp_seconds"))]


def test_feed_that_was_asked_for_and_not_measured_was_not_judged() -> None:
    found = series(render(document("preflight", feed=None), "prometheus"))
    assert [name for name, _ in found if "_feed_" in name] == ["tunectl_feed_judged"]
    assert value(found, "feed_judged", report="preflight") == 0
    unasked = series(render(document("preflight", feed=None, is_feed_asked=False), "prometheus"))
    assert not [name for name, _ in unasked if "_feed_" in name]
    feed = body("preflight")["feed"]
    unjudged = feed | {"budget": {"limits": {}, "verdict": "not-judged", "broken": []}}
    found = series(render(document("preflight", feed=unjudged), "prometheus"))
    assert value(found, "feed_judged", report="preflight") == 0
    assert value(found, "feed_budget_due_to_book_p99_9_seconds", report="preflight") is None
    feed["cells"][0]["due_to_book_ns"]["99.9"] = None
    found = series(render(document("preflight", feed=feed), "prometheus"))
    assert {dict(labels)["percentile"] for name, labels in found if "due_to_book_seconds" in name} == {"50", "99"}


def test_a_preflight_without_a_probe() -> None:
    found = series(render(document("preflight", probe=None), "prometheus"))
    assert [name.removeprefix("tunectl_") for name, _ in found if "probe" in name] == [
        "probe_budget_looser_ratio",
        "probe_judged",
    ]
    assert value(found, "probe_judged", report="preflight") == 0


def test_smis_are_one_series_of_the_host_and_none_where_nobody_counts_them() -> None:
    """A limit above none at all is looser without measure."""
    probe, loose = body("probe.jitter"), {"key": SMIS, "limit": 1, "profile_limit": 0, "profile": "low-latency"}
    probe |= {"smis": {"count": 10, "seconds": 20.0}}
    probe["budget"]["limits"][SMIS] = 1
    found = series(render(document("preflight", probe=probe, looser=[loose]), "prometheus"))
    assert value(found, "smis_per_second", report="preflight") == 0.5
    assert value(found, "probe_budget_smis_per_second", report="preflight") == 1
    assert value(found, "probe_budget_looser_ratio", report="preflight", limit=SMIS) == math.inf
    probe |= {"smis": {"count": None, "reason": "only Intel's CPUs count them"}}
    found = series(render(document("preflight", probe=probe), "prometheus"))
    assert value(found, "smis_per_second", report="preflight") is None


def test_smis_stand_beside_their_limit_as_the_hosts() -> None:
    probe = body("probe.jitter") | {"smis": {"count": 10, "seconds": 20.0}}
    probe["budget"]["limits"][SMIS] = 0
    row = limits_of(typed(probe, Jitter))[-1]
    assert (row.label, row.measured, row.limit, row.where, row.word) == ("SMIs", "0.5/s", "0/s", "the host", "OVER")
    page = render(document("preflight", probe=probe), "text")
    assert re.search(r"SMIs +0.5/s of 0/s .*OVER +the host", page)
    assert "'probe_smis_per_s'=0.5;;0;0" in render(document("preflight", probe=probe), "nagios")


def test_what_was_not_measured_is_no_series() -> None:
    probe = body("probe.jitter")
    del probe["cpus"][0]["arrival_ns"]["99.9"]
    found = series(render(document("preflight", probe=probe), "prometheus"))
    assert value(found, "probe_arrival_seconds", report="preflight", cpu="2", percentile="99.9") is None


def test_two_reports_in_one_directory_do_not_collide() -> None:
    one, other = (series(render(document(name), "prometheus")) for name in ("verify", "preflight"))
    assert not set(one) & set(other)


@given(st.lists(findings), hostile)
def test_no_name_breaks_the_format(found: list[Finding], text: str) -> None:
    made = verify_of(found, verdict=text)
    read = series(render(Document("verify", HostId(text), text, made.body, made.findings), "prometheus"))
    drifted = sum(finding.outcome is Outcome.DRIFTED for finding in found)
    assert value(read, "findings", report="verify", outcome="drifted") == drifted


@pytest.mark.parametrize("name", NAMES)
def test_promtool_takes_it(name: str) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian package: prometheus)")
    text = render(document(name), "prometheus")
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
