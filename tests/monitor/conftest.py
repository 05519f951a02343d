"""A large stock host to watch: one tree for all of a worker's tests."""

from pathlib import Path

import pytest

from tests.hosts.builder import build_named
from tests.trees import Lent


@pytest.fixture(scope="session")
def _lend_xeon(tmp_path_factory: pytest.TempPathFactory) -> Lent:
    below = tmp_path_factory.mktemp("lent")
    return Lent(build_named(below / "original", "xeon2s", tuned_boot=frozenset({2, 18})), below / "xeon2s")


@pytest.fixture
def lent_xeon(_lend_xeon: Lent) -> Path:
    """xeon2s with CPUs 2 and 18 isolated, for one test at a time; a test that needs two builds its own."""
    return _lend_xeon()
