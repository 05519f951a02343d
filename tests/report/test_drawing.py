"""The text drawings: comparison, histogram, sparklines; and what a terminal without UTF-8 is shown."""

from __future__ import annotations

import copy
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.compare.runs import cpu_of, document, simulated, steady
from tests.report.documents import AT, HOST, body
from tests.report.documents import document as sample
from tunectl.model import Document
from tunectl.report import render
from tunectl.report.charts import Slice, timeline
from tunectl.report.escape import encodable
from tunectl.report.figures import plain


def lines(name: str, made: object, width: int = 80, verbose: int = 0) -> list[str]:
    assert isinstance(made, dict)
    return render(Document(name, HOST, AT, made, (), verbose), "text", width=width).splitlines()


def test_compare_fits_and_says_what_is_significant() -> None:
    shown = lines("compare", body("compare"))
    assert shown[0].startswith("before: before.json · h · Linux 6.12 · ")
    (header, *_) = [line for line in shown if "ratio" in line and "95% bounds" in line]
    assert header.split() == ["before", "after", "ratio", "95%", "bounds"]
    (rate, *_) = [line for line in shown[shown.index("CPU 2") :] if line.startswith("  interruptions ")]
    assert rate.endswith("lower")
    (rate, *_) = [line for line in shown[shown.index("CPU 3") :] if line.startswith("  interruptions ")]
    assert rate.endswith(("n.s.", "not significant"))
    assert "  - only after: this is a virtual machine" in shown
    assert [line for line in shown if line.startswith("not significant (n.s.): the 95% bounds")]


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
    shown = lines("probe.jitter", document(quiet))
    (longest,) = [line for line in shown if line.strip().startswith("CPU 2 longest")]
    drawing = longest.split("longest ")[1]
    assert drawing.count("█") == 1
    assert abs(drawing.index("█") / len(drawing) - 0.505) < 0.02
    assert any("longest gap: ▁ 1 µs to █ 900 µs" in line for line in shown)


def test_a_strip_does_not_guess_what_was_not_listed() -> None:
    cpu = cpu_of(steady(100_000_000, 1_000, 10.0), 10.0)
    cut = {**cpu, "events": cpu["events"][:50], "events_lost": cpu["interruptions"] - 50}
    (longest,) = [line for line in lines("probe.jitter", document(cut)) if line.strip().startswith("CPU 2 longest")]
    assert 0.45 < longest.count("?") / len(longest.split("longest ")[1]) < 0.55
    (longest,) = [line for line in lines("probe.jitter", document(cpu)) if line.strip().startswith("CPU 2 longest")]
    assert "?" not in longest


def test_no_strip_of_a_run_without_gaps_or_times() -> None:
    none = cpu_of([], 10.0)
    assert not [line for line in lines("probe.jitter", document(none)) if "over time" in line]
    cpu = cpu_of(steady(100_000_000, 1_000, 10.0), 10.0)
    unlisted = {**cpu, "events": [], "events_lost": cpu["interruptions"]}
    assert not [line for line in lines("probe.jitter", document(unlisted)) if "over time" in line]


def test_the_series_is_used_where_the_list_was_full() -> None:
    cpu = cpu_of(steady(100_000_000, 1_000, 10.0), 10.0)
    intervals = [[10, 500_000_000, 4_000_000] if at == 3 else [10, 10_000, 1_000] for at in range(10)]
    series = {"tsc_start": 1000, "interval_s": 1, "intervals": intervals}
    cut = {**cpu, "events": [], "events_lost": cpu["interruptions"], "series": series}
    assert timeline(document(cut), cut, 60) == [Slice(4e6, 0.5) if at == 3 else Slice(1e3, 1e-5) for at in range(10)]
    assert len(timeline(document(cut), cut, 4)) == 4
    short = {**cut, "duration_ns": 9_500_000_000}  # half an interval: the same time taken is twice the share
    assert timeline(document(short), short, 60)[-1] == Slice(1e3, 2e-5)
    sliver = {**cut, "duration_ns": 9_001_000_000}  # too little to be drawn as wide as the others
    assert len(timeline(document(sliver), sliver, 60)) == 9
    assert timeline(document(sliver), sliver, 60)[-1] == Slice(1e3, 20_000 / 1_001_000_000)


@given(st.lists(st.tuples(st.integers(0, 9_000_000_000), st.integers(1, 900_000_000)), max_size=30), st.integers(1, 90))
def test_a_timeline_loses_no_time(gaps: list[tuple[int, int]], slices: int) -> None:
    apart = [gap for at, gap in enumerate(sorted(gaps)) if at == 0 or gap[0] > sum(sorted(gaps)[at - 1])]
    cpu = cpu_of(apart, 10.0)
    made = timeline(document(cpu), cpu, slices)
    known = [one for one in made if one]
    assert len(known) == slices
    assert max(one.longest_ns for one in known) == max((ns for _, ns in apart), default=0)
    overlapping = any(a[0] + a[1] > b[0] for a, b in pairwise(apart))
    if not overlapping:
        assert sum(one.stolen for one in known) * 1e10 / slices == pytest.approx(sum(ns for _, ns in apart), rel=1e-6)


def test_the_histogram_says_what_took_the_time_and_gathers_what_is_empty() -> None:
    cpu = cpu_of([*steady(10_000_000, 300, 10.0), (5_000_500_000, 30_000_000)], 10.0)
    shown = lines("probe.jitter", document(cpu))
    (short,) = [line for line in shown if line.strip().startswith("200 ns to 500 ns")]
    assert short.split()[5:8] == ["999", "1.0", "%"] or short.split()[5:8] == ["1,000", "1.0", "%"]
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
