"""P99.9 and the longest by window: against the exact answer, and never averaged."""

import math
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tunectl.monitor.model import Freshness
from tunectl.monitor.sources.datagram import MOST_NS
from tunectl.monitor.sources.windows import KEPT, Gaps, Judged, Messages, Windows, judge_gaps, judge_messages

PROMISED = 20_000


def closed_of(values: list[int], promised_ns: float | None = None) -> Judged:
    tally = Messages(promised_ns)
    tally.add(values)
    return judge_messages([tally], len(values))


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(0, 5000), st.integers(0, MOST_NS)), min_size=1, max_size=3000))
def test_against_the_sorted_values(values: list[int]) -> None:
    exact = sorted(values)[math.ceil(len(values) * 999 / 1000) - 1]
    found = closed_of(values)
    assert found.p99_9_ns is not None
    assert exact <= found.p99_9_ns <= exact * (1 + 1 / 512)
    assert found.max_ns == max(values)


def test_small_values_are_exact() -> None:
    assert closed_of([7] * 999 + [900]) == Judged(7, 900, None, 1)
    assert closed_of([7] * 998 + [900] * 2) == Judged(900, 900, None, 1)
    assert closed_of([]) == Judged(None, None)
    assert closed_of([0]) == Judged(0, 0, None, 0)


def test_the_promised_length_itself_is_no_miss_and_a_nanosecond_more_is() -> None:
    at_limit = closed_of([20_000] * 999 + [20_001], PROMISED)
    assert at_limit[:3] == (20_000, 20_001, 1)
    assert closed_of([20_000] * 998 + [20_001] * 2, PROMISED)[:3] == (20_001, 20_001, 2)
    assert closed_of([20_000] * 998 + [20_001] * 2, 20_000.9)[:3] == (20_001, 20_001, 2)
    assert closed_of([19_999] * 9, PROMISED)[:3] == (19_999, 19_999, 0)


@settings(deadline=None)
@given(st.lists(st.integers(0, 50_000), min_size=1, max_size=3000), st.integers(0, 50_000))
def test_misses_are_counted_exactly(values: list[int], promised: int) -> None:
    found = closed_of(values, promised)
    assert found.missed == sum(value > promised for value in values)
    assert found.p99_9_ns is not None
    assert (found.p99_9_ns > promised) == (found.missed > len(values) // 1000)


def test_a_percentile_is_too_high_by_less_than_a_five_hundredth() -> None:
    """At the start of its bucket, where the error is largest, and below the longest, which is exact."""
    found = closed_of([1 << 20] * 999 + [1 << 21]).p99_9_ns
    assert found is not None
    assert 0 < found - (1 << 20) < 0.002 * (1 << 20)


def test_memory_is_bounded_by_buckets() -> None:
    tally = Messages()
    tally.add(range(1, 3_000_000, 7))
    assert len(tally.buckets) < 512 * 14


def test_gaps_are_weighed_by_their_length() -> None:
    gaps = Gaps()
    gaps.add([(10_000.0, 1)], 1e9)
    # Away for a hundred-thousandth of the time: 999 of 1,000 never wait.
    assert judge_gaps([gaps], 1e9) == Judged(0.0, 10_000.0)
    first, second = Gaps(), Gaps()
    first.add([(2_000_000.0, 2)], 0.5e9)
    second.add([(1_000_000.0, 1)], 0.5e9)
    # A moment of a second may wait longer: x with 2 (2 ms - x) = 1 ms
    assert judge_gaps([first, second], 1e9) == Judged(1_500_000.0, 2_000_000.0)
    assert second.arrived == 1
    assert judge_gaps([Gaps()], 0.0) == Judged(None, None)
    quiet = Gaps()
    quiet.add([], 1e7)
    assert judge_gaps([quiet], 1e7) == Judged(0.0, 0.0)


def windows_of(window_s: float = 10.0, promised_ns: float | None = PROMISED, now: float = 0.0) -> Windows[Messages]:
    return Windows(window_s, partial(Messages, promised_ns), judge_messages, now)


# A message: when it came in ms, how long it took, how often it came at once.
Event = tuple[int, int, int]


def is_found(events: list[Event], end_s: int, looks_s: float = 1.0) -> bool:
    """Does any look, one each `looks_s`, say that P99.9 is more than promised?"""
    windows, found, left = windows_of(), False, sorted(events)
    for look in range(1, int(end_s / looks_s) + 1):
        now = look * looks_s
        while left and left[0][0] < now * 1000:
            at, took, often = left.pop(0)
            windows.at(at / 1000).add([took] * often)
        windows.turn(now)
        found |= windows.last is not None and (windows.last.p99_9_ns or 0) > PROMISED
    return found


def is_broken(events: list[Event], end_s: int) -> bool:
    """Does a window of ten seconds, beginning at any moment, have more misses than one in a thousand? By trying all.

    What is in a window changes only where a message enters or leaves: half a millisecond before or after one.
    """
    edges = {at + shift for at, _, _ in events for shift in (-0.5, 0.5, -10_000.5, -9_999.5)}
    for begin in edges:
        if 0 <= begin <= (end_s - 10) * 1000:
            inside = [(took, often) for at, took, often in events if begin <= at < begin + 10_000]
            missed = sum(often for took, often in inside if took > PROMISED)
            if missed > sum(often for _, often in inside) // 1000:
                return True
    return False


END_S = 24
ALWAYS = [(second * 1000 + 500, 700, 1) for second in range(END_S)]  # no second is silent
EVENTS = st.lists(
    st.tuples(
        st.integers(0, END_S * 1000 - 1), st.sampled_from([500, PROMISED, PROMISED + 1, 90_000]), st.integers(1, 3)
    ),
    max_size=6,
)
CROWDS = st.lists(st.tuples(st.integers(0, END_S * 1000 - 1), st.just(500), st.integers(1, 6000)), max_size=12)


@settings(deadline=None, max_examples=examples(150))
@given(EVENTS, CROWDS, st.sampled_from([0.5, 1.0, 3.0]))
def test_any_ten_seconds_over_the_allowance_are_found(events: list[Event], crowds: list[Event], looks_s: float) -> None:
    """Whatever comes when, and however seldom somebody looks."""
    everything = [*events, *crowds, *ALWAYS]
    if is_broken(everything, END_S):
        assert is_found(everything, END_S, looks_s)


def test_the_emptiest_ten_seconds_say_what_is_allowed() -> None:
    """2 of 1,000 between two crowds that no window of ten seconds has both of, and that this one has none of."""
    quiet = [(at, 700, 1) for at in range(1_100, 11_150, 10)]
    crowds = [(at, 700, 50_000) for at in (1_050, 11_200)]
    slow = [(6_000, 90_000, 2)]
    events = [*ALWAYS, *quiet, *crowds, *slow]
    assert is_broken(events, END_S)
    assert is_found(events, END_S)


def steady(per_ms: int) -> list[Event]:
    return [(at, 700, per_ms) for at in range(END_S * 1000)]


@pytest.mark.parametrize("begin_ms", range(9_000, 13_000, 100))
def test_a_burst_of_thirty_milliseconds_is_found_wherever_it_is(begin_ms: int) -> None:
    """11 of 10,000 messages, in 30 ms; where they are split over an edge at 10 s, neither half is too many."""
    slow = [(begin_ms - 15 + 3 * number, 90_000, 1) for number in range(11)]
    assert is_found([*steady(1), *slow], END_S)


@pytest.mark.parametrize("begin_ms", range(9_000, 13_000, 500))
def test_as_many_as_are_allowed_are_not_found_wherever_they_are(begin_ms: int) -> None:
    """10 of 10,200 messages: one in 1,000 of 9.9 seconds."""
    more = [(at, 700, 2) for at in range(0, END_S * 1000, 100)]
    slow = [(begin_ms - 15 + 3 * number, 90_000, 1) for number in range(10)]
    assert not is_found([*steady(1), *more, *slow], END_S)


def test_a_false_alarm_needs_more_misses_than_are_allowed_in_eleven_slots() -> None:
    """6 and 5 misses that are 10.9 s apart: no ten seconds have both, but the slots cannot tell. 6 and 4 are silent."""
    often = [(at, 700, 102) for at in range(0, END_S * 1000, 100)]
    for second, is_alarm in ((5, True), (4, False)):
        events = [*often, (10_050, 90_000, 6), (20_950, 90_000, second)]
        assert not is_broken(events, END_S)
        assert is_found(events, END_S) == is_alarm


def test_what_came_before_a_silence_is_one_window_and_judged_as_that() -> None:
    """An application that ends after a miss has no window of that miss alone."""
    assert not is_found([(at, 90_000 if at == 12_999 else 700, 1) for at in range(13_000)], END_S)
    assert is_found([(at, 90_000 if at in (12_500, 12_999) else 700, 1) for at in range(11_900, 13_000)], END_S)


def test_windows_close_on_time_and_are_not_mixed() -> None:
    windows = windows_of(promised_ns=None, now=100.0)
    for second in range(40):
        windows.at(100.5 + second).add([1000 * second])
        windows.turn(101.0 + second)
    assert len(windows.closed) == KEPT
    assert windows.last is not None
    assert windows.last.max_ns == 39_000
    assert [judged.max_ns for judged in windows.closed] == [1000 * second for second in range(10, 40)]
    samples = {sample.quantity: sample for sample in windows.samples("application", "latency")}
    assert samples["latency_max_ns"].value == 39_000
    assert samples["latency_count"].value == 10
    assert samples["latency_worst_max_ns"].value == 39_000
    assert "latency_missed" not in samples  # nothing is promised


def test_misses_a_day_are_those_of_the_window() -> None:
    windows = windows_of()
    windows.at(9.5).add([90_000] * 3 + [5] * 9997)
    windows.turn(10.95)
    samples = {sample.quantity: sample.value for sample in windows.samples("application", "latency")}
    assert (samples["latency_missed"], samples["latency_allowed"]) == (3, 10)
    assert samples["latency_missed_per_day"] == round(3 * 86_400 / 11)


def test_a_host_that_slept_has_no_windows_for_that() -> None:
    windows = windows_of()
    windows.at(5.0).add([5])
    windows.turn(10.5)
    windows.turn(3600.25)
    assert len(windows.closed) < KEPT
    assert windows.last is not None
    assert windows.last[:3] == (5, 5, 0)  # of the windows that ended since
    windows.turn(3600.5)
    assert windows.last[:3] == (None, None, None)
    windows.at(3600.75).add([6])
    windows.turn(3600.99)
    assert windows.open_max_ns == 6
    windows.turn(3612.0)
    assert windows.open_max_ns is None


def test_a_clock_that_goes_back_moves_nothing() -> None:
    windows = windows_of()
    windows.turn(12.0)
    windows.at(3.0).add([7])
    windows.turn(2.0)
    assert windows.open_max_ns == 7
    windows.turn(24.0)
    assert windows.open_max_ns is None


def test_what_is_kept_does_not_grow() -> None:
    windows = windows_of()
    sizes = []
    for number in range(5000):
        windows.at(number * 0.37).add(range(1000, 1100))
        windows.turn(number * 0.37)
        sizes.append((len(windows._slots), len(windows._cells), len(windows.closed), len(windows._worst)))
    assert max(sizes) == (11, 110, KEPT, 0)


def test_what_is_not_known_yet_is_stale_and_silence_is_no_data() -> None:
    windows = windows_of(promised_ns=None)
    states = {sample.quantity: sample.freshness for sample in windows.samples("application", "latency")}
    assert set(states.values()) == {Freshness.STALE}
    windows.turn(10.0)
    assert {sample.freshness for sample in windows.samples("application", "latency")} == {Freshness.NO_DATA}
    windows.at(15.0).add([5])
    windows.turn(20.0)
    windows.turn(30.0)
    windows.turn(31.0)
    states = {sample.quantity: sample.freshness for sample in windows.samples("application", "latency")}
    assert states["latency_max_ns"] is Freshness.NO_DATA
    assert states["latency_count"] is Freshness.FRESH  # none: that is known
    assert states["latency_worst_max_ns"] is Freshness.FRESH
