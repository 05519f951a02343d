"""A monitor that runs reads the host file again after apply and restore; one that does not run is not started."""

from pathlib import Path

import pytest

from tests.monitor.receivers.samples import fired
from tests.tuned import apply, restore
from tunectl.host.sysroot import Sysroot
from tunectl.monitor.assembly import Places
from tunectl.monitor.repair import Repair
from tunectl.monitor.watched_host import Lasting
from tunectl.tuning.commands import COMMANDS, MONITOR, Notified, run_commands
from tunectl.tuning.transaction import _old_settings
from tunectl.units import APPLY, DEADLINE

RELOAD = "/usr/bin/systemctl try-reload-or-restart tunectl-monitor.service"


@pytest.mark.parametrize("groups", ["sys/fs/cgroup/system.slice", "sys/fs/cgroup/systemd/system.slice"])
def test_a_monitor_that_runs_is_told_after_apply_and_after_restore(lab4: Path, groups: str) -> None:
    (lab4 / groups / MONITOR).mkdir(parents=True)
    assert apply(lab4).applied.not_run.count(RELOAD) == 1
    nothing_left = apply(lab4).applied  # the host file may have another waiver, budget or receiver
    assert (nothing_left.results, nothing_left.not_run) == ([], [RELOAD])
    assert restore(lab4).outcome.not_run.count(RELOAD) == 1


def test_no_monitor_is_started(lab4: Path) -> None:
    (lab4 / "etc/systemd/system/multi-user.target.wants").mkdir(parents=True, exist_ok=True)
    (lab4 / "etc/systemd/system/multi-user.target.wants" / MONITOR).symlink_to("/etc/systemd/system/" + MONITOR)
    assert RELOAD not in apply(lab4).applied.not_run
    assert RELOAD not in restore(lab4).outcome.not_run
    assert [argv[1].startswith("try-") for argv in COMMANDS["reload-monitor"]] == [True]


def test_what_a_boot_was_to_start_and_is_gone_is_started_no_more(lab4: Path) -> None:
    """And does not fail; but a package's own unit, or one that stood there before, starts."""
    (early,) = run_commands(Sysroot(str(lab4)), ["stop-what-is-gone"]).not_run
    assert early.split()[2:] == ["stop", DEADLINE, APPLY, "tunectl-reapply@*"]
    (lab4 / "usr/lib/systemd/system").mkdir(parents=True, exist_ok=True)
    (lab4 / "usr/lib/systemd/system" / APPLY).write_text("[Service]\n")
    (early,) = run_commands(Sysroot(str(lab4)), ["stop-what-is-gone"]).not_run
    assert early.split()[2:] == ["stop", DEADLINE, "tunectl-reapply@*"]


def test_a_reload_that_fails_is_said_and_is_no_failure_of_apply() -> None:
    (note,) = _old_settings(Notified([], {"reload-monitor": "systemctl try-reload-or-restart: exit status 1: no"}))
    assert "goes on with the host file as it read it last: systemctl" in note
    assert _old_settings(Notified([], {})) == ()


def test_the_count_of_repairs_outlives_the_reload_that_each_repair_causes(tmp_path: Path) -> None:
    """Otherwise what apply cannot mend would be asked for once a minute, for ever."""
    places = Places(store=None, lasting=Lasting(), repairs=Repair(str(tmp_path)), repair=True)  # type: ignore[arg-type]
    drift = [fired(rule="KnobDrift", subject="irq.affinity[42]")]
    asked = [second for second in range(2000) if places.repairs and places.repairs.consider(drift, float(second))]
    assert len(asked) == 4
