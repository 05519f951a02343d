"""The monitor and `tunectl verify` say the same of every row of the table, on tuned hosts and on bare ones."""

import dataclasses
from pathlib import Path

import pytest

from tests.hosts.builder import build, named
from tests.monitor.watched import TODAY
from tests.tuned import apply, inspection_on
from tunectl.cpulist import parse_cpulist
from tunectl.host.nonintrusive import DISTURBING
from tunectl.knobs import KNOBS
from tunectl.model import Finding, Outcome
from tunectl.monitor.model import Condition, Health
from tunectl.monitor.rules import RULES
from tunectl.monitor.rules.history import History, Limits
from tunectl.monitor.sources import take_snapshot
from tunectl.monitor.watched_host import WatchedHost

(RULE,) = [rule for rule in RULES if rule.name == "KnobDrift"]
SETTLED = (Outcome.COMPLIANT, Outcome.WAIVED, Outcome.REFUSED, Outcome.PENDING_REBOOT, Outcome.UNSUPPORTED)


def is_disturbing(name: str) -> bool:
    """Would the monitor have to interrupt an isolated CPU for it? Verify reads a recorded host whole."""
    driver = KNOBS[name].driver
    files = {path.rpartition("/")[2] for path in driver.describe()}
    return bool(files & DISTURBING)


def said(root: Path) -> dict[str, Condition]:
    """What the monitor says of each knob in its first look."""
    clock = [1000.0]
    inspection = inspection_on(root)._replace(today=TODAY)
    watched = WatchedHost(inspection, now=lambda: clock[0])
    history = History(Limits(isolated=inspection.config.scope.isolated))
    history.add(take_snapshot(watched))
    return {one.subject: one for one in RULE.judge(history)}


def check_agreement(root: Path) -> None:
    conditions = said(root)
    by_knob: dict[str, list[Finding]] = {}
    for finding in inspection_on(root).assess().findings:
        by_knob.setdefault(finding.knob, []).append(finding)
    assert conditions.keys() <= by_knob.keys()
    for knob, findings in by_knob.items():
        outcomes = {one.outcome for one in findings}
        condition = conditions.get(knob)
        if outcomes == {Outcome.UNSUPPORTED}:
            assert condition is None, knob
            continue
        assert condition is not None, knob
        if condition.health is Health.UNKNOWN:  # never without a reason
            assert condition.summary, knob
            assert is_disturbing(knob) or Outcome.UNREADABLE in outcomes, (knob, condition)
        elif is_disturbing(knob):
            continue
        elif Outcome.DRIFTED in outcomes:
            assert condition.health in (Health.BAD, Health.BETWEEN), knob
        elif outcomes <= set(SETTLED):
            assert condition.health is Health.GOOD, (knob, condition)


@pytest.mark.parametrize(("name", "cpus"), [("lab4", "2-3"), ("xeon2s", "4-7,20-23"), ("epyc", "12-15,28-31")])
@pytest.mark.parametrize("state", ["bare", "tuned"])
def test_the_monitor_says_of_every_row_what_verify_says(tmp_path: Path, name: str, cpus: str, state: str) -> None:
    isolated = parse_cpulist(cpus)
    booted = isolated if state == "tuned" else frozenset[int]()
    root = build(tmp_path / name, dataclasses.replace(named(name), tuned_boot=booted))
    host_file = root / "etc/tunectl/host.toml"
    host_file.parent.mkdir(parents=True, exist_ok=True)
    host_file.write_text(f'profile = "low-latency"\nisolated = "{cpus}"\n')
    if state == "tuned":
        apply(root)
    check_agreement(root)


def test_a_file_that_is_not_there_is_asked_for_before_anybody_could_be_disturbed(tmp_path: Path) -> None:
    """A host without energy_perf_bias: no row, no reading and no condition speaks of an interrupted CPU."""
    root = build(tmp_path / "lab4", dataclasses.replace(named("lab4"), tuned_boot=frozenset({2, 3})))
    host_file = root / "etc/tunectl/host.toml"
    host_file.parent.mkdir(parents=True, exist_ok=True)
    host_file.write_text('profile = "low-latency"\nisolated = "2-3"\n')
    assert not list(root.glob("sys/devices/system/cpu/cpu*/power/energy_perf_bias"))
    conditions = said(root)
    assert "cpufreq.energy_perf_bias" not in conditions
    assert not [one for one in conditions.values() if "would interrupt" in one.summary]
    power = root / "sys/devices/system/cpu/cpu2/power/energy_perf_bias"  # one CPU has it: then it would be disturbed
    power.write_text("6\n")
    assert "would interrupt CPU 2" in said(root)["cpufreq.energy_perf_bias"].summary
