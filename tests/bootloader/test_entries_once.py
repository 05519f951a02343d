"""An entry of ours in loader/entries, which one boot takes: GRUB with such entries, systemd-boot, unified images."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bootloader.hosts import NEWEST, boot_findings, host
from tests.bootloader.onceparts import (
    ID,
    MOUNTS,
    NAME,
    attended,
    block,
    by_systemd_boot,
    enter,
    mounted,
    set_variable,
    tried,
)
from tests.bootloader.test_grub_once import a_host as a_grub_host
from tests.bootloader.test_nextboot import LiveTree
from tests.bootloader.test_real_tools import bootctl_list, needs_bootctl
from tests.bootloader.trees import write
from tests.hosts.boot_files import MACHINE_ID
from tests.trees import differences, picture
from tests.tuned import apply, restore
from tunectl.bootloader import grub, systemdboot
from tunectl.bootloader.entries import in_order, read_entries
from tunectl.bootloader.families import FAMILIES
from tunectl.bootloader.family import Family
from tunectl.bootloader.oneshot import refusals, tried_next
from tunectl.errors import UsageError
from tunectl.host.sysroot import Sysroot
from tunectl.tuning.commands import run_commands

SAVED = f"{MACHINE_ID}-{NEWEST}"
TEXTS = {
    "bls": (
        f"title tunectl tries {ID}\nlinux /vmlinuz-{NEWEST}\ninitrd /initramfs-{NEWEST}.img $tuned_initrd\n"
        "grub_users $grub_users\ngrub_class rhel\noptions {line}\n"
    ),
    "systemd-boot": f"title tunectl tries {ID}\nlinux      /{MACHINE_ID}/{NEWEST}/linux\noptions {{line}}\n",
    "uki": f"title tunectl tries {ID}\nefi /EFI/Linux/{MACHINE_ID}-{NEWEST}.efi\noptions {{line}}\n",
}
PLACES = {"bls": "boot", "systemd-boot": "boot", "uki": "boot/efi"}


def a_bls_host(below: Path) -> tuple[Sysroot, Family]:
    """RHEL 9 with GRUB's whole environment block, on ext4."""
    root = write(host(below, "bls"), {MOUNTS: mounted(), "usr/bin/grub2-editenv": ""})
    return write(Path(root.root), {"boot/grub2/grubenv": block(saved_entry=SAVED)}), FAMILIES["bls"]


def a_systemd_boot_host(below: Path) -> tuple[Sysroot, Family]:
    """A host whose boot came from systemd-boot."""
    root = Sysroot(str(host(below, "systemd-boot")))
    by_systemd_boot(root)
    return root, systemdboot.FAMILY


def a_uki_host(below: Path) -> tuple[Sysroot, Family]:
    """A host whose boot came from systemd-boot and a unified image that kernel-install made."""
    root = Sysroot(str(host(below, "uki")))
    by_systemd_boot(root)
    return root, systemdboot.FAMILY


Host = Callable[[Path], tuple[Sysroot, Family]]
HOSTS: dict[str, Host] = {"bls": a_bls_host, "systemd-boot": a_systemd_boot_host, "uki": a_uki_host}
every_kind = pytest.mark.parametrize("kind", HOSTS)
GRUBS: dict[str, Host] = {"grub": lambda below: (a_grub_host(below, {"usr/bin/grub-editenv": ""}), grub.FAMILY)}
and_grub = pytest.mark.parametrize("made", [*HOSTS.values(), *GRUBS.values()], ids=[*HOSTS, *GRUBS])


@every_kind
def test_the_entry_loads_what_the_default_one_does_with_the_tried_line(kind: str, tmp_path: Path) -> None:
    root, family = HOSTS[kind](tmp_path)
    assert family.once
    default = family.once.default(root, {})
    assert default
    (file,) = tried(root, family).writes
    assert (file.kind, file.path) == ("file", f"{PLACES[kind]}/loader/entries/{NAME}.conf")
    assert file.content == TEXTS[kind].format(line=f"{default.line} isolcpus=2-3")


@and_grub
def test_the_host_is_as_before_once_it_is_taken_back(made: Host, tmp_path: Path) -> None:
    root, family = made(tmp_path)
    before = picture(Path(root.root))
    enter(Path(root.root), tried(root, family))
    assert differences(before, Path(root.root))
    assert restore(Path(root.root)).complete
    assert not differences(before, Path(root.root))


@every_kind
def test_the_default_line_is_without_our_words(kind: str, tmp_path: Path) -> None:
    root, family = HOSTS[kind](tmp_path)
    assert family.once
    before = family.once.default(root, {})
    applied = apply(Path(root.root)).inspection
    assert family.once.default(root, applied.journal.edits()) == before


@every_kind
def test_our_entry_is_never_edited_and_changes_no_finding(kind: str, tmp_path: Path) -> None:
    root, family = HOSTS[kind](tmp_path)
    before = boot_findings(Path(root.root))
    (file,) = tried(root, family, "nohz_full=1").writes
    write(Path(root.root), {file.path: file.content})
    assert boot_findings(Path(root.root)) == before
    apply(Path(root.root))
    assert Path(root.path(file.path)).read_text() == file.content


def change(root: Sysroot, path: str, old: str, new: str) -> None:
    """What somebody does to a file."""
    place = Path(root.path(path))
    text = place.read_text()
    assert old in text
    place.write_text(text.replace(old, new))


DEFAULT = f"boot/loader/entries/{SAVED}.conf"
OF_BLS: dict[str, tuple[Callable[[Sysroot], object], list[bool]]] = {
    "somebody's next_entry": (
        lambda root: write(Path(root.root), {"boot/grub2/grubenv": block(next_entry="x")}),
        [False],
    ),
    "no code for next_entry": (lambda root: change(root, "boot/grub2/grub.cfg", "save_env", "true"), [False]),
    "custom.cfg chooses": (
        lambda root: write(Path(root.root), {"boot/grub2/custom.cfg": f"set default={SAVED}\n"}),
        [False],
    ),
    "no environment block": (lambda root: change(root, "boot/grub2/grubenv", "# GRUB", "# OTHER"), [False]),
    "btrfs": (lambda root: write(Path(root.root), {MOUNTS: mounted("btrfs")}), [True]),
    "a line in kernelopts": (lambda root: change(root, DEFAULT, "options ", "options $kernelopts "), [False]),
    "two lines": (lambda root: change(root, DEFAULT, "grub_class", "options quiet\ngrub_class"), [False]),
    "another system's": (lambda root: change(root, "boot/grub2/grubenv", NEWEST, "0-rescue"), [False]),
    "superusers, and an entry kept to one": (lambda root: with_users(root, "root"), [True]),
}


def with_users(root: Sysroot, users: str) -> None:
    """GRUB has superusers, and the default entry is kept to some users."""
    change(root, DEFAULT, "$grub_users", users)
    change(root, "boot/grub2/grub.cfg", "insmod blscfg", 'set superusers="root"\ninsmod blscfg')


@pytest.mark.parametrize("name", OF_BLS)
def test_what_grub_with_entries_is_refused_for(name: str, tmp_path: Path) -> None:
    root, family = a_bls_host(tmp_path)
    act, told = OF_BLS[name]
    act(root)
    assert [one for one in told if one not in attended(root, family)] == []
    assert attended(root, family) != []


def test_superusers_alone_keep_nobody_from_an_entry(tmp_path: Path) -> None:
    root, family = a_bls_host(tmp_path)
    with_users(root, "$grub_users")
    assert refusals(root, family.once, "bls") == ()


ONE_SHOT = "other.conf\0".encode("utf-16-le")
OF_SYSTEMD_BOOT: dict[str, Callable[[Sysroot], object]] = {
    "somebody's entry": lambda root: set_variable(root, "LoaderEntryOneShot", ONE_SHOT),
    "an old loader": lambda root: by_systemd_boot(root, 0x7),
    "another loader": lambda root: set_variable(root, "LoaderInfo", "rEFInd 0.14\0".encode("utf-16-le")),
    "no bootctl": lambda root: Path(root.path("usr/bin/bootctl")).unlink(),
    "the firmware's own choice": lambda root: set_variable(root, "BootNext", b"\5\0", of_firmware=True),
}


@pytest.mark.parametrize("name", OF_SYSTEMD_BOOT)
def test_what_systemd_boot_is_refused_for(name: str, tmp_path: Path) -> None:
    root, family = a_systemd_boot_host(tmp_path)
    OF_SYSTEMD_BOOT[name](root)
    assert attended(root, family) == [False]


def test_entries_whose_tries_are_used_up(tmp_path: Path) -> None:
    root, family = a_systemd_boot_host(tmp_path)
    places = Path(root.path("boot/loader/entries"))
    for place in list(places.iterdir()):
        place.rename(place.with_name(place.name.replace(".conf", "+0.conf")))
    assert attended(root, family) == [False]


def test_secure_boot_holds_an_image_to_its_own_line(tmp_path: Path) -> None:
    root, family = a_uki_host(tmp_path)
    set_variable(root, "SecureBoot", b"\0", of_firmware=True)
    assert refusals(root, family.once, "systemd-boot") == ()
    set_variable(root, "SecureBoot", b"\1", of_firmware=True)
    assert attended(root, family) == [False]


def test_secure_boot_leaves_the_line_of_an_entry_open(tmp_path: Path) -> None:
    root, family = a_systemd_boot_host(tmp_path)
    set_variable(root, "SecureBoot", b"\1", of_firmware=True)
    assert refusals(root, family.once, "systemd-boot") == ()


@pytest.mark.skipif(subprocess.run(["id", "-u"], capture_output=True, text=True).stdout != "0\n", reason="mounts")
def test_a_partition_without_space(tmp_path: Path) -> None:
    root, family = a_uki_host(tmp_path)
    place = root.path("boot/efi")
    subprocess.run(["cp", "-r", place, str(tmp_path / "esp")], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", place], check=True)
    try:
        subprocess.run(["cp", "-r", f"{tmp_path}/esp/.", place], check=True)
        assert attended(root, family) == [False]
    finally:
        subprocess.run(["umount", place], check=True)


@and_grub
def test_a_line_that_the_kernel_would_cut(made: Host, tmp_path: Path) -> None:
    root, family = made(tmp_path)
    with pytest.raises(UsageError):
        tried(root, family, "x" * 2048)


def test_an_entry_with_more_than_ascii(tmp_path: Path) -> None:
    root, family = a_systemd_boot_host(tmp_path)
    change(root, DEFAULT, "linux      /", "linux      /ä")
    with pytest.raises(UsageError):
        tried(root, family)


@and_grub
def test_it_is_chosen_by_its_file_and_unchosen_where_it_is_ours(made: Host, tmp_path: Path) -> None:
    root, family = made(tmp_path)
    entry = tried(root, family)
    assert run_commands(root, [entry.arm, entry.disarm]).not_run == []
    enter(Path(root.root), entry)
    (chosen,) = run_commands(root, [entry.arm]).not_run
    assert NAME in chosen
    arm(root)
    assert len(run_commands(root, [entry.disarm]).not_run) == 1


def arm(root: Sysroot) -> None:
    """As both programs leave it."""
    chosen = block(saved_entry=SAVED, next_entry=NAME)
    write(Path(root.root), {"boot/grub/grubenv": chosen, "boot/grub2/grubenv": chosen})
    set_variable(root, "LoaderEntryOneShot", f"{NAME}.conf\0".encode("utf-16-le"))


@and_grub
def test_while_it_is_chosen_the_boots_behind_it_are_judged(made: Host, tmp_path: Path) -> None:
    root, family = made(tmp_path)
    tree = Path(root.root)
    for kernel in [*tree.glob("boot/vmlinuz-*"), *tree.glob("boot/initrd.img-*")]:  # a recording has none
        kernel.unlink()
    before = family.upcoming(LiveTree(tree))
    assert before.points
    assert (before.problem, tried_next(root, family)) == ("", "")
    enter(Path(root.root), tried(root, family))
    arm(root)
    assert family.upcoming(LiveTree(tree)) == before
    assert NAME in tried_next(root, family)


@needs_bootctl
def test_bootctl_shows_it_last(tmp_path: Path) -> None:
    root, family = a_systemd_boot_host(tmp_path)
    (file,) = tried(root, family).writes
    write(Path(root.root), {file.path: file.content})
    listed = bootctl_list(Path(root.path("boot")), tmp_path / "mount")
    assert [entry["id"] for entry in listed] == [entry.id for entry in in_order(read_entries(root))]
    assert (listed[-1]["id"], listed[-1]["options"]) == (f"{NAME}.conf", file.content.splitlines()[-1][8:])
