"""What the tests of the shipped checks share: a running fake host, and one check judged on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.checking.fake_kernel import RUNNING
from tests.hosts.builder import build_named
from tunectl.checking.measure import STILL
from tunectl.checking.runner import run_checks, shipped_checks
from tunectl.cpulist import CpuSet
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.sysroot import Sysroot
from tunectl.model import Finding, Scope, Trading

WINDOW_S = 0.2
Judge = Callable[..., dict[str, Finding]]


def scope_of(root: Sysroot, isolated: CpuSet) -> Scope:
    facts = read_scope_facts(root)
    return Scope(facts.present, facts.online, isolated, facts.nr_cpus)


@pytest.fixture
def lab4(tmp_path: Path) -> Path:
    """Four CPUs without SMT, booted with 2-3 isolated and nohz_full; its own processes are taken away."""
    return build_named(tmp_path / "host", "lab4", tuned_boot=frozenset({2, 3}))


@pytest.fixture
def xeon(tmp_path: Path) -> Path:
    """CPU n and n+16 share a core; 2, 3 and their siblings are isolated."""
    return build_named(tmp_path / "host", "xeon2s", tuned_boot=frozenset({2, 3, 18, 19}))


@pytest.fixture
def judge() -> Judge:
    """Runs one shipped check over a host, and hands back its findings by target."""

    def run(
        root: Path | str,
        isolated: set[int],
        check: str,
        settings: Mapping[str, Any] | None = None,
        interfaces: tuple[str, ...] = (),
        trading: Sequence[Trading] = (),
    ) -> dict[str, Finding]:
        host = Sysroot(str(root))
        scope, paths = scope_of(host, frozenset(isolated)), [str(shipped_checks() / check)]
        for window_s in (WINDOW_S, 5 * WINDOW_S, 25 * WINDOW_S):
            findings = run_checks(
                host,
                scope,
                paths=paths,
                window_s=window_s,
                settings=settings,
                interfaces=interfaces,
                trading=trading,
            )
            # On a busy machine the fake kernel may not have had its turn: then it stood still, and not the host.
            if str(root) not in RUNNING or not any(STILL in finding.reason for finding in findings):
                break
        return {finding.target: finding for finding in findings}

    return run
