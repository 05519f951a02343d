"""check.own_services: what systemd says of the monitor and of the repair, where they are installed."""

from pathlib import Path

import pytest

from tests.checks.conftest import Judge
from tests.knobs.test_ourboot import NEVER, answered, shown
from tests.knobs.test_unitfile import linked
from tunectl.model import Finding

pytestmark = pytest.mark.slow

CHECK = "test_own_services.py"
WANTS = "etc/systemd/system/multi-user.target.wants"
MONITOR, WAITING, REPAIR = "tunectl-monitor.service", "tunectl-repair.path", "tunectl-repair.service"
UNTRIED = shown(REPAIR, **{**NEVER, "UnitFileState": "static"})


def judged(root: Path, judge: Judge, *units: str) -> Finding:
    for name in (MONITOR, WAITING):
        linked(f"{WANTS}/{name}", f"/etc/systemd/system/{name}")(root)
    answered(*units)(root)
    finding: Finding = judge(root, {2, 3}, CHECK)["check.own_services"]
    return finding


@pytest.mark.parametrize(
    ("units", "observed", "again"),
    [
        ((shown(MONITOR, ActiveState="failed", Result="exit-code", ExecMainStatus="1"),), "failed", MONITOR),
        ((shown(MONITOR, **NEVER),), "not run", MONITOR),
        ((shown(MONITOR), shown(WAITING, ActiveState="inactive", ConditionResult="no")), "conditional", WAITING),
        ((shown(MONITOR), shown(WAITING), shown(REPAIR, ActiveState="failed", Result="timeout")), "failed", REPAIR),
    ],
)
def test_a_service_that_did_not_do_its_work_is_named(
    lab4: Path, judge: Judge, units: tuple[str, ...], observed: str, again: str
) -> None:
    finding = judged(lab4, judge, *units)
    assert (finding.outcome, finding.observed) == ("drifted", f"{again} {observed}")
    assert str(finding.fix) == f"sudo systemctl restart {again}"


@pytest.mark.parametrize(
    "units",
    [
        (shown(MONITOR), shown(WAITING), UNTRIED),
        (shown(MONITOR, **NEVER, Job="7"), shown(WAITING)),  # the boot goes on
        (shown(MONITOR, ActiveState="inactive"), shown(WAITING)),  # an operator stopped it
        (shown(REPAIR, ActiveState="failed", Result="exit-code", ExecMainStatus="3"),),  # drift is named by itself
    ],
)
def test_services_that_did_it_are_silent(lab4: Path, judge: Judge, units: tuple[str, ...]) -> None:
    assert judged(lab4, judge, *units).outcome == "compliant"


def test_where_nobody_was_asked_there_is_nothing_to_say(lab4: Path, judge: Judge) -> None:
    assert judged(lab4, judge).outcome == "unsupported"
    for name in (MONITOR, WAITING):
        (lab4 / WANTS / name).unlink()
    assert judge(lab4, {2, 3}, CHECK)["check.own_services"].outcome == "compliant"
