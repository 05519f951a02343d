"""The roles that measure, on this machine itself: a recorded host has no CPU to spin on."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.ansible.conftest import Play
from tests.conftest import TUNECTL
from tests.probe.samples import raw_cpu, raw_run

pytestmark = [pytest.mark.slow, pytest.mark.alone]

PLAYBOOK = """
- hosts: tunectl
  gather_facts: false
  environment: "{{ tunectl_environment }}"
  tasks:
    - ansible.builtin.import_role:
        name: tunectl.host.tunectl_probe
"""


LOOSE = "[budget]\nmax_ns = 4.9e8\np99_9_ns = 4.9e8\ninterruptions_per_s = 9e8\n"
REQUIRED = {"tunectl_probe_require_budget": True}
# host -> (its profile, its host file's budget, variables, what the role says; "" where it is content)
HOSTS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "kept": ("mine.toml", LOOSE, REQUIRED, ""),
    "broken": ("low-latency", "[budget]\nmax_ns = 1\n", {}, "the budget is broken: "),
    "without": ("mine.toml", "", {}, ""),
    "required": ("mine.toml", "", REQUIRED, "the budget is not-judged: "),
}


def undisturbed(below: Path, cpu: int) -> Path:
    """A tunectl-probe that found this CPU quiet for 10 s: this machine's own may be too busy for any limit."""
    program = below / "tunectl-probe"
    program.write_text(f"#!{sys.executable}\nprint({json.dumps(raw_run(raw_cpu(cpu)))!r})\n")
    program.chmod(0o755)
    return program


def test_results_are_fetched_and_budgets_asserted(play: Play, tmp_path: Path) -> None:
    """A fifth of a second on this machine's last CPU for each, one after the other."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("one CPU: none to spin on that is not the housekeeping one")
    playbook = tmp_path / "probe.yml"
    playbook.write_text(PLAYBOOK)
    (tmp_path / "mine.toml").write_text('description = "no limit at all"\n')
    hosts: dict[str, Any] = {}
    for name, (profile, budget, variables, _) in HOSTS.items():
        host = tmp_path / f"{name}.toml"
        host.write_text(f'profile = "{profile}"\nisolated = "{cpus[-1]}"\nallow_split_siblings = true\n{budget}')
        environment = {"TUNECTL_HOST": str(host), "TUNECTL_PROGRAM": str(TUNECTL)}
        words = {"tunectl_probe_duration_s": 0.2, "tunectl_probe_folder": str(tmp_path / "results"), **variables}
        hosts[name] = {"tunectl_environment": environment, **words}
    hosts["kept"]["tunectl_environment"]["TUNECTL_PROBE"] = str(undisturbed(tmp_path, cpus[-1]))
    done = play(playbook, hosts, "--forks", "1")
    assert done.code == 2, done.out
    for name, (_, _, _, said) in HOSTS.items():
        assert (done.counts(name)["changed"], done.counts(name)["failed"]) == (0, 1 if said else 0), done.out
        assert not said or said in done.said(name), done.said(name)
        document = json.loads((tmp_path / f"results/{name}.json").read_text())
        assert document["schema"] == "tunectl.probe.jitter/1"
