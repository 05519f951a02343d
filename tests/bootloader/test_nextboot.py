"""What the next boot will have: the settings against grub.cfg, on recorded and on live hosts."""

import os
from pathlib import Path

import pytest

from tests.bootloader.trees import grub_cfg, grub_host, write
from tunectl.bootloader.cmdline import MAX_LENGTH
from tunectl.bootloader.family import Point, Upcoming
from tunectl.bootloader.grub import render_dropin
from tunectl.bootloader.grubsettings import DROPIN
from tunectl.bootloader.nextboot import final_line, next_boot, next_length_problem
from tunectl.host.sysroot import Sysroot

OURS = {DROPIN: render_dropin(["isolcpus=domain,2-3"])}
LINE = "console=ttyS0 quiet isolcpus=domain,2-3"


def line(found: Upcoming) -> str | None:
    """What the next boot's line comes to."""
    return found.points[0].line


class LiveTree(Sysroot):
    """A tree that is taken for the running host, so that what differs there can be tried."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        self.live = True


def test_settings_and_grub_cfg_agree(tmp_path: Path) -> None:
    root = grub_host(tmp_path, {**OURS, "boot/grub/grub.cfg": grub_cfg(args=LINE)})
    recorded = next_boot(root)
    assert (line(recorded), recorded.problem, recorded.note) == (LINE, "", "")
    assert recorded.points[0].where == f"/etc/default/grub, /{DROPIN}"
    live = next_boot(LiveTree(tmp_path))
    assert (line(live), live.problem, live.note) == (f"root=UUID=5f3c ro {LINE}", "", "")
    assert live.points[0].where == "/boot/grub/grub.cfg, entry 'Debian GNU/Linux'"


def test_update_grub_has_not_run(tmp_path: Path) -> None:
    root = grub_host(tmp_path, OURS)
    os.utime(tmp_path / "boot/grub/grub.cfg", (1, 1))
    os.utime(tmp_path / "etc/default/grub", (0, 0))
    said = (
        f"update-grub has not run since /{DROPIN} changed: /boot/grub/grub.cfg lacks isolcpus=domain,2-3 (/{DROPIN}:3)"
    )
    recorded = next_boot(root)
    assert (line(recorded), recorded.problem, recorded.note) == (LINE, "", said)
    live = next_boot(LiveTree(tmp_path))
    assert (line(live), live.problem) == ("root=UUID=5f3c ro console=ttyS0 quiet", said)


def test_update_grub_has_not_run_since_ours_was_removed(tmp_path: Path) -> None:
    root = grub_host(tmp_path, {"boot/grub/grub.cfg": grub_cfg(args=LINE)})
    said = "update-grub has not run: /boot/grub/grub.cfg still has isolcpus=domain,2-3, which the settings do not give"
    assert next_boot(root) == Upcoming((Point("/etc/default/grub", "console=ttyS0 quiet"),), "", said)
    live = next_boot(LiveTree(tmp_path))
    assert (line(live), live.problem, live.note) == (f"root=UUID=5f3c ro {LINE}", "", said)


def test_no_grub_cfg(tmp_path: Path) -> None:
    root = write(tmp_path, {"etc/default/grub": 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n'})
    said = "there is no /boot/grub/grub.cfg: update-grub has not run"
    assert next_boot(root) == Upcoming((Point("/etc/default/grub", "quiet"),), "", said)
    assert next_boot(LiveTree(tmp_path)).problem == said


def test_grub_cfg_unreadable(tmp_path: Path) -> None:
    grub_host(tmp_path, OURS)
    (tmp_path / "boot/grub/grub.cfg").unlink()
    (tmp_path / "boot/grub/grub.cfg").mkdir()  # root may read everything, but not a directory as a file
    for host in (LiveTree(tmp_path), Sysroot(str(tmp_path))):
        menu, settings = next_boot(host).points
        assert (menu.line, menu.why) == (None, "/boot/grub/grub.cfg cannot be read (Is a directory)")
        assert settings.line == LINE


@pytest.mark.parametrize(
    ("default", "problem"),
    [("1>1", "a recovery entry"), ("1>2", "lacks console=ttyS0 quiet"), ("2", "boots no Linux kernel")],
)
def test_another_default_on_a_live_host(default: str, problem: str, tmp_path: Path) -> None:
    grub_host(tmp_path, {"boot/grub/grub.cfg": grub_cfg(default)})
    assert problem in next_boot(LiveTree(tmp_path)).problem


def test_a_repeated_argument_is_counted(tmp_path: Path) -> None:
    twice = {"etc/default/grub": 'GRUB_CMDLINE_LINUX="console=tty0 console=tty0"\n'}
    root = grub_host(tmp_path, {**twice, "boot/grub/grub.cfg": grub_cfg(args="console=tty0")})
    assert "lacks console=tty0" in next_boot(root).note


def test_final_line(tmp_path: Path) -> None:
    head = "BOOT_IMAGE=/boot/vmlinuz-6.1.0-39-amd64 root=UUID=5f3c ro"
    with_cfg = grub_host(tmp_path / "a")
    assert final_line(with_cfg, LINE) == f"{head} {LINE}"
    without = write(tmp_path / "b", {"proc/cmdline": f"{head} rootflags=subvol=@ quiet isolcpus=7\n"})
    assert final_line(without, LINE) == f"{head} rootflags=subvol=@ {LINE}"
    assert final_line(Sysroot(str(tmp_path / "c")), LINE) == LINE


def test_the_limit_is_on_the_final_line(tmp_path: Path) -> None:
    root = grub_host(tmp_path)
    room = MAX_LENGTH - len(final_line(root, ""))
    assert next_length_problem(root, "x" * room) is None
    assert next_length_problem(root, "x" * (room + 1)) == (
        "the boot line would be 2048 bytes long: the kernel keeps 2047 and drops the rest unseen"
    )
