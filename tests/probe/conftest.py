"""tunectl-probe as this tree builds it, and the product pointed at it."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import artefacts
from tunectl.probe.explain import explained

Probe = Callable[..., "subprocess.CompletedProcess[str]"]

# How long a probe measures in a test; before and after it takes some 60 ms more.
SHORT_S = 0.05  # what every document has
GAPS_S = 0.25  # with gaps in it: timer ticks, and threads that want the CPU


@pytest.fixture(scope="session")
def program() -> Path:
    """A tunectl-probe of this tree's sources."""
    return artefacts.program()


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
def pair() -> str:
    """Two CPUs this process may use, or twice the only one."""
    cpus = sorted(os.sched_getaffinity(0))
    return f"{cpus[0]},{cpus[-1]}"


@pytest.fixture
def hangups() -> Iterator[None]:
    """What the test starts hears a hangup, also where the tests themselves run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def probe(program: Path) -> Probe:
    """Runs tunectl-probe with the given arguments."""

    def run(*arguments: object, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        argv = [*prefix, str(program), *map(str, arguments)]
        return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)

    return run


@pytest.fixture
def jitter(probe: Probe) -> Callable[..., dict[str, Any]]:
    """Runs `tunectl-probe jitter` and returns what follows from its document.

    With --intrude: a thread that another test pins to the same CPU must not end this one's run (test_guard.py is
    about the runs without).
    """

    def run(*arguments: object, prefix: tuple[str, ...] = ()) -> dict[str, Any]:
        done = probe("jitter", "--intrude", *arguments, prefix=prefix)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return explained(json.loads(done.stdout))

    return run
