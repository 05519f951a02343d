"""What a host is built of: from recorded hosts, and the same whatever tuning did."""

import gzip
from pathlib import Path

import pytest

from tests.hosts.builder import NAMES, HostFactory, named
from tests.hosts.tree import Tree
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.identity import read_firmware, read_identity
from tunectl.host.sysroot import Sysroot
from tunectl.host.topology import read_machine
from tunectl.shapes import CardFirmware, Firmware, Hardware

SMALL = [name for name in NAMES if name != "big"]


def machine(root: Path) -> Hardware:
    opened = Sysroot(str(root))
    return read_machine(opened, read_scope_facts(opened))


@pytest.mark.parametrize("name", SMALL)
def test_counts_are_those_of_what_is_online(host_root: HostFactory, name: str) -> None:
    spec, found = named(name), machine(host_root(name))
    online = [cpu for cpu in spec.cpus if cpu.online]
    assert found.cpus == len(online)
    assert found.cores == len({(cpu.package, cpu.die, cpu.core) for cpu in online})
    assert found.sockets == len({cpu.package for cpu in online})
    assert found.numa_nodes == len(spec.nodes)
    assert found.cpu_model


@pytest.mark.parametrize("name", SMALL)
def test_tuning_makes_no_other_machine(host_root: HostFactory, name: str) -> None:
    tuned = frozenset({max(named(name).online)})
    assert machine(host_root(name)) == machine(host_root(name, tuned_boot=tuned))


def test_a_virtual_machine_says_so(host_root: HostFactory) -> None:
    assert machine(host_root("vm2")).hypervisor
    assert not machine(host_root("xeon2s")).hypervisor


def test_arm_has_a_model_too(host_root: HostFactory) -> None:
    assert "implementer" in machine(host_root("arm64")).cpu_model


def test_a_host_without_anything(tmp_path: Path) -> None:
    (tmp_path / "sys/devices/system/cpu").mkdir(parents=True)
    (tmp_path / "sys/devices/system/cpu/present").write_text("0\n")
    assert machine(tmp_path) == Hardware(sockets=1, cores=1, cpus=1, numa_nodes=1)


def test_firmware_is_told_where_a_host_shows_it(host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("xeon2s", tmp_path)
    opened = Sysroot(str(root))
    assert (read_identity(opened).microcode, read_identity(opened).bios) == ("", "")
    assert read_firmware(opened) == Firmware("#1 SMP PREEMPT_DYNAMIC")
    tree = Tree(root)
    tree.value("sys/devices/system/cpu/cpu0/microcode/version", "0x2b000639")
    tree.values("sys/class/dmi/id", bios_version="2.19.1", bios_date="03/04/2025")
    tree.value("ethtool/ens2f0/firmware", "22.36.1010 (MT_0000000359)")
    tree.text("boot/config-6.12.0-55.el10.x86_64", "CONFIG_NO_HZ_FULL=y\n")
    assert read_identity(opened).microcode == "0x2b000639"
    assert read_identity(opened).bios == "2.19.1 03/04/2025"
    found = read_firmware(opened)
    assert found.cards == (CardFirmware("ens2f0", "mlx5_core", "22.36.1010 (MT_0000000359)"),)
    packed = root / "proc/config.gz"
    packed.write_bytes(gzip.compress(b"CONFIG_NO_HZ_FULL=y\n"))
    assert (len(found.kernel_config), read_firmware(opened).kernel_config) == (12, found.kernel_config)
    packed.write_bytes(b"no gzip")
    assert read_firmware(opened).kernel_config == found.kernel_config
