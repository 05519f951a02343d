"""What we say that GRUB boots next, against GRUB on a disk, boot after boot: what it writes counts, too."""

import pytest

from tests.bootloader.grub_named import BLOCK, CUSTOM, MENU, NAMED, OTHER
from tests.bootloader.grub_scripts import Files, made
from tests.bootloader.trees import grub_cfg, write
from tunectl.bootloader.grubmenu import SECOND_KERNEL, BootEntry, NoEntry, evaluate
from tunectl.bootloader.grubscript import kernel_text

from .grub.disk import UUID, GrubDisk

FIRST = "/k1 quiet isolcpus=2-3"
SECOND = "/k2 quiet"
NORMAL = f"/boot/vmlinuz-6.1.0-39-amd64 root=UUID={UUID} ro console=ttyS0 quiet"
RECOVERY = f"/boot/vmlinuz-6.1.0-39-amd64 root=UUID={UUID} ro single console=ttyS0"
OLD = f"/boot/vmlinuz-5.10.0-9-amd64 root=UUID={UUID} ro old"
VIDEO = "function load_video {\n  true\n}\n"
SAVED_HEADER = grub_cfg("${saved_entry}").partition("set timeout_style")[0]
SAVED = "load_env\nset default=$saved_entry\n"


def debian(default: str = "0") -> str:
    """What grub-mkconfig writes on this disk, 41_custom's part included."""
    return VIDEO + grub_cfg(default).replace("5f3c", UUID) + CUSTOM


def block(*lines: str) -> str:
    """An environment block as grub-editenv writes it."""
    text = "\n".join((BLOCK.rstrip(), *lines, ""))
    return text + "#" * (1024 - len(text))


def entry(name: str, line: str) -> str:
    """A menuentry that remembers, as with GRUB_SAVEDEFAULT=true, that it was chosen."""
    return f"menuentry 'The {name}' --id {name} {{\n  savedefault\n  linux {line}\n  initrd /i\n}}\n"


# name -> (the files, the lines of the kernels of one boot after the other)
CONFIGURATIONS: dict[str, tuple[Files, tuple[str | None, ...]]] = {
    "what grub-mkconfig writes": ({"grub.cfg": debian(), "grubenv": block()}, (NORMAL,)),
    "custom.cfg has an entry": ({"grub.cfg": debian(), "custom.cfg": OTHER}, (NORMAL,)),
    "custom.cfg has an entry and makes it the default": (
        {"grub.cfg": debian(), "custom.cfg": OTHER + "set default=two\n"},
        (SECOND, SECOND),
    ),
    "grub-reboot, for one boot": (
        {
            "grub.cfg": debian(),
            "grubenv": block(f"next_entry=gnulinux-advanced-{UUID}>gnulinux-6.1.0-recovery-{UUID}"),
        },
        (RECOVERY, NORMAL),
    ),
    "grub-set-default, for good": (
        {"grub.cfg": debian("${saved_entry}"), "grubenv": block("saved_entry=1>2")},
        (OLD, OLD),
    ),
    "grub-reboot as it was before next_entry: what was saved comes back": (
        {"grub.cfg": debian("${saved_entry}"), "grubenv": block("saved_entry=1>2", "prev_saved_entry=0")},
        (OLD, NORMAL),
    ),
    "a saved entry that GRUB_DEFAULT does not ask for": (
        {"grub.cfg": debian("0"), "grubenv": block("saved_entry=1>2")},
        (NORMAL,),
    ),
    "an entry of a submenu, by number": ({"grub.cfg": debian("1>2"), "grubenv": block()}, (OLD,)),
    "custom.cfg reads a file that sets colours": (
        {"grub.cfg": debian(), "custom.cfg": "source $prefix/site.cfg\n", "site.cfg": "set color_normal=red/black\n"},
        (NORMAL,),
    ),
    "words that need quotes": (
        {"grub.cfg": "menuentry 'a' {\n  linux /k1 'a b' \"c'd\" e\\\\f g\\\"h '' i\\ j\n  initrd /i\n}\n"},
        ("/k1 \"a b\" c\\'d e\\\\f g\\\"h  \"i j\"",),
    ),
    "a block without its first line is none": (
        {"grub.cfg": SAVED + MENU + OTHER, "grubenv": "saved_entry=two\n" + "#" * 1008},
        (FIRST,),
    ),
    "a kernel that is not there": (
        {
            "grub.cfg": debian("test"),
            "custom.cfg": "menuentry 'test' --id test {\n  linux /boot/vmlinuz-gone quiet isolcpus=2-3\n}\n",
        },
        (None,),
    ),
    "an initrd that is not there": (
        {"grub.cfg": "menuentry 'a' {\n  linux /k1 quiet\n  initrd /none\n}\n"},
        ("/k1 quiet",),
    ),
    "a line that goes on, and a comment": (
        {"grub.cfg": "menuentry 'a' {\n  linux /k2 \\\n quiet # isolcpus=2-3\n  initrd /i\n}\n"},
        (SECOND,),
    ),
    "arguments of the environment block": (
        {
            "grub.cfg": 'load_env\nmenuentry \'a\' {\n  linux /k2 $kernelopts "$more"\n  initrd /i\n}\n',
            "grubenv": block("kernelopts=quiet  isolcpus=2-3", "more=a b"),
        },
        ('/k2 quiet isolcpus=2-3 "a b"',),
    ),
    "no entry boots": ({"grub.cfg": "menuentry 'none' { true; }\n"}, (None,)),
    "savedefault: each boot saves the entry that it took": (
        {
            "grub.cfg": VIDEO + SAVED_HEADER + entry("one", FIRST) + entry("two", SECOND),
            "grubenv": block("saved_entry=two", "next_entry=one"),
        },
        (FIRST, SECOND, SECOND),
    ),
    "savedefault in a submenu saves the way to the entry": (
        {
            "grub.cfg": VIDEO
            + SAVED_HEADER
            + entry("one", FIRST)
            + "submenu 'More' --id more {\n"
            + entry("two", SECOND)
            + "}\n",
            "grubenv": block("saved_entry=1"),
        },
        (SECOND, SECOND),
    ),
}  # fmt: skip


def foretold(disk: GrubDisk) -> BootEntry | NoEntry:
    """What the product says of this disk's next boot."""
    root = write(disk.tree, {"proc/cmdline": f"BOOT_IMAGE={NORMAL}\n"})
    return evaluate(root, "boot/grub/grub.cfg").entry


def agree(disk: GrubDisk) -> str | None:
    """One boot: GRUB may not do otherwise than foretold. The line of its kernel, the image in front."""
    ours = foretold(disk)
    theirs = disk.boot()
    disk.refresh()
    if isinstance(ours, BootEntry):
        # An argument that is empty and quoted leaves its space at the end.
        assert theirs == f"BOOT_IMAGE={kernel_text([ours.image])}{ours.args and ' '}{ours.args}"
    else:
        assert not ours.known or theirs is None
    return theirs and theirs.removeprefix("BOOT_IMAGE=")


def laid_out(disk: GrubDisk, files: Files) -> None:
    write(disk.tree, {f"boot/grub/{name}": text for name, text in files.items()})
    disk.fill()


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_configuration(name: str, grub: GrubDisk) -> None:
    files, lines = CONFIGURATIONS[name]
    laid_out(grub, files)
    assert tuple(agree(grub) for _ in lines) == lines


def test_a_second_kernel_has_lost_its_arguments(grub: GrubDisk) -> None:
    """GRUB for BIOS hands it what stands at address 0; so we do not say that these arguments come."""
    laid_out(grub, {"grub.cfg": "menuentry 'a' {\n  linux /k1 a\n  linux /k2 isolcpus=2-3\n  initrd /i\n}\n"})
    assert "isolcpus" not in (agree(grub) or "")
    ours = foretold(grub)
    assert isinstance(ours, NoEntry)
    assert (ours.known, SECOND_KERNEL in ours.why) == (False, True)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMED)
def test_what_grub_emu_is_asked_too(name: str, grub: GrubDisk) -> None:
    laid_out(grub, NAMED[name][0])
    agree(grub)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2000, 2060))
def test_a_made_up_configuration(seed: int, grub: GrubDisk) -> None:
    laid_out(grub, made(seed))
    agree(grub)
