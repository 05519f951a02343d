from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schemas import fits
from tunectl.errors import UsageError
from tunectl.hostfile.profile import load_profile, shipped
from tunectl.probe.budget import judge, needed_s, suggested_s
from tunectl.shapes import SMIS, Budget, Jitter, plain, typed

from .samples import cpu_result
from .samples import result as untyped
from .samples import typed_result as result

LIMITS = {"max_ns": 50_000, "p99_9_ns": 10_000, "interruptions_per_s": 10, "stolen_ppm": 100}


def test_within() -> None:
    assert judge(result(cpu_result()), LIMITS) == Budget({**LIMITS}, "within")


def test_a_value_equal_to_its_limit_is_within() -> None:
    cpu = cpu_result(max_ns=50_000, interruptions=100)
    assert judge(result(cpu), LIMITS).verdict == "within"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"max_ns": 50_001}, "CPU 2: the longest interruption is 50.001 µs, allowed 50 µs (max_ns)"),
        (
            {"arrival_ns": {"99.9": 10_001}},
            "CPU 2: 99.9 % of arrivals wait at most 10.001 µs, allowed 10 µs (p99_9_ns)",
        ),
        (
            {"interruptions": 101},
            "CPU 2: interruptions come at 10.1/s, allowed 10/s (interruptions_per_s)",
        ),
        ({"stolen_ppm": 100.5}, "CPU 2: the time stolen is 100.5 ppm, allowed 100 ppm (stolen_ppm)"),
    ],
)
def test_each_limit_can_break(change: dict[str, Any], sentence: str) -> None:
    budget = judge(result(cpu_result(**change), cpu_result(3)), LIMITS)
    assert (budget.verdict, budget.broken) == ("broken", [sentence])


def test_one_bad_cpu_breaks_it() -> None:
    budget = judge(result(cpu_result(2), cpu_result(3, max_ns=90_000)), LIMITS)
    assert budget.verdict == "broken"
    assert budget.broken[0].startswith("CPU 3: ")


@pytest.mark.parametrize(
    ("document", "limits", "why"),
    [
        (result(cpu_result()), {}, "no limit"),
        (result(), LIMITS, "nothing was measured"),
        (result(cpu_result(), duration_s=0.0), LIMITS, "nothing was measured"),
        (result(cpu_result(loops=0)), LIMITS, "never measured"),
        (result(cpu_result(), interrupted=True), LIMITS, "interrupted"),
        (result(cpu_result(conservation_ppm=-1000.5)), LIMITS, "not to be trusted"),
        (result(cpu_result(), not_measured=[{"cpu": 3, "reason": "an engine"}]), LIMITS, "an engine"),
    ],
)
def test_what_was_not_measured_is_not_judged_within(document: Jitter, limits: dict[str, float], why: str) -> None:
    budget = judge(document, limits)
    assert (budget.verdict, budget.broken) == ("not-judged", [])
    assert why in budget.reason


@pytest.mark.parametrize(
    ("smis", "limit", "verdict", "broken"),
    [
        ({"count": 0}, 0, "within", []),
        ({"count": 1}, 0, "broken", ["SMIs come at 0.1/s, allowed 0/s (smis_per_s)"]),
        ({"count": 20, "seconds": 20.0}, 1, "within", []),
        ({"count": 21, "seconds": 20.0}, 1, "broken", ["SMIs come at 1.05/s, allowed 1/s (smis_per_s)"]),
        ({"count": 0}, 0.5, "not-judged", []),
    ],
)
def test_smis_are_the_hosts_and_break_their_limit_once(
    smis: dict[str, Any], limit: float, verdict: str, broken: list[str]
) -> None:
    """In 10 s a limit of 1 a second can be judged, a lower one cannot; that none came, always."""
    found = judge(result(cpu_result(), cpu_result(3), smis=smis), {**LIMITS, SMIS: limit})
    assert (found.verdict, found.broken, found.limits[SMIS]) == (verdict, broken, limit)


@pytest.mark.parametrize("smis", [None, {"count": None, "reason": "only Intel's CPUs count them"}])
def test_where_nobody_counts_smis_their_limit_is_none(smis: dict[str, Any] | None) -> None:
    counts = {} if smis is None else {"smis": smis}
    found = judge(result(cpu_result(), **counts), {**LIMITS, SMIS: 0})
    assert (found.verdict, found.limits) == ("within", LIMITS)
    assert judge(result(cpu_result(), **counts), {SMIS: 0}).verdict == "not-judged"


def test_an_interrupted_run_can_still_break() -> None:
    assert judge(result(cpu_result(max_ns=60_000), interrupted=True), LIMITS).verdict == "broken"


ENDED: dict[str, Any] = {"ended_by": "until", "interrupted": False}


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "not-judged"),
        ({"arrival_ns": {"99.9": 10_001}}, "not-judged"),
        ({"interruptions": 101}, "not-judged"),
        ({"stolen_ppm": 100.5}, "not-judged"),
        ({"max_ns": 50_001}, "broken"),
    ],
)
def test_of_a_run_that_a_gap_ended_the_longest_gap_alone_is_judged(change: dict[str, Any], verdict: str) -> None:
    """The gap chose when it ended: how often such gaps come is not known, and that one came is."""
    budget = judge(result(cpu_result(**change), **ENDED), LIMITS)
    assert (budget.verdict, len(budget.broken)) == (verdict, verdict == "broken")
    assert budget.reason.startswith("a gap ended the run (--until)") is (verdict == "not-judged")
    assert judge(result(cpu_result(**change)), LIMITS).verdict == ("broken" if change else "within")


def test_lost_events_are_taken_at_their_worst() -> None:
    exact = cpu_result(arrival_ns={"99.9": 9_950})
    lossy = exact | {"events_lost": 1000, "percentile_error_ppm": 7813}
    assert judge(result(exact), LIMITS).verdict == "within"
    found = judge(result(lossy), LIMITS)
    assert (found.verdict, [text.rpartition(" ")[2] for text in found.broken]) == ("broken", ["(p99_9_ns)"])


def test_a_cpu_whose_figures_are_not_its_own_breaks_no_limit_and_keeps_none() -> None:
    unfit = cpu_result(max_ns=90_000, unfit=["a quota stopped it"])
    budget = judge(result(unfit, cpu_result(3)), LIMITS)
    assert (budget.verdict, budget.broken, budget.reason) == ("not-judged", [], "a quota stopped it")
    assert judge(result(unfit, cpu_result(3, max_ns=90_000)), LIMITS).verdict == "broken"


def lasting(seconds: float) -> Jitter:
    """A run without any interruption."""
    return result(cpu_result(duration_ns=int(seconds * 1e9), interruptions=0, stolen_ppm=0.0), duration_s=seconds)


@pytest.mark.parametrize(
    ("limits", "key", "seconds"),
    [
        # Ten interruptions at the limit: by their rate, ...
        ({"interruptions_per_s": 0.5}, "interruptions_per_s", 20),
        # ... of 1 ms each that take 100 ppm together, ...
        ({"max_ns": 1_000_000, "stolen_ppm": 100}, "stolen_ppm", 100),
        # ... of 2 ms each of which an arrival in 1,000 waits longer than 1 ms.
        ({"max_ns": 2_000_000, "p99_9_ns": 1_000_000}, "p99_9_ns", 10),
        # No shorter than what comes once a second.
        ({"max_ns": 50_000}, "max_ns", 1),
        ({"interruptions_per_s": 1000}, "interruptions_per_s", 1),
        # A limit that another implies.
        ({"max_ns": 5e8, "p99_9_ns": 5e8}, "p99_9_ns", 1),
        # There has to be room for what breaks it.
        ({"max_ns": 5e9}, "max_ns", 10),
    ],
)
def test_a_limit_is_judged_once_the_run_is_long_enough_for_ten_observations(
    limits: dict[str, float], key: str, seconds: float
) -> None:
    assert needed_s(limits)[key] == pytest.approx(seconds)
    assert judge(lasting(seconds * 0.9), limits).verdict == "within"
    short = judge(lasting(seconds * 0.89), limits)
    assert short.verdict == "not-judged"
    assert [text.partition(":")[0] for text in short.not_judged] == [
        name for name, needed in needed_s(limits).items() if seconds * 0.89 < needed * 0.9
    ]
    assert any(text.startswith(key) for text in short.not_judged)
    assert short.reason == "; ".join(short.not_judged)


def test_the_cpu_that_was_measured_for_the_shortest_time_decides() -> None:
    starved = result(cpu_result(2), cpu_result(3, duration_ns=500_000_000, interruptions=0))
    assert judge(starved, LIMITS).verdict == "not-judged"
    assert "500 ms" in judge(starved, LIMITS).reason


def test_a_run_of_hours_is_named_in_whole_seconds() -> None:
    limits = {"max_ns": 2e9, "p99_9_ns": 1e9}
    assert judge(lasting(60), limits).not_judged == [
        "p99_9_ns: measured for 60 s, and this limit needs 10,000 s (--duration 10000)"
    ]


def test_what_is_broken_is_broken_however_short_the_run_was() -> None:
    budget = judge(result(cpu_result(duration_ns=1_000_000, max_ns=60_000), duration_s=0.001), LIMITS)
    assert (budget.verdict, budget.reason) == ("broken", "")
    assert budget.not_judged


def test_without_a_longest_interruption_a_share_of_the_time_cannot_be_judged() -> None:
    budget = judge(lasting(86400), {"stolen_ppm": 100})
    assert budget.verdict == "not-judged"
    assert "max_ns" in budget.reason


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        ({}, 5),
        (LIMITS, 5),
        ({"interruptions_per_s": 1}, 10),
        ({"interruptions_per_s": 0.75}, 14),
        ({"interruptions_per_s": 10 / 60}, 60),
        ({"interruptions_per_s": 0.1}, 60),
    ],
)
def test_a_run_is_as_long_as_its_limits_need_up_to_a_minute(limits: dict[str, float], seconds: float) -> None:
    assert suggested_s(limits) == seconds


@pytest.mark.parametrize("name", shipped())
def test_the_probes_usual_run_is_long_enough_for_the_limits_of_a_shipped_profile(name: str) -> None:
    limits = {key: limit.value for key, limit in load_profile(name).budget.items()}
    assert judge(lasting(5), limits).verdict == "within"


@pytest.mark.parametrize(
    "limits", [{"max_us": 1}, {"max_ns": True}, {"max_ns": float("nan")}, {"max_ns": "1"}, {"max_ns": 0}]
)
def test_an_odd_limit_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        judge(result(cpu_result()), limits)


def test_the_block_fits_the_schema() -> None:
    for document in (
        untyped(cpu_result()),
        untyped(cpu_result(max_ns=60_000)),
        untyped(cpu_result(), interrupted=True),
    ):
        budget = plain(judge(typed(document, Jitter), LIMITS))
        fits("probe.jitter", document | {"budget": budget})


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
    whole = judge(result(cpu), LIMITS).verdict
    worse = cpu | {"percentile_error_ppm": error_ppm, "events_lost": error_ppm}
    assert RANK[judge(result(worse, interrupted=interrupted), LIMITS).verdict] >= RANK[whole]


def test_a_cpu_without_its_own_length_was_measured_as_long_as_the_run() -> None:
    cpu = cpu_result()
    assert result(cpu, duration_s=5.0).worst("interruptions_per_s") == 5.0
    del cpu["duration_ns"]
    assert result(cpu, duration_s=5.0).worst("interruptions_per_s") == 10.0
    assert result(cpu, duration_s=0.0).worst("interruptions_per_s") is None
