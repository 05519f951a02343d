"""P99.9 and the longest by window: against the exact answer, and never averaged."""

from __future__ import annotations

import math
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from tunectl.monitor.model import Freshness
from tunectl.monitor.sources.windows import KEPT, MOST_NS, Closed, Gaps, Messages, Windows


def closed_of(values: list[int]) -> Closed:
    tally = Messages()
    tally.add(values)
    return tally.close()


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(0, 5000), st.integers(0, MOST_NS)), min_size=1, max_size=3000))
def test_against_the_sorted_values(values: list[int]) -> None:
    exact = sorted(values)[math.ceil(len(values) * 999 / 1000) - 1]
    found = closed_of(values)
    assert found.p99_9_ns is not None
    assert exact <= found.p99_9_ns <= exact * (1 + 1 / 512)
    assert (found.max_ns, found.arrived) == (max(values), len(values))


def test_small_values_are_exact() -> None:
    assert closed_of([7] * 999 + [900]) == Closed(7, 900, 1000)
    assert closed_of([7] * 998 + [900] * 2) == Closed(900, 900, 1000)
    assert closed_of([]) == Closed(None, None, 0)
    assert closed_of([0]) == Closed(0, 0, 1)


def test_a_percentile_is_too_high_by_less_than_a_five_hundredth() -> None:
    """At the start of its bucket, where the error is largest, and below the longest, which is exact."""
    found = closed_of([1 << 20] * 999 + [1 << 21]).p99_9_ns
    assert found is not None
    assert 0 < found - (1 << 20) < 0.002 * (1 << 20)


def test_memory_is_bounded_by_buckets() -> None:
    tally = Messages()
    tally.add(range(1, 3_000_000, 7))
    assert len(tally._buckets) < 512 * 14


def test_gaps_are_weighed_by_their_length() -> None:
    gaps = Gaps()
    gaps.add([(10_000.0, 1)], 1e9)
    assert gaps.close() == Closed(
        0.0, 10_000.0, 1
    )  # away for a hundred-thousandth of the time: 999 of 1,000 never wait
    gaps = Gaps()
    gaps.add([(2_000_000.0, 2)], 0.5e9)
    gaps.add([(1_000_000.0, 1)], 0.5e9)
    # A moment of a second may wait longer: x with 2 (2 ms - x) = 1 ms
    assert gaps.close() == Closed(1_500_000.0, 2_000_000.0, 3)
    assert Gaps().close() == Closed(None, None, 0)
    quiet = Gaps()
    quiet.add([], 1e7)
    assert quiet.close() == Closed(0.0, 0.0, 0)


def test_windows_close_on_time_and_are_not_mixed() -> None:
    windows = Windows(10.0, Messages, 100.0)
    for second in range(1, 41):
        windows.open.add([1000 * second])
        windows.turn(100.0 + second)
    assert [closed.max_ns for closed in windows.closed] == [20_000, 30_000, 40_000]
    assert [closed.arrived for closed in windows.closed] == [10] * KEPT
    samples = {sample.quantity: sample for sample in windows.samples("application", "latency")}
    assert samples["latency_max_ns"].value == 40_000
    assert samples["latency_count"].value == 10
    assert samples["latency_worst_max_ns"].value == 40_000
    assert "latency_open_max_ns" not in samples


def test_a_host_that_slept_has_no_windows_for_that() -> None:
    windows = Windows(10.0, Messages, 0.0)
    windows.open.add([5])
    windows.turn(10.5)
    windows.turn(3600.0)
    assert list(windows.closed) == [Closed(5, 5, 1), Closed(None, None, 0)]
    windows.turn(3601.0)
    assert len(windows.closed) == 2


def test_what_is_not_known_yet_is_stale_and_silence_is_no_data() -> None:
    windows = Windows(10.0, Messages, 0.0)
    states = {sample.quantity: sample.freshness for sample in windows.samples("application", "latency")}
    assert set(states.values()) == {Freshness.STALE}
    windows.turn(10.0)
    assert {sample.freshness for sample in windows.samples("application", "latency")} == {Freshness.NO_DATA}
    windows.open.add([5])
    windows.turn(20.0)
    windows.turn(30.0)
    states = {sample.quantity: sample.freshness for sample in windows.samples("application", "latency")}
    assert states["latency_max_ns"] is Freshness.NO_DATA
    assert states["latency_count"] is Freshness.FRESH  # none: that is known
    assert states["latency_worst_max_ns"] is Freshness.FRESH


def test_a_hundred_thousand_messages_take_little_time() -> None:
    tally, values = Messages(), list(range(20_000, 120_000))
    start = time.process_time()
    tally.add(values)
    assert time.process_time() - start < 0.5
