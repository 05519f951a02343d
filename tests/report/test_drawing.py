"""The text drawings: comparison, histogram, sparklines; and what a terminal without UTF-8 is shown."""

import copy
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.compare.runs import cpu_of, document, simulated, steady
from tests.report.documents import AT, HOST, body
from tests.report.documents import document as sample
from tunectl.model import Document
from tunectl.report import charts, render
from tunectl.report.charts import Slice
from tunectl.report.escape import encodable
from tunectl.report.figures import change_of
from tunectl.shapes import Bounds, Jitter, Row, typed
from tunectl.wording import plain


def lines(name: str, made: object, width: int = 80, verbose: int = 0) -> list[str]:
    assert isinstance(made, dict)
    return render(Document(name, HOST, AT, made, (), verbose), "text", width=width).splitlines()


def ratio(value: float | None, low: float | None, high: float | None, measure: str = "max_ns") -> tuple[str, str]:
    return change_of(Row(measure, None, None, None, Bounds(value, low, high), ""))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (ratio(0.0037, 0.0033, 0.0042), ("270 times shorter", "238 to 303 times shorter")),
        (ratio(270, 200, 350, "interruptions_per_s"), ("270 times more", "200 to 350 times more")),
        (ratio(0.87, 0.8, 0.95, "stolen_ppm"), ("13 % less", "5 to 20 % less")),
        (ratio(1.05, 0.9, 1.2), ("5 % longer", "10 % less to 20 % more")),
        (ratio(1, None, None), ("equal", "")),
        (ratio(0, 0, 0), ("down to 0", "")),
        (ratio(0, 0, 0.25), ("down to 0", "at least 4 times shorter")),
        (ratio(None, 4, None), ("up from 0", "at least 4 times longer")),
        (ratio(3, 0.5, None), ("3 times longer", "at most 2 times shorter")),
        (ratio(3, 0.5, 9), ("3 times longer", "2 times less to 9 times more")),
        (ratio(4.3, 0.98, 18.2), ("4.3 times longer", "1.02 times less to 18.2 times more")),
        (ratio(1.1, 0.9998, 1.2), ("10 % longer", "equal to 20 % more")),
        (ratio(3, 0, None), ("3 times longer", "unknown")),
    ],
)
def test_a_ratio_in_words(made: tuple[str, str], said: tuple[str, str]) -> None:
    assert made == said


@pytest.mark.parametrize(
    ("measure", "before", "after", "said"),
    [
        ("gap_ns", 7.604e6, 4.0649e6, "46.6 % shorter"),  # 7.6 ms, 4.06 ms
        ("interruptions_per_s", 197.449, 386.049, "95.9 % more"),  # 197/s, 386/s
        ("stolen_ppm", 1000.4, 2500.4, "2.5 times more"),
        ("stolen_ppm", 12_349.0, 23_451.0, "91.1 % more"),  # 1.23 %, 2.35 %
    ],
)
def test_the_figures_as_printed_divide_to_the_change(measure: str, before: float, after: float, said: str) -> None:
    first, second, change = (Bounds(value, None, None) for value in (before, after, after / before))
    assert change_of(Row(measure, None, first, second, change, ""))[0] == said


def test_more_detail_has_the_bounds_of_each_side() -> None:
    assert not [line for line in lines("compare", body("compare")) if "before over" in line]
    assert [line for line in lines("compare", body("compare"), verbose=1) if "before over" in line]


@given(st.floats(1e-12, 1e18))
def test_figures_are_short_and_right(value: float) -> None:
    text = plain(value)
    assert float(text.replace(",", "")) == pytest.approx(value, rel=0.006)
    assert len(text) <= 9 or value >= 1e7


def test_a_strip_shows_when() -> None:
    quiet = cpu_of([*steady(100_000_000, 1_000, 10.0), (5_050_000_000, 900_000)], 10.0)
    shown = lines("probe.jitter", document(quiet), verbose=1)
    (longest,) = [line for line in shown if line.strip().startswith("CPU 2 longest")]
    drawing = longest.split("longest ")[1]
    assert drawing.count("█") == 1
    assert abs(drawing.index("█") / len(drawing) - 0.505) < 0.02
    assert any("longest gap: ▁ 1 µs to █ 900 µs" in line for line in shown)


def test_a_strip_does_not_guess_what_was_not_listed() -> None:
    cpu = cpu_of(steady(100_000_000, 1_000, 10.0), 10.0)
    cut = {**cpu, "events": cpu["events"][:50], "events_lost": cpu["interruptions"] - 50}
    long = {**cut, "events": [*cut["events"], cpu["events"][-1]], "complete_until_ns": 5_000_000_000}
    for some in (cut, long | {"events_lost": cut["events_lost"] - 1}):
        (longest,) = [line for line in lines("probe.jitter", document(some), verbose=1) if "CPU 2 longest" in line]
        assert 0.45 < longest.count("?") / len(longest.split("longest ")[1]) < 0.55
    (longest,) = [
        line for line in lines("probe.jitter", document(cpu), verbose=1) if line.strip().startswith("CPU 2 longest")
    ]
    assert "?" not in longest


def test_no_strip_of_a_run_without_gaps_or_times() -> None:
    none = cpu_of([], 10.0)
    assert not [line for line in lines("probe.jitter", document(none), verbose=1) if "over time" in line]
    cpu = cpu_of(steady(100_000_000, 1_000, 10.0), 10.0)
    unlisted = {**cpu, "events": [], "events_lost": cpu["interruptions"]}
    assert not [line for line in lines("probe.jitter", document(unlisted), verbose=1) if "over time" in line]


def test_the_series_is_used_where_the_list_was_full() -> None:
    cpu = cpu_of(steady(100_000_000, 1_000, 10.0), 10.0)
    intervals = [[10, 500_000_000, 4_000_000] if at == 3 else [10, 10_000, 1_000] for at in range(10)]
    series = {"tsc_start": 1000, "interval_s": 1, "intervals": intervals}
    cut = {**cpu, "events": [], "events_lost": cpu["interruptions"], "series": series}
    assert timeline(cut, 60) == [Slice(4e6, 0.5) if at == 3 else Slice(1e3, 1e-5) for at in range(10)]
    assert len(timeline(cut, 4)) == 4
    short = {**cut, "duration_ns": 9_500_000_000}  # half an interval: the same time taken is twice the share
    assert timeline(short, 60)[-1] == Slice(1e3, 2e-5)
    sliver = {**cut, "duration_ns": 9_001_000_000}  # too little to be drawn as wide as the others
    assert len(timeline(sliver, 60)) == 9
    assert timeline(sliver, 60)[-1] == Slice(1e3, 20_000 / 1_001_000_000)


def timeline(cpu: dict[str, Any], slices: int) -> list[Slice | None]:
    result = typed(document(cpu), Jitter)
    return charts.timeline(result, result.cpus[0], slices)


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "series"])
def test_a_run_that_was_stopped_for_3_of_10_seconds_is_black_for_3_of_10(listed: bool) -> None:
    stop = 3_000_000_000
    cpu = cpu_of([(2_000_000_000, 200), (4_000_000_000, stop)], 10.0)
    intervals = [
        [1, 1_000_000_000, stop] if at == 4 else [0, 10**9, stop] if at in (5, 6) else [0, 0, 0] for at in range(10)
    ]
    series = {"tsc_start": 1000, "interval_s": 1, "intervals": intervals}
    made = timeline(cpu, 60) if listed else timeline({**cpu, "events": [], "series": series}, 60)
    black = [one for one in made if one and one.longest_ns == stop and one.stolen == pytest.approx(1)]
    assert len(black) / len(made) == pytest.approx(0.3)
    shown = [
        line.split(" ", 3)[-1]
        for line in lines("probe.jitter", document(cpu), verbose=1)
        if line.strip().startswith("stolen ")
    ]
    assert shown
    assert 0.28 < max(line.count("█") / len(line.rstrip()) for line in shown) < 0.36


@given(st.lists(st.tuples(st.integers(0, 9_000_000_000), st.integers(1, 900_000_000)), max_size=30), st.integers(1, 90))
def test_a_timeline_loses_no_time(gaps: list[tuple[int, int]], slices: int) -> None:
    apart = [gap for at, gap in enumerate(sorted(gaps)) if at == 0 or gap[0] > sum(sorted(gaps)[at - 1])]
    cpu = cpu_of(apart, 10.0)
    made = timeline(cpu, slices)
    known = [one for one in made if one]
    assert len(known) == slices
    assert max(one.longest_ns for one in known) == max((ns for _, ns in apart), default=0)
    overlapping = any(a[0] + a[1] > b[0] for a, b in pairwise(apart))
    stolen_ns = sum(one.stolen for one in known) * 1e10 / slices
    assert overlapping or stolen_ns == pytest.approx(sum(ns for _, ns in apart), rel=1e-6)


def test_the_histogram_says_what_took_the_time_and_gathers_what_is_empty() -> None:
    cpu = cpu_of([*steady(10_000_000, 300, 10.0), (5_000_500_000, 30_000_000)], 10.0)
    shown = lines("probe.jitter", document(cpu), verbose=1)
    (short,) = [line for line in shown if line.strip().startswith("200 ns to 500 ns")]
    count, share, unit = short.split()[5:8]
    assert (count in ("999", "1,000"), share in ("0.989", "0.99"), unit) == (True, True, "%")
    assert [line.split() for line in shown if line.strip().startswith("500 ns to 20 ms")] == [
        ["500", "ns", "to", "20", "ms", "0"]
    ]


def test_ascii_keeps_every_column() -> None:
    made = copy.deepcopy(document(cpu_of(simulated(1, 10.0), 10.0)))
    for text in (
        render(Document("probe.jitter", HOST, AT, made), "text", width=80),
        render(sample("compare"), "text", width=80),
    ):
        plain_text = encodable(text, "ascii")
        assert plain_text.isascii()
        assert "\\u" not in plain_text
        assert [len(line) for line in plain_text.splitlines()] == [cell_len(line) for line in text.splitlines()]
        assert encodable(text, "utf-8") == text
    assert encodable("日", "ascii") == "\\u65e5"
