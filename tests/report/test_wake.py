"""The page of `probe wake`: the matrix, what was left out, and 80 columns whatever was asked for."""

import itertools
from typing import Any

import pytest

from tests.report.documents import body, document
from tunectl.report import render


def page(made: dict[str, Any], verbose: int = 0) -> list[str]:
    return render(document("probe.wake", **made)._replace(verbose=verbose), "text", width=80).splitlines()


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
    # P99, longest, speed-up; and median, CPU use
    for verbose, tables in ((0, 3), (1, 5)):
        lines = page(matrix(idles), verbose)
        assert [line for line in lines if len(line) > 80] == []
        for idle in idles:
            assert sum(f" {idle:g} ms" in line for line in lines) >= tables


def test_nothing_measured_is_no_matrix() -> None:
    cells = [{**cell, "n": 0, "reason": "interrupted"} for cell in body("probe.wake")["cells"]]
    lines = page({"cells": cells, "speedups": []})
    assert not {"P99", "Longest"} & set(lines)
    assert any("interrupted" in line for line in lines)
    assert "  interrupted" in lines[:3]
    assert page({"cells": [], "speedups": []})[0].startswith("NO RESULT  0 cases: from CPU - to CPU -")
