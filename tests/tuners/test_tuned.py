"""TuneD's profile as it will be in force: includes, variables, functions, conditions."""

from pathlib import Path

import pytest

from tests.hosts.builder import HostFactory
from tests.trees import write
from tests.tuners.partitioned import partition
from tunectl.host.sysroot import Sysroot
from tunectl.tuners.conflicts import FoundTuner, conflicts
from tunectl.tuners.find import read_tuners
from tunectl.tuners.tuned import isolated_by, read_profile
from tunectl.tuners.tunedvars import Machine, expand

PACKAGES = {0: frozenset(range(4)), 1: frozenset(range(4, 8))}
MACHINE = Machine(frozenset(range(8)), frozenset(range(7)), PACKAGES, {}, "vendor_id : AuthenticAMD")
VENDOR = "${f:cpuinfo_check:GenuineIntel:intel_pstate=disable:AuthenticAMD:amd_pstate=disable:}"


@pytest.fixture
def root(host_root: HostFactory, tmp_path: Path) -> Path:
    tree = host_root.fresh("lab4", tmp_path)
    partition(tree)
    return tree


def tuned(root: Path) -> FoundTuner:
    return next(tuner for tuner in read_tuners(Sysroot(str(root))) if tuner.name == "tuned")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a ${x} b", "a 2-3 b"),
        ("${f:cpulist2hex:${x}}", "c"),
        ("${f:cpulist2hex:${f:cpulist_invert:${f:cpulist_unpack:${x}}}}", "f3"),
        ("${f:cpulist2hex_invert:${x}}", "f3"),
        ("${f:cpulist_online:6,7}", "6"),
        ("${f:calc_isolated_cores:1}", "1-3,5-7"),
        ("${f:calc_isolated_cores}", "1-3,5-7"),
        ("${f:strip: a }", "a"),
        (r"${f:regex_search_ternary:${x}:\s*[0-9]: isolcpus=${x}:}", " isolcpus=2-3"),
        (r"${f:regex_search_ternary:${nobody}:\s*[0-9]: isolcpus=${nobody}:}", ""),
        (r"\${x}", "${x}"),
        (VENDOR, "amd_pstate=disable"),
        (VENDOR.replace("AMD", "HAL"), ""),
        ("${f:cpuinfo_check:(a+)+$:y:n}", None),
        ("${f:check_net_queue_count:4}", "4"),
        ("${f:check_net_queue_count:${nobody}}", None),  # as many as TuneD itself may use
        ("${f:exec:rm:-rf:/}", None),  # nothing is ever run
        ("${f:regex_search_ternary:x:(a+)+$:y:n}", None),  # nor a stranger's expression
        ("${f:cpulist_invert:nonsense}", None),
        ("${unknown_value}", None),
        ("${loop}", None),
    ],
)
def test_variables(text: str, value: str | None) -> None:
    assert expand(text, {"x": "2-3", "loop": "${loop}", "unknown_value": None}, MACHINE) == value


def test_what_the_chosen_profile_writes(root: Path) -> None:
    found = {setting.knob: (setting.value, setting.line) for setting in tuned(root).settings if setting.wins}
    assert found["cpufreq.governor"] == ("performance", 4)
    assert found["cpufreq.min_perf_pct"] == ("100", 6)
    assert found["mm.swappiness"] == ("10", 9)
    assert found["mm.thp_enabled"] == ("never", 4)  # the other section is for another machine
    assert found["kernel.timer_migration"] == ("0", 18)
    assert found["workqueue.cpumask"] == ("3", 20)
    assert found["irqbalance.banned_cpus"] == ("2-3", 22)
    assert found["boot.nohz_full"] == found["boot.rcu_nocbs"] == ("2-3", 27)
    assert found["boot.skew_tick"][0] == "1"
    assert "boot.isolcpus" not in found


def test_only_what_differs_is_a_conflict(root: Path) -> None:
    ours = {
        "cpufreq.governor": "performance",
        "cpufreq.min_khz": "hardware-max",
        "mm.swappiness": 1,
        "mm.thp_enabled": "never",
        "kernel.timer_migration": True,
        "workqueue.cpumask": frozenset({0, 1}),
        "boot.nohz_full": frozenset({2, 3}),
        "mm.ksm": "stopped",
        "irq.affinity": frozenset({0, 1}),
    }
    against = conflicts(tuned(root), ours)
    assert {one.knob for one in against} == {"mm.swappiness", "kernel.timer_migration"}
    write(root, "etc/tuned/cpu-partitioning-variables.conf", "isolated_cores=3\n")
    assert {one.knob for one in conflicts(tuned(root), ours)} == {
        "mm.swappiness",
        "kernel.timer_migration",
        "workqueue.cpumask",
        "boot.nohz_full",
        "irq.affinity",
    }


def test_a_sites_own_profile_counts_before_the_shipped_one(root: Path) -> None:
    write(
        root,
        "etc/tuned/cpu-partitioning/tuned.conf",
        "[main]\ninclude=latency-performance\n[sysctl]\nvm.swappiness=1\n",
    )
    assert conflicts(tuned(root), {"mm.swappiness": 1, "kernel.timer_migration": True}) == []


def test_a_profile_whose_file_is_missing_may_write_anything(root: Path) -> None:
    write(root, "etc/tuned/active_profile", "elsewhere\n")
    assert "kernel.*" in tuned(root).overwrites
    assert [one.knob for one in conflicts(tuned(root), {"mm.swappiness": 10})] == ["mm.swappiness"]


def test_a_profile_that_includes_itself_ends(root: Path) -> None:
    write(root, "usr/lib/tuned/network-latency/tuned.conf", "[main]\ninclude=cpu-partitioning\n")
    assert read_profile(Sysroot(str(root))).missing == ()


def test_switched_off_sections_and_no_profile(root: Path) -> None:
    own = "[main]\ninclude=cpu-partitioning\n[sysctl]\nenabled=false\n[scheduler]\nreplace=1\n"
    write(root, "etc/tuned/own/tuned.conf", own)
    write(root, "etc/tuned/active_profile", "own\n")
    assert not {"mm.swappiness", "irq.affinity"} & set(tuned(root).overwrites)
    write(root, "etc/tuned/active_profile", "\n")
    assert tuned(root).overwrites == ()
    assert conflicts(tuned(root), {"mm.swappiness": 1}) == []


def test_the_isolated_cpus_and_where_it_says_so(root: Path) -> None:
    cpus, where = isolated_by(read_profile(Sysroot(str(root))))
    assert (set(cpus), where) == ({2, 3}, "/usr/lib/tuned/cpu-partitioning/tuned.conf:22")


REALTIME = """\
[main]
include=network-latency
[variables]
include=/etc/tuned/realtime-variables.conf
pstate = ${f:cpuinfo_check:GenuineIntel:intel_pstate=disable:AuthenticAMD:amd_pstate=disable:}
managed=${f:regex_search_ternary:${isolate_managed_irq}:\\b[y,Y,1,t,T]\\b:managed_irq,domain,:}
[net]
channels=combined ${f:check_net_queue_count:${netdev_queue_count}}
coalesce=adaptive-rx on, rx-usecs: 8; nonsense 3
features=gro off ntuple on
ring = rx 4096 tx
[systemd]
cpu_affinity=${f:cpulist_invert:${isolated_cores}}
[bootloader]
cmdline_realtime=+isolcpus=${managed}${isolated_cores} ${pstate} nosoftlockup
"""


def realtime(root: Path, variables: str = "") -> dict[str, str]:
    """What a profile like TuneD's realtime writes, by knob."""
    write(root, "usr/lib/tuned/realtime/tuned.conf", REALTIME)
    write(root, "etc/tuned/active_profile", "realtime\n")
    write(root, "etc/tuned/realtime-variables.conf", f"isolated_cores=2-3\nisolate_managed_irq=Y\n{variables}")
    return {setting.knob: setting.value for setting in tuned(root).settings if setting.wins}


def test_a_realtime_profile_and_its_nics(root: Path) -> None:
    found = realtime(root)
    vendor = "intel_pstate" if "GenuineIntel" in (root / "proc/cpuinfo").read_text() else "amd_pstate"
    assert (found["boot.isolcpus"], found[f"boot.{vendor}"]) == ("managed_irq,domain,2-3", "disable")
    assert found["systemd.cpu_affinity"] == "0-1"
    nic = {"net.adaptive_rx": "1", "net.rx_usecs": "8", "net.gro": "0", "net.ntuple": "1", "net.rx_ring": "4096"}
    assert {knob: value for knob, value in found.items() if knob in nic} == nic
    # How many channels is known only to TuneD: it may be any number, and that is said.
    assert found["net.combined_channels"] == found["net.rx_channels"] == ""
    ours = {"net.adaptive_rx": False, "net.rx_usecs": 8, "net.combined_channels": 2}
    assert {one.knob for one in conflicts(tuned(root), ours)} == {"net.adaptive_rx", "net.combined_channels"}
    assert realtime(root, "netdev_queue_count=2\n")["net.combined_channels"] == "2"
    assert {one.knob for one in conflicts(tuned(root), ours)} == {"net.adaptive_rx"}


@pytest.mark.parametrize(
    ("option", "value"),
    [("cstate.id_no_zero:1|3", "2"), ("cstate.name:C6", "133"), ("5", "5"), ("0", "n/a"), ("cstate.name:C99|9", "")],
)
def test_the_latency_that_tuned_holds(root: Path, option: str, value: str) -> None:
    for number, (name, latency) in enumerate((("POLL", 0), ("C1", 2), ("C6", 133))):
        state = f"sys/devices/system/cpu/cpu0/cpuidle/state{number}"
        write(root, f"{state}/name", f"{name}\n")
        write(root, f"{state}/latency", f"{latency}\n")
    own = f"[main]\ninclude=cpu-partitioning\n[cpu]\nforce_latency={option}\n"
    write(root, "etc/tuned/own/tuned.conf", own)
    write(root, "etc/tuned/active_profile", "own\n")
    found = {setting.knob: setting.value for setting in tuned(root).settings if setting.wins}
    assert found["cpuidle.dma_latency_us"] == value
    # Two limits stand side by side: neither overwrites the other.
    assert conflicts(tuned(root), {"cpuidle.dma_latency_us": 1}) == []
