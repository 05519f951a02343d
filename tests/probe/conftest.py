"""Builds tunectl-probe once a session, outside the source tree, and points the product at it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NATIVE = Path(__file__).parents[2] / "tunectl" / "probe" / "native"

Probe = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A freshly built tunectl-probe."""
    out = tmp_path_factory.mktemp("probe")
    done = subprocess.run(["make", "-C", str(NATIVE), f"OUT={out}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out / "tunectl-probe"


@pytest.fixture
def installed(program: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, found by tunectl.probe.runner."""
    monkeypatch.setenv("TUNECTL_PROBE", str(program))
    return program


@pytest.fixture
def cpu() -> int:
    """A CPU this process may use; the last, since the first is where the kernel does its own work."""
    return max(os.sched_getaffinity(0))


@pytest.fixture
def probe(program: Path) -> Probe:
    """Runs tunectl-probe with the given arguments."""

    def run(*arguments: object, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        argv = [*prefix, str(program), *map(str, arguments)]
        return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)

    return run


@pytest.fixture
def jitter(probe: Probe) -> Callable[..., dict[str, Any]]:
    """Runs `tunectl-probe jitter` and returns its document."""

    def run(*arguments: object, prefix: tuple[str, ...] = ()) -> dict[str, Any]:
        done = probe("jitter", *arguments, prefix=prefix)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    return run
