"""Memory does not grow with the cycles; tests/bench/bench_monitor_memory.py runs 100,000 of them."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.bench_monitor_memory import TOGGLE, cycles, resident

pytestmark = pytest.mark.slow

WARM, MORE = 5 * TOGGLE, 6 * TOGGLE  # the same moment between two alerts


@pytest.fixture(autouse=True)
def _as_python_collects() -> Iterator[None]:
    """Not as seldom as the other tests of this process do (tests/conftest.py)."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_memory_is_flat(tmp_path: Path) -> None:
    """Counted in Python's own blocks, which costs nothing; what is too large for a block shows in the resident size."""
    run = cycles(tmp_path, WARM + MORE + 1)
    for _ in range(WARM):
        next(run)
    gc.collect()
    blocks, size = sys.getallocatedblocks(), resident()
    transitions = [next(run) for _ in range(MORE)]
    gc.collect()
    grown_blocks, grown_bytes = sys.getallocatedblocks() - blocks, resident() - size
    run.close()
    assert transitions[-1] - transitions[0] > 10  # alerts came and went meanwhile
    # The last looks are kept and some values in them are new objects: one or two a cycle. A look is a thousand.
    assert grown_blocks < 5 * MORE, grown_blocks
    assert grown_bytes < 1_500_000, grown_bytes
