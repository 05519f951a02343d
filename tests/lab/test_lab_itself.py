"""The lab proves the product; this proves the lab: each thing the scenarios rely on, without the product."""

import os
import time
import zipfile
from pathlib import Path

import pytest

from .lab import Lab
from .process import Owned, claim
from .shell import LabError
from .ssh import time_left

CPU = "/sys/devices/system/cpu"
ISOLATION = "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3"


def irqs(lab: Lab, action: str) -> list[int]:
    """The numbers of the IRQs whose action starts so, from /proc/interrupts."""
    lines = (line.split() for line in lab.read("/proc/interrupts").splitlines())
    return [int(words[0].rstrip(":")) for words in lines if words[-1].startswith(action)]


def set_irq(lab: Lab, irq: int, cpus: str) -> str:
    """What the kernel says to a new affinity: nothing, or its error."""
    return lab.run(f"echo {cpus} > /proc/irq/{irq}/smp_affinity_list", check=False).err


def test_another_process_is_not_ours() -> None:
    """A pid that was handed out again must not be killed: the start time tells."""
    me = os.getpid()
    assert not Owned(me, start_ticks=1).alive()
    Owned(me, start_ticks=1).kill()
    assert claim(me, "no-such-word") is None


def test_what_a_guest_waited_for_a_cpu_is_no_time_of_its_own() -> None:
    waits = iter([2.0, 32.0, 2.0])
    left = time_left(100, lambda: next(waits))
    assert 100 < left() <= 130
    assert left() <= 100
    assert 0 <= Owned(os.getpid(), start_ticks=1).waited_s() < 1e6


def test_host_has_settled(fresh_lab: Lab) -> None:
    assert fresh_lab.run("systemctl is-system-running").out.strip() == "running"
    assert fresh_lab.run("systemctl is-active irqbalance").out.strip() == "active"
    assert fresh_lab.read("/proc/cmdline").startswith("BOOT_IMAGE="), "GRUB did not boot it"
    assert fresh_lab.run("nproc --all").out.strip() == "4"
    assert fresh_lab.run("id -un", user="ops").out.strip() == "ops"


def test_cpufreq_and_cpuidle_are_real(lab: Lab) -> None:
    for cpu in range(4):
        assert lab.read(f"{CPU}/cpu{cpu}/cpufreq/scaling_driver") == "acpi-cpufreq"
        frequencies = lab.read(f"{CPU}/cpu{cpu}/cpufreq/scaling_available_frequencies").split()
        assert frequencies == ["3500000", "2400000", "1200000"]
        states = lab.run(f"cd {CPU}/cpu{cpu}/cpuidle; cat state*/name state*/latency").out.split()
        assert states == ["POLL", "C1", "C2", "C3", "0", "2", "10", "133"]
    assert lab.read(f"{CPU}/cpuidle/current_driver") == "acpi_idle"


@pytest.mark.long
def test_heat_throttles_and_cooling_ends_it(fresh_lab: Lab) -> None:
    fresh_lab.run(f"for f in {CPU}/cpu*/cpufreq/scaling_governor; do echo performance > $f; done")
    for heat, khz, celsius in ((fresh_lab.heat, 1200000, 95), (fresh_lab.cool, 3500000, 45)):
        heat()
        for name in ("scaling_cur_freq", "bios_limit"):
            fresh_lab.wait_for(f"! grep -Lx {khz} {CPU}/cpu*/cpufreq/{name} | grep .", timeout=10)
        zone = "/sys/class/thermal/thermal_zone0"
        assert fresh_lab.read(f"{zone}/type") == "acpitz"
        assert fresh_lab.read(f"{zone}/temp") == f"{celsius * 1000}"


def test_managed_irqs_refuse_and_others_move(fresh_lab: Lab) -> None:
    fresh_lab.run("systemctl stop irqbalance")
    managed = [irq for irq in irqs(fresh_lab, "nvme0q") if irq not in irqs(fresh_lab, "nvme0q0")]
    managed += irqs(fresh_lab, "virtio1-req")
    assert len(managed) == 8
    for irq in managed:
        assert "Input/output error" in set_irq(fresh_lab, irq, "0")
    for irq in irqs(fresh_lab, "virtio0-") + irqs(fresh_lab, "nvme0q0"):
        assert set_irq(fresh_lab, irq, "1") == ""
        assert fresh_lab.read(f"/proc/irq/{irq}/smp_affinity_list") == "1"


@pytest.mark.long
def test_a_plugged_card_brings_irqs_and_takes_them_along(fresh_lab: Lab) -> None:
    interface = fresh_lab.nic_add("nic1")
    added = irqs(fresh_lab, "virtio2-")
    assert len(added) == 3
    assert fresh_lab.read(f"/sys/class/net/{interface}/operstate") == "up"
    fresh_lab.nic_del("nic1")
    fresh_lab.wait_for(f"! test -e /sys/class/net/{interface}")
    assert irqs(fresh_lab, "virtio2-") == []


@pytest.mark.long
def test_a_saved_moment_comes_back(fresh_lab: Lab) -> None:
    card = fresh_lab.nic_add("nic1")
    fresh_lab.write("/etc/lab-moment", "before")
    boot = fresh_lab.read("/proc/sys/kernel/random/boot_id")
    fresh_lab.save("moment")
    fresh_lab.write("/etc/lab-moment", "after")
    fresh_lab.nic_del("nic1")
    fresh_lab.restore("moment")
    assert fresh_lab.read("/etc/lab-moment") == "before"
    assert fresh_lab.read("/proc/sys/kernel/random/boot_id") == boot
    assert fresh_lab.read(f"/sys/class/net/{card}/operstate") == "up"
    assert abs(float(fresh_lab.run("date +%s").out) - time.time()) < 10


@pytest.mark.long
def test_command_line_survives_a_reboot_and_flushed_data_a_power_cut(fresh_lab: Lab) -> None:
    lab = fresh_lab
    line = f'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT {ISOLATION}"'
    lab.run("mkdir -p /etc/default/grub.d && cat > /etc/default/grub.d/50-lab.cfg && update-grub", stdin=line)
    first = lab.read("/proc/sys/kernel/random/boot_id")
    lab.reboot()
    second = lab.read("/proc/sys/kernel/random/boot_id")
    assert second != first
    assert lab.read("/proc/cmdline").endswith(ISOLATION)
    assert lab.read(f"{CPU}/isolated") == "2-3"
    assert lab.read(f"{CPU}/nohz_full") == "2-3"
    assert "Offload RCU callbacks from CPUs: 2-3." in lab.run("dmesg").out

    lab.run("echo kept > /etc/flushed && sync /etc/flushed /etc; echo lost > /etc/not-flushed")
    lab.kill()
    assert not lab.vm.alive()
    lab.boot()
    assert lab.read("/etc/flushed") == "kept"
    assert lab.run("test -s /etc/not-flushed", check=False).code == 1
    assert lab.read(f"{CPU}/isolated") == "2-3"
    assert lab.read("/proc/sys/kernel/random/boot_id") != second


def test_files_go_in_and_out(fresh_lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "bytes").write_bytes(bytes(range(256)))
    fresh_lab.put(tmp_path / "folder", "/srv/folder")
    fresh_lab.put(tmp_path / "folder" / "bytes", "/srv/other")
    assert fresh_lab.get("/srv/folder/bytes") == fresh_lab.get("/srv/other") == bytes(range(256))
    before = fresh_lab.fingerprint("/etc", "/srv")
    assert fresh_lab.fingerprint("/etc", "/srv") == before
    fresh_lab.run("chmod 600 /srv/other; echo x >> /etc/hostname")
    after = fresh_lab.fingerprint("/etc", "/srv")
    assert {path for path in before | after if before.get(path) != after.get(path)} == {"/srv/other", "/etc/hostname"}


@pytest.mark.long
def test_a_wheel_installs_offline(fresh_lab: Lab, tmp_path: Path) -> None:
    wheel = tmp_path / "tunectl-0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tunectl.py", "def main():\n    print('from the wheel')\n")
        archive.writestr("tunectl-0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tunectl\nVersion: 0\n")
        archive.writestr("tunectl-0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        entry = "[console_scripts]\ntunectl = tunectl:main\n"
        archive.writestr("tunectl-0.dist-info/entry_points.txt", entry)
        archive.writestr("tunectl-0.dist-info/RECORD", "")
    (tmp_path / "wheels").mkdir()
    fresh_lab.install(wheel, tmp_path / "wheels")
    assert fresh_lab.run("tunectl", user="ops").out == "from the wheel\n"


def test_a_failure_shows_the_console(fresh_lab: Lab) -> None:
    fresh_lab.run("echo a-last-word > /dev/ttyS0")
    with pytest.raises(LabError, match=r"(?s)did not end within.*a-last-word") as caught:
        fresh_lab.run("sleep 60", timeout=1)
    assert caught.type is LabError, "QEMU is not to blame"
