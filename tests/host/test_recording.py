"""A recorded host is the host: what tunectl reads from the unpacked archive is what it read before."""

import hashlib
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.builder import NAMES, HostFactory, build_named
from tests.hosts.tree import Tree
from tunectl.bootloader.grubsettings import read_sh
from tunectl.host.identity import read_identity
from tunectl.host.nics import cards_below
from tunectl.host.recording import FILES, expand, record
from tunectl.host.sysroot import Sysroot
from tunectl.host.topology import read_topology
from tunectl.knobs import files_read
from tunectl.tuners.find import read_programs
from tunectl.tuners.table import tuner_units

EVERYTHING: dict[str, Any] = {"units": tuner_units(), "files": files_read()}


def unpacked(archive: Path, below: Path) -> Sysroot:
    below.mkdir()
    subprocess.run(["tar", "xf", str(archive), "-C", str(below)], check=True)
    return Sysroot(str(below))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "big"])
def test_round_trip(host_root: HostFactory, tmp_path: Path, name: str) -> None:
    root = Sysroot(str(host_root(name)))
    summary = record(root, str(tmp_path / "host.tar.gz"), **EVERYTHING)
    copy = unpacked(tmp_path / "host.tar.gz", tmp_path / "copy")
    assert summary.skipped == []
    assert summary.bytes == (tmp_path / "host.tar.gz").stat().st_size
    assert read_topology(copy) == read_topology(root)
    assert read_identity(copy) == read_identity(root)
    assert [(m.name, m.active, m.enabled, m.detail, m.settings) for m in read_programs(copy)] == [
        (m.name, m.active, m.enabled, m.detail, m.settings) for m in read_programs(root)
    ]


@pytest.mark.slow
def test_a_recording_of_a_recording_is_the_same_to_the_byte(host_root: HostFactory, tmp_path: Path) -> None:
    record(
        Sysroot(str(host_root("xeon2s", tuned_boot=frozenset({14, 15, 30, 31})))),
        str(tmp_path / "one.tar.gz"),
        **EVERYTHING,
    )
    record(
        unpacked(tmp_path / "one.tar.gz", tmp_path / "copy"),
        str(tmp_path / "two.tar.gz"),
        **EVERYTHING,
    )
    one, two = (hashlib.sha256((tmp_path / name).read_bytes()).digest() for name in ("one.tar.gz", "two.tar.gz"))
    assert one == two


@pytest.mark.slow
def test_no_link_leaves_the_archive(host_root: HostFactory, tmp_path: Path) -> None:
    record(Sysroot(str(host_root("xeon2s"))), str(tmp_path / "host.tar.gz"), **EVERYTHING)
    with tarfile.open(tmp_path / "host.tar.gz") as archive:
        for entry in archive:
            assert not entry.name.startswith(("/", ".."))
            if entry.issym():
                inside = os.path.normpath(os.path.join(os.path.dirname(entry.name), entry.linkname))
                assert not inside.startswith(".."), entry.name
                assert not entry.linkname.startswith("/"), entry.name


def test_what_a_bond_stands_on_is_recorded(host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("xeon2s", tmp_path)
    Tree(root).stacked("bond0", "ens2f0")
    record(Sysroot(str(root)), str(tmp_path / "host.tar.gz"), **EVERYTHING)
    assert cards_below(unpacked(tmp_path / "host.tar.gz", tmp_path / "copy"), "bond0") == ("ens2f0",)


def test_which_shell_reads_the_scripts_is_recorded(host_root: HostFactory, tmp_path: Path) -> None:
    host = host_root("lab4")
    (host / "usr/bin").mkdir(parents=True)
    (host / "bin").symlink_to("usr/bin")
    (host / "usr/bin/sh").symlink_to("bash")
    record(Sysroot(str(host)), str(tmp_path / "host.tar.gz"))
    assert read_sh(unpacked(tmp_path / "host.tar.gz", tmp_path / "copy")) == "bash"


def test_no_secrets_are_asked_for() -> None:
    for pattern in (*FILES, *files_read()):
        assert not pattern.endswith(("environ", "cmdline*", "address", "serial", "/*.key"))
        assert pattern == "proc/cmdline" or not pattern.startswith("proc/") or "cmdline" not in pattern


def test_nothing_that_is_always_an_interruption_is_asked_for() -> None:
    for never in ("cpuinfo_cur_freq", "temp1_input", "/msr", "feedback_ctrs", "energy_uj"):
        assert not [pattern for pattern in (*FILES, *files_read()) if never in pattern]


@pytest.mark.slow
def test_an_isolated_cpu_is_not_interrupted(host_root: HostFactory, tmp_path: Path) -> None:
    host = host_root("xeon2s", tuned_boot=frozenset({15, 31}))
    (host / "sys/class/thermal/thermal_zone1/type").write_text("TCPU\n")
    root = Sysroot(str(host))
    root.live = True  # a running host, as far as recording is concerned
    summary = record(root, str(tmp_path / "host.tar.gz"), quiet=frozenset({14}), files=files_read())
    skipped = {entry.path.removeprefix("/sys/devices/system/cpu/"): entry.reason for entry in summary.skipped}
    assert skipped["cpu15/cpufreq/base_frequency"] == "reading it would interrupt CPU 15, which is isolated"
    for cpu in (14, 15, 31):
        for name in ("base_frequency", "energy_performance_preference", "scaling_cur_freq"):
            assert f"cpu{cpu}/cpufreq/{name}" in skipped
    for zone in (0, 1):  # an MSR of a CPU the kernel or the firmware chose
        assert f"/sys/class/thermal/thermal_zone{zone}/temp" in skipped
    assert not [path for path in skipped if path.startswith(("cpu0/", "cpu30/"))]
    copy = unpacked(tmp_path / "host.tar.gz", tmp_path / "copy")
    assert not copy.exists("sys/devices/system/cpu/cpufreq/policy15/base_frequency")
    assert copy.get("sys/devices/system/cpu/cpu15/cpufreq/scaling_governor") == "powersave"


@pytest.mark.slow
def test_modes_are_kept(host_root: HostFactory, tmp_path: Path) -> None:
    record(Sysroot(str(host_root("xeon2s"))), str(tmp_path / "host.tar.gz"), **EVERYTHING)
    copy = unpacked(tmp_path / "host.tar.gz", tmp_path / "copy")
    managed = next(irq.irq for irq in read_topology(copy).irqs if irq.name == "nvme0q1")
    assert copy.mode(f"proc/irq/{managed}/smp_affinity_list") == 0o444


@pytest.mark.slow
def test_the_live_host(tmp_path: Path) -> None:
    live = Sysroot()
    summary = record(live, str(tmp_path / "live.tar.gz"), **EVERYTHING)
    copy = unpacked(tmp_path / "live.tar.gz", tmp_path / "copy")
    before, after = read_topology(live), read_topology(copy)
    assert (after.cpus, after.nics, after.numa_nodes, after.drivers) == (
        before.cpus,
        before.nics,
        before.numa_nodes,
        before.drivers,
    )
    assert read_identity(copy) == read_identity(live)
    assert summary.files > 100


def test_what_may_not_be_read_is_listed(tmp_path: Path) -> None:
    root = build_named(tmp_path / "host", "vm2")
    secret = root / "proc/meminfo"
    secret.chmod(0)
    if os.geteuid() == 0:
        secret.unlink()
        secret.symlink_to("meminfo")  # root may read everything else
    summary = record(Sysroot(str(root)), str(tmp_path / "host.tar.gz"), **EVERYTHING)
    assert [skipped.path for skipped in summary.skipped] == ["/proc/meminfo"]
    assert summary.skipped[0].reason


def test_an_archive_that_cannot_be_written_leaves_nothing(host_root: HostFactory, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        record(
            Sysroot(str(host_root("vm2"))),
            str(tmp_path / "missing/host.tar.gz"),
            **EVERYTHING,
        )
    full = tmp_path / "full.tar.gz"
    full.mkdir()
    with pytest.raises(OSError, match=r"."):
        record(Sysroot(str(host_root("vm2"))), str(full))
    assert os.listdir(tmp_path) == ["full.tar.gz"]


def test_patterns(host_root: HostFactory) -> None:
    root = Sysroot(str(host_root("sparse")))
    found = list(expand(root, "sys/devices/system/cpu/cpu[0-9]*/online"))
    assert found[0] == "sys/devices/system/cpu/cpu0/online"
    assert list(expand(root, "proc/absent")) == ["proc/absent"]
    assert list(expand(root, "proc/absent/*")) == []
