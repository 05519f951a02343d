"""This machine under watch, with a clock that stands until it is moved."""

import os
from pathlib import Path

import pytest

from tests.cli.places import this_host_file
from tunectl.host.sysroot import Sysroot
from tunectl.monitor.watched_host import Lasting, WatchedHost
from tunectl.tuning.inspection import open_inspection


class Live:
    """This machine as a watched host; `pass_time` moves the clock."""

    def __init__(self, place: Path, more: str, lasting: Lasting | None = None, clock: float = 1000.0) -> None:
        if len(os.sched_getaffinity(0)) < 2:
            pytest.skip("one CPU only: none can be isolated")
        host_file = this_host_file(place, more)
        self.clock = clock
        inspection = open_inspection(Sysroot(), str(host_file), str(place / "state"), (), "2026-11-21")
        self.watched_host = WatchedHost(inspection, now=lambda: self.clock, lasting=lasting)
        self.watched_host.begin()

    def pass_time(self, seconds: float) -> None:
        """The next snapshot is so much later."""
        self.clock += seconds
        self.watched_host.begin()
