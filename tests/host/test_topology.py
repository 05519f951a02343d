"""The topology of recorded hosts: what was described is what is read."""

import os
from pathlib import Path

import pytest

from tests.hosts.builder import NAMES, HostFactory, build, named
from tests.hosts.spec import Cpu, HostSpec, Irq, Nic
from tunectl.errors import TunectlError
from tunectl.host.cpus import classify_capacities, parse_base_step, parse_memory, parse_size
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.hardware import parse_choice, parse_os_release
from tunectl.host.identity import parse_machine, read_identity
from tunectl.host.sysroot import Sysroot
from tunectl.host.topology import Topology, read_topology

ALL_BUT_BIG = [name for name in NAMES if name != "big"]


def topology(host_root: HostFactory, name: str, **options: frozenset[int]) -> Topology:
    return read_topology(Sysroot(str(host_root(name, **options))))


@pytest.mark.parametrize("name", NAMES)
def test_the_cheap_facts_are_those_described(host_root: HostFactory, name: str) -> None:
    spec = named(name)
    facts = read_scope_facts(Sysroot(str(host_root(name))))
    assert (facts.present, facts.online) == (spec.present, spec.online)
    assert facts.nr_cpus == spec.nr_cpus
    assert facts.kernel_isolated == facts.nohz_full == frozenset()
    assert facts.siblings.keys() == spec.online
    for cpu in (one for one in spec.cpus if one.online):
        core = {o.cpu for o in spec.cpus if o.online and (o.package, o.die, o.core) == (cpu.package, cpu.die, cpu.core)}
        assert facts.siblings[cpu.cpu] == core


@pytest.mark.parametrize("name", ALL_BUT_BIG)
def test_every_cpu_is_where_it_was_put(host_root: HostFactory, name: str) -> None:
    spec = named(name)
    cpus = {cpu.cpu: cpu for cpu in topology(host_root, name).cpus}
    assert list(cpus) == sorted(spec.present)
    for want in spec.cpus:
        got = cpus[want.cpu]
        assert got.online == want.online
        if want.online:
            assert (got.core_id, got.package, got.die, got.numa_node) == (want.core, want.package, want.die, want.node)


def test_a_tuned_boot_shows_what_the_kernel_isolates(host_root: HostFactory) -> None:
    facts = topology(host_root, "lab4", tuned_boot=frozenset({2, 3})).facts
    assert facts.kernel_isolated == facts.nohz_full == {2, 3}


@pytest.mark.slow
def test_more_than_a_thousand_cpus(host_root: HostFactory) -> None:
    facts = read_scope_facts(Sysroot(str(host_root("big"))))
    assert facts.nr_cpus == 1152
    assert facts.siblings[1151] == {575, 1151}


def test_an_offline_cpu_has_no_topology_and_does_not_disturb_the_others(host_root: HostFactory) -> None:
    host = topology(host_root, "sparse")
    assert [cpu.cpu for cpu in host.cpus if not cpu.online] == [0, 12]
    assert host.cpu(0).core_id is None
    assert host.cpu(0).smt_siblings == frozenset()
    assert host.cpu(8).smt_siblings == {8, 9}
    with pytest.raises(KeyError):
        host.cpu(1)


def test_hybrid_cores_have_a_kind_and_a_base_of_their_own(host_root: HostFactory) -> None:
    host = topology(host_root, "hybrid")
    assert (host.cpu(2).core_type, host.cpu(2).base_khz) == ("performance", 3400000)
    assert (host.cpu(9).core_type, host.cpu(9).base_khz) == ("efficiency", 2500000)
    assert host.cpu(9).max_khz == 3900000


@pytest.mark.parametrize(
    ("name", "base", "source"),
    [
        ("lab4", 3500000, "scaling_available_frequencies"),
        ("xeon2s", 3500000, "base_frequency"),
        ("epyc", 2850000, "acpi_cppc/nominal_freq"),
        ("sparse", 2800000, "scaling_available_frequencies"),  # 2,801,000 is turbo
        ("vm2", None, ""),
    ],
)
def test_the_base_frequency_and_where_it_is_from(
    host_root: HostFactory, name: str, base: int | None, source: str
) -> None:
    cpus = [cpu for cpu in topology(host_root, name).cpus if cpu.online]
    assert {(cpu.base_khz, cpu.base_source) for cpu in cpus} == {(base, source)}


def test_what_may_interrupt_a_cpu_is_not_read_on_isolated_ones(tmp_path: Path) -> None:
    root = build(tmp_path, named("xeon2s", tuned_boot=frozenset({12, 13, 28, 29})))
    quiet = frozenset({14, 30})
    for cpu in (12, 13, 28, 29, 14, 30):
        os.unlink(root / f"sys/devices/system/cpu/cpufreq/policy{cpu}/base_frequency")
        (root / f"sys/devices/system/cpu/cpufreq/policy{cpu}/base_frequency").write_text(
            "1\n"
        )  # who reads it, shows it
    host = read_topology(Sysroot(str(root)), quiet)
    assert {cpu.base_khz for cpu in host.cpus} == {3500000}


def test_a_package_isolated_as_a_whole_borrows_the_base_of_another(tmp_path: Path) -> None:
    second = frozenset(cpu.cpu for cpu in named("xeon2s").cpus if cpu.package == 1)
    host = read_topology(Sysroot(str(build(tmp_path, named("xeon2s", tuned_boot=second)))))
    assert host.cpu(8).base_khz == 3500000


def test_a_node_may_have_no_cpu(host_root: HostFactory) -> None:
    nodes = topology(host_root, "epyc").numa_nodes
    assert [bool(node.cpus) for node in nodes] == [True, True, False, True]
    assert nodes[2].memory_bytes == 64000 << 20
    assert nodes[3].distances == (12, 12, 12, 10)


def test_caches_and_who_shares_them(host_root: HostFactory) -> None:
    cpu = topology(host_root, "epyc").cpu(14)
    assert cpu.last_level_cache == {12, 13, 14, 15, 28, 29, 30, 31}
    assert [(cache.level, cache.kind) for cache in cpu.caches][:2] == [(1, "Data"), (1, "Instruction")]


def test_nics_know_their_node_and_vectors(host_root: HostFactory) -> None:
    first, second = topology(host_root, "xeon2s").nics
    assert (first.name, first.driver, first.numa_node, first.irqs) == ("eno1", "tg3", 0, (40, 41, 42, 43))
    assert (second.name, second.speed_mbps, second.rx_queues) == ("ens2f0", 25000, 8)
    assert second.local_cpus == "8-15,24-31"


def test_a_virtio_nic_has_the_vectors_of_its_pci_function(host_root: HostFactory) -> None:
    (nic,) = topology(host_root, "lab4").nics
    assert (nic.device, nic.driver, nic.irqs) == ("virtio0", "virtio_net", (30, 31, 32))
    assert nic.numa_node is None
    assert nic.speed_mbps is None


def test_without_msi_the_lines_that_bear_its_name_are_a_nics(tmp_path: Path) -> None:
    actions = ("eth0", "eth01", "usb1, eth0-rx", "virtio0", "xvirtio0")
    nic = Nic("eth0", "virtio_net", "0000:00:04.0", (), virtio=True)
    irqs = tuple(Irq(10 + n, action, 0) for n, action in enumerate(actions))
    host = read_topology(Sysroot(str(build(tmp_path, HostSpec("old", (Cpu(0, 0),), irqs=irqs, nics=(nic,))))))
    assert host.nics[0].irqs == (10, 12, 13)


def test_a_read_only_affinity_means_managed_where_the_kernel_says_so(host_root: HostFactory) -> None:
    new = {irq.name: irq for irq in topology(host_root, "xeon2s").irqs}
    assert (new["nvme0q1"].managed, new["ens2f0-0"].managed) == ("yes", "no")
    old = {irq.name: irq for irq in topology(host_root, "lab4").irqs}
    assert old["nvme0q1"].managed == "unknown"
    assert old["nvme0q1"].counts == {0: 1000}


def test_the_drivers(host_root: HostFactory) -> None:
    xeon = topology(host_root, "xeon2s").drivers
    assert (xeon.cpufreq, xeon.cpufreq_status, xeon.boost, xeon.hypervisor) == ("intel_pstate", "active", True, "")
    vm = topology(host_root, "vm2").drivers
    assert (vm.cpufreq, vm.boost, vm.hypervisor, vm.clocksource) == ("", None, "QEMU", "kvm-clock")


@pytest.mark.parametrize("name", ALL_BUT_BIG)
def test_the_identity(host_root: HostFactory, name: str) -> None:
    spec = named(name)
    found = read_identity(Sysroot(str(host_root(name))))
    assert (found.hostname, found.kernel, found.machine) == (name, spec.kernel, spec.arch)
    assert found.boot_id


def test_the_identity_of_an_empty_tree_is_empty(tmp_path: Path) -> None:
    assert read_identity(Sysroot(str(tmp_path))).machine == ""


def test_a_tree_without_cpus_is_refused_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(TunectlError, match=r"no CPUs are described .*snapshot"):
        read_scope_facts(Sysroot(str(tmp_path)))


def test_a_host_with_nothing_but_cpu_directories(tmp_path: Path) -> None:
    for cpu in (0, 1):
        (tmp_path / f"sys/devices/system/cpu/cpu{cpu}").mkdir(parents=True)
    host = read_topology(Sysroot(str(tmp_path)))
    assert host.online == {0, 1}
    assert host.cpu(1).smt_siblings == {1}
    assert (host.numa_nodes, host.nics, host.irqs) == ((), (), ())


def test_files_that_hold_garbage_are_as_good_as_missing(tmp_path: Path) -> None:
    root = build(tmp_path, HostSpec("odd", (Cpu(0, 0), Cpu(1, 1))))
    cpu = root / "sys/devices/system/cpu"
    (cpu / "isolated").write_text("no list\n")
    (cpu / "cpu1/topology/thread_siblings_list").write_text("7-1\n")
    (cpu / "cpu1/topology/core_id").write_text("\n")
    (cpu / "cpu1/cache/index0/size").write_text("many\n")
    host = read_topology(Sysroot(str(root)))
    assert host.facts.kernel_isolated == frozenset()
    assert host.cpu(1).core_id is None
    assert host.cpu(1).smt_siblings == frozenset({1})
    assert host.cpu(1).caches[0].size_bytes is None


def test_the_live_host_agrees_with_the_kernel() -> None:
    host = read_topology(Sysroot())
    assert len(host.online) == os.sysconf("SC_NPROCESSORS_ONLN")
    assert read_identity(Sysroot()).machine == os.uname().machine
    assert read_identity(Sysroot()).kernel == os.uname().release


def test_small_parsers() -> None:
    assert parse_size("32K") == 32 << 10
    assert parse_size("16M") == 16 << 20
    assert parse_size("") is None
    assert parse_base_step("2801000 2800000 1200000") == 2800000
    assert parse_base_step("3500000 2400000") == 3500000
    assert parse_base_step("2400000") == 2400000
    assert parse_base_step("") is None
    assert parse_memory("Node 0 MemTotal:  1024 kB\n") == 1 << 20
    assert parse_memory("") is None
    assert parse_choice("none [integrity] confidentiality") == "integrity"
    assert parse_os_release('NAME=x\nPRETTY_NAME="A B"\n') == "A B"
    assert parse_os_release("PRETTY_NAME=Bare\n") == "Bare"
    assert parse_machine("flags\t: fpu lm\n") == "x86_64"
    assert parse_machine("CPU implementer : 0x41\n") == "aarch64"
    assert parse_machine("") == ""


def test_core_types_by_capacity() -> None:
    assert classify_capacities({}) == {}
    assert classify_capacities({0: 1024, 1: 1024}) == {}
    assert classify_capacities({0: 1024, 1: 980}) == {}  # a favoured core is no other kind
    assert classify_capacities({0: 1024, 1: 446}) == {0: "performance", 1: "efficiency"}
