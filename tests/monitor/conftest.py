"""A large stock host to watch: one tree for all of a worker's tests."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.builder import build_named
from tests.trees import Lent
from tunectl.monitor import interrupt_table
from tunectl.monitor.sources import drift, hosttime, knobs, tuners


class _Free:
    """Python's time, by which no work takes any."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def thread_time(self) -> float:
        return 0.0

    monotonic = thread_time


@pytest.fixture(autouse=True)
def _looks_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """What costs much is looked at less often, and a share that takes long is ended.

    A watched host's clock moves when a test says so; what a look costs is the test machine's, which may stand still.
    """
    for module in (interrupt_table, drift, hosttime, knobs, tuners):
        monkeypatch.setattr(module, "time", _Free())


@pytest.fixture(scope="session")
def _lend_xeon(tmp_path_factory: pytest.TempPathFactory) -> Lent:
    below = tmp_path_factory.mktemp("lent")
    return Lent(build_named(below / "original", "xeon2s", tuned_boot=frozenset({2, 18})), below / "xeon2s")


@pytest.fixture
def lent_xeon(_lend_xeon: Lent) -> Path:
    """xeon2s with CPUs 2 and 18 isolated, for one test at a time; a test that needs two builds its own."""
    return _lend_xeon()
