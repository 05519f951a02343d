"""`probe feed` as a part of preflight: measured on two CPUs and judged, or one reason why not."""

import os

import pytest

from tunectl.preflight.feeding import measure_feed
from tunectl.work import Work

CPUS = frozenset(os.sched_getaffinity(0))
LIMIT = "due_to_book_p99_9_ns"


def nobody(_: Work) -> None:
    """Is told how far it is."""


@pytest.mark.slow
@pytest.mark.pins
@pytest.mark.skipif(len(CPUS) < 2, reason="feed spins on two CPUs, and here is one")
def test_it_is_measured_for_long_enough_and_without_stamps() -> None:
    found = measure_feed(CPUS, {LIMIT: 1.0}, True, nobody)
    assert found.problem == ""
    assert found.result
    assert found.document
    (case,) = found.result.cases
    assert found.document["budget"]["limits"] == {LIMIT: 1.0}
    assert not case.stamped
    assert found.result.budget.verdict == ("not-judged" if case.is_void else "broken")
    assert case.is_void or case.at("99.9")


@pytest.mark.parametrize(("cpus", "said"), [((), "the probe measured none"), ((3,), "the probe measured CPU 3 alone")])
def test_it_needs_two_cpus(cpus: tuple[int, ...], said: str) -> None:
    found = measure_feed(frozenset(cpus), {LIMIT: 1.0}, False, nobody)
    assert found.problem == f"feed: not run: it needs two isolated CPUs, and {said}"
    assert found.result is None


def test_what_fails_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNECTL_PROBE", "/nowhere/tunectl-probe")
    found = measure_feed(CPUS | {0, 1}, {LIMIT: 1.0}, False, nobody)
    assert found.problem.startswith("feed: ")
    assert "/nowhere/tunectl-probe" in found.problem
