"""Who boots a host, where its next boot starts and who makes its entries: what this boot says, and no left-overs."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.bootloader.hosts import LINE, WORDS, boot_findings, wish
from tests.bootloader.test_detect import INFO, said
from tests.hosts.boot_files import BLS_CFG, MACHINE_ID, image
from tests.hosts.builder import build, named
from tests.tuned import apply, inspection_on
from tunectl.bootloader.families import detect
from tunectl.host.sysroot import Sysroot
from tunectl.model import Outcome

ISOLATED = frozenset({2, 3})
STUB_INFO = INFO.replace("LoaderInfo", "StubInfo")
SELECTED = INFO.replace("LoaderInfo", "LoaderEntrySelected")
OWN_LINE = f"root=UUID=5f3c-0001 ro quiet {LINE}"
BY_STUB = f"initrd=\\initrd.img {OWN_LINE}"
UNTUNED = "initrd=\\initrd.img root=UUID=5f3c-0001 ro quiet"
TYPE = "proc/sys/kernel/bootloader_type"
GRUB_LEFT = {"etc/default/grub": f'GRUB_CMDLINE_LINUX_DEFAULT="{LINE}"\n'}


class Case(NamedTuple):
    """Files beside those of a loader's stock host, that booted with everything, and what is right there."""

    name: str
    outcome: Outcome
    files: dict[str, str]
    loader: str = "grub"
    os: str = "debian"
    names: str = ""  # what a finding that is not compliant names


def tree_of(case: Case, below: Path) -> Path:
    spec = replace(named("lab4", tuned_boot=ISOLATED), loader=case.loader, os=case.os)
    tree = build(below / "host", spec)
    for path, text in case.files.items():
        place = tree / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode("utf-8", "surrogateescape"))
    wish(tree)
    return tree


PVE = {"etc/kernel/proxmox-boot-uuids": "1A2B-3C4D\n", INFO: said("systemd-boot 252"), "proc/cmdline": BY_STUB}
STUB_CFG = "search.fs_uuid 5f3c-0001 root hd0,gpt2\nset prefix=($root)'/boot/grub'\nconfigfile $prefix/grub.cfg\n"
RHEL_STUB = (
    "search --no-floppy --root-dev-only --fs-uuid --set=dev 5f3c-0001\n"
    "set prefix=($dev)/grub2\nexport $prefix\nconfigfile $prefix/grub.cfg\n"
)
SUSE_STUB = 'search --fs-uuid --set=root 5f3c-0001\nset prefix=(${root})/boot/grub2\nsource "${prefix}/grub.cfg"\n'
MENU = "menuentry 'M' {\n linux /boot/vmlinuz-6.1.0-39-amd64 root=UUID=5f3c-0001 ro quiet\n}\n"
FSTAB = "UUID=5f3c-0001 / ext4 defaults 0 1\n"
BLS_ENTRY = f"title T\nversion 6.12.1-1-default\nlinux /t/6.12.1-1-default/linux\noptions {OWN_LINE}\n"
SUSE_BLS = {
    "etc/sysconfig/bootloader": 'LOADER_TYPE="grub2-bls"\n',
    "boot/efi/loader/entries/opensuse-6.12.1-1-default.conf": BLS_ENTRY,
    "etc/kernel/cmdline": OWN_LINE,
}
ENTRIES = "boot/loader/entries"
SDBOOT = "etc/sdboot-manage.conf"
# An entry under a machine id that sorts before the host's: of the image that the host was made of, or another system's.
OTHERS_ID = "9" * 32
OTHERS = f"{ENTRIES}/{OTHERS_ID}-5.14.0-162.el9_1.x86_64.conf"
OTHER_ENTRY = "title Older\nversion 5.14.0-162.el9_1.x86_64\nlinux /vmlinuz\noptions root=UUID=5f3c-0001 ro quiet\n"
KERNELOPTS = OTHER_ENTRY.replace("root=UUID=5f3c-0001 ro quiet", "$kernelopts")
OTHER_ROOT = OTHER_ENTRY.replace("5f3c-0001", "dead-beef")
OWN_ID = {"etc/machine-id": f"{MACHINE_ID}\n"}
NONE_SAVED = {"boot/grub2/grubenv": "# GRUB Environment Block\n"}
SAVED_OTHER = {"boot/grub2/grubenv": f"# GRUB Environment Block\nsaved_entry={OTHERS_ID}-5.14.0-162.el9_1.x86_64\n"}
# TuneD's words come from a variable, and its plugin puts that into the entries of later kernels.
TUNED_PLUGIN, OWN_PLUGINS = "usr/lib/kernel/install.d/92-tuned.install", "etc/kernel/install.d"
BY_TUNED = {
    f"{ENTRIES}/{MACHINE_ID}-6.1.0-39-amd64.conf": OTHER_ENTRY.replace("quiet", "quiet $tuned_params"),
    "boot/grub2/grubenv": f"# GRUB Environment Block\nsaved_entry={MACHINE_ID}-6.1.0-39-amd64\ntuned_params={LINE}\n",
    "etc/default/grub": 'GRUB_CMDLINE_LINUX="quiet"\nGRUB_ENABLE_BLSCFG=true\n',
    "etc/kernel/cmdline": "root=UUID=5f3c-0001 ro quiet\n",
}
TUNED = {**BY_TUNED, TUNED_PLUGIN: "#!/bin/bash\n"}
# The entry of an older kernel, which lost its words, and what chooses it or something else.
OLDER = {f"{ENTRIES}/{MACHINE_ID}-5.14.0-70.el9.x86_64.conf": OTHER_ENTRY}
SAVED_OLDER = {"boot/grub2/grubenv": f"# GRUB Environment Block\nsaved_entry={MACHINE_ID}-5.14.0-70.el9.x86_64\n"}
SAVED_WINDOWS = {"boot/grub2/grubenv": "# GRUB Environment Block\nsaved_entry=osprober-efi-1\n"}
WINDOWS = "menuentry 'Windows' --id osprober-efi-1 {\n  chainloader /EFI/Microsoft/Boot/bootmgfw.efi\n}\n"


def menu_of(default: str) -> dict[str, str]:
    """RHEL's grub.cfg with another default, and another system behind the entries."""
    return {"boot/grub2/grub.cfg": BLS_CFG.replace("${saved_entry}", default) + WINDOWS}


HAND = f"title Arch\nlinux /vmlinuz-linux\ninitrd /initramfs-linux.img\noptions {OWN_LINE}\n"

GLOBAL = "sys/firmware/efi/efivars/{}-8be4df61-93ca-11d2-aa0d-00e098032b8c"
NEXT, CURRENT = map(GLOBAL.format, ("BootNext", "BootCurrent"))
FOREIGN = "boot/efi/EFI/Linux/zz.efi"


def uki(line: str) -> str:
    return image({".osrel": "ID=zz\nVERSION_ID=1\n", ".uname": "6.12.1", ".cmdline": f"{line}\n"})


MKINITCPIO = {
    FOREIGN: uki(OWN_LINE),
    "boot/efi/loader/loader.conf": "default zz.efi\n",
    INFO: said("systemd-boot 257"),
    "etc/mkinitcpio.d/linux.preset": 'default_uki="/boot/efi/EFI/Linux/zz.efi"\n',
}
ADDON = {
    FOREIGN: uki("quiet"),
    f"{FOREIGN}.extra.d/a.addon.efi": image({".cmdline": LINE}),
    "boot/efi/loader/loader.conf": "default zz.efi\n",
    INFO: said("systemd-boot 257"),
}

RIGHT_AND_SILENT = [
    Case("mkinitcpio", Outcome.COMPLIANT, MKINITCPIO, "uki"),
    Case("kernels-recorded", Outcome.COMPLIANT, {
        "boot/loader/entries/arch.conf": HAND, "boot/loader/loader.conf": "default arch.conf\n",
        "boot/vmlinuz-linux-lts": "x", "boot/vmlinuz-linux": "x", "boot/initramfs-linux.img": "x",
    }, "systemd-boot"),
    Case("addon", Outcome.COMPLIANT, ADDON, "uki"),
    Case("bootnext-is-this", Outcome.COMPLIANT, {NEXT: "\x07\0\0\0\1\0", CURRENT: "\x06\0\0\0\1\0"}),
    Case("u-boot-menu", Outcome.COMPLIANT, {
        "etc/default/u-boot": f'U_BOOT_PARAMETERS="{OWN_LINE}"\n', "boot/extlinux/extlinux.conf": "append quiet\n",
        "proc/cmdline": OWN_LINE,
    }),
    Case("debian-uefi", Outcome.COMPLIANT, {"boot/efi/EFI/debian/grub.cfg": STUB_CFG, "etc/fstab": FSTAB}),
    Case("ubuntu-uefi", Outcome.COMPLIANT, {"boot/efi/EFI/ubuntu/grub.cfg": STUB_CFG}),
    Case("removable", Outcome.COMPLIANT, {"boot/efi/EFI/BOOT/grub.cfg": STUB_CFG}),
    Case("stub-in-one-line", Outcome.COMPLIANT, {"boot/efi/EFI/debian/grub.cfg": STUB_CFG.strip().replace("\n", "; ")}),
    Case("rhel-uefi", Outcome.COMPLIANT, {"boot/efi/EFI/redhat/grub.cfg": RHEL_STUB}, "bls", "rhel"),
    Case("rhel8-uefi", Outcome.COMPLIANT, {"boot/efi/EFI/redhat/grub.cfg": "insmod blscfg\nblscfg\n"}, "bls", "rhel"),
    Case("fedora-uefi", Outcome.COMPLIANT, {"boot/efi/EFI/fedora/grub.cfg": RHEL_STUB}, "bls", "fedora"),
    Case("rhel-s390x", Outcome.COMPLIANT, {
        "etc/zipl.conf": "[defaultboot]\ndefaultauto\ntarget=/boot\n", "proc/cmdline": f"{OWN_LINE} BOOT_IMAGE=0",
    }, "bls", "rhel"),
    Case("machine-id-made-anew", Outcome.COMPLIANT, {"etc/machine-id": f"{OTHERS_ID}\n"}, "bls", "rhel"),
    Case("machine-id-made-anew-and-kernelopts", Outcome.COMPLIANT, {
        "etc/machine-id": f"{OTHERS_ID}\n", f"{ENTRIES}/{MACHINE_ID}-6.1.0-39-amd64.conf": KERNELOPTS,
        "boot/grub2/grubenv": f"# GRUB Environment Block\nkernelopts={OWN_LINE}\n",
    }, "bls", "rhel"),
    Case("images-entry-not-chosen", Outcome.COMPLIANT, {**OWN_ID, OTHERS: OTHER_ENTRY}, "bls", "rhel"),
    Case("images-entry-in-systemd-boot", Outcome.COMPLIANT, {**OWN_ID, OTHERS: OTHER_ENTRY}, "systemd-boot"),
    Case("tuned", Outcome.COMPLIANT, TUNED, "bls", "rhel"),
    Case("saved-entry-not-asked-for", Outcome.COMPLIANT, {**OLDER, **SAVED_OLDER, **menu_of("0")}, "bls", "rhel"),
    Case("windows-behind-the-entries", Outcome.COMPLIANT, menu_of("${saved_entry}"), "bls", "rhel"),
    Case("suse-uefi", Outcome.COMPLIANT, {"boot/efi/EFI/opensuse/grub.cfg": SUSE_STUB}, "suse-grub", "suse"),
    Case("suse-bls", Outcome.COMPLIANT, SUSE_BLS, "suse-grub", "suse"),
    Case("another-systems-menu", Outcome.COMPLIANT, {
        "boot/efi/EFI/debian/grub.cfg": STUB_CFG, "boot/efi/EFI/fedora/grub.cfg": MENU,
    }),
    Case("systemd-boot", Outcome.COMPLIANT, {INFO: said("systemd-boot 257"), **GRUB_LEFT}, "systemd-boot"),
    Case("uki", Outcome.COMPLIANT, {INFO: said("systemd-boot 257"), STUB_INFO: said("systemd-stub 257")}, "uki"),
    Case("by-hand", Outcome.COMPLIANT, {
        "boot/loader/entries/arch.conf": HAND, "boot/loader/loader.conf": "default arch.conf\n",
        "etc/kernel/cmdline": "quiet\n",
    }, "systemd-boot"),
    Case("sdboot-manage", Outcome.COMPLIANT, {SDBOOT: f'LINUX_OPTIONS="quiet {LINE}"\n'}, "systemd-boot"),
    Case("proxmox", Outcome.COMPLIANT, {**PVE, "etc/kernel/cmdline": OWN_LINE}),
    Case("proxmox-grub-with-a-space", Outcome.COMPLIANT, {
        "etc/kernel/proxmox-boot-uuids": "1A2B\n",
        "etc/default/grub": f"GRUB_CMDLINE_LINUX='{LINE} dyndbg=\"f a +p\"'\n",
        "proc/cmdline": f'BOOT_IMAGE=/boot/vmlinuz-6.1.0-39-amd64 {OWN_LINE} dyndbg="f a +p"\n',
    }),
    Case("nixos", Outcome.COMPLIANT, {"etc/NIXOS": "", "nix/var/nix/profiles/system/kernel-params": LINE}),
    Case("extlinux", Outcome.COMPLIANT, {
        "boot/extlinux/extlinux.conf": f"default l0\nlabel l0\n  linux /v\n  append {OWN_LINE}\n",
        "proc/cmdline": OWN_LINE,
    }),
]  # fmt: skip
SABOTAGED = [
    Case("mkinitcpio", Outcome.DRIFTED, {**MKINITCPIO, "etc/kernel/cmdline": "quiet\n"}, "uki", names="mkinitcpio"),
    Case("bootnext", Outcome.UNREADABLE, {NEXT: "\x07\0\0\0\3\0", CURRENT: "\x06\0\0\0\1\0"}, names="BootNext"),
    Case("zfsbootmenu", Outcome.UNREADABLE, {TYPE: "208\n", "proc/cmdline": f"{OWN_LINE} spl_hostid=0x1"},
         names="org.zfsbootmenu:commandline"),
    Case("proxmox", Outcome.DRIFTED, {**PVE, "etc/kernel/cmdline": "quiet\n"}, names="/etc/kernel/cmdline"),
    Case("proxmox-of-this-boot", Outcome.DRIFTED, {**PVE, "etc/kernel/cmdline": "quiet\n", "proc/cmdline": UNTUNED},
         names="proxmox-boot-tool"),
    Case("proxmox-not-refreshed", Outcome.DRIFTED, {**PVE, "etc/kernel/cmdline": OWN_LINE, "proc/cmdline": UNTUNED},
         names="proxmox-boot-tool"),
    Case("proxmox-grub", Outcome.DRIFTED, {"etc/kernel/proxmox-boot-uuids": "1A2B\n", "etc/default/grub": "A=1\n"},
         names="/etc/default/grub"),
    Case("sdboot-manage", Outcome.DRIFTED, {SDBOOT: 'LINUX_OPTIONS="quiet"\n'}, "systemd-boot", names=SDBOOT),
    Case("suse-bls", Outcome.DRIFTED, {**SUSE_BLS, "etc/kernel/cmdline": "quiet\n"}, "suse-grub", "suse",
         "/etc/kernel/cmdline"),
    Case("esp-menu", Outcome.DRIFTED, {"boot/efi/EFI/debian/grub.cfg": MENU}, names="/boot/efi/EFI/debian/grub.cfg"),
    Case("esp-nowhere", Outcome.UNREADABLE, {"boot/efi/EFI/debian/grub.cfg": "set timeout=1\n"},
         names="/boot/efi/EFI/debian/grub.cfg"),
    Case("esp-of-another-disk", Outcome.UNREADABLE, {
        "boot/efi/EFI/debian/grub.cfg": STUB_CFG.replace("5f3c-0001", "dead-beef"), "etc/fstab": FSTAB,
    }, names="/boot/efi/EFI/debian/grub.cfg"),
    Case("rhel-esp-menu", Outcome.DRIFTED, {"boot/efi/EFI/redhat/grub.cfg": MENU}, "bls", "rhel",
         "/boot/efi/EFI/redhat/grub.cfg"),
    Case("images-entry-saved", Outcome.DRIFTED, {**OWN_ID, **SAVED_OTHER, OTHERS: OTHER_ENTRY}, "bls", "rhel", OTHERS),
    Case("images-entry-first", Outcome.DRIFTED, {**OWN_ID, **NONE_SAVED, OTHERS: OTHER_ENTRY}, "bls", "rhel", OTHERS),
    Case("images-entry-configured", Outcome.DRIFTED, {
        **OWN_ID, OTHERS: OTHER_ENTRY, "boot/loader/loader.conf": f"default {OTHERS_ID}-*\n",
    }, "systemd-boot", names=OTHERS),
    Case("another-systems-entry-saved", Outcome.DRIFTED, {**OWN_ID, **SAVED_OTHER, OTHERS: OTHER_ROOT}, "bls", "rhel",
         OTHERS),
    Case("another-systems-entry-configured", Outcome.DRIFTED, {
        **OWN_ID, OTHERS: OTHER_ROOT, "boot/loader/loader.conf": f"default {OTHERS_ID}-*\n",
    }, "systemd-boot", names=OTHERS),
    Case("tuned-without-its-plugin", Outcome.DRIFTED, BY_TUNED, "bls", "rhel", "etc/kernel/cmdline"),
    Case("tuned-with-its-plugin-masked", Outcome.DRIFTED, {**TUNED, f"{OWN_PLUGINS}/92-tuned.install": ""}, "bls",
         "rhel", "etc/kernel/cmdline"),
    Case("tuned-of-another-profile", Outcome.DRIFTED, {**TUNED, **NONE_SAVED}, "bls", "rhel", f"{MACHINE_ID}-6.1.0"),
    Case("tuned-in-systemd-boot", Outcome.DRIFTED, {
        "etc/kernel/cmdline": "quiet\n", TUNED_PLUGIN: "#!/bin/bash\n",  # it expands no variable
    }, "systemd-boot", names="etc/kernel/cmdline"),
    Case("older-entry-saved", Outcome.DRIFTED, {**OLDER, **SAVED_OLDER}, "bls", "rhel", "5.14.0-70"),
    Case("older-entry-in-grub-cfg", Outcome.DRIFTED, {**OLDER, **menu_of(f"{MACHINE_ID}-5.14.0-70.el9.x86_64")}, "bls",
         "rhel", "5.14.0-70"),
    Case("windows-saved", Outcome.UNREADABLE, {**SAVED_WINDOWS, **menu_of("${saved_entry}")}, "bls", "rhel", "Windows"),
    Case("by-hand", Outcome.DRIFTED, {
        "boot/loader/entries/arch.conf": HAND.replace(LINE, ""), "boot/loader/loader.conf": "default arch.conf\n",
    }, "systemd-boot", names="arch.conf"),
    Case("nixos", Outcome.DRIFTED, {"etc/NIXOS": "", "nix/var/nix/profiles/system/kernel-params": "quiet\n"},
         names="kernel-params"),
    Case("limine", Outcome.DRIFTED, {
        INFO: said("Limine 9.3"), "etc/default/limine": 'KERNEL_CMDLINE[default]="quiet"\n', "proc/cmdline": BY_STUB,
    }, names="/etc/default/limine"),
    Case("refind", Outcome.DRIFTED, {
        INFO: said("rEFInd 0.14"), "boot/refind_linux.conf": '"Standard" "root=x quiet"\n', "proc/cmdline": BY_STUB,
    }, names="/boot/refind_linux.conf"),
    Case("nobody's", Outcome.UNREADABLE, {"proc/cmdline": BY_STUB}, names="/etc/default/grub"),
    Case("lost-kernel", Outcome.UNREADABLE, {
        "boot/loader/entries/arch.conf": HAND, "boot/loader/loader.conf": "default arch.conf\n",
        "boot/vmlinuz-linux-lts": "x", "boot/vmlinuz": "x",
    }, "systemd-boot", names="/vmlinuz-linux"),
    Case("lost-initrd", Outcome.UNREADABLE, {"boot/initrd.img-5.10": "x"}, names="/boot/initrd.img-6.1.0-39-amd64"),
]  # fmt: skip


def shown(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])


@shown(RIGHT_AND_SILENT)
def test_a_host_that_is_right_is_silent(case: Case, tmp_path: Path) -> None:
    tree = tree_of(case, tmp_path)
    assert {name: one for name, one in boot_findings(tree).items() if one.outcome is not Outcome.COMPLIANT} == {}


@shown(SABOTAGED)
def test_one_that_would_lose_its_words_is_named(case: Case, tmp_path: Path) -> None:
    """What is drifted is the argument; what cannot be known of the next boot is a finding of its own."""
    findings = boot_findings(tree_of(case, tmp_path))
    finding = findings["boot.isolcpus" if case.outcome is Outcome.DRIFTED else "nextboot"]
    assert finding.outcome is case.outcome
    assert case.names in f"{finding.reason} {finding.fix}"


@shown([case for case in SABOTAGED if case.name.startswith(("proxmox", "nixos", "limine", "refind", "nobody"))])
def test_nothing_is_written_for_a_loader_that_is_not_ours(case: Case, tmp_path: Path) -> None:
    tree = tree_of(case, tmp_path)
    assert not detect(Sysroot(str(tree))).supported
    apply(tree)
    assert not (tree / "etc/default/grub.d/99-tunectl.cfg").exists()
    assert not [change for change in inspection_on(tree).assess().changes if change.knob in WORDS]


@pytest.mark.parametrize(("mode", "outcome"), [(0o755, Outcome.COMPLIANT), (0o644, Outcome.DRIFTED)])
@pytest.mark.parametrize("loader", ["bls", "systemd-boot"])
def test_what_an_operators_plugin_does_to_later_entries_is_not_known(
    loader: str, mode: int, outcome: Outcome, tmp_path: Path
) -> None:
    """kernel-install runs those that may be executed. The next boot has the words by its entry."""
    plugin = f"{OWN_PLUGINS}/60-words.install"
    files = {"etc/kernel/cmdline": "quiet\n", plugin: "#!/bin/sh\n"}
    tree = tree_of(Case("", outcome, files, loader, "rhel" if loader == "bls" else "debian"), tmp_path)
    (tree / plugin).chmod(mode)
    findings = boot_findings(tree)
    finding = findings["boot.isolcpus"]
    assert finding.outcome is outcome
    assert (plugin if outcome is Outcome.COMPLIANT else "etc/kernel/cmdline") in finding.next_from
    assert ("nextboot" in findings) is (outcome is Outcome.COMPLIANT)
    assert (finding.points or {})["next_boot"] == (
        "unknown" if outcome is Outcome.COMPLIANT else "managed_irq,domain,2-3"
    )


@shown([case for case in SABOTAGED if case.name.startswith("images-entry")])
def test_apply_mends_an_entry_of_the_image(case: Case, tmp_path: Path) -> None:
    tree = tree_of(case, tmp_path)
    apply(tree)
    assert {one.outcome for one in boot_findings(tree).values()} == {Outcome.COMPLIANT}


@pytest.mark.parametrize("chosen", [{}, SAVED_OTHER], ids=["not chosen", "chosen"])
def test_another_systems_entry_is_never_written(chosen: dict[str, str], tmp_path: Path) -> None:
    case = Case("", Outcome.DRIFTED, {**OWN_ID, **chosen, OTHERS: OTHER_ROOT}, "bls", "rhel")
    tree = tree_of(case, tmp_path)
    (tree / "etc/kernel/cmdline").unlink()
    apply(tree)
    assert (tree / OTHERS).read_text() == OTHER_ROOT
    assert "dead-beef" not in Sysroot(str(tree)).get_text("etc/kernel/cmdline")


@pytest.mark.parametrize("case", [case for case in SABOTAGED if case.name in ("sdboot-manage", "suse-bls")])
def test_apply_mends_the_source_that_somebody_else_makes_entries_from(case: Case, tmp_path: Path) -> None:
    tree = tree_of(case, tmp_path)
    apply(tree)
    assert boot_findings(tree)["boot.isolcpus"].outcome is Outcome.COMPLIANT
    assert LINE in (tree / case.names.lstrip("/")).read_text()


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"proc/cmdline": BY_STUB, **GRUB_LEFT}, "ambiguous"),
        ({TYPE: "208\n", "proc/cmdline": OWN_LINE}, "grub"),  # kexec: this boot does not tell
        ({TYPE: "176\n", "proc/cmdline": OWN_LINE}, "direct"),
        ({TYPE: "114\n"}, "grub"),
        ({"proc/cmdline": f"from=bootconfig BOOT_IMAGE=/v {OWN_LINE}"}, "grub"),
        ({"proc/cmdline": f"{BY_STUB} BOOT_IMAGE=/v", "boot/loader/loader.conf": ""}, "systemd-boot"),  # a copy
        ({"proc/cmdline": f"placeholder {OWN_LINE}"}, "grub"),  # the first domain of Xen
        ({"proc/cmdline": f"BOOT_IMAGE=vmlinuz {OWN_LINE} initrd=initrd.img"}, "syslinux"),
        ({"proc/cmdline": f"BOOT_IMAGE=linux {OWN_LINE}", "etc/lilo.conf": 'append="quiet"\n'}, "lilo"),
        ({INFO: said("rEFInd 0.14")}, "grub"),  # which started GRUB
        ({INFO: said("systemd-boot 255"), SELECTED: said("a.conf"), "boot/loader/loader.conf": ""}, "systemd-boot"),
        ({INFO: said("systemd-boot 255"), SELECTED: said("auto-grub"), "boot/loader/loader.conf": ""}, "grub"),
        ({STUB_INFO: said("systemd-stub 255"), "boot/efi/EFI/Linux/a.efi": ""}, "systemd-boot"),
        ({INFO: said("Limine 9.3"), "proc/cmdline": BY_STUB}, "limine"),
        ({"usr/lib/os-release": "ID=flatcar\n"}, "flatcar"),
        ({"usr/lib/os-release": "ID=talos\n"}, "talos"),
    ],
)  # fmt: skip
def test_this_boot_says_who_started_it(files: dict[str, str], name: str, tmp_path: Path) -> None:
    assert detect(Sysroot(str(tree_of(Case("", Outcome.COMPLIANT, files), tmp_path)))).name == name


def test_a_menu_that_is_in_the_esp_alone_is_named_and_left_alone(tmp_path: Path) -> None:
    files = {"etc/default/grub": f'GRUB_CMDLINE_LINUX="{LINE}"\n', "boot/efi/EFI/centos/grub.cfg": MENU}
    tree = tree_of(Case("", Outcome.DRIFTED, files, "bls", "rhel"), tmp_path)
    for name in ("boot/grub2/grub.cfg", *(f"boot/loader/entries/{one}" for one in Sysroot(str(tree)).names(ENTRIES))):
        (tree / name).unlink()
    finding = boot_findings(tree)["boot.isolcpus"]
    assert finding.outcome is Outcome.DRIFTED
    assert "/boot/efi/EFI/centos/grub.cfg" in finding.reason
    apply(tree)
    assert (tree / "etc/default/grub").read_text() == files["etc/default/grub"]
