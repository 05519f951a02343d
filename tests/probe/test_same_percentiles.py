"""The comparison's own percentiles against the program's, which has another implementation of the same definition."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tunectl.compare.estimate import arrival_percentile, gap_percentile, sample
from tunectl.probe.document import read_document
from tunectl.shapes import Jitter

from .conftest import GAPS_S


@pytest.mark.pins
@pytest.mark.parametrize("events", ["65536", "3"])
def test_percentiles_are_those_of_the_program(
    jitter: Callable[..., dict[str, Any]], cpu: int, tmp_path: Path, events: str
) -> None:
    document = jitter("--cpus", cpu, "--duration", GAPS_S, "--events", events)
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    result = read_document(path).result
    assert isinstance(result, Jitter)
    run = sample(result, result.cpus, 0)
    (measured,) = result.cpus
    within = max(measured.interruptions and document["cpus"][0]["percentile_error_ppm"] / 1e6, 1e-6)
    for nines, ns in measured.gap_ns.items():
        found = gap_percentile(run, 1 - float(nines) / 100, 0.95)
        assert (found.value if found else 0) == pytest.approx(ns, rel=within, abs=1.5)
    for nines, ns in measured.arrival_ns.items():
        share = 1 - float(nines) / 100
        # a bucket's width of error in every length moves the wait by as much of the longest
        slack = 1.5 + within * measured.max_ns
        assert arrival_percentile(run, share, 0.95).value == pytest.approx(ns, abs=slack)
