"""A fresh host is judged, tuned, rebooted, proved and brought back."""

import json
import re
import tomllib

import pytest

from tunectl.probe.explain import explained
from tunectl.wording import nanoseconds

from .evidence import cpus
from .lab import PREFIX, Lab
from .product import EMULATED_BUDGET, WRITTEN, findings, tunectl, verify
from .story import difference, judged, loosened, preflight, restored, tick_is_off_or_waived_as_unknown, volatile

BOOT_NAMES = ["isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity", "skew_tick", "nosoftlockup", "tsc"]
BOOT = {f"boot.{name}" for name in BOOT_NAMES}


def interrupts(lab: Lab, label: str) -> list[int]:
    """A row of /proc/interrupts."""
    (row,) = [line for line in lab.read("/proc/interrupts").splitlines() if line.split()[0] == f"{label}:"]
    return [int(word) for word in row.split()[1:5]]


def test_a_fresh_host_is_no_go_and_every_knob_is_named(installed: Lab) -> None:
    ran = tunectl(installed, "preflight --duration 1 --format json")
    document = ran.json
    assert ran.code == 3
    assert document["verdict"] == "no-go"
    drifted = {one["knob"] for one in document["verify"]["findings"] if one["outcome"] == "drifted"}
    assert drifted >= BOOT | {"cpufreq.governor", "cpuidle.max_latency_us", "irq.default_affinity", "workqueue.cpumask"}
    for knob in drifted:
        assert any(reason.startswith(knob) for reason in document["reasons"]), knob
    assert document["probe"]["cpus"][0]["loops"] > 0


@pytest.mark.long
def test_apply_leaves_only_the_reboot(installed: Lab) -> None:
    applied = tunectl(installed, "apply --yes --format json")
    document = applied.json
    assert applied.code == 4, findings(document, "drifted", "unreadable", "error")
    assert {one["result"] for one in document["changes"]} <= {"changed", "refused"}
    refused = {one["target"]: one["errno"] for one in document["changes"] if one["result"] == "refused"}
    assert all(target.startswith("irq.affinity[") and errno in (1, 5) for target, errno in refused.items())
    now = verify(installed)
    assert now["verdict"] == "pending-reboot"
    assert {one["knob"] for one in findings(now, "pending-reboot").values()} == BOOT
    assert not [one for one in findings(now, "refused").values() if one["harmful"]]
    again = tunectl(installed, "apply --yes --format json")
    assert again.json["changes"] == []


def test_after_the_reboot_everything_is_in_force(in_force: Lab) -> None:
    ran = tunectl(in_force, "verify --format json")
    document = ran.json
    assert (ran.code, document["verdict"]) == (0, "compliant"), findings(document, "drifted", "pending-reboot")
    assert in_force.read("/sys/devices/system/cpu/isolated") == "2-3"
    for finding in findings(document, "refused").values():
        assert finding["knob"] == "irq.affinity"
        assert finding["harmful"] is False
        assert "isolated CPUs only" in finding["reason"]


def test_the_service_puts_runtime_values_in_force_at_boot(in_force: Lab) -> None:
    shown = in_force.run("systemctl show -p ActiveState -p Result tunectl-apply.service").out
    assert "Result=success" in shown
    assert "ActiveState=active" in shown


def test_checks_are_silent_on_a_tuned_host(in_force: Lab) -> None:
    ran = tunectl(in_force, "check --format json")
    bad = findings(ran.json, "drifted")
    assert not bad


def test_the_tick_is_off_under_a_spinner_and_on_elsewhere(in_force: Lab) -> None:
    spin = "sh -c 'while :; do :; done' >/dev/null 2>&1 &"
    in_force.run(f"taskset -c 2 {spin} taskset -c 1 {spin} sleep 1")
    before = interrupts(in_force, "LOC")
    in_force.wait_for(f"[ $(awk '/LOC:/ {{print $3}}' /proc/interrupts) -gt {before[1] + 500} ]", 300)
    after = interrupts(in_force, "LOC")
    in_force.run("pkill -f 'while :'", check=False)
    rose = [now - then for then, now in zip(before, after, strict=True)]
    assert rose[2] < rose[1] / 5, rose


def test_the_story_ends_in_a_go_that_was_measured_and_judged(tuned: Lab) -> None:
    """propose, plan, apply, reboot, verify, preflight: apply and the reboot are behind this host."""
    proposed = tunectl(tuned, "propose --format toml").out
    assert (tomllib.loads(proposed)["profile"], tomllib.loads(proposed)["isolated"]) == ("low-latency", "2-3")
    assert tomllib.loads(proposed)["budget"].keys() == {*EMULATED_BUDGET, "smis_per_s"}  # none, here too
    tuned.write("/etc/tunectl/host.toml", loosened(proposed))
    assert tunectl(tuned, "plan --format json").json["changes"] == []
    assert tunectl(tuned, "verify").code == 0
    ran, ending = judged(tuned, loosened(proposed))
    assert (ran.code, ran.json["verdict"]) == (0, "go"), ran.json["reasons"]
    budget = ran.json["probe"]["budget"]
    assert budget["verdict"] == "within"
    assert budget["limits"] in (EMULATED_BUDGET, {**EMULATED_BUDGET, "smis_per_s": 0})  # where somebody counts them
    assert {one["cpu"] for one in ran.json["probe"]["cpus"]} == {2, 3}
    assert {one["key"] for one in ran.json["looser"]} == EMULATED_BUDGET.keys()
    assert f"longest interruption {nanoseconds(EMULATED_BUDGET['max_ns'])} (profile 50 µs)" in ran.json["headline"]
    assert ran.json["headline"].endswith(ending)
    assert tick_is_off_or_waived_as_unknown(ran.json), ran.json["check"]["findings"]


def test_nothing_less_than_that_is_go(tuned: Lab) -> None:
    as_proposed = tunectl(tuned, "propose --format toml").out
    loose = loosened(as_proposed)
    tuned.write("/etc/tunectl/host.toml", loose)
    short = preflight(tuned, "preflight --duration 2", "unknown")
    assert (short.code, short.json["verdict"]) == (1, "unknown"), short.json["reasons"]
    unjudged = [reason for reason in short.json["reasons"] if reason.startswith("probe: not judged: ")]
    assert any("stolen_ppm" in reason for reason in unjudged), short.json["reasons"]
    tuned.write("/etc/tunectl/host.toml", loose.replace(f"max_ns = {EMULATED_BUDGET['max_ns']}\n", "max_ns = 1\n", 1))
    broken = tunectl(tuned, "preflight --duration 2 --format nagios")
    assert (broken.code, broken.out.startswith("TUNECTL CRITICAL - no-go: ")) == (2, True), broken.out
    tuned.write("/etc/tunectl/host.toml", loose)
    tuned.write("/proc/sys/vm/swappiness", "60")
    assert tunectl(tuned, "preflight --duration 1 -q").code == 3


def shared_queues(lab: Lab) -> dict[str, set[int]]:
    """target -> the CPUs that the managed interrupt of a queue of all CPUs fires on, by the kernel's own files.

    The kernel spreads such interrupts: of three, one fires on CPU 2 or 3 unless isolcpus=managed_irq keeps it off.
    """
    for number in (1, 2, 3):
        lab.nvme_add(number)
    numbers = lab.run("cd /sys/kernel/irq; grep -lE '^nvme[123]q1$' */actions | cut -d/ -f1").out.split()
    assert len(numbers) == 3
    return {f"irq.affinity[{irq}]": cpus(lab.read(f"/proc/irq/{irq}/effective_affinity_list")) for irq in numbers}


@pytest.mark.long
def test_a_managed_interrupt_on_an_isolated_cpu_is_harmful(installed: Lab) -> None:
    queues = shared_queues(installed)
    harmful = {target for target, where in queues.items() if where & {2, 3}}
    assert harmful, queues
    tunectl(installed, "apply --yes --runtime -q")
    refused = findings(verify(installed), "refused")
    assert {target for target, one in refused.items() if one["harmful"]} == harmful
    assert all("isolcpus=managed_irq" in refused[target]["fix"] for target in harmful)


@pytest.mark.long
def test_managed_interrupts_that_the_kernel_keeps_off_are_no_alarm(tuned: Lab) -> None:
    queues = shared_queues(tuned)
    assert set().union(*queues.values()) <= {0, 1}
    assert findings(verify(tuned), "drifted") == {}
    says = tuned.run("find /proc/irq -name smp_affinity_list ! -perm -200").out  # since 6.12
    assert findings(verify(tuned), "unreadable").keys() == (set() if says else queues.keys())
    tunectl(tuned, "apply --yes --runtime -q")
    after = verify(tuned)
    assert (after["verdict"], findings(after, "drifted", "unreadable")) == ("compliant", {})


@pytest.mark.long
def test_anyone_may_look(tuned: Lab) -> None:
    assert tunectl(tuned, "verify", user="ops").code in (0, 1)
    refused = tunectl(tuned, "apply --yes", user="ops")
    assert refused.code == 1
    assert "needs root" in refused.err


@pytest.mark.long
def test_the_probes_counters_agree_with_the_kernels(tuned: Lab) -> None:
    for cpu, fewest, most in ((1, 500, 1e9), (2, 0, 100)):
        loc = f"awk '/^ *LOC:/ {{print ${cpu + 2}}}' /proc/interrupts"
        out = tuned.run(f"{loc}; {PREFIX}/bin/tunectl-probe jitter --cpus {cpu} --duration 5; {loc}").out
        before, _, rest = out.partition("\n")
        text, _, after = rest.strip().rpartition("\n")
        raw = json.loads(text)
        document = explained(raw)
        counted, rose = document["cpus"][0]["counters"]["irq"].get("LOC", 0), int(after) - int(before)
        assert fewest <= counted <= most
        assert counted <= rose <= counted + 0.1 * counted + 100, "the start and end of the program lie between"
        assert (cpu in raw["facts"]["isolated"]) == (cpu == 2)


def test_restore_brings_the_host_back_to_the_byte(pristine: dict[str, str], tuned: Lab) -> None:
    restored(tuned)
    tuned.reboot()
    left = difference(pristine, tuned.fingerprint(*WRITTEN))
    assert {path for path in left if not volatile(path)} == set(), left
    assert not re.search(r"isolcpus|nohz_full|rcu_nocbs|skew_tick", tuned.read("/proc/cmdline"))
    assert tuned.run("dpkg --verify irqbalance grub-common grub2-common", check=False).out == ""
    assert verify(tuned)["verdict"] == "drifted"


@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.long)])
def test_rounds_leave_no_residue(installed: Lab, rounds: int) -> None:
    before = installed.fingerprint(*WRITTEN)
    installed.run("systemctl stop irqbalance")  # what it moves between apply and restore is not ours to move back
    turn = "tunectl apply --yes --runtime -q >/dev/null; tunectl restore -q >/dev/null || exit 9"
    script = f"for turn in $(seq {rounds}); do {turn}; done"
    installed.run(script, timeout=900)
    assert not difference(before, installed.fingerprint(*WRITTEN))


@pytest.mark.long
@pytest.mark.parametrize("delay_ms", [300, 700, 1200, 2000, 3500])
def test_killed_in_the_middle_of_apply(installed: Lab, delay_ms: int) -> None:
    before = installed.fingerprint(*WRITTEN)
    values = "cat /proc/sys/vm/swappiness /sys/kernel/mm/transparent_hugepage/enabled /proc/irq/default_smp_affinity"
    shown = installed.run(values).out
    installed.run(
        f"tunectl apply --yes >/dev/null 2>&1 & pid=$!; sleep {delay_ms / 1000}; kill -9 $pid; wait $pid; true"
    )
    restored(installed)
    assert installed.run(values).out == shown
    assert not difference(before, installed.fingerprint(*WRITTEN))


@pytest.mark.parametrize("delay_ms", [800, pytest.param(2500, marks=pytest.mark.long)])
def test_power_is_lost_in_the_middle_of_apply(installed: Lab, delay_ms: int) -> None:
    installed.run("sync")
    before = installed.fingerprint(*WRITTEN)
    installed.run(f"tunectl apply --yes >/dev/null 2>&1 & sleep {delay_ms / 1000}")
    installed.kill()
    installed.boot()
    restored(installed)
    left = difference(before, installed.fingerprint(*WRITTEN))
    assert {path for path in left if not volatile(path)} == set(), left
