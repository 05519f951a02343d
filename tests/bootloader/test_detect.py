"""Which boot loader, by evidence."""

from pathlib import Path

import pytest

from tests.bootloader.trees import grub_host, write
from tunectl.bootloader.families import Loader, detect

DEBIAN = {"etc/os-release": "ID=debian\n", "etc/default/grub": "GRUB_TIMEOUT=5\n"}
UBUNTU = {"usr/lib/os-release": 'ID=ubuntu\nID_LIKE="debian"\n', "etc/default/grub": "GRUB_TIMEOUT=5\n"}
RHEL = {"etc/os-release": 'ID="rhel"\nID_LIKE="fedora"\n', "etc/redhat-release": "Red Hat\n"}
GRUB_LINE = {"proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro\n"}
STUB_LINE = {"proc/cmdline": "initrd=\\initrd.img root=/dev/sda1 ro\n"}
SD_CONF = {"boot/efi/loader/loader.conf": "timeout 3\n"}
SUSE = {"etc/os-release": 'ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', "etc/default/grub": ""}
FEDORA = 'GRUB_DISTRIBUTOR="$(sed x /etc/system-release)"\nGRUB_ENABLE_BLSCFG="true"\n'
SD_ENTRY = {"boot/loader/entries/1.conf": "options quiet\n"}
INFO = "sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"


def said(name: str) -> str:
    """An EFI variable: its attributes, then the name in UTF-16."""
    return "\x07\0\0\0" + "".join(f"{char}\0" for char in name)


@pytest.mark.parametrize(
    ("files", "name", "supported"),
    [
        ({"etc/default/grub": ""}, "grub", True),
        (DEBIAN, "grub", True),
        ({**DEBIAN, "boot/efi/EFI/debian/grub.cfg": "configfile x\n"}, "grub", True),
        (UBUNTU, "grub", True),
        ({"boot/grub/grub.cfg": "", "etc/default/grub.d/50-cloudimg.cfg": ""}, "grub", True),
        ({"etc/os-release": "ID=arch\n", "etc/default/grub": ""}, "grub", True),
        ({"etc/os-release": "ID=mine\n", "etc/default/grub": "", "etc/default/grub.d/1.cfg": ""}, "grub", True),
        ({**RHEL, "etc/default/grub": "GRUB_ENABLE_BLSCFG=true\n"}, "bls", True),
        ({"etc/default/grub": FEDORA}, "bls", True),
        ({**RHEL, **SD_ENTRY}, "bls", True),
        ({"etc/os-release": 'ID=rocky\nID_LIKE="rhel centos fedora"\n', "etc/default/grub": ""}, "bls", True),
        (SUSE, "suse-grub", True),
        ({"etc/os-release": "ID=debian\n", **SD_CONF}, "systemd-boot", True),
        ({"etc/os-release": "ID=arch\n", **SD_ENTRY}, "systemd-boot", True),
        ({"etc/kernelstub/configuration": "{}", **SD_CONF, **DEBIAN}, "kernelstub", True),
        ({"run/ostree-booted": "", **RHEL, **SD_ENTRY}, "rpm-ostree", True),
        ({"boot/firmware/cmdline.txt": "quiet\n", "etc/os-release": "ID=debian\n"}, "raspberry-pi", True),
        ({"boot/firmware/cmdline.txt": "quiet\n", **DEBIAN, "boot/grub/grub.cfg": ""}, "grub", True),
        ({**DEBIAN, "boot/efi/EFI/Linux/6.12.efi": ""}, "ambiguous", False),
        ({"boot/efi/EFI/Linux/6.12.efi": ""}, "systemd-boot", True),
        ({**RHEL, "boot/grub2/grub.cfg": "", **SD_CONF}, "ambiguous", False),
        ({**RHEL, "boot/grub2/grub.cfg": "", **SD_CONF, **GRUB_LINE}, "bls", True),
        ({**RHEL, **SD_ENTRY, **SD_CONF}, "systemd-boot", True),
        ({**SUSE, "boot/efi/loader/loader.conf": "", INFO: said("systemd-boot 256")}, "systemd-boot", True),
        ({**DEBIAN, **SD_CONF}, "ambiguous", False),
        ({**DEBIAN, **SD_CONF, **STUB_LINE}, "systemd-boot", True),
        ({**DEBIAN, **SD_CONF, **GRUB_LINE}, "grub", True),
        ({**DEBIAN, **SD_CONF, INFO: said("systemd-boot 252")}, "systemd-boot", True),
        ({**DEBIAN, **SD_CONF, INFO: said("GRUB 2.12")}, "grub", True),
        ({}, "none", False),
        ({"etc/os-release": "ID=debian\n", "proc/cmdline": "console=ttyS0 reboot=k panic=1\n"}, "none", False),
    ],
)  # fmt: skip
def test_detect(files: dict[str, str], name: str, supported: bool, tmp_path: Path) -> None:
    found = detect(write(tmp_path, files))
    assert (found.name, found.supported) == (name, supported)
    assert bool(found.refusal) is not supported
    assert all(evidence.split()[0] in found.refusal for evidence in found.evidence) or supported


def test_grub_names_its_evidence(tmp_path: Path) -> None:
    assert detect(grub_host(tmp_path)) == Loader("grub", True, ("/etc/default/grub", "/boot/grub/grub.cfg"))


def test_a_refusal_says_what_was_found_and_what_to_do(tmp_path: Path) -> None:
    root = write(tmp_path, {**DEBIAN, **SD_CONF})
    assert detect(root).refusal == (
        "more than one boot loader may boot this host (/etc/default/grub, /boot/efi/loader/loader.conf): find out "
        'which one boots this host and say it in the host file, bootloader = "..." (grub, suse-grub, bls, '
        "grub2-bls, systemd-boot, kernelstub, rpm-ostree, raspberry-pi), or remove what the other left"
    )
    assert detect(root, "systemd-boot") == Loader(
        "systemd-boot", True, ('bootloader = "systemd-boot" in the host file',)
    )
