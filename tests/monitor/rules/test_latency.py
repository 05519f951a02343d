"""LatencySla: one bad window fires, an average would not; and what counts as over."""

import random
from functools import partial

import pytest

from tests.monitor.series import Watch, healths, sample, told
from tunectl.monitor.model import Health, Sample
from tunectl.monitor.rules.history import Limits
from tunectl.monitor.sources.windows import Messages, Windows, judge_messages

PROMISED = Limits(p99_9_ns=100_000, max_ns=1_000_000, isolated=frozenset({2, 3}))


def played(seconds: list[list[int]], promised_ns: float | None = 100_000) -> list[list[Sample]]:
    """A row a second: what the source says after these messages arrived, evenly in that second."""
    windows = Windows(10.0, partial(Messages, promised_ns), judge_messages, 0.0)
    rows = []
    for second, values in enumerate(seconds, start=1):
        for number, value in enumerate(values):
            windows.at(second - 1 + number / len(values)).add([value])
        windows.turn(float(second))
        rows.append(list(windows.samples("application", "latency")))
    return rows


def quiet(seconds: int) -> list[list[int]]:
    rng = random.Random(1)
    return [[rng.randrange(20_000, 60_000) for _ in range(200)] for _ in range(seconds)]


def test_a_thirty_second_burst_fires_where_the_average_of_a_minute_does_not() -> None:
    # One message in 500 takes 300 us for 30 seconds; the published dashboard shows P99.9 averaged over a minute.
    seconds = quiet(90)
    for second in range(30, 60):
        seconds[second][:1] = [300_000]
    per_second = []
    for values in seconds:
        tally = Messages()
        tally.add(values)
        per_second.append(judge_messages([tally], len(values)).p99_9_ns or 0.0)
    promised = Limits(p99_9_ns=200_000)
    assert max(sum(per_second[i : i + 60]) / 60 for i in range(31)) < 200_000  # the average never complains
    names = Watch(promised).names(*played(seconds, 200_000))
    assert names[0] == (31.0, "+LatencySla[application]")  # the second slow message: one in 1,000 may be
    assert len(names) == 1


def test_one_bad_window_fires_and_the_length_of_three_good_ones_ends_it() -> None:
    seconds = quiet(70)
    seconds[24][:10] = [150_000] * 10  # 10 of 2,000 messages: P99.9 is 150 us
    names = Watch(PROMISED).names(*played(seconds))
    # It is within the eleven slots until 35, and the last 30 good slots are those that closed from 36 to 65.
    assert names == [(24.0, "+LatencySla[application]"), (64.0, "-LatencySla[application]")]


@pytest.mark.parametrize(("slow", "is_bad"), [(2, False), (3, True)])
@pytest.mark.parametrize("of", [100_001, 5_000_000])
def test_as_many_misses_as_are_allowed_are_good(slow: int, is_bad: bool, of: int) -> None:
    """2,100 messages in ten seconds, 2,079 in 9.9: two of them may be longer; the promised length itself is no miss."""
    seconds = [[100_000] * 210 for _ in range(30)]
    seconds[17][40 : 40 + slow] = [of] * slow
    names = Watch(Limits(p99_9_ns=100_000)).names(*played(seconds))
    assert [name for _, name in names] == (["+LatencySla[application]"] if is_bad else [])


def test_windows_that_are_bad_now_and_then_are_one_event() -> None:
    seconds = quiet(100)
    for second in (5, 25, 45):
        seconds[second][:10] = [150_000] * 10
    assert [name for _, name in Watch(PROMISED).names(*played(seconds))] == [
        "+LatencySla[application]",
        "-LatencySla[application]",
    ]


def test_the_longest_is_bad_at_once() -> None:
    seconds = quiet(30)
    seconds[13].append(12_000_000)
    watch = Watch(PROMISED)
    assert watch.names(*played(seconds)) == [(13.0, "+LatencySla[application]")]
    alert = told(watch)["LatencySla[application]"]
    assert (alert.observed, alert.expected) == (12_000_000, 1_000_000)


def test_good_windows_and_windows_without_a_promise_are_silent() -> None:
    assert Watch(PROMISED).names(*played(quiet(60))) == []
    slow = [[9_000_000] * 10] * 30
    assert Watch(Limits()).names(*played(slow)) == []


def test_silence_is_unknown() -> None:
    watch = Watch(PROMISED)
    seconds = [*quiet(10), *[[]] * 40]
    seconds[3] = [5_000_000]
    assert [name for _, name in watch.names(*played(seconds))] == ["+LatencySla[application]"]
    assert healths("LatencySla", [played([[]] * 11)[-1]], PROMISED) == [{"application": Health.UNKNOWN}]


def test_a_window_of_which_datagrams_were_dropped_is_not_good() -> None:
    watch = Watch(PROMISED)
    drops = sample("latency_window_dropped", "application", 3, "latency")
    rows = played(quiet(13))
    watch.see(*rows[:11], [*rows[11], drops])
    (one,) = [one for one in watch.conditions if one.rule == "LatencySla"]
    assert one.health is Health.UNKNOWN
    watch.see([*rows[12], drops._replace(value=0)])
    assert [one.health for one in watch.conditions if one.rule == "LatencySla"] == [Health.GOOD]


def test_what_is_bad_stays_bad_beside_drops() -> None:
    seconds = quiet(13)
    seconds[12].append(12_000_000)
    watch = Watch(PROMISED)
    drops = sample("latency_window_dropped", "application", 1, "latency")
    watch.see(*([*row, drops] for row in played(seconds)))
    assert "LatencySla[application]" in told(watch)


def test_a_sentinel_on_a_housekeeping_cpu_was_promised_nothing() -> None:
    def row(cpu: int) -> list[Sample]:
        return [
            sample("latency_max_ns", "sentinel", 4_000_000, "clock", cpus={cpu}),
            sample("latency_p99_9_ns", "sentinel", 1, "clock", cpus={cpu}),
        ]

    assert Watch(PROMISED).names(row(0)) == []
    assert Watch(PROMISED).names(row(2)) == [(0.0, "+LatencySla[sentinel]")]
