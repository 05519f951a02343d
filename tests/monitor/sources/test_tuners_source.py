"""Who tunes this host: started and stopped, by systemd and by hand, and what it would overwrite."""

import shutil
from pathlib import Path

import pytest

from tests.monitor.watched import Watched, of, watch
from tunectl.monitor.model import Sample
from tunectl.tuners.conflicts import Objection


def objection(sample: Sample) -> Objection:
    """What the tuner does against us."""
    assert isinstance(sample.seen, Objection)
    return sample.seen


def ban(host: Watched, cpus: str) -> None:
    """What irqbalance is configured to leave alone."""
    path = host.root / "etc/default/irqbalance"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"IRQBALANCE_BANNED_CPULIST={cpus}\n")


def start(host: Watched, name: str, pid: int = 70000, *, unit: bool = True) -> None:
    """A daemon, as systemd or a shell starts it."""
    (host.root / f"proc/{pid}").mkdir()
    host.write(f"proc/{pid}/comm", name)
    host.write("proc/loadavg", f"0.00 0.00 0.00 1/100 {pid}")
    if unit:
        (host.root / f"sys/fs/cgroup/system.slice/{name}.service").mkdir(parents=True)


def test_what_runs_and_what_it_would_overwrite(tmp_path: Path) -> None:
    found = of(watch(tmp_path, "xeon2s", {2, 18}).look(), "manager")
    assert {name: one.value for name, one in found.items()} == {"tuned": "contested", "irqbalance": "contested"}
    irqbalance, tuned = objection(found["irqbalance"]), objection(found["tuned"])
    assert str(irqbalance.fix).startswith("sudo tunectl apply")
    assert "cpufreq.governor" in tuned.reason


def test_a_start_and_a_stop_are_seen_in_the_next_look(tmp_path: Path) -> None:
    host = watch(tmp_path, "lab4", {2, 3}, daemons=())
    ban(host, "")
    assert of(host.look(), "manager") == {}
    start(host, "irqbalance")
    found = of(host.look(), "manager")["irqbalance"]
    assert found.value == "contested"
    shutil.rmtree(host.root / "sys/fs/cgroup/system.slice/irqbalance.service")
    shutil.rmtree(host.root / "proc/70000")
    assert of(host.look(), "manager")["irqbalance"].value == "inactive"


@pytest.mark.slow
def test_one_that_bans_the_isolated_cpus_is_no_trouble_until_another_starts_without(tmp_path: Path) -> None:
    host = watch(tmp_path, "lab4", {2, 3}, daemons=())
    ban(host, "2-3")
    start(host, "irqbalance")
    found = of(host.look(), "manager")["irqbalance"]
    assert found.value == "active"
    start(host, "irqbalance", 70001, unit=False)  # from a shell; its environment is root's
    host.write("proc/70001/cgroup", "0::/user.slice/user-0.slice")
    found = of(host.look(61), "manager")["irqbalance"]  # a list of processes waits for the last one
    assert found.value == "contested"
    assert str(objection(found).fix).startswith("sudo kill 70001")
    host.write("proc/70001/environ", "IRQBALANCE_BANNED_CPULIST=\0")
    found = of(host.look(61), "manager")["irqbalance"]
    assert found.value == "contested"
    assert str(objection(found).fix).startswith("sudo kill 70001")
    host.write("proc/70001/environ", "IRQBALANCE_BANNED_CPULIST=2-3\0")
    assert of(host.look(61), "manager")["irqbalance"].value == "active"


def test_one_started_by_hand_is_found_though_it_was_a_shell_first(tmp_path: Path) -> None:
    host = watch(tmp_path, "lab4", {2, 3}, daemons=())
    ban(host, "")
    host.look()
    start(host, "bash", unit=False)
    assert of(host.look(5), "manager") == {}
    host.write("proc/70000/comm", "irqbalance")
    assert of(host.look(5), "manager")["irqbalance"].value == "contested"
    shutil.rmtree(host.root / "proc/70000")
    assert of(host.look(5), "manager")["irqbalance"].value == "inactive"


def test_a_host_without_proc_or_control_groups_has_none(tmp_path: Path) -> None:
    host = watch(tmp_path, "lab4", {2, 3}, daemons=())
    shutil.rmtree(host.root / "sys/fs/cgroup", ignore_errors=True)
    for place in (host.root / "proc").iterdir():
        if place.name.isdecimal():
            shutil.rmtree(place)
    snapshot = host.look()
    assert of(snapshot, "manager") == {}
    assert of(snapshot, "source") == {}
