"""The platforms that the lab can be: a Debian, a kernel of it, a machine, and how that boots. One more is one row."""

import os
from dataclasses import dataclass
from typing import NamedTuple

from .machine import SMALLEST, Machine
from .shell import LabError


class Suite(NamedTuple):
    """A Debian that the lab can be."""

    number: int
    python: str
    packages: tuple[str, ...] = ()  # besides what every host of the lab has


SUITES = {"bookworm": Suite(12, "3.11"), "trixie": Suite(13, "3.13", ("kexec-tools",))}


class Loader(NamedTuple):
    """A way to boot: what it needs installed. debian/finish-WAY.sh sets it up in the guest."""

    packages: tuple[str, ...]
    uefi: bool = False  # by UEFI, from an EFI system partition
    boots: str = "  Booting `"  # what is said on the console at each boot: GRUB's words, or the firmware's
    booted: str = "true"  # what the guest runs after the first boot that is not by QEMU's -kernel


LOADERS = {
    "grub": Loader(("grub-pc-bin", "grub2-common")),
    # update-grub names the firmware in GRUB's menu only where one has booted the guest.
    "grub-efi": Loader(("dosfstools", "grub-efi-arm64-bin", "grub2-common"), uefi=True, booted="update-grub"),
    "systemd-boot": Loader(
        # debootstrap sees neither alternatives nor what a package stands for: hence the third and the last.
        ("dosfstools", "systemd-boot", "systemd-boot-efi", "systemd-ukify", "python3-cffi-backend"),
        uefi=True,
        boots="BdsDxe: starting ",
    ),
}


@dataclass(frozen=True)
class Platform:
    """One row: what differs from a Debian 12 with its usual kernel on the smallest machine.

    `what` says it in words, for the list of the long set, which has a part for each row (tests/long.py). `rounds` are
    the rounds of the sabotage matrix that the tour plays on it: they break what this platform has.
    """

    name: str
    what: str
    suite: str = "bookworm"
    kernel: str = "linux-image-amd64"  # Debian's package
    machine: Machine = SMALLEST
    loader: str = "grub"
    rounds: tuple[str, ...] = ("values", "others")

    @property
    def uefi(self) -> bool:
        """Does it boot by UEFI?"""
        return LOADERS[self.loader].uefi

    @property
    def python(self) -> str:
        """The release of the guest's own Python."""
        return SUITES[self.suite].python

    @property
    def package(self) -> str:
        """How the name of the product's package for it ends."""
        return f"+deb{SUITES[self.suite].number}_{self.machine.board.debian}.deb"


PLATFORMS = {
    row.name: row
    for row in (
        Platform("bookworm", "Debian 12, 6.1"),
        Platform("trixie", "Debian 13, 6.12", suite="trixie", rounds=("values", "others", "memory")),
        Platform(
            "rt",
            "Debian 13 with PREEMPT_RT",
            suite="trixie",
            kernel="linux-image-rt-amd64",
            rounds=("values", "others", "arriving", "interrupt-threads"),
        ),
        Platform(
            "numa-smt",
            "Debian 13 with two NUMA nodes and two threads a core",
            suite="trixie",
            machine=Machine(sockets=2, cores=2, threads=2, nodes=2, memory_mib=2048),
            rounds=("values", "others", "topology"),
        ),
        Platform(
            "uki",
            "Debian 13 with systemd-boot and unified kernel images, under UEFI",
            suite="trixie",
            loader="systemd-boot",
            rounds=("values",),
        ),
        Platform(
            "aarch64",
            "Debian 12 on aarch64, with GRUB under UEFI",
            kernel="linux-image-arm64",
            machine=Machine("aarch64"),
            loader="grub-efi",
        ),
        Platform(
            "trixie-aarch64",
            "Debian 13 on aarch64, with GRUB under UEFI",
            suite="trixie",
            kernel="linux-image-arm64",
            machine=Machine("aarch64"),
            loader="grub-efi",
            rounds=("values", "others", "memory"),
        ),
    )
}
USUAL = "bookworm"
VARIABLE = "TUNECTL_LAB_PLATFORM"


def chosen() -> Platform:
    """The platform of $TUNECTL_LAB_PLATFORM, or the usual one."""
    name = os.environ.get(VARIABLE) or USUAL
    if name not in PLATFORMS:
        raise LabError(f"{VARIABLE} is {name!r}; the lab can be {', '.join(PLATFORMS)}")
    return PLATFORMS[name]
