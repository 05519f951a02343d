"""An entry of ours on a disk that GRUB boots from: GRUB takes it once, and forgets it before the kernel starts."""

import subprocess

from tests.bootloader.onceparts import ID, NAME, enter, tried
from tests.bootloader.test_grub_once import a_host, menu
from tests.trees import differences, picture
from tests.tuned import restore
from tunectl.bootloader.grub import FAMILY
from tunectl.bootloader.grubonce import armed
from tunectl.bootloader.grubsettings import GRUB_CFG
from tunectl.host.sysroot import Sysroot

from .grub.disk import UUID, GrubDisk

KERNEL = "boot/vmlinuz-6.1.0-39-amd64"
OLD = f"BOOT_IMAGE=/{KERNEL} root=UUID={UUID} ro console=ttyS0 quiet"
TRIED = f"{OLD} isolcpus=2-3 tunectl.try={ID} panic=30"


def laid_out(disk: GrubDisk) -> Sysroot:
    """A Debian host whose default entry GRUB boots from this disk, with a custom.cfg of the operator's."""
    text = "function load_video {\n  true\n}\n" + menu().replace("5f3c", UUID)
    root = a_host(disk.tree, {GRUB_CFG: text, "boot/grub/custom.cfg": "# mine\n"})
    disk.fill()
    return root


def choose(disk: GrubDisk, root: Sysroot) -> None:
    """As apply does: the entry through the journal, and then the choice."""
    enter(disk.tree, tried(root, FAMILY, f"isolcpus=2-3 tunectl.try={ID} panic=30"))
    subprocess.run(["grub-editenv", root.path("boot/grub/grubenv"), "set", f"next_entry={NAME}"], check=True)
    disk.fill()


def test_one_boot_has_the_tried_line_and_the_next_one_the_old(grub: GrubDisk) -> None:
    root = laid_out(grub)
    before = picture(grub.tree)
    choose(grub, root)
    assert grub.boot() == TRIED
    assert grub.boot() == OLD
    grub.refresh()
    assert armed(root, GRUB_CFG) == ""
    assert restore(grub.tree).complete
    assert set(differences(before, grub.tree)) <= {"boot/grub/grubenv"}  # GRUB writes the block anew


def test_an_entry_whose_kernel_is_gone_is_not_taken_again(grub: GrubDisk) -> None:
    """GRUB waits in its menu, and a reset from there boots the old entry."""
    root = laid_out(grub)
    choose(grub, root)
    custom = grub.tree / "boot/grub/custom.cfg"
    custom.write_text(custom.read_text().replace(f"/{KERNEL}", "/boot/gone"))
    grub.fill()
    assert grub.boot() is None
    assert grub.boot() == OLD


def test_an_entry_that_nothing_chooses_never_boots(grub: GrubDisk) -> None:
    root = laid_out(grub)
    enter(grub.tree, tried(root, FAMILY))
    grub.fill()
    assert grub.boot() == OLD
