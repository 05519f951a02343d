"""Simultaneous stops: found where all CPUs stop together, and not claimed where gaps meet by chance."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from tests.probe.gaps import MS, SECOND, drifting, heavy, pareto, poisson, short, storms
from tests.probe.samples import raw_cpu, raw_run
from tests.probe.test_tracepages import KERNEL, page, record, timer
from tests.schemas import fits
from tunectl.probe.attribution import CpuTrace, Traced
from tunectl.probe.explain import explained
from tunectl.probe.stops import LEAST_STOPS, Gap, common, find_stops
from tunectl.report.figures import stopped_together
from tunectl.shapes import Stops, typed

LENGTH = 5 * SECOND
Make = Callable[[Random], list[float]]


def gaps_at(random: Random, moments: Sequence[float], long: Callable[[], float]) -> list[Gap]:
    """In order, and apart."""
    made: list[Gap] = []
    for at in sorted(moments):
        if at < LENGTH and (not made or at > made[-1][1]):
            made.append((at, min(at + long(), LENGTH)))
    return made


RANDOM: dict[str, Make] = {
    "few": lambda random: poisson(random, LENGTH, 3),
    "many": lambda random: poisson(random, LENGTH, 600),
    "pareto": lambda random: pareto(random, LENGTH, 200),
    "storms": lambda random: storms(random, LENGTH, 40 * MS, 3, 1500),
    "long storms": lambda random: storms(random, LENGTH, 400 * MS, 0.5, 1500),
    "drifting": lambda random: drifting(random, LENGTH, 600, 3),
}


def claims(seed: int, make: Make, long: Callable[[Random], Callable[[], float]], cpus: int) -> Stops | None:
    random = Random(seed)
    return find_stops([gaps_at(random, make(random), long(random)) for _ in range(cpus)], LENGTH)


@pytest.mark.parametrize("name", RANDOM)
def test_what_meets_by_chance_is_no_stop(name: str) -> None:
    assert [claims(cpus, RANDOM[name], long, cpus) for cpus in (2, 3) for long in (short, heavy)] == [None] * 4


@pytest.mark.long
def test_hardly_ever_by_chance() -> None:
    """At most 1 of 100; the storms of all CPUs may come together."""
    found = [
        claims(seed, make, long, cpus)
        for seed in range(100, 130)
        for make in RANDOM.values()
        for long in (short, heavy)
        for cpus in (2, 3)
    ]
    assert sum(one is not None for one in found) <= len(found) // 100


def shared_storms(seed: int) -> list[list[Gap]]:
    """Both CPUs are busy at the same times, as beside a guest that works; and their gaps know nothing of each other."""
    random = Random(seed)
    begins = poisson(random, LENGTH, 5)
    return [
        gaps_at(random, [at for begin in begins for at in poisson(random, 40 * MS, 2000, begin)], short(random))
        for _ in range(2)
    ]


@pytest.mark.parametrize("seed", range(2))
def test_busy_at_the_same_times_is_no_stop(seed: int) -> None:
    assert find_stops(shared_storms(seed), LENGTH) is None


def with_stops(seed: int, cpus: int, count: int, per_s: float, long: float = 120e3) -> list[list[Gap]]:
    """Stops of all CPUs, seen within some 2 us of each other, beside gaps of each CPU's own."""
    random = Random(seed)
    whole = [random.uniform(0.01, 0.99) * LENGTH for _ in range(count)]
    of_all = []
    for _ in range(cpus):
        own = [(at, at + random.uniform(1e3, 5e3)) for at in poisson(random, LENGTH, per_s)]
        stopped = [(at + random.uniform(0, 2e3), at + long + random.uniform(0, 2e3)) for at in whole]
        made = sorted(stopped + [gap for gap in own if not any(s - 5e3 < gap[0] < e + 5e3 for s, e in stopped)])
        of_all.append([one for one, after in pairwise([*made, (LENGTH, LENGTH)]) if one[1] < after[0]])
    return of_all


@pytest.mark.parametrize(("cpus", "count", "per_s"), [(2, 4, 1.0), (2, 12, 1000.0), (8, 12, 100.0)])
@pytest.mark.parametrize("seed", range(2))
def test_stops_of_all_are_counted_and_not_what_each_has_for_itself(
    seed: int, cpus: int, count: int, per_s: float
) -> None:
    found = find_stops(with_stops(seed, cpus, count, per_s), LENGTH)
    assert found
    assert found.count in (count - 1, count, count + 1)
    assert found.max_ns == pytest.approx(120e3, abs=2e3)
    assert found.total_ns == pytest.approx(found.count * 119.5e3, rel=0.02)
    assert found.by_chance <= found.count / 10


def test_a_host_that_has_nothing_but_stops_of_like_length_has_them_counted() -> None:
    stops = [(k * SECOND, k * SECOND + 142e3) for k in (0.5, 1, 2, 3, 4)]
    found = find_stops([stops, [(start + 300, end + 500) for start, end in stops]], LENGTH)
    assert found
    assert (found.count, found.max_ns, found.least_ns) == (5, 141_700, 100_000)


def test_stops_of_some_cpus_beside_one_that_is_often_away_are_no_stops_of_all() -> None:
    """The third CPU is away for a fifth of the time, and so for a fifth of the stops."""
    two = with_stops(1, 2, 100, 1.0)
    random = Random(5)
    third = gaps_at(random, poisson(random, LENGTH, 400), lambda: 5e5)
    assert find_stops(two, LENGTH)
    assert find_stops([*two, third], LENGTH) is None


def test_too_few_prove_nothing_and_one_cpu_has_none() -> None:
    assert find_stops(with_stops(1, 4, LEAST_STOPS - 1, 1.0), LENGTH) is None
    assert find_stops(with_stops(1, 1, 50, 1.0), LENGTH) is None
    assert find_stops([[], []], LENGTH) is None


def test_what_two_have_in_common() -> None:
    assert common([(0, 10), (20, 30)], [(5, 22), (25, 26), (30, 31)]) == [(5, 10), (20, 22), (25, 26)]


TOGETHER = [(10**9 * k, 10**9 * k + 100_000) for k in range(1, 6)]


def told(*cpus: dict[str, Any], traced: bool = True, **changes: Any) -> dict[str, Any]:
    """What a result says of these CPUs; the kernel saw a timer in the first gap of CPU 4 alone."""
    pages = {4: [page(TOGETHER[0][0], record(100, timer()))]}
    traces = {cpu["cpu"]: CpuTrace(700, pages.get(cpu["cpu"], []), 0, False) for cpu in cpus}
    document = explained(raw_run(*cpus, **changes), Traced("", KERNEL, traces) if traced else None)
    fits("probe.jitter", document)
    stops: dict[str, Any] = document["simultaneous_stops"]
    return stops


def test_a_result_says_how_often_all_cpus_stopped_and_what_can_do_so() -> None:
    both = raw_cpu(2, *TOGETHER), raw_cpu(3, *TOGETHER)
    stops = told(*both)
    assert (stops["count"], stops["total_ns"], stops["max_ns"]) == (5, 500_000, 100_000)
    said = stopped_together(typed(stops, Stops), 10.0)
    assert said.startswith(
        "all probed CPUs stood still together, 100 µs the longest, 0.5/s: firmware (an SMI) or hardw"
    )
    assert "(5 times, 500 µs in all, and the kernel had no part in it; " in said
    virtual = told(
        *both,
        host_files={"/proc/cpuinfo": "flags : constant_tsc hypervisor nonstop_tsc\n"},
        cpu_times_ms={"2": [1, 1, 30], "3": [1, 1, 12]},
    )
    assert "the hypervisor, by whose account it kept these CPUs for 42 ms in all (steal)" in virtual["explanation"]


def test_a_gap_in_which_the_kernel_ran_is_no_part_of_a_stop() -> None:
    assert told(raw_cpu(2, *TOGETHER), raw_cpu(4, *TOGETHER))["count"] == 4
    assert stopped_together(typed(told(raw_cpu(2, *TOGETHER), raw_cpu(3)), Stops), 10.0) == ""


def test_it_is_said_why_nobody_can_tell() -> None:
    both = raw_cpu(2, *TOGETHER), raw_cpu(3, *TOGETHER)
    assert told(both[0])["reason"] == "it takes two probed CPUs to see one"
    entered = [raw_cpu(cpu, *TOGETHER, **took(5)) for cpu in (2, 3)]
    assert "--attribute" in told(*entered, traced=False)["reason"]
    assert "--attribute" in told(*both, traced=False, files_after={})["reason"]
    assert "counters" in told(*both, host_files={"/proc/cpuinfo": "flags : constant_tsc\n"})["reason"]
    core = raw_cpu(2, *TOGETHER, siblings=[3]), raw_cpu(3, *TOGETHER, siblings=[2])
    assert told(*core)["reason"].startswith("it takes CPUs of two cores")
    assert told(*core, raw_cpu(5, *TOGETHER, siblings=[6]))["count"] == 5
    found = told(both[0]), told(*entered, traced=False), told(*both, traced=False, files_after={}), told(*core)
    assert {one["count"] for one in found} == {None}


def took(irqs: int, switches: int = 0, faults: int = 0) -> dict[str, Any]:
    """How often the kernel took a CPU."""
    counters = {"context_switches": {"voluntary": 0, "involuntary": switches}, "page_faults": faults}
    return {"counters": {"irq": {"LOC": irqs}, **counters}}


@pytest.mark.parametrize(
    ("entries", "count"), [(took(0), 5), (took(2), 3), (took(3), None), (took(0, 2), 3), (took(1, 1, 1), None)]
)
def test_without_a_trace_as_many_stops_are_left_to_the_kernel_as_it_took_any_cpu(
    entries: dict[str, Any], count: int | None
) -> None:
    """The longest of them, and by the CPU that it took most often."""
    lengths = [300_000, 100_000, 100_000, 100_000, 200_000]
    gaps = [(start, start + length) for (start, _), length in zip(TOGETHER, lengths, strict=True)]
    stops = told(raw_cpu(2, *gaps, **took(0)), raw_cpu(3, *gaps, **entries), traced=False)
    assert stops["count"] == count
    longest = {5: 300_000, 3: 100_000, None: 0}[count]
    assert (stops["max_ns"], stops["total_ns"]) == (longest, {5: 800_000, 3: 300_000, None: 0}[count])


def test_without_a_trace_a_host_on_which_cpus_are_away_by_themselves_has_no_stops() -> None:
    apart = [(start + 500_000, end + 500_000) for start, end in TOGETHER]
    assert told(raw_cpu(2, *TOGETHER), raw_cpu(3, *apart), traced=False)["count"] == 0


def test_short_gaps_beside_a_long_one_are_one_stop() -> None:
    """One CPU is away for 100 us, the other twice meanwhile: what the kernel did five times on one explains all."""
    long = [(k * SECOND, k * SECOND + 1e5) for k in (0.5, 1, 2, 3, 4)]
    pairs = [(at + after, at + after + 4e4) for at, _ in long for after in (0, 5e4)]
    found = [find_stops([long, pairs], LENGTH, entries) for entries in (0, 2, 3, 5)]
    assert [one and (one.count, one.max_ns) for one in found] == [(5, 80_000), (3, 80_000), (None, 0), (None, 0)]


def test_beyond_the_list_nothing_is_compared() -> None:
    """The list of CPU 3 was full after its second gap."""
    assert told(raw_cpu(2, *TOGETHER), raw_cpu(3, *TOGETHER[:2], lost=3))["count"] == 0


@pytest.mark.parametrize(
    ("long_ticks", "lost_max", "count"), [(50_000, 40_000, 5), (50_000, 90_000, 4), (200_000, 90_000, 3)]
)
def test_long_stops_are_counted_also_where_short_gaps_filled_the_list(
    long_ticks: int, lost_max: int, count: int
) -> None:
    """In the whole run; where long ones were lost as well, until the last that is listed; short ones while all are."""
    full = raw_cpu(3, *TOGETHER, lost=3, complete_until=TOGETHER[3][0], events_lost_max_ticks=lost_max)
    assert told(raw_cpu(2, *TOGETHER), full, long_ticks=long_ticks)["count"] == count
