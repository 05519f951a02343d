"""A host that TuneD partitions, in the shape its cpu-partitioning profile has: an include, variables, functions."""

from pathlib import Path

from tests.trees import write

LATENCY = """\
[main]
summary=Latency above all
[cpu]
governor=performance
energy_perf_bias=performance
min_perf_pct=100
force_latency=cstate.id_no_zero:1|3
[sysctl]
vm.swappiness=10
"""
NETWORK = """\
[main]
include=latency-performance
[vm]
transparent_hugepages=never
[sysctl]
kernel.numa_balancing=0
net.ipv4.tcp_fastopen=3
[vm.arm]
type=vm
uname_regex=aarch64
transparent_hugepages=always
[bootloader]
cmdline_latency=skew_tick=1
"""
PARTITIONING = """\
# what an operator chooses
[main]
include = network-latency
[variables]
include=/etc/tuned/cpu-partitioning-variables.conf
isolated_cores_assert_check = \\\\${isolated_cores}
isolated_cores = ${isolated_cores}
assert1=${f:assertion_non_equal:isolated_cores are set:${isolated_cores}:${isolated_cores_assert_check}}
tmpdir=${f:strip:${f:exec:mktemp:-d}}
expanded=${f:cpulist_unpack:${isolated_cores}}
others_expanded=${f:cpulist_invert:${expanded}}
others_mask=${f:cpulist2hex:${others_expanded}}
no_balance_cores=${no_balance_cores}
cmd_isolcpus=${f:regex_search_ternary:${no_balance_cores}:\\s*[0-9]: isolcpus=${no_balance_cores}:}
[sysctl]
kernel.nmi_watchdog = 0
vm.stat_interval = 10
kernel.timer_migration = 0
[sysfs]
/sys/devices/virtual/workqueue/cpumask = ${others_mask}
[irqbalance]
banned_cpus=${isolated_cores}
[scheduler]
isolated_cores=${isolated_cores}
[bootloader]
initrd_add_dir=${tmpdir}
cmdline_part=+nohz=on${cmd_isolcpus} nohz_full=${isolated_cores} rcu_nocbs=${isolated_cores} nosoftlockup
"""


def partition(root: Path, isolated: str = "2-3", variables: str | None = None) -> None:
    """Puts the profiles there, chooses the last, and lets TuneD run."""
    for name, text in (
        ("latency-performance", LATENCY),
        ("network-latency", NETWORK),
        ("cpu-partitioning", PARTITIONING),
    ):
        write(root, f"usr/lib/tuned/{name}/tuned.conf", text)
    write(root, "etc/tuned/active_profile", "cpu-partitioning\n")
    text = f"# the operator's\nisolated_cores={isolated}\n" if variables is None else variables
    write(root, "etc/tuned/cpu-partitioning-variables.conf", text)
    write(root, "sys/fs/cgroup/system.slice/tuned.service/cgroup.procs", "77\n")
