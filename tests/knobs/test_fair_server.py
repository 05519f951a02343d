"""sched_rt_runtime_us is judged by what the kernel does with it: a fair server (6.12) stops a FIFO spinner, too."""

import errno
import shutil
from pathlib import Path

import pytest

from tests.conftest import write_host_file
from tests.hosts.builder import HostFactory
from tests.tuned import apply, inspection_on
from tunectl.host.fairserver import DIRECTORY, read_fair_server
from tunectl.host.sysroot import Sysroot
from tunectl.model import Finding

RT, FAIR = "kernel.sched_rt_runtime_us", "kernel.fair_server_runtime_ns"
UNMANAGED = f'[knobs]\n"{FAIR}" = "unmanaged"\n'


@pytest.fixture
def new(host_root: HostFactory, tmp_path: Path) -> Path:
    """A host with 6.12, as its firmware and kernel leave it."""
    tree = host_root.fresh("xeon2s", tmp_path)
    write_host_file(tree, 'profile = "low-latency"\nisolated = "4-7,20-23"\n')
    return tree


def findings(root: Path) -> dict[str, Finding]:
    found = inspection_on(root).assess().findings
    return {one.target: one for one in found if one.knob in (RT, FAIR)}


@pytest.mark.slow
def test_the_profile_switches_the_fair_server_of_the_isolated_cpus_off_and_of_no_other(new: Path) -> None:
    assert findings(new)[f"{FAIR}[4]"].outcome == "drifted"
    apply(new)
    found = findings(new)
    assert {one.outcome for one in found.values()} == {"compliant"}
    assert {target for target in found if target != RT} == {f"{FAIR}[{cpu}]" for cpu in (4, 5, 6, 7, 20, 21, 22, 23)}
    assert (new / DIRECTORY / "cpu4/runtime").read_text() == "0\n"
    assert (new / DIRECTORY / "cpu0/runtime").read_text() == "50000000\n"


@pytest.mark.slow
def test_without_a_limit_the_fair_server_still_stops_a_spinner_and_the_fix_is_a_line_of_the_host_file(
    new: Path,
) -> None:
    text = (new / "etc/tunectl/host.toml").read_text()
    write_host_file(new, text + UNMANAGED)
    apply(new)
    found = findings(new)[RT]
    assert (found.outcome, found.observed, found.desired) == ("drifted", -1, -1)
    assert "for up to 50000000 ns of every period on CPUs 4-7,20-23" in found.reason
    assert str(found.fix).startswith(f'"{FAIR}" = 0 under [knobs]')
    write_host_file(new, text)  # as the fix says, by the profile
    apply(new)
    assert findings(new)[RT].outcome == "compliant"


@pytest.mark.slow
def test_where_the_fair_server_cannot_be_read_nothing_is_known_of_the_spinner(new: Path) -> None:
    apply(new)
    shutil.rmtree(new / "sys/kernel/debug")
    (new / "proc/kallsyms").write_text("0000000000000000 T dl_server_start\n")
    found = findings(new)[RT]
    assert found.outcome == "unreadable"
    assert "the fair server stops a FIFO spinner" in found.reason
    assert str(found.fix) == "run tunectl as root: this user may not read it all"
    assert findings(new)[FAIR].outcome == "unreadable"  # its files are hidden, which is no loss
    (new / "proc/kallsyms").unlink()
    assert findings(new)[RT].outcome == "unreadable"
    assert "if this kernel has one" in findings(new)[RT].reason


@pytest.mark.slow
def test_where_debugfs_is_not_mounted_the_fix_mounts_it(new: Path) -> None:
    apply(new)
    beside = new.parent / "mounted"
    (new / "sys/kernel/debug").rename(beside)
    (new / "sys/kernel/debug").mkdir()
    (new / "proc/kallsyms").write_text("0000000000000000 T dl_server_start\n")
    found = findings(new)
    mount = "sudo mount -t debugfs debugfs /sys/kernel/debug"
    assert (found[RT].outcome, str(found[RT].fix)) == ("unreadable", mount)
    assert (found[FAIR].outcome, str(found[FAIR].fix)) == ("unreadable", "")
    assert found[FAIR].reason == f"debugfs is not mounted on /sys/kernel/debug: {mount}"
    (new / "sys/kernel/debug").rmdir()
    beside.rename(new / "sys/kernel/debug")
    assert findings(new)[RT].outcome == "compliant"


@pytest.mark.parametrize("seen_by", ["root", "anybody"])
def test_a_kernel_without_a_fair_server_goes_by_the_sysctl(lab4: Path, seen_by: str) -> None:
    write_host_file(lab4, 'profile = "low-latency"\nisolated = "2-3"\n')
    apply(lab4)
    if seen_by == "anybody":
        shutil.rmtree(lab4 / "sys/kernel/debug")
        (lab4 / "proc/kallsyms").write_text("0000000000000000 T update_curr_rt\n")
    found = findings(lab4)
    assert (found[RT].outcome, found[RT].reason) == ("compliant", "")
    assert (found[FAIR].outcome, found[FAIR].reason) == ("unsupported", "this kernel has no fair server")


@pytest.mark.slow
def test_a_site_that_keeps_the_limit_hears_nothing_of_the_fair_server(new: Path) -> None:
    text = (new / "etc/tunectl/host.toml").read_text()
    write_host_file(new, f'{text}{UNMANAGED}"{RT}" = 950000\n')
    apply(new)
    assert [(one.target, one.outcome, one.reason) for one in findings(new).values()] == [(RT, "compliant", "")]


def test_a_runtime_that_is_no_number_is_not_known(new: Path) -> None:
    (new / DIRECTORY / "cpu5/runtime").write_text("junk\n")
    assert "cpu5/runtime holds no number" in read_fair_server(Sysroot(str(new)), frozenset({4, 5})).problem
    assert not read_fair_server(Sysroot(str(new)), frozenset({4})).problem


@pytest.mark.slow
def test_under_lockdown_root_is_not_told_to_be_root(new: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """debugfs answers EPERM to root, too (fs/debugfs/file.c, debugfs_locked_down())."""
    apply(new)
    really = Sysroot.open

    def locked(self: Sysroot, path: str) -> int:
        if path.startswith(DIRECTORY):
            raise PermissionError(errno.EPERM, "Operation not permitted", path)
        return really(self, path)

    monkeypatch.setattr(Sysroot, "open", locked)
    for found in findings(new).values():
        assert (found.outcome, str(found.fix)) == ("unreadable", "")
        assert "lockdown closes debugfs" in found.reason
