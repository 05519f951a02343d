"""check.other_tuners: each tuner flagged where it touches our knobs, and nowhere else."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tests.checks.conftest import Judge
from tests.hosts.builder import build, build_named, named
from tests.trees import write
from tunectl.host.irqbalance import read_configured_ban
from tunectl.host.sysroot import Sysroot
from tunectl.model import Outcome

pytestmark = pytest.mark.slow

CHECK = "test_tuners.py"
OURS: dict[str, Any] = {
    "cpufreq.governor": "performance", "cpufreq.max_khz": "hardware-max", "mm.ksm": "stopped", "mm.swappiness": 1,
    "mm.numa_balancing": False, "irq.affinity": frozenset({0, 1}),
}  # fmt: skip


def _host(tmp_path: Path, *daemons: str, files: dict[str, str] | None = None) -> Path:
    spec = named("lab4", tuned_boot=frozenset({2, 3}))
    return build(tmp_path / "host", dataclasses.replace(spec, daemons=daemons, files=files or {}))


@pytest.mark.parametrize(
    ("unit", "knob"),
    [
        ("power-profiles-daemon", "cpufreq.governor"),
        ("thermald", "cpufreq.max_khz"),
        ("tlp", "cpufreq.governor"),
        ("auto-cpufreq", "cpufreq.governor"),
        ("cpupower", "cpufreq.governor"),
        ("ksmtuned", "mm.ksm"),
    ],
)
def test_a_manager_that_touches_our_knobs_is_found_and_one_that_does_not_is_silent(
    tmp_path: Path, judge: Judge, unit: str, knob: str
) -> None:
    root = _host(tmp_path, unit)
    finding = judge(root, {2, 3}, CHECK, OURS)[f"check.other_tuners[{unit}]"]
    assert finding.outcome == Outcome.DRIFTED
    assert knob in finding.reason
    assert f"sudo systemctl disable --now {unit}" in str(finding.fix)
    others = judge(root, {2, 3}, CHECK, {"mm.swappiness": 1})
    assert others[f"check.other_tuners[{unit}]"].outcome == Outcome.COMPLIANT


def test_tuned_counts_only_with_a_profile(tmp_path: Path, judge: Judge) -> None:
    root = _host(tmp_path, "tuned", files={"etc/tuned/active_profile": "throughput-performance\n"})
    target = "check.other_tuners[tuned]"
    finding = judge(root, {2, 3}, CHECK, OURS)[target]
    assert finding.outcome == Outcome.DRIFTED
    assert "profile throughput-performance" in finding.reason
    (root / "etc/tuned/active_profile").write_text("")
    assert judge(root, {2, 3}, CHECK, OURS)[target].outcome == Outcome.COMPLIANT


def _irqbalance(tmp_path: Path, judge: Judge, configuration: str, isolated: set[int], environ: str = "") -> Any:
    root = _host(tmp_path, "irqbalance", files={"etc/default/irqbalance": configuration})
    if environ:
        (root / "proc/50000/environ").write_text(environ)
    return judge(root, isolated, CHECK)["check.other_tuners[irqbalance]"]


@pytest.mark.parametrize(
    ("configuration", "isolated", "environ", "named", "fix"),
    [
        ("IRQBALANCE_BANNED_CPULIST=\n", {2, 3}, "", "isolated CPUs 2-3", "IRQBALANCE_BANNED_CPULIST=2-3"),
        ("#nothing set\n", {1, 2, 3}, "", "isolated CPUs 1:", ""),  # by itself it bans what the kernel isolates
        ("IRQBALANCE_BANNED_CPULIST=2-3\n", {2, 3}, "PATH=/bin\0IRQBALANCE_BANNED_CPULIST=\0", "",
         "sudo systemctl restart irqbalance"),
    ],
    ids=["configured", "nothing set", "restarted"],
)  # fmt: skip
def test_irqbalance_without_its_ban_is_found(
    tmp_path: Path, judge: Judge, configuration: str, isolated: set[int], environ: str, named: str, fix: str
) -> None:
    finding = _irqbalance(tmp_path, judge, configuration, isolated, environ)
    assert finding.outcome == Outcome.DRIFTED
    assert named in finding.reason
    assert fix in str(finding.fix)


@pytest.mark.parametrize(
    "line",
    [
        "EnvironmentFile=",
        "UnsetEnvironment=IRQBALANCE_BANNED_CPULIST",
        "ExecStart=\nExecStart=/usr/bin/env -i /usr/sbin/irqbalance --foreground",
        "ExecStart=\nExecStart=/usr/bin/env -u IRQBALANCE_BANNED_CPULIST IRQBALANCE_BANNED_CPUS=0 /usr/sbin/irqbalance",
        "ExecStart=\nExecStart=/usr/bin/env --unset=IRQBALANCE_BANNED_CPULIST /usr/sbin/irqbalance",
        "ExecStart=\nExecStart=/usr/bin/env IRQBALANCE_BANNED_CPULIST= /usr/sbin/irqbalance",
    ],
)
def test_a_drop_in_that_takes_the_ban_from_irqbalance_is_named(tmp_path: Path, judge: Judge, line: str) -> None:
    drop_in = "etc/systemd/system/irqbalance.service.d/site.conf"
    files = {
        "etc/default/irqbalance": "IRQBALANCE_BANNED_CPULIST=1-3\n",
        "usr/lib/systemd/system/irqbalance.service": "[Service]\nEnvironmentFile=-/etc/default/irqbalance\n"
        "ExecStart=/usr/sbin/irqbalance --foreground\n",
        drop_in: f"[Service]\nNice=5\n{line}\n",
    }
    root = _host(tmp_path, "irqbalance", files=files)
    (root / "proc/50000/environ").write_text("PATH=/bin\0")
    target = "check.other_tuners[irqbalance]"
    finding = judge(root, {1, 2, 3}, CHECK)[target]
    assert finding.outcome == Outcome.DRIFTED
    number = 2 + len(line.split("\n"))
    assert f"/{drop_in}:{number} says {line.split(chr(10))[-1]}" in finding.reason
    reload = "sudo systemctl daemon-reload && sudo systemctl restart irqbalance"
    lines = f"'3d;{number}d'" if number > 3 else "3d"  # an empty ExecStart= alone would leave the unit no command
    assert str(finding.fix) == f"sudo sed -i {lines} /{drop_in} && {reload}"
    (root / "proc/50000/environ").write_text("IRQBALANCE_BANNED_CPULIST=1-3\0")
    innocent = "EnvironmentFile=\nEnvironmentFile=/etc/default/irqbalance"
    (root / drop_in).write_text(f"[Service]\nNice=5\n{innocent}\n")
    assert judge(root, {1, 2, 3}, CHECK)[target].outcome == Outcome.COMPLIANT
    assert not read_configured_ban(Sysroot(str(root))).dropped
    (root / drop_in).write_text("[Service]\nExecStart=\nExecStart=/usr/bin/env -u LANG /usr/sbin/irqbalance\n")
    assert judge(root, {1, 2, 3}, CHECK)[target].outcome == Outcome.COMPLIANT


TARGET = "check.other_tuners[irqbalance]"


def by_hand(root: Path) -> Path:
    """A second irqbalance, from a shell."""
    write(root, "proc/50777/comm", "irqbalance\n")
    write(root, "proc/50777/cgroup", "0::/user.slice/user-0.slice/session-1.scope\n")
    return root / "proc/50777"


def test_a_second_irqbalance_that_its_service_does_not_know_is_found(tmp_path: Path, judge: Judge) -> None:
    root = _host(tmp_path, "irqbalance", files={"etc/default/irqbalance": "IRQBALANCE_BANNED_CPULIST=2-3\n"})
    (root / "proc/50000/environ").write_text("IRQBALANCE_BANNED_CPULIST=2-3\0")
    (root / "proc/50000/cgroup").write_text("0::/system.slice/irqbalance.service\n")
    assert judge(root, {2, 3}, CHECK)[TARGET].outcome == Outcome.COMPLIANT
    (by_hand(root) / "environ").write_text("IRQBALANCE_BANNED_CPULIST=\0")
    finding = judge(root, {2, 3}, CHECK)[TARGET]
    assert finding.outcome == Outcome.DRIFTED
    assert str(finding.fix).startswith("sudo kill 50777")


def test_one_started_by_hand_whose_list_shows_nowhere_is_neither_a_blame_nor_compliant(
    tmp_path: Path, judge: Judge
) -> None:
    root = _host(tmp_path, "irqbalance", files={"etc/default/irqbalance": "IRQBALANCE_BANNED_CPULIST=2-3\n"})
    second = by_hand(root)
    finding = judge(root, {2, 3}, CHECK)[TARGET]
    assert finding.outcome == Outcome.UNREADABLE
    assert "process 50777: its service did not start it, and only root may see with what list" in finding.reason
    (second / "environ").write_text("")  # by `env -i`: it leaves alone what the kernel isolates
    assert judge(root, {2, 3}, CHECK)[TARGET].outcome == Outcome.COMPLIANT
    assert str(judge(root, {1, 2, 3}, CHECK)[TARGET].fix).startswith("sudo kill 50777")


@pytest.mark.parametrize("configuration", ["IRQBALANCE_BANNED_CPULIST=2-3\n", "#unset\n", "IRQBALANCE_BANNED_CPUS=f\n"])
def test_irqbalance_with_its_ban_is_silent(tmp_path: Path, judge: Judge, configuration: str) -> None:
    assert _irqbalance(tmp_path, judge, configuration, {2, 3}).outcome == Outcome.COMPLIANT


def test_a_sysctl_line_of_another_value_is_found(tmp_path: Path, judge: Judge) -> None:
    root = _host(tmp_path, files={"etc/sysctl.d/90-site.conf": "vm.swappiness = 10\nkernel/numa_balancing = 0\n"})
    finding = judge(root, {2, 3}, CHECK, OURS)["check.other_tuners[sysctl.d]"]
    assert finding.outcome == Outcome.DRIFTED
    assert "/etc/sysctl.d/90-site.conf:1 sets vm.swappiness = 10" in finding.reason
    assert "numa_balancing" not in finding.reason
    assert str(finding.fix) == "take /etc/sysctl.d/90-site.conf:1 out, or say vm.swappiness = 1 there"


@pytest.mark.parametrize(
    ("files", "who"),
    [
        ({"usr/lib/systemd/system/thermald.service": "[Service]\n"}, "thermald"),  # stopped
        # A line that loses, and one that agrees.
        ({"etc/sysctl.d/1.conf": "vm.swappiness = 60\n", "etc/sysctl.d/9.conf": "vm.swappiness = 1\n"}, "sysctl.d"),
    ],
)
def test_who_changes_nothing_is_silent(tmp_path: Path, judge: Judge, files: dict[str, str], who: str) -> None:
    found = judge(_host(tmp_path, files=files), {2, 3}, CHECK, OURS)
    assert found[f"check.other_tuners[{who}]"].outcome == Outcome.COMPLIANT


def test_nobody_else_is_one_silent_finding(tmp_path: Path, judge: Judge) -> None:
    found = judge(build_named(tmp_path / "vm2", "vm2"), {1}, CHECK, OURS)
    assert {target: finding.outcome for target, finding in found.items()} == {"check.other_tuners": Outcome.COMPLIANT}
