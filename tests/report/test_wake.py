"""The page of `probe wake`: the matrix, what was left out, and 80 columns whatever was asked for."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.report.documents import body, document
from tests.report.pages import file
from tunectl.report import render


def page(made: dict[str, Any], width: int = 80) -> list[str]:
    return render(document("probe.wake", **made), "text", width=width).splitlines()


def matrix(idles: list[float]) -> dict[str, Any]:
    """A body with every mechanism at these idle times, all figures as wide as they get."""
    like = next(cell for cell in body("probe.wake")["cells"] if cell["n"])
    figures = dict.fromkeys(("50", "90", "95", "99", "99.9", "99.99"), 123_456)
    names = itertools.product(("channel", "eventfd", "udp"), ("block", "nonblock"), idles)
    cells = [
        {**like, "mechanism": mechanism, "way": way, "idle_ms": idle, "percentiles_ns": figures, "max_ns": 999_499_000}
        for mechanism, way, idle in names
    ]
    gains = [
        {**cell, "over": "block", "mean": 1.0, "max": 1.0, "percentiles": dict.fromkeys(figures, 12345.678)}
        for cell in cells
        if cell["way"] == "nonblock"
    ]
    return {"cells": cells, "speedups": gains}


@pytest.mark.parametrize("idles", [[0], [0, 1, 10, 100], [0.001, 0.01, 0.1, 1, 10, 100, 1000, 10000, 60000]])
def test_any_number_of_idle_times_fits(idles: list[float]) -> None:
    lines = page(matrix(idles))
    assert [line for line in lines if len(line) > 80] == []
    for idle in idles:
        assert sum(f" {idle:g} ms" in line for line in lines) >= 5  # median, P99, longest, CPU use, speed-up


def test_the_matrix() -> None:
    lines = page(matrix([0, 100]))
    at = lines.index("Median")
    assert lines[at + 1].split() == ["0", "ms", "100", "ms"]
    assert lines[at + 2].split() == ["channel", "block", "123", "µs", "123", "µs"]
    assert lines[at + 3].split() == ["nonblock", "123", "µs", "123", "µs"]
    assert [lines.count(title) for title in ("Median", "P99", "Longest", "CPU use of the receiver")] == [1] * 4
    at = lines.index("Speed-up of spinning over sleeping: median / P99")
    assert lines[at + 3].split() == ["channel", "nonblock", "12346x", "/", "12346x", "12346x", "/", "12346x"]


def test_each_reason_is_said_once_with_its_cells() -> None:
    lines = page({})
    at = lines.index("Not measured")
    text = " ".join(line.strip() for line in lines[at:])
    assert "- channel busy-poll: no network device feeds it" in text
    assert text.count("NAPI id is 0") == 1


def test_nothing_measured_is_no_matrix() -> None:
    cells = [{**cell, "n": 0, "reason": "interrupted"} for cell in body("probe.wake")["cells"]]
    lines = page({"cells": cells, "speedups": []})
    assert "Median" not in lines
    assert any("interrupted" in line for line in lines)
    assert page({"cells": [], "speedups": []})[0].startswith("from CPU - to CPU -")


def test_histograms_are_for_those_who_ask() -> None:
    quiet = document("probe.wake")
    assert "messages by length" not in render(quiet, "text")
    assert "messages by length" in render(quiet._replace(verbose=1), "text")


def test_a_void_cell_is_shown_as_void_and_never_with_a_figure() -> None:
    (first, *others) = body("probe.wake")["cells"]
    empty = dict.fromkeys(("min_ns", "mean_ns", "percentiles_ns", "max_ns", "after_send_ns", "send_call_ns", "late_ns"))
    void = {**first, **empty, "n": 0, "histogram": [], "is_void": True, "reason": "void: the spinner had 14 %"}
    made = {**body("probe.wake"), "cells": [void, *others], "speedups": []}
    lines = page(made)
    at = lines.index("Median")
    assert lines[at + 2].split()[:3] == [first["mechanism"], first["way"], "void"]
    assert lines[lines.index("Void: measured, and no result") + 1].endswith("0 ms: the spinner had 14 %")
    html = render(document("report", files=[file("probe.wake", made)], compare=None), "html")
    assert html.count("<td>void</td>") == 1
    assert "Measured, and no result (void): 1<" in html


@pytest.mark.parametrize(("has_warm_sender", "said"), [(True, "a warm sender"), (False, "a cold sender")])
def test_the_page_says_which_sender_it_was(has_warm_sender: bool, said: str) -> None:
    assert any(line.startswith(said) for line in page({"has_warm_sender": has_warm_sender}))
