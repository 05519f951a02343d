"""Places that nobody may enter, and a host nobody may change."""

from pathlib import Path

import pytest

from tests.conftest import LOW_LATENCY, write_host_file
from tests.hosts.builder import HostFactory


@pytest.fixture(scope="session")
def stock(host_root: HostFactory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """lab4 as delivered, with a host file: shared, for reading only."""
    root = host_root.fresh("lab4", tmp_path_factory.mktemp("stock"))
    write_host_file(root, LOW_LATENCY)
    return root


@pytest.fixture
def tuned(host_root: HostFactory, tmp_path: Path) -> Path:
    """lab4 booted with CPUs 2-3 isolated, with a host file: one's own, not applied yet."""
    root = host_root.fresh("lab4", tmp_path, tuned_boot=frozenset({2, 3}))
    write_host_file(root, LOW_LATENCY)
    return root
