"""The monitor as a service on a real kernel: what happens is named, in time, and nothing else is."""

import re
import time

import pytest

from .alerts import MONITOR, Edge, edges, log, named, wait_for
from .commands import NIC_IRQ
from .lab import Lab
from .product import HOST_FILE, tunectl

FAN_FAILURES = 10
SOAK_S = 600.0
PATIENCE_S = 120.0  # where it is not asked how soon: a starved emulator is slow
LIMIT = "/sys/devices/system/cpu/cpu2/cpufreq/bios_limit"
# Ten times a second, from a housekeeping CPU: when the kernel itself took the firmware's word.
WATCH_THE_LIMIT = f"""
import time
last = ""
while True:
    with open("{LIMIT}") as file:
        text = file.read().strip()
    if text != last:
        print(time.time(), text, flush=True)
        last = text
    time.sleep(0.1)
"""


def start(lab: Lab, *options: str, extra: str = "") -> None:
    """The service as an operator installs it, on a host file of the lab's CPUs."""
    lab.write("/etc/tunectl/host.toml", HOST_FILE + extra)
    assert tunectl(lab, f"service install monitor {' '.join(options)} -q").code == 0
    lab.run(f"systemctl enable --now {MONITOR}", timeout=120)  # Type=notify: it is ready after its first look


@pytest.fixture
def watched(tuned: Lab) -> Lab:
    start(tuned)
    return tuned


def steady(lab: Lab) -> list[Edge]:
    """What fires on the host as it is; none of it may be trouble."""
    time.sleep(15)  # the first reading of every knob included
    found = edges(lab)
    assert not [edge[:4] for edge in found if edge.rule != "DeviceChanged"], log(lab)
    return found


@pytest.mark.long
def test_a_failed_fan_is_named_within_two_seconds_each_time(watched: Lab) -> None:
    before = len(steady(watched))
    watched.write("/run/limit.py", WATCH_THE_LIMIT)
    watched.run("setsid taskset -c 1 python3 /run/limit.py >/run/limit 2>&1 </dev/null &")
    for number in range(1, FAN_FAILURES + 1):
        watched.heat()
        wait_for(watched, named("FrequencyDrop", "firing", number), 30)
        watched.cool()
        wait_for(watched, named("FrequencyDrop", "resolved", number), 30)
    limits = [line.split() for line in watched.read("/run/limit").splitlines()]
    slow = [float(at) for at, khz in limits if khz == "1200000"]
    fast = [float(at) for at, khz in limits[1:] if khz == "3500000"]
    found = edges(watched)[before:]
    fired = [edge for edge in found if edge.status == "firing"]
    resolved = [edge for edge in found if edge.status == "resolved"]
    assert {edge.name for edge in found} == {"FrequencyDrop[package0]"}, "one alert a cause"
    assert len(slow) == len(fast) == len(fired) == len(resolved) == FAN_FAILURES
    noticed = [edge.at_s - at for edge, at in zip(fired, slow, strict=True)]
    over = [edge.at_s - at for edge, at in zip(resolved, fast, strict=True)]
    print(f"noticed: {min(noticed):.2f} to {max(noticed):.2f} s; over: {min(over):.2f} to {max(over):.2f} s")
    assert max(noticed) <= 2.0, noticed
    assert max(over) <= 5.0, over
    said = fired[0].fields
    assert (said["TUNECTL_OBSERVED"], said["TUNECTL_EXPECTED"]) == ("1200000", "3500000")
    assert "bios_limit" in said["TUNECTL_SOURCE"]
    assert said["TUNECTL_CPUS"] == "2-3"
    assert said["TUNECTL_FIX"]


@pytest.mark.long
def test_load_without_throttling_fires_nothing(watched: Lab) -> None:
    spin = "while :; do :; done"
    for cpu in range(4):  # the isolated ones too: a trading thread is a busy CPU
        watched.run(f"setsid timeout {SOAK_S + 60:.0f} taskset -c {cpu} sh -c '{spin}' >/dev/null 2>&1 </dev/null &")
    steady(watched)
    time.sleep(SOAK_S)
    assert not [edge[:4] for edge in edges(watched) if edge.rule != "DeviceChanged"], log(watched)
    assert watched.run(f"systemctl show -p NRestarts --value {MONITOR}").out.strip() == "0", log(watched)


def test_what_happens_is_named(watched: Lab) -> None:
    steady(watched)
    watched.heat()
    wait_for(watched, named("FrequencyDrop[package0]", "firing"), PATIENCE_S)
    watched.cool()
    wait_for(watched, named("FrequencyDrop[package0]", "resolved"), PATIENCE_S)
    watched.run("systemctl stop irqbalance")
    irq = watched.run(f"echo {NIC_IRQ}").out.strip()
    watched.run(f"echo 2 > /proc/irq/{irq}/smp_affinity_list")
    wait_for(watched, named("KnobDrift[irq.affinity]", "firing"), PATIENCE_S)
    wait_for(watched, named(f"InterruptOnIsolatedCpu[irq{irq}]", "firing"), PATIENCE_S)
    watched.run("echo powersave > /sys/devices/system/cpu/cpu3/cpufreq/scaling_governor")
    wait_for(watched, named("KnobDrift[cpufreq.governor]", "firing"), PATIENCE_S)
    watched.nic_add()
    wait_for(watched, named("DeviceChanged[net/", "firing"), PATIENCE_S)
    # By hand: the monitor has no right to see with what ban it was started, and tells of it all the same.
    watched.run("env -u IRQBALANCE_BANNED_CPULIST setsid irqbalance --foreground >/dev/null 2>&1 </dev/null &")
    wait_for(watched, named("ManagerStarted[irqbalance", "firing"), PATIENCE_S)


@pytest.mark.long
def test_a_host_file_that_is_removed_changes_nothing_but_the_log(watched: Lab) -> None:
    steady(watched)
    watched.run("mv /etc/tunectl/host.toml /root/")  # a colleague tidies up, and a package reloads the service
    watched.run(f"systemctl reload {MONITOR}")
    watched.wait_for(f"journalctl -q -u {MONITOR} -o cat | grep -q 'the old settings stay in force'")
    watched.run("echo powersave > /sys/devices/system/cpu/cpu3/cpufreq/scaling_governor")
    wait_for(watched, named("KnobDrift[cpufreq.governor]", "firing"), 40)
    watched.run("mv /root/host.toml /etc/tunectl/")
    watched.run(f"systemctl reload {MONITOR}")
    watched.wait_for(f"journalctl -q -u {MONITOR} -o cat | tail -5 | grep -q 'the host file was read again'")


@pytest.mark.long
def test_repair_is_asked_for_and_runs(tuned: Lab) -> None:
    assert tunectl(tuned, "service install repair -q").code == 0
    assert tunectl(tuned, "service install apply -q").code == 0
    tuned.run("systemctl enable --now tunectl-repair.path")
    start(tuned, "--repair")
    steady(tuned)
    governor = "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor"
    tuned.write(governor, "powersave")
    tuned.wait_for(f"grep -qx performance {governor}", 90)
    wait_for(tuned, named("KnobDrift[cpufreq.governor", "resolved"), 60)


@pytest.mark.long
def test_the_service_is_hardened_and_unprivileged(watched: Lab) -> None:
    said = watched.run(f"systemd-analyze security --no-pager {MONITOR} | grep 'Overall exposure'").out
    found = re.search(r"(\d+\.\d) ", said)
    assert found, said
    assert float(found[1]) <= 2.0
    assert watched.run(f"ps -o user= -p $(systemctl show -p MainPID --value {MONITOR})").out.strip() != "root"
    watched.run(f"systemctl reload {MONITOR}")
    watched.wait_for(f"systemctl is-active {MONITOR} | grep -qx active")  # `reloading` until it says that it has
    watched.run(f"systemctl stop {MONITOR}")
    assert watched.run(f"systemctl show -p Result --value {MONITOR}").out.strip() == "success"
