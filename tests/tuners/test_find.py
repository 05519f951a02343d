"""Who else tunes: evidence on recorded hosts, irqbalance's ban list, sysctl.d's precedence."""

from pathlib import Path

import pytest

from tests.hosts.builder import HostFactory
from tests.trees import write
from tunectl.host.irqbalance import read_configured_ban, read_running_ban
from tunectl.host.sysctld import normal_key, parse_sysctl_d, read_sysctl_settings
from tunectl.host.sysroot import Sysroot
from tunectl.tuners.conflicts import FoundTuner
from tunectl.tuners.find import read_programs
from tunectl.tuners.places import places


def tuners(root: Path) -> dict[str, FoundTuner]:
    return {tuner.name: tuner for tuner in read_programs(Sysroot(str(root)))}


def test_what_runs_on_a_stock_server(host_root: HostFactory) -> None:
    found = tuners(host_root("xeon2s"))
    assert list(found) == ["tuned", "irqbalance"]
    assert found["tuned"].active
    assert found["tuned"].enabled
    assert found["tuned"].profile == "throughput-performance"
    assert found["irqbalance"].detail == "bans nothing (/etc/sysconfig/irqbalance:2)"


def test_a_process_name_longer_than_the_kernel_keeps(host_root: HostFactory) -> None:
    assert any(path.endswith("/comm") for path in tuners(host_root("epyc"))["power-profiles-daemon"].evidence)


def test_nobody(host_root: HostFactory, tmp_path: Path) -> None:
    assert tuners(host_root("vm2")) == {}
    assert tuners(tmp_path) == {}


def test_installed_enabled_masked(tmp_path: Path) -> None:
    write(tmp_path, "usr/lib/systemd/system/tlp.service", "[Unit]\n")
    assert (tuners(tmp_path)["tlp"].active, tuners(tmp_path)["tlp"].enabled) == (False, False)
    wants = tmp_path / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    (wants / "tlp.service").symlink_to("/usr/lib/systemd/system/tlp.service")
    assert tuners(tmp_path)["tlp"].enabled
    (tmp_path / "etc/systemd/system/tlp.service").symlink_to("/dev/null")
    assert tuners(tmp_path) == {}


@pytest.mark.parametrize(
    ("text", "cpus", "said"),
    [
        ("", None, "bans the CPUs the kernel isolates"),
        ("#IRQBALANCE_BANNED_CPULIST=1\n", None, "bans the CPUs the kernel isolates"),
        ("IRQBALANCE_BANNED_CPULIST=\n", frozenset(), "bans nothing (/etc/default/irqbalance:1)"),
        ('X=1\nIRQBALANCE_BANNED_CPULIST="2-3"\n', {2, 3}, "bans 2-3 (/etc/default/irqbalance:2)"),
        ("IRQBALANCE_BANNED_CPUS=0000000c\n", {2, 3}, "bans 2-3 (/etc/default/irqbalance:1)"),
        (
            "IRQBALANCE_BANNED_CPUS=a\nIRQBALANCE_BANNED_CPULIST=2-3\n",
            {3},
            "bans 3 (/etc/default/irqbalance:2, /etc/default/irqbalance:1)",
        ),
        ("IRQBALANCE_BANNED_CPUS=\nIRQBALANCE_BANNED_CPULIST=3\n", {3}, "bans 3 (/etc/default/irqbalance:2)"),
        ("IRQBALANCE_BANNED_CPULIST=1\nIRQBALANCE_BANNED_CPULIST=3\n", {3}, "bans 3 (/etc/default/irqbalance:2)"),
    ],
)
def test_the_configured_ban(tmp_path: Path, text: str, cpus: frozenset[int] | None, said: str) -> None:
    write(tmp_path, "etc/default/irqbalance", text)
    ban = read_configured_ban(Sysroot(str(tmp_path)))
    assert (ban.cpus, ban.describe()) == (cpus, said)


def test_a_ban_that_irqbalance_cannot_read(tmp_path: Path) -> None:
    write(tmp_path, "etc/default/irqbalance", "IRQBALANCE_BANNED_CPULIST=x-y\n")
    assert "x-y" in read_configured_ban(Sysroot(str(tmp_path))).problem


def test_a_drop_in_gives_way_to_the_environment_file(tmp_path: Path) -> None:
    unit = "etc/systemd/system/irqbalance.service.d/ban.conf"
    write(tmp_path, unit, '[Service]\nEnvironment="IRQBALANCE_BANNED_CPULIST=4"\n')
    assert read_configured_ban(Sysroot(str(tmp_path))).cpus == frozenset({4})
    write(tmp_path, "etc/default/irqbalance", "IRQBALANCE_BANNED_CPULIST=5\n")
    assert read_configured_ban(Sysroot(str(tmp_path))).cpus == frozenset({5})


@pytest.mark.parametrize(
    ("unit", "cpus"),
    [
        ("Environment=A=b IRQBALANCE_BANNED_CPULIST=4\n", None),  # outside of [Service] systemd does not read it
        ("[Unit]\nEnvironment=IRQBALANCE_BANNED_CPULIST=4\n", None),
        ("[Service]\nEnvironment=A=b 'IRQBALANCE_BANNED_CPULIST=4'\n", {4}),
        ("[Service]\nEnvironment=A=b \\\n  IRQBALANCE_BANNED_CPULIST=4\n", {4}),
        ("[Service]\nEnvironment=IRQBALANCE_BANNED_CPULIST=4\nEnvironment=IRQBALANCE_BANNED_CPULIST=5\n", {5}),
    ],
)
def test_the_environment_of_a_unit(tmp_path: Path, unit: str, cpus: frozenset[int] | None) -> None:
    write(tmp_path, "etc/systemd/system/irqbalance.service.d/ban.conf", unit)
    assert read_configured_ban(Sysroot(str(tmp_path))).cpus == cpus


def test_the_running_daemon_may_differ_from_its_configuration(tmp_path: Path) -> None:
    write(tmp_path, "proc/77/comm", "irqbalance\n")
    write(tmp_path, "proc/77/environ", "A=b\0IRQBALANCE_BANNED_CPULIST=1\0")
    write(tmp_path, "etc/default/irqbalance", "IRQBALANCE_BANNED_CPULIST=2\n")
    found = tuners(tmp_path)["irqbalance"]
    assert [ban.cpus for ban in found.running_bans] == [frozenset({1})]
    assert found.detail == "bans 1 (process 77); configured, after a restart: bans 2 (/etc/default/irqbalance:1)"
    assert read_running_ban(Sysroot(str(tmp_path)), 78) is None


def test_sysctl_lines() -> None:
    text = "# c\n; c\nvm.swappiness = 10\n-kernel/numa_balancing=0\n-kernel.x\nnonsense\n"
    assert [(line.key, line.value, line.line) for line in parse_sysctl_d(text)] == [
        ("vm.swappiness", "10", 3),
        ("kernel.numa_balancing", "0", 4),
    ]
    assert normal_key("net/ipv4/conf/eth0.1/x") == "net.ipv4.conf.eth0/1.x"
    assert normal_key("net.ipv4.conf.eth0/1.x") == "net.ipv4.conf.eth0/1.x"


def test_sysctl_precedence(tmp_path: Path) -> None:
    write(tmp_path, "usr/lib/sysctl.d/50-a.conf", "vm.swappiness=1\n")
    write(tmp_path, "etc/sysctl.d/50-a.conf", "vm.swappiness=2\n")  # the same name: the other is not read
    write(tmp_path, "run/sysctl.d/60-b.conf", "vm.swappiness=3\nkernel.nmi_watchdog=0\n")
    write(tmp_path, "usr/lib/sysctl.d/70-c.conf", "vm.*=9\nkernel.watchdog=1\n")
    write(tmp_path, "etc/sysctl.conf", "vm.swappiness=99\n")  # nothing links to it
    found = [
        (s.key, s.value, s.path, s.line, s.wins) for s in read_sysctl_settings(Sysroot(str(tmp_path)), places().sysctls)
    ]
    assert found == [
        ("vm.swappiness", "2", "/etc/sysctl.d/50-a.conf", 1, False),
        ("vm.swappiness", "3", "/run/sysctl.d/60-b.conf", 1, True),
        ("kernel.nmi_watchdog", "0", "/run/sysctl.d/60-b.conf", 2, True),
        ("vm.swappiness", "9", "/usr/lib/sysctl.d/70-c.conf", 1, False),  # a pattern gives way
        ("vm.stat_interval", "9", "/usr/lib/sysctl.d/70-c.conf", 1, True),
        ("kernel.watchdog", "1", "/usr/lib/sysctl.d/70-c.conf", 2, True),
    ]
    (tmp_path / "etc/sysctl.d/99-sysctl.conf").symlink_to("../sysctl.conf")
    assert [
        s.value
        for s in read_sysctl_settings(Sysroot(str(tmp_path)), places().sysctls)
        if s.key == "vm.swappiness" and s.wins
    ] == ["99"]
