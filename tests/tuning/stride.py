"""How many of the places of a walk are visited: each fifth; few in the quick ring; with TUNECTL_STRIDE=1 every one."""

import os

import pytest

from tests.conftest import in_quick_ring

STRIDE = int(os.environ.get("TUNECTL_STRIDE", "5"))
SAMPLED = pytest.param(41, id="sampled")  # its places are among those of stride 1
WALKED = pytest.param(STRIDE, id=f"every-{STRIDE}", marks=pytest.mark.long if STRIDE == 1 else pytest.mark.slow)
STRIDES = [SAMPLED if in_quick_ring() else WALKED]


def thinned(stride: int, by: int) -> int:
    """A wider stride, for a walk whose places are many and much alike; the long set visits every one all the same."""
    return stride if stride == 1 else by * stride
