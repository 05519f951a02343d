"""Memory does not grow with the cycles; tests/bench/bench_monitor_memory.py runs 100,000 of them."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import pytest

from tests.bench.bench_monitor_memory import cycles

pytestmark = pytest.mark.slow

WARM, MORE = 200, 500


def test_memory_is_flat(tmp_path: Path) -> None:
    run = cycles(tmp_path, WARM + MORE + 1)
    for _ in range(WARM):
        next(run)
    tracemalloc.start()
    try:
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        edges = [next(run) for _ in range(MORE)]
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        run.close()
    assert edges[-1] - edges[0] > 15  # alerts came and went meanwhile
    # What was allocated before the start is unknown to tracemalloc: the looks that are kept replace older ones.
    assert after - before < 400_000, after - before
