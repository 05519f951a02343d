"""The boot of an entry of ours, once: what all families of boot loaders share."""

from pathlib import Path

import pytest

from tests.bootloader.trees import write
from tunectl.bootloader.cmdline import RULES
from tunectl.bootloader.oneshot import entry_name, is_our_entry, refusals, tried_id, tried_line
from tunectl.bootloader.words import Desired
from tunectl.host.sysroot import Sysroot

ID = "1a2b3c4d"
DESIRED: tuple[Desired, ...] = (("isolcpus", "2-3", RULES["isolcpus"]), ("nosoftlockup", None, RULES["nosoftlockup"]))


def same(key: str, one: str, other: str) -> bool:
    return one == other


@pytest.fixture
def bare(tmp_path: Path) -> Sysroot:
    return write(tmp_path, {"etc/os-release": "ID=debian\n"})


@pytest.mark.parametrize(
    ("line", "tried"),
    [
        ("root=/dev/sda1 ro", f"root=/dev/sda1 ro isolcpus=2-3 nosoftlockup tunectl.try={ID} panic=30"),
        ("isolcpus=1 ro nosoftlockup", f"isolcpus=2-3 ro nosoftlockup tunectl.try={ID} panic=30"),
        ("ro -- single", f"ro isolcpus=2-3 nosoftlockup tunectl.try={ID} panic=30 -- single"),
        ("ro panic=0", f"ro panic=0 isolcpus=2-3 nosoftlockup tunectl.try={ID} panic=30"),
        ("ro panic=5", f"ro panic=5 isolcpus=2-3 nosoftlockup tunectl.try={ID}"),
        ("ro panic=-1", f"ro panic=-1 isolcpus=2-3 nosoftlockup tunectl.try={ID}"),
    ],
)
def test_the_tried_line_is_the_default_one_with_our_words_and_the_trials(line: str, tried: str, bare: Sysroot) -> None:
    assert tried_line(bare, line, DESIRED, same, ID) == tried
    assert tried_id(tried) == ID


def test_an_initramfs_of_dracut_is_told_to_reboot(tmp_path: Path) -> None:
    root = write(tmp_path, {"usr/lib/dracut/dracut-functions.sh": ""})
    assert tried_line(root, "ro", (), same, ID).split() == [
        *("ro", f"tunectl.try={ID}", "panic=30", "rd.shell=0", "rd.emergency=reboot")
    ]


@pytest.mark.parametrize("line", ["ro", "tunectl.try=", "tunectl.try=zz", "ro -- tunectl.try=1a2b3c4d", "tunectl.try"])
def test_another_line_has_no_id(line: str) -> None:
    assert tried_id(line) == ""


def test_our_entries_are_known_by_their_name() -> None:
    assert is_our_entry(entry_name(ID))
    assert is_our_entry(f"{entry_name(ID)}.conf")
    assert not is_our_entry("A-tunectl-try-")
    assert not is_our_entry("Debian")


def test_a_loader_without_such_a_boot_is_refused(bare: Sysroot) -> None:
    (refusal,) = refusals(bare, None, "limine")
    assert not refusal.attended
