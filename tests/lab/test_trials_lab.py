"""Changes that take themselves back, on a booted kernel: whatever ends one, the host has one set and says which.

What is wrong with a boot is on its line, so that it is the same for each boot loader (trials.py).
"""

import re
from collections.abc import Callable

import pytest

from tunectl.bootloader.families import FAMILIES

from .lab import Lab
from .product import WRITTEN, tunectl, verify
from .story import TICK, difference, loosened, restored, volatile, waiver
from .trials import (
    RECORD,
    WATCHED_BY_NOBODY,
    armed,
    came_back,
    has_the_old_line,
    is_confirmed,
    is_tuned,
    left_of,
    loader,
    logged,
    nothing_waits,
    proves_itself,
    trial,
)

pytestmark = pytest.mark.long

VALUES = "cat /proc/sys/vm/swappiness /sys/kernel/mm/transparent_hugepage/enabled /proc/irq/default_smp_affinity"
PEER = "10.0.2.2:22"  # QEMU's own gateway: it refuses, and so is there
boots_once = pytest.mark.skipif(FAMILIES["grub"].once is None, reason="no entry of GRUB's is booted once here")


def test_what_nobody_confirms_is_taken_back_at_its_time(installed: Lab) -> None:
    before, shown = installed.fingerprint(*WRITTEN), installed.run(VALUES).out
    installed.run("systemctl stop irqbalance")  # what it moves meanwhile is not ours to move back
    ran = tunectl(installed, "apply --yes --confirm-within 20s --format json")
    assert ran.json["unconfirmed"]["kind"] == "runtime"
    assert installed.run(VALUES).out != shown
    installed.run("date -s '1 year ago'")  # the wall clock has no say
    installed.wait_for(f"grep -q returned {RECORD}", timeout=180)
    installed.wait_for("! systemctl is-active --quiet tunectl-deadline.service", timeout=30)
    assert installed.run(VALUES).out == shown
    came_back(installed, before)
    assert tunectl(installed, "confirm").code == 1


def test_a_reboot_before_the_confirmation_takes_it_back_early(installed: Lab) -> None:
    before = installed.fingerprint(*WRITTEN)
    tunectl(installed, "apply --yes --confirm-within 1h -q")
    installed.reboot()
    came_back(installed, before)
    installed.reboot()
    has_the_old_line(installed)


def test_what_is_confirmed_stays_over_the_reboot(installed: Lab) -> None:
    tunectl(installed, "apply --yes --confirm-within 1h -q")
    assert tunectl(installed, "confirm").code == 0
    assert tunectl(installed, "confirm").code == 0
    installed.wait_for("! systemctl is-active --quiet tunectl-deadline.service", timeout=30)
    installed.reboot()
    is_tuned(installed)
    restored(installed)


def tried(lab: Lab, words: str = "") -> str:
    """A boot is tried, and proves itself; the id of the try."""
    trial_id = armed(lab, words)
    lab.reboot()
    proves_itself(lab, trial_id)
    return trial_id


@boots_once
def test_a_boot_that_was_tried_is_confirmed_and_stays(pristine: dict[str, str], installed: Lab) -> None:
    trial_id = tried(installed)
    assert installed.run("systemctl is-active tunectl-try.timer", check=False).out.strip() != "active"
    assert tunectl(installed, "confirm 00000000").code == 1
    assert tunectl(installed, f"confirm {trial_id}").code == 0, logged(installed)
    assert tunectl(installed, f"confirm {trial_id}").code == 0
    installed.reboot()
    is_tuned(installed)
    restored(installed)
    left = difference(pristine, installed.fingerprint(*WRITTEN))
    assert {path for path in left if not volatile(path)} == set(), left


@boots_once
def test_a_boot_that_was_tried_and_not_confirmed_is_followed_by_the_old_line(installed: Lab) -> None:
    before = installed.fingerprint(*WRITTEN)
    tried(installed)
    installed.reboot()
    has_the_old_line(installed)
    came_back(installed, before)


@boots_once
@pytest.mark.parametrize(
    ("words", "root"),
    [
        pytest.param("rdinit=/gone", "root=", id="panics"),
        pytest.param("", "root=LABEL=gone was=", id="another-root"),
        pytest.param("break=premount", "root=", id="prompt"),
    ],
)
def test_a_line_that_does_not_boot_is_followed_by_the_old_one(installed: Lab, words: str, root: str) -> None:
    before = installed.fingerprint(*WRITTEN)
    trial_id = armed(installed, words, root)
    installed.reboot_twice(300)
    has_the_old_line(installed)
    ended = came_back(installed, before)
    assert (ended["id"], ended["tries"]["boot_id"]) == (trial_id, "")
    assert tunectl(installed, f"confirm {trial_id}").code == 1


def shortened(lab: Lab, seconds: int) -> None:
    """The operator's own time for a tried boot to prove itself."""
    lab.run("mkdir -p /etc/systemd/system/tunectl-try.timer.d")
    lab.write("/etc/systemd/system/tunectl-try.timer.d/short.conf", f"[Timer]\nOnBootSec=\nOnBootSec={seconds}\n")


@boots_once
@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        pytest.param("systemd.unit=emergency.target", 60, id="emergency"),
        pytest.param("systemd.unit=rescue.target", 60, id="rescue"),
        pytest.param("systemd.mask=tunectl-deadline.service", 60, id="not-proved"),
        pytest.param("systemd.mask=systemd-networkd.service", 180, id="no-network"),
    ],
)
def test_a_boot_that_does_not_prove_itself_ends_by_itself(installed: Lab, words: str, seconds: int) -> None:
    """The last is proved but for its peer by then: with its network it takes a minute."""
    shortened(installed, seconds)
    before = installed.fingerprint(*WRITTEN)
    armed(installed, words, options=f"{WATCHED_BY_NOBODY} --reach {PEER}")
    assert trial(installed)["reach"] == PEER
    installed.reboot_twice(400)
    has_the_old_line(installed)
    came_back(installed, before)


@boots_once
def test_a_boot_that_is_no_try_is_the_end_of_it(installed: Lab) -> None:
    """Somebody takes another entry, as in the loader's menu; the boot after that does not try, either."""
    before = installed.fingerprint(*WRITTEN)
    armed(installed)
    installed.run(loader(installed).unchoose)
    installed.reboot()
    has_the_old_line(installed)
    assert came_back(installed, before)["tries"]["boot_id"] == ""


@boots_once
def test_power_is_lost_in_a_tried_boot(installed: Lab) -> None:
    """At once, so that it has not proved itself; the loader has forgotten the choice by then."""
    before = installed.fingerprint(*WRITTEN)
    trial_id = armed(installed, "systemd.mask=tunectl-deadline.service")
    installed.reboot()
    assert f"tunectl.try={trial_id}" in installed.read("/proc/cmdline")
    installed.kill()
    installed.boot()
    has_the_old_line(installed)
    came_back(installed, before)


def ends_whole(lab: Lab, before: dict[str, str]) -> None:
    """One of two ends, whole, at the latest with the next boot: the old set, or the confirmed one."""
    status = trial(lab)["status"]
    lab.reboot()
    assert trial(lab)["status"] == status
    {"returned": is_old, "confirmed": is_confirmed}[status](lab, before)


def is_old(lab: Lab, before: dict[str, str]) -> None:
    """The set from before."""
    has_the_old_line(lab)
    came_back(lab, before)


@boots_once
@pytest.mark.parametrize("delay_ms", [2000, 5000, 9000])
def test_power_is_lost_while_a_try_is_armed(installed: Lab, delay_ms: int) -> None:
    """Nothing was armed, or the next boot is tried, or it is the end of the try."""
    installed.run("sync")
    before = installed.fingerprint(*WRITTEN)
    installed.run(f"tunectl apply --try-boot --without-watchdog >/dev/null 2>&1 & sleep {delay_ms / 1000}")
    installed.kill()
    installed.boot()
    installed.reboot()
    is_old_or_was_never_armed(installed, before)


def is_old_or_was_never_armed(lab: Lab, before: dict[str, str]) -> None:
    """The old set; and a record only of what came back."""
    has_the_old_line(lab)
    assert left_of(lab, before) == set(), logged(lab)
    nothing_waits(lab)
    assert lab.run(f"cat {RECORD}", check=False).out.count('"armed"') == 0


@pytest.fixture(scope="session")
def _proved(lab: Lab, _installed: str) -> str:
    """The saved moment in a boot that was tried and has proved itself."""
    with lab.saving("proved") as missing:
        if missing:
            lab.restore(_installed)
            tried(lab)
            lab.save("proved")
    return "proved"


@pytest.fixture
def proved(lab: Lab, _proved: str) -> Lab:
    """A host in a boot that was tried, which only waits for its confirmation."""
    lab.restore(_proved)
    return lab


@boots_once
def test_what_is_not_the_boot_that_was_tried_is_not_confirmed(pristine: dict[str, str], proved: Lab) -> None:
    """Another id, no id, an initial RAM disk or image that an upgrade made anew meanwhile, a full state directory."""
    trial_id = trial(proved)["id"]
    refused = [tunectl(proved, "confirm"), tunectl(proved, "confirm 00000000")]
    loads = loader(proved).loads
    proved.run(f"cp -p {loads} /root/loads && echo upgraded >> $(ls {loads})")
    refused.append(tunectl(proved, f"confirm {trial_id}"))
    proved.run(f"cp -p /root/loads {loads} && rm /root/loads")
    filled(proved)
    refused.append(tunectl(proved, f"confirm {trial_id}"))
    emptied(proved)
    assert [ran.code for ran in refused] == [1, 1, 1, 1]
    assert trial(proved)["status"] == "armed"
    assert "isolcpus" not in proved.read(loader(proved).source)
    assert tunectl(proved, f"confirm {trial_id}").code == 0
    proved.reboot()
    is_confirmed(proved, pristine)


def filled(lab: Lab) -> None:
    """The state directory holds what it held, and not one byte more."""
    lab.run("cp -a /var/lib/tunectl /root/state && mount -t tmpfs -o size=256k,mode=700 state /var/lib/tunectl")
    lab.run("cp -a /root/state/. /var/lib/tunectl && dd if=/dev/zero of=/var/lib/tunectl/full; true", check=False)


def emptied(lab: Lab) -> None:
    """The state directory of before."""
    lab.run("umount /var/lib/tunectl && rm -r /root/state")


@boots_once
@pytest.mark.parametrize("delay_ms", [2000, 6000, 10000, 15000])
def test_power_is_lost_while_it_is_confirmed(pristine: dict[str, str], proved: Lab, delay_ms: int) -> None:
    proved.run("sync")
    trial_id = trial(proved)["id"]
    proved.run(f"tunectl confirm {trial_id} >/dev/null 2>&1 & sleep {delay_ms / 1000}")
    proved.kill()
    proved.boot()
    ends_whole(proved, pristine)


@boots_once
def test_power_is_lost_right_after_a_tried_boot_is_confirmed(pristine: dict[str, str], proved: Lab) -> None:
    """What update-grub or kernel-install made for the next boot is on the disk by then."""
    assert tunectl(proved, f"confirm {trial(proved)['id']}").code == 0
    proved.kill()
    proved.boot()
    is_confirmed(proved, pristine)


def test_a_state_directory_that_is_full(installed: Lab) -> None:
    """What cannot be noted is not begun; what has to come back does, as soon as there is room."""
    before, shown = installed.fingerprint(*WRITTEN), installed.run(VALUES).out
    installed.run("systemctl stop irqbalance; mkdir -p -m 700 /var/lib/tunectl")
    filled(installed)
    assert tunectl(installed, "apply --yes --confirm-within 1h").code == 1
    assert tunectl(installed, "apply --try-boot --without-watchdog").code == 1
    emptied(installed)
    assert (left_of(installed, before), installed.run(VALUES).out) == (set(), shown)
    tunectl(installed, "apply --yes --runtime --confirm-within 20s -q")
    filled(installed)
    installed.wait_for("journalctl -b -u tunectl-deadline.service | grep -q 'No space left'", timeout=120)
    installed.run("rm /var/lib/tunectl/full")
    installed.wait_for(f"grep -q returned {RECORD}", timeout=180)
    installed.wait_for("! systemctl is-active --quiet tunectl-deadline.service", timeout=30)
    assert installed.run(VALUES).out == shown
    came_back(installed, before)


def cut(lab: Lab) -> None:
    """Power is lost, and comes back."""
    lab.kill()
    lab.boot()


@pytest.mark.parametrize("end", [pytest.param(Lab.reboot, id="reboot"), pytest.param(cut, id="power")])
@pytest.mark.parametrize("delay_ms", [1000, 4000])
def test_it_goes_down_while_a_change_is_taken_back(installed: Lab, end: Callable[[Lab], None], delay_ms: int) -> None:
    """At its deadline: by a reboot in order, or because power is lost. The next boot may have either line."""
    installed.run("sync")
    before = installed.fingerprint(*WRITTEN)
    tunectl(installed, "apply --yes --confirm-within 10s -q")
    installed.run(f"sleep {10 + delay_ms / 1000}")
    end(installed)
    came_back(installed, before)
    installed.reboot()
    has_the_old_line(installed)


def test_a_confirmation_at_the_last_second_is_one_or_the_other(installed: Lab) -> None:
    before = installed.fingerprint(*WRITTEN)
    installed.run("systemctl stop irqbalance")
    tunectl(installed, "apply --yes --confirm-within 20s -q")
    installed.run("sleep 19; tunectl confirm", check=False)
    installed.wait_for(f"grep -Eq 'returned|confirmed' {RECORD}", timeout=180)
    ends_whole(installed, before)


@boots_once
def test_a_boot_to_which_preflight_says_go_confirms_itself(installed: Lab) -> None:
    """With limits that emulation keeps, and waivers for what it cannot prove."""
    proposed = tunectl(installed, "propose --count 2 --format toml").out
    host_file = loosened(re.sub(r"^isolated = .*$", 'isolated = "2-3"', proposed, flags=re.MULTILINE))
    installed.write("/etc/tunectl/host.toml", host_file + waiver("check.tick_off", TICK, "2099-12-30"))
    before = installed.fingerprint(*WRITTEN)
    trial_id = armed(installed, options=f"{WATCHED_BY_NOBODY} --confirm-by preflight")
    installed.reboot()
    proves_itself(installed, trial_id)
    installed.wait_for("! systemctl is-active --quiet tunectl-deadline.service", timeout=1200)
    assert trial(installed)["status"] == "confirmed", logged(installed)
    installed.reboot()
    is_confirmed(installed, before)


def kexeced(lab: Lab) -> str:
    """The id of the try whose line the running kernel's own start has; skips a host without kexec-tools."""
    if lab.run("command -v kexec", check=False).code:
        pytest.skip("this host has no kexec-tools")
    assert tunectl(lab, f"apply --try-boot=kexec {WATCHED_BY_NOBODY}").code == 4
    trial_id = str(trial(lab)["id"])
    lab.kexec()
    proves_itself(lab, trial_id)
    return trial_id


def test_a_line_that_kexec_tries_is_confirmed_and_stays(pristine: dict[str, str], installed: Lab) -> None:
    """It proves the line and not the boot loader, which the document says."""
    trial_id = kexeced(installed)
    confirmed = tunectl(installed, f"confirm {trial_id} --format json")
    assert (confirmed.code, confirmed.json["by"]) == (0, "kexec"), logged(installed)
    installed.reboot()
    proved = {one["proved"] for one in verify(installed)["findings"] if one.get("next") == "same"}
    assert proved == {"declared"}
    is_confirmed(installed, pristine)


def test_a_line_that_kexec_tries_and_nobody_confirms_is_followed_by_the_old_one(installed: Lab) -> None:
    before = installed.fingerprint(*WRITTEN)
    kexeced(installed)
    installed.reboot()
    has_the_old_line(installed)
    came_back(installed, before)
