"""A period is claimed where distinct periods were hit, in phase, more often than chance allows; by simulation."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from tests.bench import bench_periods as bench
from tunectl.probe.explain import explained
from tunectl.probe.periods import LOOKED_AT, THROTTLED, Gap, _in_step, find_periods
from tunectl.probe.phase import Series
from tunectl.shapes import Period

from .gaps import MS, SECOND, Moments, drifting, heavy, pareto, poisson, regular, short, storms, taken
from .samples import raw_cpu, raw_run

Aperiodic = Callable[[Random, float], Moments]


def _storms(storm_ms: float, storms_per_s: float, per_s: float) -> Aperiodic:
    return lambda random, length: storms(random, length, storm_ms * MS, storms_per_s, per_s)


def _drifting(per_s: float, waves: float) -> Aperiodic:
    return lambda random, length: drifting(random, length, per_s, waves)


def _at_random(kind: Callable[[Random, float, float], Moments], per_s: float) -> Aperiodic:
    return lambda random, length: kind(random, length, per_s)


APERIODIC: dict[str, Aperiodic] = {
    **{f"poisson {rate}/s": _at_random(poisson, rate) for rate in (3, 30, 300, 2000)},
    **{f"pareto {rate}/s": _at_random(pareto, rate) for rate in (3, 30, 300, 2000)},
    **{
        f"{often}/s storms of {storm_ms} ms, {rate}/s": _storms(storm_ms, often, rate)
        for storm_ms in (40, 400)
        for often in (0.5, 2, 10)
        for rate in (50, 3000)
    },
    **{f"drifting to {rate}/s, {waves}": _drifting(rate, waves) for rate in (20, 1000) for waves in (0, 1, 7, 50)},
}


def found(gaps: list[Gap], length: float, is_fifo: bool = False) -> list[Period]:
    return find_periods(gaps, 0, length, 1e9, is_fifo).periods


def claims(name: str, seconds: float, seed: int) -> list[Period]:
    """What is claimed of an aperiodic run; every second one has long pauses, too."""
    random, length = Random(f"{name} {seed}"), seconds * SECOND
    long = heavy if seed % 2 else short
    return found(taken(length, (APERIODIC[name](random, length), long(random), "")), length)


def tick(hz: float, noise: float, late: float, seed: int) -> tuple[list[Gap], float]:
    """5 s of a tick with `noise` times as many gaps at random."""
    random, length = Random(f"{hz} {noise} {late} {seed}"), 5 * SECOND
    ticks = regular(random, length, SECOND / hz, late), short(random), "tick"
    at_random = poisson(random, length, noise * hz) if noise else []
    return taken(length, ticks, (at_random, short(random), "noise")), length


def has_tick(hz: float, noise: float, late: float, seed: int) -> bool:
    """It is found, alone, with its cause, and with no more gaps than the run has periods."""
    periods = found(*tick(hz, noise, late, seed))
    if len(periods) != 1:
        return False
    (one,) = periods
    fits = abs(one.period_ns - SECOND / hz) < 1e-4 * SECOND / hz and 0.7 <= one.coverage <= 1
    return fits and one.count <= 5 * hz and one.cause == "tick"


# Lengths of what comes each second, and of what comes at random beside it.
SECONDS: dict[str, tuple[Callable[[Random], float], Callable[[Random], float]]] = {
    "upkeep": (lambda random: random.uniform(1e3, 5e3), lambda random: random.uniform(1e3, 5e3)),
    "throttled": (lambda random: random.uniform(47, 53) * MS, lambda random: random.uniform(1, 10) * MS),
}


def has_second(kind: str, per_s: float, seed: int) -> bool:
    """What comes each second of 20 is found and named, beside `per_s` others like it."""
    random, length = Random(f"{kind} {per_s} {seed}"), 20 * SECOND
    own, others = SECONDS[kind]
    noise = poisson(random, length, per_s) if per_s else []
    gaps = taken(
        length, (regular(random, length, SECOND, 0.001), lambda: own(random), ""), (noise, lambda: others(random), "")
    )
    periods = found(gaps, length)
    return [abs(one.period_ns - SECOND) < 2e-3 * SECOND and bool(one.name) for one in periods] == [True]


@pytest.mark.parametrize("name", sorted(APERIODIC)[::2])
def test_chance_is_no_period(name: str) -> None:
    assert claims(name, 3, 0) == claims(name, 3, 1) == []


@pytest.mark.parametrize(("hz", "noise"), [(100, 1), (137, 0), (250, 1), (300, 0.3), (1000, 1)])
def test_a_tick_is_found_in_noise(hz: float, noise: float) -> None:
    assert has_tick(hz, noise, 0.002, 0)


@pytest.mark.parametrize(("hz", "seed"), [(250, 0), (300, 5)])
def test_a_tick_whose_longest_gaps_come_at_every_second_moment_is_one(hz: float, seed: int) -> None:
    assert has_tick(hz, 1, 0.005, seed)


@pytest.mark.parametrize("kind", sorted(SECONDS))
@pytest.mark.parametrize("per_s", [0, 10])
def test_a_second_is_found_in_noise(kind: str, per_s: float) -> None:
    assert all(has_second(kind, per_s, seed) for seed in range(5))


@pytest.mark.long
@pytest.mark.parametrize("seconds", [5, 20])
def test_at_most_one_aperiodic_run_in_a_hundred_has_a_period(seconds: float) -> None:
    runs = [(name, seed) for name in sorted(APERIODIC) for seed in range(12)]
    wrong = [(name, seed, claims(name, seconds, seed)) for name, seed in runs if claims(name, seconds, seed)]
    print(f"{len(wrong)} of {len(runs)}")
    assert len(wrong) <= 0.01 * len(runs), wrong


@pytest.mark.long
def test_ticks_are_found_in_ninety_nine_of_a_hundred_runs() -> None:
    asked = [
        (hz, noise, late) for hz in (100, 250, 300, 700, 1000) for noise in (0, 0.3, 1) for late in (0.0005, 0.005)
    ]
    runs = [(*one, seed) for one in asked for seed in range(7)]
    missed = [one for one in runs if not has_tick(*one)]
    print(f"{len(missed)} of {len(runs)}")
    assert len(missed) <= 0.01 * len(runs), missed


@pytest.mark.long
def test_seconds_are_found_in_ninety_nine_of_a_hundred_runs() -> None:
    runs = [(kind, per_s, seed) for kind in SECONDS for per_s in (0, 1, 3, 10) for seed in range(100)]
    missed = [one for one in runs if not has_second(*one)]
    print(f"{len(missed)} of {len(runs)}")
    assert len(missed) <= 0.01 * len(runs), missed


@pytest.mark.parametrize(
    ("period_ms", "length_us"), [(10, 50), pytest.param(13, 5, marks=pytest.mark.slow), (100, 500), (1000, 5)]
)
def test_a_timer_is_found_in_the_whole_run_beside_a_tick_and_storms(period_ms: int, length_us: int) -> None:
    """On the tick's grid, where every second or fifth of its gaps meets a tick: it is no multiple of itself."""
    periods = bench.found(bench.made(period_ms, length_us, 1).gaps)
    assert bench.is_right(periods, period_ms)
    assert bench.wrong(periods, period_ms, bench.TICK_MS) == []


def test_a_period_is_told_as_well_as_it_is_known() -> None:
    errors = []
    for late in (0.0005, 0.005):
        random = Random(7)
        gaps = taken(20 * SECOND, (regular(random, 20 * SECOND, 10 * MS, late), short(random), ""))
        (period,) = found(gaps, 20 * SECOND)
        assert abs(period.period_ns - 10 * MS) <= 5 * period.error_ns + 1
        errors.append(period.error_ns)
    assert 0 < errors[0] < errors[1] / 3 < 100


@pytest.mark.long
@pytest.mark.parametrize("length_us", bench.LENGTHS_US)
def test_timers_are_found_and_none_is_told_as_a_multiple(length_us: int) -> None:
    runs = [(period_ms, seed) for period_ms in bench.PERIODS_MS for seed in range(8)]
    told = {run: bench.found(bench.made(run[0], length_us, run[1]).gaps) for run in runs}
    missed = [run for run, periods in told.items() if not bench.is_right(periods, run[0])]
    assert len(missed) <= (1 - bench.BAR) * len(runs), missed
    assert [run for run, periods in told.items() if bench.wrong(periods, run[0], bench.TICK_MS)] == []


def comb(period: float, length: float, first: float = 0.5 * MS, gap: float = 2e3) -> list[Gap]:
    """Gaps exactly on time."""
    return [Gap(first + k * period, first + k * period + gap, "") for k in range(int((length - first) / period) + 1)]


@pytest.mark.parametrize(("longer", "first_ms", "told_ms"), [(1.5, 5, [4]), (1.51, 5, [4, 8]), (1.5, 5.3, [8, 8])])
def test_two_that_take_turns_are_one_where_they_are_alike(longer: float, first_ms: float, told_ms: list[float]) -> None:
    length = 5 * SECOND
    other = comb(8 * MS, length, first_ms * MS, 2e3 * longer)
    told = found(sorted(comb(8 * MS, length, 1 * MS) + other), length)
    assert [one.period_ns / MS for one in told] == told_ms


@pytest.mark.parametrize(("periods", "claimed"), [(11, 0), (11.9, 0), (12, 1), (13, 1)])
def test_twelve_periods_are_the_least(periods: float, claimed: int) -> None:
    length = periods * 10 * MS
    some = found(comb(10 * MS, length), length)
    assert len(some) == claimed
    assert all(one.count <= periods for one in some)


@pytest.mark.parametrize("gaps", [[], [Gap(5.0, 9.0, "")], [Gap(5.0, 9.0, ""), Gap(1e9, 1e9 + 50 * MS, "")]])
def test_hardly_any_gaps(gaps: list[Gap]) -> None:
    assert found(gaps, 5 * SECOND) == []
    assert found(gaps, 60 * SECOND) == []


def test_most_periods_must_be_hit_over_the_whole_run() -> None:
    ticks = comb(4 * MS, 5 * SECOND)
    assert len(found([one for one in ticks if one.start < 4 * SECOND], 5 * SECOND)) == 1
    assert found([one for one in ticks if one.start < 3 * SECOND], 5 * SECOND) == []


def test_what_a_long_pause_hides_is_not_missed() -> None:
    """A run that was stopped for 2 of 5 s has its tick all the same."""
    stop = Gap(2 * SECOND, 4 * SECOND, "stopped")
    seen = [one for one in comb(4 * MS, 5 * SECOND) if not stop.start <= one.start <= stop.end]
    (one,) = found(sorted([*seen, stop]), 5 * SECOND)
    assert one.name == "as often as a timer tick at HZ=250"
    assert one.coverage == 1
    assert one.count == pytest.approx(3 * 250, abs=2)


def test_what_may_be_a_multiple_is_not_told() -> None:
    """Each second moment of a timer of 10 ms: at the others the CPU is always away, so nobody saw whether it came."""
    random, length = Random(5), 20 * SECOND
    pauses = [k * 20 * MS + random.uniform(6.2, 9.8) * MS for k in range(1000)]
    seen = [one.start for one in comb(20 * MS, length, first=0)]
    told = found(taken(length, (seen, lambda: 5e4, "timer"), (pauses, lambda: 4 * MS, "thread")), length)
    assert [one for one in told if one.cause == "timer"] == []
    (alone,) = found(comb(20 * MS, length), length)
    assert alone.period_ns == 20 * MS


@pytest.mark.parametrize(("gap_ms", "told", "searched_ns"), [(1.9, 1, None), (2.1, 0, 0)])
def test_of_a_cpu_that_others_have_most_of_the_time_no_period_is_known(
    gap_ms: float, told: int, searched_ns: int | None
) -> None:
    (cpu,) = explained(raw_run(of_run(comb(4 * MS, 5 * SECOND, gap=gap_ms * MS), 5)))["cpus"]
    assert (len(cpu["periods"]), cpu["periods_searched_ns"]) == (told, searched_ns)


def test_two_periods_at_once() -> None:
    random, length = Random(2), 20 * SECOND
    every = regular(random, length, SECOND, 0.0005)
    gaps = taken(length, (regular(random, length, 4 * MS), short(random), "tick"), (every, lambda: 9e3, "vmstat"))
    first, other = found(gaps, length)
    assert (first.name, first.cause) == ("as often as a timer tick at HZ=250", "tick")
    assert other.name.startswith("once a second")
    assert other.cause == "vmstat"
    assert other.mean_ns == pytest.approx(9e3, rel=0.1)


@pytest.mark.parametrize(
    ("other_ms", "begin_ms", "name"),
    [
        (10, 0.05, "in step with the tick at HZ=250"),  # both in moments of a grid of 2 ms
        (10, 2.05, "in step with the tick at HZ=250"),
        (10, 0.7, "as often as a timer tick at HZ=100"),  # another clock's, a hypervisor's for example
        (10 / 3, 0.7, "as often as a timer tick at HZ=300"),
        (4, 1.2, "in step with the tick at HZ=250"),  # two gaps for each tick
    ],
)
def test_one_tick_is_not_told_as_two(other_ms: float, begin_ms: float, name: str) -> None:
    length = 5 * SECOND
    combs = (comb(4 * MS, length), comb(other_ms * MS, length, (0.5 + begin_ms) * MS))
    gaps = taken(length, *(([gap.start for gap in each], lambda: 5e3, "") for each in combs))
    assert {one.name for one in found(gaps, length)} == {"as often as a timer tick at HZ=250", name}


@pytest.mark.parametrize(("other_ms", "is_one"), [(9.998, True), (9.99, False)])
def test_two_ticks_are_two_only_where_they_part_within_the_run(other_ms: float, is_one: bool) -> None:
    length = SECOND  # 100 periods: 2 us a period add up to 0.2 ms, less than the 3 % by which a tick may come late
    combs = (comb(10 * MS, length), comb(other_ms * MS, length, 5 * MS))
    gaps = taken(length, *(([gap.start for gap in each], lambda: 5e3, "") for each in combs))
    names = [one.name for one in found(gaps, length)]
    assert len(names) == 2
    assert ("in step with the tick at HZ=100" in names) is is_one


@pytest.mark.parametrize(("of_the_tick", "is_the_same"), [(1, True), (1 / 4, True), (1 / 8, False), (1 / 10, False)])
def test_what_comes_more_often_than_the_finest_grid_is_no_tick_once_more(of_the_tick: float, is_the_same: bool) -> None:
    """Noise may hide a short period from the first look, so the longer one is found before it."""
    tick = Series(10 * MS, 200, 200, (), 0)
    assert _in_step(Series(of_the_tick * tick.period, 200, 200, (), 0), tick) is is_the_same


def test_the_cause_is_the_one_that_most_of_them_have() -> None:
    gaps, length = tick(250, 1, 0.002, 9)
    assert [one.cause for one in found(gaps, length)] == ["tick"]


@pytest.mark.parametrize(("length_ms", "name"), [(29, ""), (30, THROTTLED), (50, THROTTLED), (80, THROTTLED), (81, "")])
def test_a_pause_each_second_is_named_by_its_length(length_ms: float, name: str) -> None:
    pauses = comb(SECOND, 20 * SECOND, gap=length_ms * MS)
    (one,) = found(pauses, 20 * SECOND)
    assert (one.name, one.count, one.mean_ns) == (name, 20, length_ms * MS)


@pytest.mark.parametrize(
    ("pauses", "seconds", "is_fifo", "named"),
    [
        (5, 5, False, True),
        (5, 6, False, True),
        (4, 6, False, False),  # not each second
        (11, 11, False, True),
        (2, 2, False, False),  # two may be chance
        (2, 2, True, True),  # but not of a SCHED_FIFO spinner
        (1, 1, True, False),
    ],
)
def test_few_pauses_of_the_scheduler_are_enough(pauses: int, seconds: int, is_fifo: bool, named: bool) -> None:
    gaps = comb(SECOND, pauses * SECOND - 1, gap=50 * MS)
    assert len(gaps) == pauses
    assert [one.name for one in found(gaps, seconds * SECOND, is_fifo)] == [THROTTLED] * named


def test_pauses_of_the_scheduler_are_named_whatever_hides_the_moments_between_them() -> None:
    pauses = comb(SECOND, 2.2 * SECOND, first=300 * MS, gap=50 * MS)
    between = comb(SECOND, 2.2 * SECOND, first=799 * MS, gap=4 * MS)
    told = found(sorted(pauses + between), 2.2 * SECOND, is_fifo=True)
    assert [one.name for one in told] == [THROTTLED]


def test_pauses_of_another_length_need_twelve() -> None:
    assert found(comb(SECOND, 11 * SECOND, gap=20 * MS), 11 * SECOND, is_fifo=True) == []


def test_of_many_gaps_the_first_are_looked_at() -> None:
    ticks = comb(1 * MS, 30 * SECOND)
    (one,) = found(ticks, 30 * SECOND)
    assert one.count == pytest.approx(LOOKED_AT, abs=1)
    assert one.coverage == 1


def test_another_counter_tells_the_same() -> None:
    def on(hz: float, gaps: Iterable[Gap]) -> list[tuple[float, float, str]]:
        return [(7e12 + one.start * hz / 1e9, 7e12 + one.end * hz / 1e9, one.label) for one in gaps]

    gaps, length = tick(250, 0.3, 0.002, 4)
    ticks = find_periods(on(2.6e9, gaps), 7e12, 7e12 + length * 2.6, 2.6e9).periods
    assert (
        [one.name for one in ticks]
        == [one.name for one in found(gaps, length)]
        == ["as often as a timer tick at HZ=250"]
    )


def of_run(gaps: list[Gap], seconds: float, cpu: int = 2, lost: int = 0) -> dict[str, Any]:
    """The raw facts of a CPU with these gaps, whose counter began at 1,000."""
    shifted = [(int(one.start) + 1000, int(one.end) + 1000) for one in gaps]
    return raw_cpu(cpu, *shifted, lost=lost, tsc_end=1000 + int(seconds * SECOND))


def test_the_document_has_them_and_says_what_a_fifo_probe_met() -> None:
    pauses = comb(SECOND, 5 * SECOND, gap=50 * MS)
    cpus = [of_run(pauses, 5, 2), of_run(pauses, 5, 3), of_run([], 5, 5)]
    document = explained(raw_run(*cpus, fifo_priority=1))
    assert [len(cpu["periods"]) for cpu in document["cpus"]] == [1, 1, 0]
    assert document["cpus"][0]["periods"] == [
        {
            "period_ns": 10**9,
            "count": 5,
            "coverage": 1.0,
            "mean_ns": 50_000_000,
            "name": THROTTLED,
            "cause": "",
            "error_ns": 100.0,
        }
    ]
    (said,) = [text for text in document["warnings"] if "not the machine" in text]
    assert said.startswith("pauses of some 50 ms, a second apart, on CPUs 2-3: ")
    assert not any("not the machine" in text for text in explained(raw_run(*cpus))["warnings"])


def test_a_list_that_was_full_ends_what_is_looked_at() -> None:
    ticks = comb(4 * MS, 2 * SECOND)
    (full,) = explained(raw_run(of_run(ticks, 5, lost=750)))["cpus"]
    assert [(one["name"], one["coverage"]) for one in full["periods"]] == [("as often as a timer tick at HZ=250", 1.0)]
    (whole,) = explained(raw_run(of_run(ticks, 5)))["cpus"]
    assert whole["periods"] == []
    assert (full["periods_searched_ns"], whole["periods_searched_ns"]) == (int(ticks[-1].start), None)


def full_list(long: Moments, long_us: float, capacity: int = 24576) -> dict[str, Any]:
    """A run of 30 s whose list is filled by short gaps, 22,000 a second, in the first one; and `long` ones."""
    random, listed, lost = Random(3), list[Gap](), list[Gap]()
    storm = poisson(random, 1.2 * SECOND, 22_000), short(random), "storm"
    length_us = partial(random.uniform, 0.9 * long_us, 1.1 * long_us)
    for gap in taken(30 * SECOND, storm, (long, lambda: length_us() * 1e3, "timer")):
        room = capacity - capacity // 8 * (gap.length < 50_000)
        (listed if len(listed) < room else lost).append(gap)
    cpu = of_run(listed, 30, lost=len(lost)) | {
        "complete_until": 1000 + int(lost[0].start),
        "events_lost_max_ticks": int(max(gap.length for gap in lost)),
    }
    document = explained(raw_run(cpu, long_ticks=50_000))
    assert document["cpus"][0]["complete_until_ns"] == int(lost[0].start)
    return document


TIMER = [at + 1e4 * Random(at).random() for at in (3.3 * MS + k * 10 * MS for k in range(2999))]


def test_a_timer_of_long_gaps_is_found_in_the_whole_run_where_short_ones_filled_the_list() -> None:
    (cpu,) = full_list(TIMER, 300)["cpus"]
    (period,) = cpu["periods"]
    assert (period["count"], period["coverage"]) == (len(TIMER), 1.0)
    assert abs(period["period_ns"] - 10 * MS) < 10
    assert period["mean_ns"] == pytest.approx(300_000, rel=0.01)
    assert 0 < cpu["periods_searched_ns"] <= cpu["complete_until_ns"] < 1.2 * SECOND


def test_where_long_gaps_fill_the_list_as_well_their_time_is_looked_at() -> None:
    """1,024 places for long gaps are room for some ten seconds of them."""
    (cpu,) = full_list(TIMER, 300, 8192)["cpus"]
    (period,) = cpu["periods"]
    assert (period["count"], period["coverage"]) == (pytest.approx(1024, abs=50), 1.0)
    assert cpu["complete_until_ns"] < 0.5 * SECOND


@pytest.mark.parametrize("long_us", [47, 50, 53])
def test_a_timer_whose_gaps_are_long_only_at_times_is_found_while_all_are_listed(long_us: float) -> None:
    (cpu,) = full_list(TIMER, long_us)["cpus"]
    (period,) = cpu["periods"]
    assert (period["count"], period["coverage"]) == (pytest.approx(cpu["complete_until_ns"] / 10 / MS, abs=1), 1.0)
    assert period["mean_ns"] == pytest.approx(long_us * 1e3, rel=0.03)


def test_long_gaps_at_random_beyond_a_full_list_are_no_period() -> None:
    for capacity in (8192, 24576):
        (cpu,) = full_list(poisson(Random(1), 30 * SECOND, 100), 300, capacity)["cpus"]
        assert cpu["periods"] == []


@pytest.mark.parametrize("length", [5_000, MS])
def test_the_document_says_how_far_was_searched(length: float) -> None:
    """To the first gap of a kind that is one too many."""
    for many, until in ((LOOKED_AT, None), (LOOKED_AT + 1, int((LOOKED_AT * 4 + 0.5) * MS))):
        gaps = comb(4 * MS, many * 4 * MS, gap=length)
        assert len(gaps) == many
        (cpu,) = explained(raw_run(of_run(gaps, 40)))["cpus"]
        assert cpu["periods_searched_ns"] == until


def test_made_up_runs_are_in_order() -> None:
    random = Random(1)
    for name, moments in APERIODIC.items():
        gaps = taken(SECOND, (moments(random, SECOND), heavy(random), ""))
        assert all(one.end < other.start for one, other in pairwise(gaps)), name
