"""SMIs: counted where an Intel host shows them, on a CPU that neither measures nor is isolated; else one reason."""

import struct
import sys
from pathlib import Path

import pytest

from tests.host.namespaces import namespace
from tests.trees import write
from tunectl.host.hardware import read_smis, smis_between
from tunectl.host.sysroot import Sysroot
from tunectl.shapes import Smis

INTEL = "processor : 0\nvendor_id : GenuineIntel\nflags : fpu tsc msr\n"


@pytest.fixture
def intel(tmp_path: Path) -> Path:
    """A bare-metal host that has had 7 SMIs as CPU 0 knows, and whose CPUs 2-3 are isolated."""
    write(tmp_path, "proc/cpuinfo", INTEL)
    write(tmp_path, "sys/devices/system/cpu/isolated", "2-3\n")
    for cpu, count in ((0, 7), (2, 99)):
        write(tmp_path, f"dev/cpu/{cpu}/msr", "")
        (tmp_path / f"dev/cpu/{cpu}/msr").write_bytes(bytes(0x34) + struct.pack("<Q", count))
    return tmp_path


def test_what_came_meanwhile_is_counted_on_a_cpu_that_is_not_isolated(intel: Path) -> None:
    before = read_smis(Sysroot(str(intel)), {0, 2})
    assert before == Smis(7)
    (intel / "dev/cpu/0/msr").write_bytes(bytes(0x34) + struct.pack("<Q", 10))
    assert smis_between(before, read_smis(Sysroot(str(intel)), {0, 2})) == Smis(3)


# The device that reads zero in place of CPU 0's, in a /dev of its own.
DEVICE = """
mount -t tmpfs tmpfs /dev; mkdir -p /dev/cpu/0; mknod /dev/cpu/0/msr c 1 5; mknod /dev/null c 1 3
"$1" -c '
from tunectl.host.hardware import count_smis
from tunectl.host.nonintrusive import NonIntrusiveSysroot
for isolated in (2, 0):
    print(count_smis(NonIntrusiveSysroot("/", frozenset({isolated})), frozenset({0})).count)
'
"""


@pytest.mark.slow
def test_of_the_running_host_it_is_a_device_and_that_of_an_isolated_cpu_is_not_opened() -> None:
    assert namespace(DEVICE, sys.executable).split() == ["0", "None"]


def test_a_counter_of_32_bits_wraps() -> None:
    assert smis_between(Smis(0xFFFF_FFFF), Smis(1)) == Smis(2)


@pytest.mark.parametrize(("then", "now"), [(9, 3), (7, 2_000_008), (1 << 31, 5)])
def test_a_count_that_began_anew_says_nothing_of_meanwhile(then: int, now: int) -> None:
    """Two seconds apart: an SMI takes a microsecond or more."""
    found = smis_between(Smis(then), Smis(now), 2.0)
    assert (found.count, found.reason.endswith("and began anew meanwhile")) == (None, True)
    assert smis_between(Smis(7), Smis(2_000_007), 2.0) == Smis(2_000_000, seconds=2.0)


def test_no_isolated_cpu_is_asked(intel: Path) -> None:
    found = read_smis(Sysroot(str(intel)), {2, 3})
    assert found == Smis(None, "no CPU is left that neither measures nor is isolated")


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        ("proc/cpuinfo", INTEL.replace("GenuineIntel", "AuthenticAMD"), "only Intel's CPUs count them"),
        ("proc/cpuinfo", INTEL.replace("msr", "hypervisor"), "this is a virtual machine"),
        ("dev/cpu/0/msr", None, "there is no /dev/cpu/0/msr (sudo modprobe msr)"),
        ("dev/cpu/0/msr", "\0" * 0x34 + "\xff" * 8, "/dev/cpu/0/msr reads as all ones"),
        ("dev/cpu/0/msr", "short", "/dev/cpu/0/msr cannot be read"),
    ],
)
def test_elsewhere_one_line_says_why_there_is_none(intel: Path, path: str, text: str | None, reason: str) -> None:
    (intel / path).unlink()
    if text is not None:
        (intel / path).write_text(text, encoding="latin-1")
    found = read_smis(Sysroot(str(intel)), {0})
    assert found.count is None
    assert found.reason.startswith(reason)
    assert smis_between(Smis(7), found) == found
