"""The boot loaders tunectl writes for, by the name that detect() and the host file give them: one row a family."""

from __future__ import annotations

from collections.abc import Iterator

from tunectl.bootloader import bls, grubfamily, kernelstub, ostree, raspberrypi, systemdboot
from tunectl.bootloader.family import Family, Journaled, Write
from tunectl.host.sysroot import Sysroot

FAMILIES: dict[str, Family] = {
    "grub": grubfamily.FAMILY,
    "suse-grub": grubfamily.FAMILY,
    "bls": bls.FAMILY,
    "systemd-boot": systemdboot.FAMILY,
    "kernelstub": kernelstub.FAMILY,
    "rpm-ostree": ostree.FAMILY,
    "raspberry-pi": raspberrypi.FAMILY,
}


def stripped(root: Sysroot, journaled: Journaled) -> Iterator[Write]:
    """Files that hold our words even when the journaled ones are restored: entries made since, files edited since."""
    seen: set[str] = set()
    for family in dict.fromkeys(FAMILIES.values()) if journaled else ():
        for write in family.stripped(root, journaled):
            if write.path not in seen:
                seen.add(write.path)
                yield write
