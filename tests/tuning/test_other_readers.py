"""Words of the kernel's command line that systemd reads: what they override in this boot and in the next."""

from pathlib import Path

import pytest

from tests.conftest import LOW_LATENCY, write_host_file
from tests.tuned import apply, judged
from tunectl.bootloader.cmdline import Arg, parse_cmdline
from tunectl.bootloader.otherreaders import manager_cpus, taking_v2
from tunectl.model import Finding

RUNTIME = f'{LOW_LATENCY}isolation = "runtime"\n'
GRUB = "etc/default/grub"
AFFINITY = "systemd.cpu_affinity"
VERSION_1 = "systemd.unified_cgroup_hierarchy"


@pytest.fixture
def tuned(lab4: Path) -> Path:
    """A host whose host file isolates CPUs 2-3 at run time, applied."""
    write_host_file(lab4, RUNTIME)
    apply(lab4)
    return lab4


def this_boot(root: Path, words: str) -> None:
    line = root / "proc/cmdline"
    line.write_text(f"{line.read_text().rstrip()} {words}\n")


def next_boot(root: Path, words: str) -> None:
    grub = root / GRUB
    grub.write_text(f'{grub.read_text()}GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {words}"\n')


def outcome(root: Path, target: str) -> tuple[str, object]:
    finding: Finding = judged(root, target.partition("[")[0])[target]
    return finding.outcome.value, finding.observed


@pytest.mark.parametrize(
    ("this", "after", "expected"),
    [
        ("", "", ("compliant", "0-1")),
        ("systemd.cpu_affinity=0-3", "systemd.cpu_affinity=0-3", ("drifted", "0-3")),
        ("systemd.cpu_affinity=0-3", "", ("pending-reboot", "0-3")),
        ("", "systemd.cpu_affinity=0-3", ("drifted", "0-1")),
        ("systemd.cpu_affinity=0", "systemd.cpu_affinity=0", ("compliant", "0")),
        ("systemd.cpu-affinity=0-3", "systemd.cpu-affinity=0-3", ("drifted", "0-3")),
        ("rd.systemd.cpu_affinity=0-3", "rd.systemd.cpu_affinity=0-3", ("compliant", "0-1")),
        ("systemd.cpu_affinity=all", "systemd.cpu_affinity=all", ("compliant", "0-1")),  # no list of systemd's
        ("systemd.cpu_affinity=0-3 systemd.cpu_affinity=1", "systemd.cpu_affinity=1", ("compliant", "1")),
        ("-- systemd.cpu_affinity=0-3", "-- systemd.cpu_affinity=0-3", ("drifted", "0-3")),
    ],
)
def test_the_word_counts_more_than_a_file(tuned: Path, this: str, after: str, expected: tuple[str, str]) -> None:
    this_boot(tuned, this)
    next_boot(tuned, after)
    assert outcome(tuned, AFFINITY) == expected


def test_the_word_puts_it_in_force_without_a_file_of_ours(lab4: Path) -> None:
    write_host_file(lab4, RUNTIME)
    this_boot(lab4, "systemd.cpu_affinity=0,1")
    next_boot(lab4, "systemd.cpu_affinity=0,1")
    assert outcome(lab4, AFFINITY) == ("compliant", "0-1")


@pytest.mark.parametrize(
    ("this", "after", "system", "expected"),
    [
        ("", f"{VERSION_1}=0", "debian 12", "drifted"),
        ("", f"{VERSION_1}=FALSE", "ubuntu 22.04", "drifted"),
        ("", f"{VERSION_1}=no SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1", "debian 13", "drifted"),
        ("", f"{VERSION_1}=0", "fedora 43", "compliant"),  # nobody reads it there
        (f"{VERSION_1}=0", f"{VERSION_1}=0", "fedora 42", "compliant"),  # this boot had it, and has version 2
        ("", f"{VERSION_1}=1", "debian 12", "compliant"),
        ("", VERSION_1, "debian 12", "compliant"),
        ("", f"{VERSION_1}=0 {VERSION_1}=1", "debian 12", "compliant"),
        ("", f"rd.{VERSION_1}=0", "debian 12", "compliant"),
        ("", "systemd.legacy_systemd_cgroup_controller=1", "debian 12", "compliant"),
        ("", "cgroup_no_v1=all", "debian 12", "compliant"),
        ("", "cgroup_disable=memory,cpuset", "debian 12", "drifted"),
        ("", "cgroup.memory=nokmem", "debian 12", "compliant"),
    ],
)
def test_what_takes_version_2_of_control_groups_away_at_the_next_boot(
    tuned: Path, this: str, after: str, system: str, expected: str
) -> None:
    name, _, release = system.partition(" ")
    (tuned / "etc/os-release").write_text(f'ID={name}\nVERSION_ID="{release}"\n')
    this_boot(tuned, this)
    next_boot(tuned, after)
    assert outcome(tuned, "cpuset.isolated") == (expected, "2-3")
    assert outcome(tuned, "systemd.allowed_cpus[system.slice]") == (expected, "0-1")


def test_the_last_word_counts_and_what_is_no_value_is_passed_over() -> None:
    args = parse_cmdline(f"{AFFINITY}=1 {AFFINITY}= {AFFINITY}=x {VERSION_1}=maybe")
    assert manager_cpus(args) == (Arg(AFFINITY, "1"), frozenset({1}))
    assert taking_v2(args) is None
