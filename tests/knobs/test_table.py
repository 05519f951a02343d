"""Every row of the knob table: sabotage it on a tuned host, and verify must name it; mend it, and verify is silent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.knobs.conftest import SITES_WORDS
from tests.ran import Ran
from tests.trees import Lent
from tests.tuned import apply, inspection_on, judged
from tunectl.knobs import KNOBS
from tunectl.verdict import verdict_of

Run = Callable[..., Ran]
Sabotage = Callable[[Path], None]

CPU = "sys/devices/system/cpu"
UNCORE = f"{CPU}/intel_uncore_frequency"
ETHTOOL = "ethtool/ens2f0"
NET = "sys/class/net/ens2f0"
GRUB = "etc/default/grub"
OUR_GRUB = "etc/default/grub.d/99-tunectl.cfg"
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


def moved_queue(root: Path) -> None:
    """Somebody put two queues' interrupts on one CPU; it is no isolated one."""
    put("proc/irq/63/smp_affinity_list", "8")(root)
    put("proc/irq/63/effective_affinity_list", "8")(root)


def rescheduled(root: Path) -> None:
    """Somebody gave the thread of a card's interrupt the kernel's own priority again."""
    for path in ("proc/931/stat", "proc/931/task/931/stat"):
        cut(path, " -61 ", by=" -51 ")(root)
        cut(path, " 60 1 ", by=" 50 1 ")(root)


def online_again(root: Path) -> None:
    """A CPU came online, and the kernel gave kcompactd the CPUs of its node."""
    (stat,) = (one for one in root.glob("proc/[0-9]*/stat") if "(kcompactd0)" in one.read_text())
    cut(str(stat.with_name("status").relative_to(root)), "list:\t0-1", by="list:\t0-3")(root)


# What else is not in force then.
WITH_IT = {
    "boot.rcu_nocbs": ("boot.nohz_full",),
    "kernel.fair_server_runtime_ns": ("kernel.sched_rt_runtime_us",),
}


class Case(NamedTuple):
    """One sabotage."""

    host: str
    target: str
    act: Sabotage


CASES: dict[str, Case] = {
    "smt.control": Case("xeon2s", "smt.control", put(f"{CPU}/smt/control", "off")),
    "cpu.online": Case("lab4", "cpu.online[3]", unplugged),
    "net.combined_channels": Case(
        "xeon2s", "net.combined_channels[ens2f0]", put(f"{ETHTOOL}/channels/combined-count", "16")
    ),
    "net.rx_channels": Case("xeon2s", "net.rx_channels[eno1]", put("ethtool/eno1/channels/rx-count", "4")),
    "net.tx_channels": Case("xeon2s", "net.tx_channels[eno1]", put("ethtool/eno1/channels/tx-count", "1")),
    "net.rx_ring": Case("xeon2s", "net.rx_ring[ens2f0]", put(f"{ETHTOOL}/rings/rx", "1024")),
    "net.tx_ring": Case("xeon2s", "net.tx_ring[ens2f0]", put(f"{ETHTOOL}/rings/tx", "1024")),
    "net.adaptive_rx": Case("lab4", "net.adaptive_rx[eth0]", put("ethtool/eth0/coalesce/use-adaptive-rx", "1")),
    "net.adaptive_tx": Case("xeon2s", "net.adaptive_tx[ens2f0]", put(f"{ETHTOOL}/coalesce/use-adaptive-tx", "1")),
    "net.rx_usecs": Case("lab4", "net.rx_usecs[eth0]", put("ethtool/eth0/coalesce/rx-usecs", "8")),
    "net.rx_frames": Case("xeon2s", "net.rx_frames[ens2f0]", put(f"{ETHTOOL}/coalesce/rx-max-frames", "128")),
    "net.tx_usecs": Case("xeon2s", "net.tx_usecs[ens2f0]", put(f"{ETHTOOL}/coalesce/tx-usecs", "8")),
    "net.tx_frames": Case("xeon2s", "net.tx_frames[ens2f0]", put(f"{ETHTOOL}/coalesce/tx-max-frames", "128")),
    "net.ntuple": Case("xeon2s", "net.ntuple[ens2f0]", put(f"{ETHTOOL}/features/rx-ntuple-filter", "0")),
    "net.gro": Case("xeon2s", "net.gro[ens2f0]", put(f"{ETHTOOL}/features/rx-gro", "1")),
    "net.lro": Case("xeon2s", "net.lro[ens2f0]", put(f"{ETHTOOL}/features/rx-lro", "1")),
    "net.gro_flush_timeout_ns": Case(
        "xeon2s", "net.gro_flush_timeout_ns[ens2f0]", put(f"{NET}/gro_flush_timeout", "0")
    ),
    "net.napi_defer_hard_irqs": Case(
        "xeon2s", "net.napi_defer_hard_irqs[eno1]", put("sys/class/net/eno1/napi_defer_hard_irqs", "0")
    ),
    "net.busy_poll": Case("lab4", "net.busy_poll", put("proc/sys/net/core/busy_poll", "0")),
    "net.busy_read": Case("lab4", "net.busy_read", put("proc/sys/net/core/busy_read", "0")),
    "net.rps_cpus": Case("xeon2s", "net.rps_cpus[ens2f0/rx-3]", put(f"{NET}/queues/rx-3/rps_cpus", "00000030")),
    "net.rps_sock_flow_entries": Case(
        "lab4", "net.rps_sock_flow_entries", put("proc/sys/net/core/rps_sock_flow_entries", "32768")
    ),
    "net.rps_flow_cnt": Case("xeon2s", "net.rps_flow_cnt[ens2f0/rx-7]", put(f"{NET}/queues/rx-7/rps_flow_cnt", "4096")),
    "net.xps_cpus": Case("xeon2s", "net.xps_cpus[ens2f0/tx-0]", put(f"{NET}/queues/tx-0/xps_cpus", "00000001")),
    "net.queue_irqs": Case("xeon2s", "net.queue_irqs[63]", moved_queue),
    "irqbalance.banned_cpus": Case(
        "lab4", "irqbalance.banned_cpus", put("etc/default/irqbalance", "IRQBALANCE_BANNED_CPULIST=2")
    ),
    "irq.default_affinity": Case("lab4", "irq.default_affinity", put("proc/irq/default_smp_affinity", "f")),
    "irq.affinity": Case("lab4", "irq.affinity[32]", moved_irq),
    "irq.thread_priority": Case("sites", "irq.thread_priority[31]", rescheduled),
    "workqueue.cpumask": Case("lab4", "workqueue.cpumask", put("sys/devices/virtual/workqueue/cpumask", "7")),
    "cpuset.isolated": Case(
        "runtime", "cpuset.isolated", put("sys/fs/cgroup/isolated.slice/cpuset.cpus.partition", "member")
    ),
    "kthread.affinity": Case("lab4", "kthread.affinity[2]", cut("proc/2/status", "list:\t0-1", by="list:\t0-3")),
    "kthread.node_affinity": Case("lab4", "kthread.node_affinity[kcompactd0]", online_again),
    "cpuidle.max_latency_us": Case("lab4", "cpuidle.max_latency_us[3]", put(f"{CPU}/cpu3/cpuidle/state3/disable", "0")),
    "cpuidle.resume_latency_us": Case(
        "lab4", "cpuidle.resume_latency_us[2]", put(f"{CPU}/cpu2/power/pm_qos_resume_latency_us", "0")
    ),
    "cpuidle.dma_latency_us": Case(
        "xeon2s", "cpuidle.dma_latency_us", cut("etc/systemd/system/tunectl-latency.service", "3 us", by="300 us")
    ),
    "cpufreq.intel_pstate": Case("xeon2s", "cpufreq.intel_pstate", put(f"{CPU}/intel_pstate/status", "passive")),
    "cpufreq.amd_pstate": Case("epyc", "cpufreq.amd_pstate", put(f"{CPU}/amd_pstate/status", "guided")),
    "cpufreq.governor": Case(
        "lab4", "cpufreq.governor[1]", put(f"{CPU}/cpufreq/policy1/scaling_governor", "powersave")
    ),
    "cpufreq.max_perf_pct": Case("xeon2s", "cpufreq.max_perf_pct", put(f"{CPU}/intel_pstate/max_perf_pct", "80")),
    "cpufreq.min_perf_pct": Case("xeon2s", "cpufreq.min_perf_pct", put(f"{CPU}/intel_pstate/min_perf_pct", "20")),
    "cpufreq.max_khz": Case("lab4", "cpufreq.max_khz[2]", put(f"{CPU}/cpufreq/policy2/scaling_max_freq", "2400000")),
    "cpufreq.min_khz": Case("xeon2s", "cpufreq.min_khz[31]", put(f"{CPU}/cpufreq/policy31/scaling_min_freq", "800000")),
    "cpufreq.boost": Case("xeon2s", "cpufreq.boost", put(f"{CPU}/intel_pstate/no_turbo", "1")),
    "cpufreq.policy_boost": Case("epyc", "cpufreq.policy_boost[7]", put(f"{CPU}/cpufreq/policy7/boost", "0")),
    "cpufreq.hwp_dynamic_boost": Case(
        "xeon2s", "cpufreq.hwp_dynamic_boost", put(f"{CPU}/intel_pstate/hwp_dynamic_boost", "1")
    ),
    "cpufreq.energy_perf_bias": Case(
        "xeon2s", "cpufreq.energy_perf_bias[21]", put(f"{CPU}/cpu21/power/energy_perf_bias", "15")
    ),
    "cpufreq.energy_performance_preference": Case(
        "xeon2s",
        "cpufreq.energy_performance_preference[9]",
        put(f"{CPU}/cpufreq/policy9/energy_performance_preference", "balance_power"),
    ),
    "uncore.max_khz": Case(
        "xeon2s", "uncore.max_khz[package_01_die_00]", put(f"{UNCORE}/package_01_die_00/max_freq_khz", "1600000")
    ),
    "uncore.min_khz": Case(
        "xeon2s", "uncore.min_khz[package_00_die_00]", put(f"{UNCORE}/package_00_die_00/min_freq_khz", "800000")
    ),
    "pcie.aspm_policy": Case(
        "lab4",
        "pcie.aspm_policy",
        put("sys/module/pcie_aspm/parameters/policy", "default performance [powersave] powersupersave"),
    ),
    "clocksource.current": Case(
        "xeon2s", "clocksource.current", put("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet")
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
    "mm.hugepages_2mib": Case(
        "xeon2s",
        "mm.hugepages_2mib[1]",
        put("sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages", "100"),
    ),
    "mm.hugepages_1gib": Case(
        "xeon2s",
        "mm.hugepages_1gib[1]",
        put("sys/devices/system/node/node1/hugepages/hugepages-1048576kB/nr_hugepages", "0"),
    ),
    "limits.memlock_logins": Case(
        "xeon2s", "limits.memlock_logins", cut("etc/security/limits.d/99-tunectl.conf", "unlimited", by="64")
    ),
    "limits.memlock_services": Case(
        "xeon2s", "limits.memlock_services", cut("etc/systemd/system.conf.d/99-tunectl.conf", "infinity", by="8M")
    ),
    "kernel.nmi_watchdog": Case("lab4", "kernel.nmi_watchdog", put("proc/sys/kernel/nmi_watchdog", "1")),
    "kernel.soft_watchdog": Case("xeon2s", "kernel.soft_watchdog", put("proc/sys/kernel/soft_watchdog", "1")),
    "kernel.watchdog_cpumask": Case("lab4", "kernel.watchdog_cpumask", put("proc/sys/kernel/watchdog_cpumask", "0-2")),
    "kernel.timer_migration": Case("lab4", "kernel.timer_migration", put("proc/sys/kernel/timer_migration", "0")),
    "kernel.stat_interval": Case("lab4", "kernel.stat_interval", put("proc/sys/vm/stat_interval", "1")),
    "kernel.sched_rt_runtime_us": Case(
        "lab4", "kernel.sched_rt_runtime_us", put("proc/sys/kernel/sched_rt_runtime_us", "950000")
    ),
    "kernel.fair_server_runtime_ns": Case(
        "xeon2s",
        "kernel.fair_server_runtime_ns[4]",
        put("sys/kernel/debug/sched/fair_server/cpu4/runtime", "50000000"),
    ),
    "systemd.isolated_slice": Case(
        "lab4", "systemd.isolated_slice", put("etc/systemd/system/isolated.slice", "[Slice]\nAllowedCPUs=0-3")
    ),
    "systemd.allowed_cpus": Case(
        "lab4",
        "systemd.allowed_cpus[user.slice]",
        lambda root: (root / "etc/systemd/system/user.slice.d/zz-tunectl.conf").unlink(),
    ),
    "systemd.cpu_affinity": Case(
        "lab4",
        "systemd.cpu_affinity",
        cut("etc/systemd/system.conf.d/zz-tunectl.conf", "CPUAffinity=0-1", by="CPUAffinity=0-3"),
    ),
    "systemd.apply_at_boot": Case(
        "lab4",
        "systemd.apply_at_boot",
        lambda root: (root / "etc/systemd/system/multi-user.target.wants/tunectl-apply.service").unlink(),
    ),
    "systemd.apply_on_hotplug": Case(
        "lab4", "systemd.apply_on_hotplug", put("etc/udev/rules.d/95-tunectl.rules", "# somebody commented it out")
    ),
    "boot.isolcpus": Case("lab4", "boot.isolcpus", cut(GRUB, f"{TUNED} ")),
    "boot.nohz_full": Case("lab4", "boot.nohz_full", cut(GRUB, "nohz_full=2-3 ")),
    # nohz_full= implies rcu_nocbs= for its CPUs: one alone may go
    "boot.rcu_nocbs": Case("lab4", "boot.rcu_nocbs", cut(GRUB, "nohz_full=2-3 ", "rcu_nocbs=2-3 ")),
    "boot.irqaffinity": Case("lab4", "boot.irqaffinity", cut(GRUB, "irqaffinity=0-1 ")),
    "boot.skew_tick": Case("lab4", "boot.skew_tick", cut(GRUB, "skew_tick=1 ")),
    "boot.nosoftlockup": Case("lab4", "boot.nosoftlockup", cut(GRUB, "nosoftlockup ")),
    "boot.tsc": Case("lab4", "boot.tsc", cut(GRUB, " tsc=reliable")),
    **{f"boot.{name}": Case("sites", f"boot.{name}", cut(OUR_GRUB, word)) for name, word in SITES_WORDS.items()},
}


ALONE = [name for name, case in CASES.items() if name.startswith("boot.") and case.host == "lab4"]
ALONE.remove("boot.rcu_nocbs")


def verdict(root: Path) -> str:
    """`tunectl verify`, in one word."""
    return verdict_of(inspection_on(root).assess().findings)


@pytest.fixture(scope="module")
def host(applied: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A tuned host that verify has nothing to say about, for one test at a time."""
    below = tmp_path_factory.mktemp("lent")
    lent = {name: Lent(root, below / name) for name, root in applied.items()}
    return lambda name: lent[name]()


def found(done: Ran, code: int = 3) -> dict[str, dict[str, Any]]:
    """What verify complains of, by target: not the harmless managed interrupts of xeon2s."""
    assert (done.code, done.err) == (code, "")
    return {
        one["target"]: one
        for one in done.json["findings"]
        if one["outcome"] in ("drifted", "pending-reboot", "unreadable")
    }


# An operator's to switch, tunectl only judges them: their sabotages are in test_switched_off.py.
JUDGED_ONLY = {"mm.swap", "kernel.highres", "kernel.nohz"}


def test_every_row_has_a_sabotage() -> None:
    assert list(CASES) == [name for name in KNOBS if name not in JUDGED_ONLY]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_sabotage_is_found_by_name_and_mended(tunectl: Run, host: Callable[[str], Path], name: str) -> None:
    case = CASES[name]
    root = host(case.host)
    case.act(root)
    seen = found(tunectl("verify", "--format", "json", "--root", root))
    with_it = {case.target, *WITH_IT.get(name, ())}
    assert set(seen) == with_it
    assert seen[case.target]["knob"] == name
    assert seen[case.target]["outcome"] == "drifted"
    assert seen[case.target]["fix"] == f"sudo tunectl --root {root} apply"
    assert seen[case.target]["reason"]
    run = apply(root)
    assert verdict_of(run.plan.findings) == "compliant"
    assert verdict_of(list(judged(root, name).values())) == "compliant"  # for whoever looks next


@pytest.mark.parametrize(
    "name",
    ALONE,
)
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
        ("zz-site.cfg", 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n', "grub.d/zz-site.cfg:1 overwrites"),
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
