"""The probe on a real Debian kernel: the cause of every gap, and nothing left behind."""

import json
from typing import Any

import pytest

from .lab import PREFIX, Lab
from .product import tunectl

PROBE = f"{PREFIX}/bin/tunectl-probe"
INSTANCES = "ls /sys/kernel/tracing/instances"


def attributed(lab: Lab, words: str) -> Any:
    ran = tunectl(lab, f"probe jitter --attribute --format json {words}")
    assert ran.code in (0, 3), ran.err  # emulation keeps none of the profile's limits
    return ran.json


def causes(document: Any) -> dict[str, int]:
    """Cause -> gaps, over all CPUs."""
    found: dict[str, int] = {}
    for cpu in document["cpus"]:
        for row in cpu["causes"]:
            found[row["cause"]] = found.get(row["cause"], 0) + row["count"]
    return found


def test_every_gap_has_a_cause_and_the_instance_is_gone(installed: Lab) -> None:
    document = attributed(installed, "--cpus 1 --duration 5")
    (cpu,) = document["cpus"]
    assert document["attribution"]["method"] == "trace", document["attribution"]
    assert sum(row["count"] for row in cpu["causes"]) == cpu["interruptions"]
    assert all(document["labels"][cause] for _, _, cause in cpu["events"])
    # A housekeeping CPU keeps its tick, and most of its ticks are gaps of their own. A starved emulator has few.
    ticks = sum(count for cause, count in causes(document).items() if "local timer" in cause)
    assert ticks > cpu["counters"]["irq"]["LOC"] / 6 > 0, causes(document)
    assert "tunectl" not in installed.run(INSTANCES).out


@pytest.mark.long
def test_a_quota_is_named_for_nearly_all_of_its_time(installed: Lab) -> None:
    """By the trace, and by the kernel's own account of the group."""
    group = "/sys/fs/cgroup/tunectl-quota"
    probe = f"{PREFIX}/bin/tunectl probe jitter --attribute --intrude --format json --cpus 1 --duration 4"
    enter = f"mkdir -p {group}; echo 30000 100000 >{group}/cpu.max; echo $$ >{group}/cgroup.procs; exec {probe}"
    installed.run("echo +cpu >/sys/fs/cgroup/cgroup.subtree_control")
    document = json.loads(installed.run(f"sh -c '{enter}'", check=False).out)
    (cpu,) = document["cpus"]
    named_ns = sum(row["total_ns"] for row in cpu["causes"] if row["kind"] == "throttle")
    assert cpu["unfit"]
    assert named_ns >= 0.95 * document["throttled_ns"] > 10**9, document["throttled_ns"]


@pytest.mark.long
def test_the_irq_of_a_device_is_named(installed: Lab) -> None:
    irq, name = installed.run(
        'awk \'/virtio.*-input|virtio.*-req/ {sub(":", "", $1); print $1, $NF; exit}\' /proc/interrupts'
    ).out.split()
    effective = installed.read(f"/proc/irq/{irq}/effective_affinity_list")
    load = "while :; do dd if=/dev/vda of=/dev/null bs=4k count=50 iflag=direct; done >/dev/null 2>&1"
    installed.run(f"timeout 25 sh -c 'taskset -c {effective} sh -c \"{load}\"' >/dev/null 2>&1 &")
    document = attributed(installed, f"--intrude --cpus {effective} --duration 5")
    assert any("irq " in cause for cause in causes(document)), (irq, name, causes(document))


@pytest.mark.long
def test_what_a_killed_probe_leaves_is_swept(installed: Lab) -> None:
    probe = f"{PREFIX}/bin/tunectl probe jitter --attribute --cpus 2 --duration 60"
    installed.run(f"sh -c '{probe} & echo $! >/tmp/pid; wait' >/dev/null 2>&1 &")
    installed.wait_for(f"{INSTANCES} | grep -q ^tunectl-$(cat /tmp/pid)-")
    installed.run("kill -9 $(cat /tmp/pid)")
    assert "tunectl-" in installed.run(INSTANCES).out
    tunectl(installed, "probe jitter --cpus 2 --duration 0.2")
    assert "tunectl-" not in installed.run(INSTANCES).out


@pytest.mark.long
def test_without_tracefs_it_mounts_nothing_and_says_so(installed: Lab) -> None:
    script = "umount -l /sys/kernel/tracing; umount -l /sys/kernel/debug/tracing 2>/dev/null; "
    probe = f"{PREFIX}/bin/tunectl --format json probe jitter --attribute --cpus 2 --duration 0.2"
    command = f"{probe}; grep -c tracefs /proc/mounts >&2"
    ran = installed.run(f"unshare -m sh -c '{script}{command}'", check=False)
    document = json.loads(ran.out)
    assert document["attribution"]["method"] == "counters"
    assert "not mounted" in document["attribution"]["reason"]
    assert ran.err.strip() == "0"


@pytest.mark.long
def test_the_self_test_finds_what_it_injects(installed: Lab) -> None:
    """On emulated CPUs too: times mean little there, but a known interruption that is not seen is a blind probe."""
    ran = installed.run(
        f"{PREFIX}/bin/tunectl probe selftest --cpu 3 --intrude --format json", check=False, timeout=300
    )
    phases = json.loads(ran.out)["phases"]
    for phase in phases:
        assert phase["outcome"] != "not-run", phase
        assert not phase.get("missed"), phase
        assert phase.get("account_is_exact", True), phase
