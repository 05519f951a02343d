"""A tried boot that hangs, on a machine with a watchdog: what ends it is what `plan` had said."""

from typing import Any

import pytest

from .lab import Lab
from .product import WRITTEN, tunectl
from .trials import armed, came_back, has_the_old_line, nothing_waits, trial

pytestmark = pytest.mark.long

# A kernel that waits for ever after its panic: nothing of it feeds a watchdog, and no timer of systemd runs.
HANGS = """\
[Unit]
ConditionKernelCommandLine=lab.hang

[Service]
ExecStart=/bin/sh -c 'until grep -qx active /sys/class/watchdog/watchdog0/state; do sleep 1; done; \
echo 0 >/proc/sys/kernel/panic; echo c >/proc/sysrq-trigger'

[Install]
WantedBy=multi-user.target
"""


def ended_by(lab: Lab) -> dict[str, Any]:
    """What `plan` says of each phase: what boots the host again."""
    return {one["phase"]: one["by"] for one in tunectl(lab, "plan --format json").json["hang"]}


def test_without_a_watchdog_somebody_has_to_say_so(installed: Lab) -> None:
    """And nothing of a try is there before."""
    before = installed.fingerprint(*WRITTEN)
    assert ended_by(installed)["userspace"] == "nothing"
    ran = tunectl(installed, "apply --try-boot")
    assert (ran.code, "--without-watchdog" in ran.err) == (1, True)
    nothing_waits(installed)
    assert installed.fingerprint(*WRITTEN) == before


def test_a_hang_behind_the_watchdog_ends_by_itself(installed: Lab) -> None:
    """systemd feeds it, since a word of the tried line says so."""
    installed.watchdog_add()
    installed.write("/etc/systemd/system/hang.service", HANGS)
    installed.run("systemctl enable hang.service")
    before = installed.fingerprint(*WRITTEN)
    assert ended_by(installed)["userspace"] == "line"
    armed(installed, "lab.hang", options="")
    assert "systemd.watchdog_sec=30" in trial(installed)["tries"]["line"].split()
    with installed.vm.look() as qmp:
        installed.reboot_twice(600)
        qmp.wait_event(lambda event: event["event"] == "WATCHDOG", "the watchdog's reset", 1)
    has_the_old_line(installed)
    came_back(installed, before)


def test_a_hang_before_the_watchdog_ends_at_a_reset_from_outside(installed: Lab) -> None:
    """As `plan` and `apply` had said: a reset switches this watchdog off, and its driver comes later."""
    installed.watchdog_add()
    before = installed.fingerprint(*WRITTEN)
    assert (ended_by(installed)["kernel"], ended_by(installed)["userspace"]) == ("nothing", "line")
    trial_id = armed(installed, "rdinit=/bin/cat", options="")  # it waits for what nobody types
    installed.reboot_into_hang(120)
    has_the_old_line(installed)
    ended = came_back(installed, before)
    assert (ended["id"], ended["tries"]["boot_id"]) == (trial_id, "")
