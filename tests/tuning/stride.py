"""How many of the places of a walk are visited: few, each fifth, or with TUNECTL_STRIDE=1 every one of them."""

from __future__ import annotations

import os

import pytest

STRIDE = int(os.environ.get("TUNECTL_STRIDE", "5"))
STRIDES = [
    pytest.param(41, id="sampled"),
    pytest.param(STRIDE, id=f"every-{STRIDE}", marks=[pytest.mark.long] if STRIDE == 1 else []),
]
