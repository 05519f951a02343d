"""Whose threads want a CPU: every one of somebody else's that runs there and belongs there, and nobody besides."""

from __future__ import annotations

import pytest

from tunectl.host.cpusets import CpuFacts
from tunectl.host.occupants import Place, occupants, refusal
from tunectl.host.procs import PF_KTHREAD, PF_NO_SETAFFINITY, Thread

ALL, NONE = frozenset(range(8)), frozenset[int]()
CORES = {cpu: frozenset({cpu, cpu ^ 4}) for cpu in range(8)}  # 2 and 6 are one core, 3 and 7 another
PINNED = frozenset({2})
KEY = (70, 71)


def place(cpus: set[int], isolated: set[int] | None = None, *, booted: bool = True) -> Place:
    quiet = frozenset(cpus if isolated is None else isolated)
    facts = CpuFacts(ALL, ALL, ALL, 8, quiet if booted else NONE, NONE, CORES)
    return Place.of(facts, frozenset(cpus), quiet)


def thread(state: str = "S", *, cpu: int = 2, allowed: frozenset[int] | None = PINNED, **more: str | float) -> Thread:
    fields = {"pid": 70, "tid": 71, "comm": "engine", "flags": 0, "cpu_s": 0.0, "run_s": 0.0, "slices": 5}
    return Thread(state=state, cpu=cpu, allowed=allowed, **{**fields, **more})  # type: ignore[arg-type]


def found(then: Thread | None, now: Thread, where: Place, name: str = "") -> list[int]:
    before = {KEY: then} if then else {}
    return list(occupants(before, {KEY: now}, where, {KEY: name} if name else {}))


RUNS, SLEEPS = thread("R"), thread("S")


@pytest.mark.parametrize("booted", [True, False], ids=["isolated at boot", "by the host file alone"])
def test_a_pinned_thread_that_runs_has_its_cpu(booted: bool) -> None:
    assert found(RUNS, RUNS, place({2, 3}, booted=booted)) == [2]


def test_one_that_sleeps_wants_nothing() -> None:
    assert found(SLEEPS, SLEEPS, place({2, 3})) == []
    assert found(SLEEPS, SLEEPS, place({2, 3}), name="engine") == []


@pytest.mark.parametrize(
    "now", [thread("R"), thread("S", slices=6), thread("S", run_s=0.001)], ids=["runs", "was there", "has run"]
)
def test_one_that_wakes_at_times_does(now: Thread) -> None:
    assert found(SLEEPS, now, place({2})) == [2]


def test_one_that_has_just_begun_does() -> None:
    assert found(None, thread("S"), place({2})) == [2]


def test_one_that_the_scheduler_may_move_does_not() -> None:
    floating = thread("R", allowed=ALL)
    assert found(floating, floating, place({2}, booted=False)) == []


def test_on_an_isolated_cpu_nobody_is_moved() -> None:
    floating = thread("R", allowed=ALL)
    assert found(floating, floating, place({2})) == [2]


def test_a_declared_one_counts_wherever_it_may_run() -> None:
    floating = thread("R", allowed=ALL)
    assert found(floating, floating, place({2}, booted=False), name="engine") == [2]


def test_one_elsewhere_is_not_in_the_way() -> None:
    elsewhere = thread("R", cpu=1, allowed=frozenset({1}))
    assert found(elsewhere, elsewhere, place({2, 3})) == []


def test_an_isolated_cpu_that_is_not_asked_about_is_no_housekeeping_cpu() -> None:
    both = thread("R", allowed=frozenset({2, 3}))
    assert found(both, both, place({2}, {2, 3}, booted=False)) == [2]


def test_the_other_hardware_thread_of_its_core_is_left_to_it_too() -> None:
    assert found(RUNS, RUNS, place({2, 3, 6, 7})) == [2, 6]
    assert found(RUNS, RUNS, place({6}, {2, 6})) == [6]


def test_kernel_threads_that_cannot_leave_do_not_count() -> None:
    bound = thread("R", flags=PF_KTHREAD | PF_NO_SETAFFINITY, allowed=None)
    assert found(bound, bound, place({2})) == []
    stray = thread("R", flags=PF_KTHREAD, allowed=None)
    assert found(stray, stray, place({2})) == [2]
    assert found(stray._replace(state="S"), stray, place({2})) == []  # a moment's work is none that lasts


def test_what_has_ended_wants_nothing() -> None:
    assert found(RUNS, thread("Z"), place({2})) == []


def test_where_every_cpu_is_asked_about_only_a_pinned_thread_counts() -> None:
    floating = thread("R", allowed=ALL)
    assert found(floating, floating, place(set(ALL), booted=False)) == []
    assert found(RUNS, RUNS, place(set(ALL), booted=False)) == [2, 6]


def test_the_declared_one_is_named_first() -> None:
    other = thread("R", tid=72, comm="other")
    there = occupants({}, {(70, 72): other, KEY: RUNS}, place({2}), {KEY: "feed"})
    assert refusal(there) == (
        "nothing of ours goes to CPU 2, where somebody else's threads run "
        "(CPU 2: engine (tid 71, declared as feed) runs there; other (tid 72) runs there)"
    )
