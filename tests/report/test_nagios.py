"""Nagios: one status line that no name can break, and performance data by the guidelines."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.documents import NAMES, body, document, findings, hostile, verify_of
from tunectl.model import Finding, Outcome
from tunectl.report import render
from tunectl.report.nagios import MAX_DETAILS, exit_code

# 'label'=value[unit];[warn];[crit];[min];[max], after the guidelines: an independent definition of what a reader takes.
ITEM = re.compile(r"'([^'=|]+)'=(-?[0-9.]+)(us|ms|s|%|B|c)?((?:;[0-9.~@:]*){0,4})")


def perfdata(rendered: str) -> dict[str, tuple[float, str, str]]:
    """Every item: value, unit, the rest; the status line must hold exactly one bar and nothing but items behind it."""
    text, bar, data = rendered.split("\n")[0].partition("|")
    assert bar
    assert text.startswith("TUNECTL ")
    items = data.split()
    found = [ITEM.fullmatch(item) for item in items]
    assert all(found), data
    return {item[1]: (float(item[2]), item[3] or "", item[4]) for item in found if item}


@pytest.mark.parametrize(
    ("verdict", "code", "word"),
    [
        ("compliant", 0, "OK"),
        ("go", 0, "OK"),
        ("pending-reboot", 1, "WARNING"),
        ("drifted", 2, "CRITICAL"),
        ("no-go", 2, "CRITICAL"),
        ("unreadable", 3, "UNKNOWN"),
        ("unknown", 3, "UNKNOWN"),
        ("OK", 3, "UNKNOWN"),
        (None, 3, "UNKNOWN"),
    ],
)
def test_state(verdict: str | None, code: int, word: str) -> None:
    assert exit_code(verdict) == code
    assert render(document("verify", verdict=verdict), "nagios").startswith(f"TUNECTL {word} - ")


def test_outcomes_are_performance_data() -> None:
    found = perfdata(render(document("verify"), "nagios"))
    assert found["drifted"] == (9, "", ";;0;0")
    assert found["pending-reboot"] == (1, "", ";0;;0")
    assert found["compliant"] == (26, "", ";;;0")
    assert set(found) == {outcome.value for outcome in Outcome}


def test_the_worst_cpu_and_the_budget_are_performance_data() -> None:
    found = perfdata(render(document("preflight"), "nagios"))
    assert found["probe_max"] == (1920, "us", ";;50;0")
    assert found["probe_arrival_p99.9"] == (2.4, "us", ";;10;0")
    assert found["probe_interruptions_per_s"] == (1002.4, "", ";;10;0")
    assert found["probe_stolen"] == (0.1824, "%", ";;0.01;0")


def test_without_a_budget_there_is_no_threshold() -> None:
    probe = {**body("probe.jitter"), "budget": {"limits": {}, "verdict": "not-judged", "broken": []}}
    assert perfdata(render(document("preflight", probe=probe), "nagios"))["probe_max"] == (1920, "us", ";;;0")
    assert "probe_max" not in perfdata(render(document("preflight", probe=None), "nagios"))


def test_strict_makes_unreadable_fail() -> None:
    assert "\nnote unreadable (stall): kernel.sched" in render(document("verify"), "nagios")
    assert "\nFAILS unreadable (stall): kernel.sched" in render(document("verify", strict=True), "nagios")


def test_details_are_bounded_and_say_so() -> None:
    found = [Finding(f"a.b{number}", "", Outcome.DRIFTED) for number in range(100)]
    lines = render(verify_of(found), "nagios").splitlines()
    assert len(lines) == 1 + MAX_DETAILS + 1
    assert lines[-1] == "and 80 more; --format json has all"


@given(st.lists(findings), st.lists(hostile), hostile)
def test_no_name_breaks_the_output(found: list[Finding], reasons: list[str], verdict: str) -> None:
    made = verify_of(found, verdict=verdict)
    rendered = render(
        type(made)("preflight", made.host, made.at, {**made.body, "reasons": reasons}, made.findings), "nagios"
    )
    assert perfdata(rendered)["drifted"][0] == sum(finding.outcome is Outcome.DRIFTED for finding in found)
    assert rendered.count("|") == 1
    assert rendered.endswith("\n")
    assert all(line.isprintable() for line in rendered[:-1].split("\n"))
    rendered.encode("utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_every_document_has_a_status(name: str) -> None:
    assert perfdata(render(document(name), "nagios"))
