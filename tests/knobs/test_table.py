"""Every row of the knob table: sabotage it on a tuned host, and verify must name it; mend it, and verify is silent."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import write_host_file
from tests.hosts.builder import HostFactory
from tests.ran import Ran
from tunectl.host.sysroot import WritableSysroot
from tunectl.knobs import KNOBS
from tunectl.tuning.session import Session, open_session
from tunectl.tuning.transaction import run_apply
from tunectl.verdict import verdict_of

Run = Callable[..., Ran]
Sabotage = Callable[[Path], None]

ISOLATED = {"lab4": "2-3", "xeon2s": "4-7,20-23"}
OWN = {  # what no profile asks for
    "lab4": '"cpufreq.min_khz" = "hardware-max"\n',
    "xeon2s": '"smt.control" = "on"\n"cpufreq.boost" = true\n"cpufreq.min_khz" = "hardware-max"\n'
    '"cpufreq.energy_performance_preference" = "performance"\n',
}
CPU = "sys/devices/system/cpu"
GRUB = "etc/default/grub"
TUNED = "isolcpus=managed_irq,domain,2-3"


def put(path: str, text: str) -> Sabotage:
    """The file holds something else now."""

    def act(root: Path) -> None:
        assert (root / path).exists()
        (root / path).write_text(f"{text}\n")

    return act


def cut(path: str, *words: str, by: str = "") -> Sabotage:
    """Words of a file are gone, or replaced."""

    def act(root: Path) -> None:
        text = (root / path).read_text()
        for word in words:
            assert word in text
            text = text.replace(word, by)
        (root / path).write_text(text)

    return act


def new(path: str, text: str) -> Sabotage:
    """A file that was not there."""

    def act(root: Path) -> None:
        (root / path).write_text(text)

    return act


def moved_irq(root: Path) -> None:
    """Somebody let an interrupt back onto an isolated CPU."""
    put("proc/irq/32/smp_affinity_list", "0-3")(root)
    put("proc/irq/32/effective_affinity_list", "3")(root)


def unplugged(root: Path) -> None:
    """Somebody switched an isolated CPU off."""
    put(f"{CPU}/cpu3/online", "0")(root)
    put(f"{CPU}/online", "0-2")(root)


class Case(NamedTuple):
    """One sabotage."""

    host: str
    target: str
    act: Sabotage


CASES: dict[str, Case] = {
    "smt.control": Case("xeon2s", "smt.control", put(f"{CPU}/smt/control", "off")),
    "cpu.online": Case("lab4", "cpu.online[3]", unplugged),
    "irqbalance.banned_cpus": Case(
        "lab4", "irqbalance.banned_cpus", put("etc/default/irqbalance", "IRQBALANCE_BANNED_CPULIST=2")
    ),
    "irq.default_affinity": Case("lab4", "irq.default_affinity", put("proc/irq/default_smp_affinity", "f")),
    "irq.affinity": Case("lab4", "irq.affinity[32]", moved_irq),
    "workqueue.cpumask": Case("lab4", "workqueue.cpumask", put("sys/devices/virtual/workqueue/cpumask", "7")),
    "cpuidle.max_latency_us": Case("lab4", "cpuidle.max_latency_us[3]", put(f"{CPU}/cpu3/cpuidle/state3/disable", "0")),
    "cpuidle.resume_latency_us": Case(
        "lab4", "cpuidle.resume_latency_us[2]", put(f"{CPU}/cpu2/power/pm_qos_resume_latency_us", "0")
    ),
    "cpufreq.governor": Case(
        "lab4", "cpufreq.governor[1]", put(f"{CPU}/cpufreq/policy1/scaling_governor", "powersave")
    ),
    "cpufreq.max_khz": Case("lab4", "cpufreq.max_khz[2]", put(f"{CPU}/cpufreq/policy2/scaling_max_freq", "2400000")),
    "cpufreq.min_khz": Case("xeon2s", "cpufreq.min_khz[31]", put(f"{CPU}/cpufreq/policy31/scaling_min_freq", "800000")),
    "cpufreq.boost": Case("xeon2s", "cpufreq.boost", put(f"{CPU}/intel_pstate/no_turbo", "1")),
    "cpufreq.energy_performance_preference": Case(
        "xeon2s",
        "cpufreq.energy_performance_preference[9]",
        put(f"{CPU}/cpufreq/policy9/energy_performance_preference", "balance_power"),
    ),
    "mm.thp_enabled": Case(
        "lab4", "mm.thp_enabled", put("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never")
    ),
    "mm.thp_defrag": Case(
        "lab4", "mm.thp_defrag", put("sys/kernel/mm/transparent_hugepage/defrag", "always [defer] madvise never")
    ),
    "mm.ksm": Case("lab4", "mm.ksm", put("sys/kernel/mm/ksm/run", "1")),
    "mm.swappiness": Case("lab4", "mm.swappiness", put("proc/sys/vm/swappiness", "60")),
    "mm.numa_balancing": Case("xeon2s", "mm.numa_balancing", put("proc/sys/kernel/numa_balancing", "1")),
    "kernel.nmi_watchdog": Case("lab4", "kernel.nmi_watchdog", put("proc/sys/kernel/nmi_watchdog", "1")),
    "kernel.watchdog_cpumask": Case("lab4", "kernel.watchdog_cpumask", put("proc/sys/kernel/watchdog_cpumask", "0-2")),
    "kernel.timer_migration": Case("lab4", "kernel.timer_migration", put("proc/sys/kernel/timer_migration", "0")),
    "kernel.stat_interval": Case("lab4", "kernel.stat_interval", put("proc/sys/vm/stat_interval", "1")),
    "kernel.sched_rt_runtime_us": Case(
        "lab4", "kernel.sched_rt_runtime_us", put("proc/sys/kernel/sched_rt_runtime_us", "950000")
    ),
    "systemd.apply_at_boot": Case(
        "lab4",
        "systemd.apply_at_boot",
        lambda root: (root / "etc/systemd/system/multi-user.target.wants/tunectl-apply.service").unlink(),
    ),
    "boot.isolcpus": Case("lab4", "boot.isolcpus", cut(GRUB, f"{TUNED} ")),
    "boot.nohz_full": Case("lab4", "boot.nohz_full", cut(GRUB, "nohz_full=2-3 ")),
    # nohz_full= implies rcu_nocbs= for its CPUs: one alone may go
    "boot.rcu_nocbs": Case("lab4", "boot.rcu_nocbs", cut(GRUB, "nohz_full=2-3 ", "rcu_nocbs=2-3 ")),
    "boot.irqaffinity": Case("lab4", "boot.irqaffinity", cut(GRUB, "irqaffinity=0-1 ")),
    "boot.skew_tick": Case("lab4", "boot.skew_tick", cut(GRUB, "skew_tick=1 ")),
    "boot.nosoftlockup": Case("lab4", "boot.nosoftlockup", cut(GRUB, "nosoftlockup ")),
    "boot.tsc": Case("lab4", "boot.tsc", cut(GRUB, " tsc=reliable")),
}


def session_on(root: Path) -> Session:
    """As the command line opens one."""
    host, state = f"{root}/etc/tunectl/host.toml", f"{root}/var/lib/tunectl"
    return open_session(WritableSysroot(str(root)), host, state, ("/usr/bin/tunectl",), "2026-11-21")


def apply(root: Path) -> None:
    """`tunectl apply --yes`."""
    run_apply(session_on(root), WritableSysroot(str(root)), f"{root}/var/lib/tunectl", runtime_only=False, wait_s=0)


def verdict(root: Path) -> str:
    """`tunectl verify`, in one word."""
    return verdict_of(session_on(root).assess().findings)


@pytest.fixture(scope="session")
def applied(host_root: HostFactory) -> dict[str, Path]:
    """Both hosts, booted as asked and applied: to be copied."""
    trees = {}
    for name, cpus in {"lab4": range(2, 4), "xeon2s": [*range(4, 8), *range(20, 24)]}.items():
        trees[name] = host_root(name, tuned_boot=frozenset(cpus))
        own = f'profile = "low-latency"\nisolated = "{ISOLATED[name]}"\n[knobs]\n{OWN[name]}'
        write_host_file(trees[name], own)
        apply(trees[name])
    return trees


@pytest.fixture
def host(applied: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    """A tuned host of one's own, that verify has nothing to say about."""

    def copy(name: str) -> Path:
        root = tmp_path / name
        subprocess.run(["cp", "-a", applied[name], root], check=True)
        assert verdict(root) == "compliant"
        return root

    return copy


def found(done: Ran, code: int = 3) -> dict[str, dict[str, Any]]:
    """What verify complains of, by target: not the harmless managed interrupts of xeon2s."""
    assert (done.code, done.err) == (code, "")
    return {
        one["target"]: one
        for one in done.json["findings"]
        if one["outcome"] in ("drifted", "pending-reboot", "unreadable")
    }


def test_every_row_has_a_sabotage() -> None:
    assert list(CASES) == list(KNOBS)


@pytest.mark.parametrize("name", CASES)
def test_sabotage_is_found_by_name_and_mended(tunectl: Run, host: Callable[[str], Path], name: str) -> None:
    case = CASES[name]
    root = host(case.host)
    case.act(root)
    seen = found(tunectl("verify", "--format", "json", "--root", root))
    with_it = {case.target, "boot.nohz_full"} if name == "boot.rcu_nocbs" else {case.target}
    assert set(seen) == with_it
    assert seen[case.target]["knob"] == name
    assert seen[case.target]["outcome"] == "drifted"
    assert seen[case.target]["fix"] == "sudo tunectl apply"
    assert seen[case.target]["reason"]
    apply(root)
    assert verdict(root) == "compliant"


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("boot.") and name != "boot.rcu_nocbs"])
def test_an_argument_this_boot_did_not_have(tunectl: Run, host: Callable[[str], Path], name: str) -> None:
    root = host("lab4")
    key = name.removeprefix("boot.")
    line = (root / "proc/cmdline").read_text()
    words = [word for word in line.split() if word.partition("=")[0] != key]
    (root / "proc/cmdline").write_text(" ".join(words) + "\n")
    seen = found(tunectl("verify", "--format", "json", "--root", root), 4)
    assert set(seen) == {name}
    assert (seen[name]["outcome"], seen[name]["observed"], seen[name]["fix"]) == ("pending-reboot", None, "reboot")
    (root / "proc/cmdline").write_text(line)
    assert verdict(root) == "compliant"


def dropped_cmdline(root: Path) -> None:
    """This boot has none of ours: somebody edited the line in the boot menu."""
    put("proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz root=UUID=5f3c-0001 ro quiet")(root)


def without_rcu_threads(root: Path) -> None:
    """The kernel offloads no callbacks."""
    for path in root.glob("proc/*/comm"):
        if path.read_text().startswith("rcuo"):
            path.write_text("other\n")


BOOT_CASES: list[tuple[str, Sabotage, int, str, str, str]] = [
    ("dropped", dropped_cmdline, 4, "boot.isolcpus", "the next boot will have isolcpus=managed_irq,domain,2-3", ""),
    (
        "no domain",
        cut("proc/cmdline", TUNED, by="isolcpus=managed_irq,2-3"),
        4,
        "boot.isolcpus",
        "the next boot will have",
        "managed_irq,2-3",
    ),
    (
        "the first isolcpus= wins",
        cut("proc/cmdline", TUNED, by=f"isolcpus=3 {TUNED}"),
        4,
        "boot.isolcpus",
        "the next boot will have",
        "domain,3",
    ),
    (
        "the last rcu_nocbs= wins",
        cut("proc/cmdline", "rcu_nocbs=2-3", "nohz_full=2-3", by="rcu_nocbs=3"),
        4,
        "boot.rcu_nocbs",
        "the next boot will have rcu_nocbs=2-3",
        "3",
    ),
    (
        "isolcpus not accepted",
        put(f"{CPU}/isolated", ""),
        3,
        "boot.isolcpus",
        "the kernel did not accept it: /sys/devices/system/cpu/isolated shows ''",
        "",
    ),
    (
        "isolcpus accepted in part",
        put(f"{CPU}/isolated", "2"),
        3,
        "boot.isolcpus",
        "/sys/devices/system/cpu/isolated shows '2'",
        "2",
    ),
    (
        "nohz_full not accepted",
        put(f"{CPU}/nohz_full", " (null)"),
        3,
        "boot.nohz_full",
        "the kernel did not accept it: /sys/devices/system/cpu/nohz_full shows",
        "",
    ),
    (
        "no rcuo threads",
        without_rcu_threads,
        3,
        "boot.rcu_nocbs",
        "the kernel did not accept it: there are rcuo threads for CPUs none",
        "",
    ),
    (
        "a later file overwrites ours",
        new("etc/default/grub.d/zz-site.cfg", 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n'),
        3,
        "boot.isolcpus",
        "in force now, but the next boot will not have it",
        "managed_irq,domain,2-3",
    ),
    (
        "an earlier file's isolcpus= comes first",
        new(
            "etc/default/grub.d/50-site.cfg",
            'GRUB_CMDLINE_LINUX_DEFAULT="isolcpus=1 $GRUB_CMDLINE_LINUX_DEFAULT"\n',
        ),
        3,
        "boot.isolcpus",
        "in force now, but the next boot will not have it",
        "managed_irq,domain,2-3",
    ),
]


@pytest.mark.parametrize(
    ("act", "code", "target", "reason", "observed"),
    [case[1:] for case in BOOT_CASES],
    ids=[case[0] for case in BOOT_CASES],
)
def test_configured_is_not_effective(
    tunectl: Run, host: Callable[[str], Path], act: Sabotage, code: int, target: str, reason: str, observed: str
) -> None:
    root = host("lab4")
    act(root)
    seen = found(tunectl("verify", "--format", "json", "--root", root), code)
    assert reason in seen[target]["reason"]
    assert (seen[target]["observed"] or "") == observed
    assert seen[target]["points"]["asked"]


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("zz-site.cfg", 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n', "grub.d/zz-site.cfg:1 sets"),
        ("50-site.cfg", 'GRUB_CMDLINE_LINUX_DEFAULT="isolcpus=1 $GRUB_CMDLINE_LINUX_DEFAULT"\n', "50-site.cfg:1 wins"),
    ],
)
def test_what_apply_cannot_mend_names_the_file(
    tunectl: Run, host: Callable[[str], Path], name: str, text: str, named: str
) -> None:
    root = host("lab4")
    (root / "etc/default/grub.d" / name).write_text(text)
    apply(root)
    finding = found(tunectl("verify", "--format", "json", "--root", root))["boot.isolcpus"]
    assert named in finding["fix"]
    assert finding["fix"].startswith("remove that setting")
    (root / "etc/default/grub.d" / name).unlink()
    apply(root)
    assert verdict(root) == "compliant"


def test_values_that_do_more_than_asked_are_no_drift(tunectl: Run, host: Callable[[str], Path]) -> None:
    root = host("lab4")
    for path, text in {
        "proc/sys/vm/swappiness": "0",
        "proc/sys/vm/stat_interval": "120",
        "proc/irq/default_smp_affinity": "1",
        "sys/devices/virtual/workqueue/cpumask": "00000001",
        "etc/default/irqbalance": "IRQBALANCE_BANNED_CPULIST=1-3",
        "sys/kernel/mm/ksm/run": "2",
        f"{CPU}/cpu2/power/pm_qos_resume_latency_us": "n/a",
    }.items():
        put(path, text)(root)
    assert found(tunectl("verify", "--format", "json", "--root", root), 0) == {}
