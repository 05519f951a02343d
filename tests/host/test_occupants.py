"""Whose threads want a CPU: every one of somebody else's that runs there and belongs there, and nobody besides."""

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
    facts = CpuFacts(ALL, ALL, 8, quiet if booted else NONE, NONE, CORES)
    return Place.of(facts, frozenset(cpus), quiet)


def thread(state: str = "S", *, cpu: int = 2, allowed: frozenset[int] | None = PINNED, **more: str | float) -> Thread:
    fields = {"pid": 70, "tid": 71, "comm": "engine", "flags": 0, "cpu_s": 0.0, "run_s": 0.0, "slices": 5}
    return Thread(state=state, cpu=cpu, allowed=allowed, **{**fields, **more})  # type: ignore[arg-type]


RUNS, SLEEPS, NEAR = thread("R"), thread("S"), place({2}, booted=False)
FLOATING, BOTH, ELSEWHERE = (thread("R", allowed=frozenset(cpus)) for cpus in (ALL, {2, 3}, {1}))
BOUND, STRAY = (thread("R", flags=flags, allowed=None) for flags in (PF_KTHREAD | PF_NO_SETAFFINITY, PF_KTHREAD))


@pytest.mark.parametrize(
    ("then", "now", "where", "name", "cpus"),
    [
        pytest.param(RUNS, RUNS, place({2, 3}), "", [2], id="a pinned one that runs has its CPU"),
        pytest.param(RUNS, RUNS, place({2, 3}, booted=False), "", [2], id="though the host file alone isolates it"),
        pytest.param(SLEEPS, SLEEPS, place({2, 3}), "", [], id="one that sleeps wants nothing"),
        pytest.param(SLEEPS, SLEEPS, place({2, 3}), "engine", [], id="not even where it is declared"),
        pytest.param(SLEEPS, RUNS, place({2}), "", [2], id="one that woke does"),
        pytest.param(SLEEPS, thread("S", slices=6), place({2}), "", [2], id="one that was there meanwhile, too"),
        pytest.param(SLEEPS, thread("S", run_s=0.001), place({2}), "", [2], id="one that has run, too"),
        pytest.param(None, SLEEPS, place({2}), "", [2], id="and one that has just begun"),
        pytest.param(RUNS, thread("Z"), place({2}), "", [], id="what has ended wants nothing"),
        pytest.param(FLOATING, FLOATING, NEAR, "", [], id="the scheduler may move it"),
        pytest.param(FLOATING, FLOATING, place({2}), "", [2], id="on an isolated CPU nobody is moved"),
        pytest.param(FLOATING, FLOATING, NEAR, "engine", [2], id="a declared one counts wherever it may run"),
        pytest.param(ELSEWHERE._replace(cpu=1), ELSEWHERE._replace(cpu=1), place({2, 3}), "", [], id="one elsewhere"),
        pytest.param(BOTH, BOTH, place({2}, {2, 3}, booted=False), "", [2], id="an isolated CPU does no housekeeping"),
        pytest.param(RUNS, RUNS, place({2, 3, 6, 7}), "", [2, 6], id="the rest of its core is left to it"),
        pytest.param(RUNS, RUNS, place({6}, {2, 6}), "", [6], id="the rest of its core alone"),
        pytest.param(BOUND, BOUND, place({2}), "", [], id="a kernel thread that cannot leave"),
        pytest.param(STRAY, STRAY, place({2}), "", [2], id="a kernel thread that can"),
        pytest.param(STRAY._replace(state="S"), STRAY, place({2}), "", [], id="a moment's work is none that lasts"),
        pytest.param(FLOATING, FLOATING, place(set(ALL), booted=False), "", [], id="every CPU is asked about"),
        pytest.param(RUNS, RUNS, place(set(ALL), booted=False), "", [2, 6], id="every CPU, and it is pinned"),
    ],
)
def test_who_wants_a_cpu(then: Thread | None, now: Thread, where: Place, name: str, cpus: list[int]) -> None:
    before = {KEY: then} if then else {}
    assert list(occupants(before, {KEY: now}, where, {KEY: name} if name else {})) == cpus


def test_the_declared_one_is_named_first() -> None:
    other = thread("R", tid=72, comm="other")
    there = occupants({}, {(70, 72): other, KEY: RUNS}, place({2}), {KEY: "feed"})
    assert refusal(there) == (
        "nothing of ours goes to CPU 2, where somebody else's threads run "
        "(CPU 2: engine (tid 71, declared as feed) runs there; other (tid 72) runs there)"
    )
