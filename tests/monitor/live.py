"""This machine under watch, with a clock that stands until it is moved."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tunectl.host.sysroot import Sysroot
from tunectl.monitor.watched_host import Eyes
from tunectl.tuning.session import open_session


class Live:
    """Its eyes; `pass_time` moves the clock."""

    def __init__(self, place: Path, more: str) -> None:
        if len(os.sched_getaffinity(0)) < 2:
            pytest.skip("one CPU only: none can be isolated")
        host_file = place / "host.toml"
        isolated = max(os.sched_getaffinity(0))
        host_file.write_text(f'profile = "low-latency"\nisolated = "{isolated}"\nallow_split_siblings = true\n{more}')
        self.clock = 1000.0
        session = open_session(Sysroot(), str(host_file), str(place / "state"), (), "2026-11-21")
        self.eyes = Eyes(session, now=lambda: self.clock)
        self.eyes.begin()

    def pass_time(self, seconds: float) -> None:
        """The next look is so much later."""
        self.clock += seconds
        self.eyes.begin()
