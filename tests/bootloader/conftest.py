"""A place on a disk, for programs that ask which disk a file is on."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """An empty folder as tmp_path is, but never in memory, of which grub-probe cannot make a disk."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        yield Path(place)
