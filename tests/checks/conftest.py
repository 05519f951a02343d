"""What the tests of the shipped checks share: a running fake host, and one check judged on it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.checking.fake_kernel import Clock, FakeKernel
from tests.hosts.builder import build_named
from tests.trees import Lent
from tunectl.checking.runner import run_checks, shipped_checks
from tunectl.cpulist import CpuSet
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.sysroot import Sysroot
from tunectl.model import Finding, Scope, Trading

WINDOW_S = 0.2  # of the running host; of a recorded one ten times as long, on a clock that nobody waits for
Judge = Callable[..., dict[str, Finding]]


def scope_of(root: Sysroot, isolated: CpuSet) -> Scope:
    facts = read_scope_facts(root)
    return Scope(facts.present, facts.online, isolated, facts.nr_cpus)


def lent(factory: pytest.TempPathFactory, name: str, tuned_boot: CpuSet) -> Lent:
    below = factory.mktemp("lent")
    return Lent(build_named(below / "original", name, tuned_boot=tuned_boot), below / "host")


@pytest.fixture(scope="session")
def _lend_lab4(tmp_path_factory: pytest.TempPathFactory) -> Lent:
    return lent(tmp_path_factory, "lab4", frozenset({2, 3}))


@pytest.fixture
def lab4(_lend_lab4: Lent) -> Path:
    """Four CPUs without SMT, booted with 2-3 isolated and nohz_full. For one test at a time."""
    return _lend_lab4()


@pytest.fixture(scope="session")
def _lend_xeon(tmp_path_factory: pytest.TempPathFactory) -> Lent:
    return lent(tmp_path_factory, "xeon2s", frozenset({2, 3, 18, 19}))


@pytest.fixture
def xeon(_lend_xeon: Lent) -> Path:
    """CPU n and n+16 share a core; 2, 3 and their siblings are isolated. For one test at a time."""
    return _lend_xeon()


@pytest.fixture
def judge() -> Judge:
    """Runs one shipped check over a host, and hands back its findings by target.

    `running`: what a FakeKernel of that host does meanwhile. Without it a recorded host stands still.
    """

    def run(
        root: Path | str,
        isolated: set[int],
        check: str,
        settings: Mapping[str, Any] | None = None,
        interfaces: tuple[str, ...] = (),
        trading: Sequence[Trading] = (),
        live_s: float = WINDOW_S,
        **running: Any,
    ) -> dict[str, Finding]:
        host = Sysroot(str(root))
        scope, paths = scope_of(host, frozenset(isolated)), [str(shipped_checks() / check)]
        kernel = FakeKernel(Path(root), sorted(scope.online), **running) if running else Clock()
        with nullcontext() if host.live or Clock.running else kernel:  # a test's own FakeKernel has a clock already
            findings = run_checks(
                host,
                scope,
                paths=paths,
                window_s=live_s if host.live else 10 * WINDOW_S,
                settings=settings,
                interfaces=interfaces,
                trading=trading,
            )
        return {finding.target: finding for finding in findings}

    return run
