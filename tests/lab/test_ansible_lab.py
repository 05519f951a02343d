"""Ansible over ssh: two bare hosts are provisioned, rebooted one after the other, proved, sabotaged, mended, restored.

Further on, one of them is made to hang in its reboot: the roll ends there, and the other stays up.
"""

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .cage import WITHOUT, Cage
from .lab import Lab
from .product import EMULATED_BUDGET, WRITTEN, findings, tunectl, verify
from .story import difference, volatile
from .sweep import session_name

# Nothing is installed yet: also where the program goes, and whose link it gets.
BARE = (*WRITTEN, "/opt", "/usr/local/bin")
# init ends at once and the kernel panics: the host hangs, and answers nobody.
HANG = """
echo 'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT init=/bin/false"' > /etc/default/grub.d/zz-hang.cfg
update-grub
"""
TIMER = "/etc/systemd/system/tunectl-preflight.timer"
AT = "Mon..Fri 07:45 Europe/London"
MONITOR_PID = "systemctl show -p MainPID --value tunectl-monitor"
# What emulation cannot give: each is a waiver with its reason, as a site would write it.
_EMULATED = "the guest's clock is how fast QEMU emulates this CPU, and says nothing of its frequency"
_STARVED = "two guests of four CPUs share two here: a spinner may be given none for most of the window"
WAIVERS: list[dict[str, str]] = [
    {"knob": "thermal.clock", "reason": _EMULATED, "until": "2099-12-31"},
    {"knob": "check.tick_off", "reason": _STARVED, "until": "2099-12-31"},
]

pytest.importorskip("ansible", reason="Ansible is not installed: pip install -e '.[test]'")
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def second(lab: Lab) -> Iterator[Lab]:
    """Another host beside the session's own, for as long as this module runs."""
    host = Lab(session_name("second"))
    try:
        host.up()
        yield host
    finally:
        host.down()


@pytest.fixture(scope="module")
def bare(lab: Lab, second: Lab, wheels: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Cage:
    """Two hosts that nobody has touched, and the wheels for them: pip's own, too, for they have no network."""
    lab.up()
    for host in (lab, second):
        # shutdown(8), by which Ansible reboots, asks logind, which the lab's image masks to boot faster.
        host.run("systemctl unmask systemd-logind.service")
    place = tmp_path_factory.mktemp("cage")
    wheel, needed = wheels
    wheelhouse = place / "wheelhouse"
    shutil.copytree(needed, wheelhouse)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "download", "--no-deps", "-d", wheelhouse, "pip"], check=True)
    return Cage(
        {"alpha": lab, "beta": second},
        place,
        wheel,
        wheelhouse,
        {"tunectl_host_waivers": WAIVERS, "tunectl_host_budget": EMULATED_BUDGET},
    )


@pytest.fixture(scope="module")
def untouched(bare: Cage) -> dict[str, dict[str, str]]:
    """The fingerprints from before."""
    return {name: host.fingerprint(*BARE) for name, host in bare.hosts.items()}


@pytest.fixture(scope="module")
def cage(bare: Cage, untouched: dict[str, dict[str, str]]) -> Cage:
    """Both hosts, provisioned and rebooted by one run of provision.yml."""
    before = bare.boot_ids()
    done = bare.play("provision", *WITHOUT, tunectl_tune_reboot=True)
    assert done.code == 0, done.out
    assert set(bare.boot_ids().values()).isdisjoint(before.values())
    return bare


def test_a_roll_takes_one_host_at_a_time_and_proves_it(cage: Cage) -> None:
    first_roll = cage.log.read_text().split("\n")[:4]
    assert first_roll == ["drain alpha", "undrain alpha", "drain beta", "undrain beta"]
    for host in cage.hosts.values():
        document = verify(host)
        assert document["verdict"] == "compliant", findings(document, "drifted", "pending-reboot")
        assert host.read("/sys/devices/system/cpu/isolated") == "2-3"


def test_a_second_run_changes_nothing(cage: Cage) -> None:
    before = cage.boot_ids()
    done = cage.play("provision", *WITHOUT, tunectl_tune_reboot=True)
    assert done.code == 0, done.out
    assert {name: done.counts(name)["changed"] for name in cage.hosts} == {"alpha": 0, "beta": 0}, done.out
    assert cage.boot_ids() == before


def test_the_cage_may_trade(cage: Cage) -> None:
    """NO-GO only for what emulation cannot give; each of these is a waiver above."""
    for host in cage.hosts.values():
        ran = tunectl(host, "preflight --format json", timeout=600)
        assert (ran.code, ran.json["verdict"]) == (0, "go"), ran.json["reasons"]
    if (cage.place / "collections/ansible_collections/tunectl/host/plugins/action/fleet_preflight.py").exists():
        done = cage.play("preflight", tunectl_fleet_store=str(cage.place / "sessions"), tunectl_session="lab")
        assert done.code == 0, done.out


def test_the_timer_comes_with_its_variable_and_goes_without(cage: Cage) -> None:
    timer = "tunectl-preflight.timer"
    asked = f"cat {TIMER} | grep OnCalendar; systemctl is-enabled {timer}; systemctl is-active {timer}"
    there = f"OnCalendar={AT}\nenabled\nactive\n"
    for words, at, changed, left in (
        (("--check",), AT, 1, "inactive\n"),
        ((), AT, 2, there),
        ((), AT, 0, there),
        (("--check",), "", 1, there),
        ((), "", 1, "inactive\n"),
        ((), "", 0, "inactive\n"),
    ):
        done = cage.play("provision", "--tags", "timer", *words, tunectl_preflight_at=at)
        assert done.code == 0, done.out
        for name, host in cage.hosts.items():
            assert done.counts(name)["changed"] == changed, done.out
            assert host.run(asked, check=False).out == left


def test_drift_is_found_and_mended(cage: Cage) -> None:
    cage.hosts["alpha"].write("/proc/sys/vm/swappiness", "60")
    drift = cage.play("drift")
    assert drift.code == 2
    assert "mm.swappiness is 60" in drift.said("alpha")
    assert drift.counts("beta")["failed"] == 0
    mended = cage.play("provision", *WITHOUT)
    assert (mended.code, mended.counts("alpha")["changed"]) == (0, 1), mended.out
    assert mended.counts("beta")["changed"] == 0
    assert cage.play("drift").code == 0


def test_a_list_that_does_not_fit_is_refused_before_the_first_change(cage: Cage) -> None:
    before = {name: host.fingerprint(*WRITTEN) for name, host in cage.hosts.items()}
    done = cage.play("provision", *WITHOUT, tunectl_host_isolated="2-9")
    assert done.code == 2
    for name, host in cage.hosts.items():
        assert "'2-9' is past the last CPU, 3" in done.said(name)
        assert not difference(before[name], host.fingerprint(*WRITTEN))


def test_an_upgrade_takes_one_host_after_the_other_and_restarts_the_monitor(cage: Cage, tmp_path: Path) -> None:
    """The same program in another file is another wheel: all of it is installed again."""
    other = tmp_path / cage.wheel.name
    shutil.copy(cage.wheel, other)
    with zipfile.ZipFile(other, "a") as archive:
        archive.comment = b"another one"
    before = {name: host.run(MONITOR_PID).out for name, host in cage.hosts.items()}
    done = cage.play("upgrade", *WITHOUT, tunectl_install_wheel=str(other))
    assert done.code == 0, done.out
    for name, host in cage.hosts.items():
        assert done.counts(name)["changed"] > 0, done.out
        assert host.run("systemctl is-active tunectl-monitor").out == "active\n"
        assert host.run(MONITOR_PID).out not in ("0\n", before[name])
        assert verify(host)["verdict"] == "compliant"


def test_a_host_that_hangs_ends_the_roll(cage: Cage) -> None:
    """Alpha comes first and does not come back; beta waits for its reboot, too, and is left up."""
    alpha, beta = cage.hosts.values()
    for name, host in cage.hosts.items():
        host.save(f"provisioned-{name}")
    waiting = cage.play("provision", *WITHOUT, tunectl_host_isolated="3")
    assert waiting.code == 0, waiting.out
    assert verify(beta)["verdict"] == "pending-reboot"
    alpha.run(HANG, timeout=300)
    cage.log.unlink()
    stood = beta.read("/proc/sys/kernel/random/boot_id")

    rolled = cage.play("reboot", tunectl_tune_reboot=True, tunectl_tune_reboot_timeout_s=120)
    assert rolled.code == 2, rolled.out
    assert rolled.counts("alpha")["failed"] == 1
    assert cage.log.read_text() == "drain alpha\n", "alpha is not put back into service, and beta not taken out of it"
    assert beta.read("/proc/sys/kernel/random/boot_id") == stood
    assert verify(beta)["verdict"] == "pending-reboot"
    assert "not syncing" in alpha.vm.console_tail(60)

    for name, host in cage.hosts.items():
        host.restore(f"provisioned-{name}")
        tunectl(host, "apply --yes --runtime -q")  # the NVMe controller was plugged in again


def test_restore_brings_both_back_to_the_byte(cage: Cage, untouched: dict[str, dict[str, str]]) -> None:
    before = cage.boot_ids()
    words = {"tunectl_restore_reboot": True, "tunectl_restore_uninstall": True}
    # irqbalance runs, and may have moved an interrupt since.
    done = cage.play("restore", *WITHOUT, tunectl_restore_force=True, **words)
    assert done.code == 0, done.out
    assert set(cage.boot_ids().values()).isdisjoint(before.values())
    for name, host in cage.hosts.items():
        left = difference(untouched[name], host.fingerprint(*BARE))
        assert {path for path in left if not volatile(path)} == set(), json.dumps(left, indent=2)
        assert "isolcpus" not in host.read("/proc/cmdline")
