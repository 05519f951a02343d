"""The roles that measure, on this machine itself: a recorded host has no CPU to spin on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.ansible.conftest import Play
from tests.conftest import TUNECTL

pytestmark = [pytest.mark.slow, pytest.mark.alone]

PLAYBOOK = """
- hosts: tunectl
  gather_facts: false
  environment: "{{ tunectl_environment }}"
  tasks:
    - ansible.builtin.import_role:
        name: tunectl.host.tunectl_probe
"""


@pytest.fixture
def spun(play: Play, tmp_path: Path) -> Any:
    """Plays the role with a budget, for a fifth of a second on this machine's last CPU."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("one CPU: none to spin on that is not the housekeeping one")
    playbook = tmp_path / "probe.yml"
    playbook.write_text(PLAYBOOK)

    def run(budget: str, profile: str = "low-latency", **variables: Any) -> Any:
        host = tmp_path / "host.toml"
        host.write_text(f'profile = "{profile}"\nisolated = "{cpus[-1]}"\nallow_split_siblings = true\n{budget}')
        environment = {"TUNECTL_HOST": str(host), "TUNECTL_PROGRAM": str(TUNECTL)}
        words = {"tunectl_probe_duration_s": 0.2, "tunectl_probe_folder": str(tmp_path / "results"), **variables}
        return play(playbook, {"this": {"tunectl_environment": environment, **words}})

    return run


def test_the_probes_result_is_fetched_and_its_budget_asserted(spun: Any, tmp_path: Path) -> None:
    loose = "[budget]\nmax_ns = 6e10\np99_9_ns = 6e10\ninterruptions_per_s = 1e9\nstolen_ppm = 1e6\n"
    kept = spun(loose, tunectl_probe_duration_s=1, tunectl_probe_require_budget=True)
    assert (kept.code, kept.counts("this")["changed"]) == (0, 0), kept.out
    document = json.loads((tmp_path / "results/this.json").read_text())
    assert document["schema"] == "tunectl.probe.jitter/1"

    broken = spun("[budget]\nmax_ns = 1\n")
    assert broken.code == 2
    assert "the budget is broken: " in broken.said("this"), broken.said("this")


def test_a_host_without_a_budget_fails_only_where_one_is_required(spun: Any, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('description = "no limit at all"\n')
    assert spun("", str(mine)).code == 0
    wanted = spun("", str(mine), tunectl_probe_require_budget=True)
    assert wanted.code == 2
    assert "the budget is not-judged: " in wanted.said("this")
