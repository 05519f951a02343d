from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunectl.errors import UsageError
from tunectl.probe.budget import judge

from .samples import cpu_result, result

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schema" / "tunectl.probe.jitter-1.json").read_text())
LIMITS = {"max_ns": 50_000, "p99_9_ns": 10_000, "interruptions_per_s": 10, "stolen_ppm": 100}


def test_within() -> None:
    assert judge(result(cpu_result()), LIMITS) == {
        "limits": LIMITS,
        "verdict": "within",
        "broken": [],
        "reason": "",
    }


def test_a_value_equal_to_its_limit_is_within() -> None:
    cpu = cpu_result(max_ns=50_000, interruptions=100)
    assert judge(result(cpu), LIMITS)["verdict"] == "within"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"max_ns": 50_001}, "CPU 2: the longest interruption: 50001 ns, allowed 50000 ns (max_ns)"),
        (
            {"arrival_ns": {"99.9": 10_001}},
            "CPU 2: the wait that 99.9 % of arrivals do not exceed: 10001 ns, allowed 10000 ns (p99_9_ns)",
        ),
        (
            {"interruptions": 101},
            "CPU 2: interruptions: 10.1 per second, allowed 10 per second (interruptions_per_s)",
        ),
        ({"stolen_ppm": 100.5}, "CPU 2: time stolen: 100.5 ppm, allowed 100 ppm (stolen_ppm)"),
    ],
)
def test_each_limit_can_break(change: dict[str, Any], sentence: str) -> None:
    budget = judge(result(cpu_result(**change), cpu_result(3)), LIMITS)
    assert (budget["verdict"], budget["broken"]) == ("broken", [sentence])


def test_one_bad_cpu_breaks_it() -> None:
    budget = judge(result(cpu_result(2), cpu_result(3, max_ns=90_000)), LIMITS)
    assert budget["verdict"] == "broken"
    assert budget["broken"][0].startswith("CPU 3: ")


@pytest.mark.parametrize(
    ("document", "limits", "why"),
    [
        (result(cpu_result()), {}, "no limit"),
        (result(), LIMITS, "nothing was measured"),
        (result(cpu_result(), duration_s=0.0), LIMITS, "nothing was measured"),
        (result(cpu_result(loops=0)), LIMITS, "never measured"),
        (result(cpu_result(), interrupted=True), LIMITS, "interrupted"),
    ],
)
def test_what_was_not_measured_is_not_judged_within(
    document: dict[str, Any], limits: dict[str, float], why: str
) -> None:
    budget = judge(document, limits)
    assert (budget["verdict"], budget["broken"]) == ("not-judged", [])
    assert why in budget["reason"]


def test_an_interrupted_run_can_still_break() -> None:
    assert judge(result(cpu_result(max_ns=60_000), interrupted=True), LIMITS)["verdict"] == "broken"


def test_lost_events_are_taken_at_their_worst() -> None:
    exact = cpu_result(arrival_ns={"99.9": 9_950})
    lossy = exact | {"events_lost": 1000, "percentile_error_ppm": 7813}
    assert judge(result(exact), LIMITS)["verdict"] == "within"
    assert judge(result(lossy), LIMITS)["verdict"] == "broken"


@pytest.mark.parametrize("limits", [{"max_us": 1}, {"max_ns": True}, {"max_ns": float("nan")}, {"max_ns": "1"}])
def test_an_odd_limit_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        judge(result(cpu_result()), limits)


def test_the_block_fits_the_schema() -> None:
    for document in (
        result(cpu_result()),
        result(cpu_result(max_ns=60_000)),
        result(cpu_result(), interrupted=True),
    ):
        jsonschema.validate(document | {"budget": judge(document, LIMITS)}, SCHEMA)


RANK = {"within": 0, "not-judged": 1, "broken": 2}


@given(
    st.integers(0, 100_000),
    st.integers(0, 20_000),
    st.integers(0, 200),
    st.floats(0, 200),
    st.booleans(),
    st.sampled_from([0, 7813]),
)
def test_no_loss_improves_a_verdict(
    max_ns: int, arrival: int, count: int, ppm: float, interrupted: bool, error_ppm: int
) -> None:
    cpu = cpu_result(max_ns=max(max_ns, arrival), arrival_ns={"99.9": arrival}, interruptions=count, stolen_ppm=ppm)
    whole = judge(result(cpu), LIMITS)["verdict"]
    worse = cpu | {"percentile_error_ppm": error_ppm, "events_lost": error_ppm}
    assert RANK[judge(result(worse, interrupted=interrupted), LIMITS)["verdict"]] >= RANK[whole]
