"""What we say that GRUB boots next, against GRUB: grub-emu runs the same configuration."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.bootloader import grub_emu
from tests.bootloader.grub_scripts import Files, made
from tests.bootloader.trees import grub_cfg, write
from tunectl.bootloader.grubmenu import BootEntry, NoEntry, evaluate
from tunectl.bootloader.grubscript import kernel_text
from tunectl.host.sysroot import Sysroot

pytestmark = pytest.mark.skipif(not grub_emu.PRESENT, reason="grub-emu is not installed")

MENU = "menuentry 'first' --id one { linux /k1 quiet isolcpus=2-3; initrd /i; }\n"
OTHER = "menuentry 'other' --id two { linux /k2 quiet; initrd /i; }\n"
BLOCK = "# GRUB Environment Block\n"
HEADER = grub_cfg().partition("### BEGIN")[0]
CUSTOM = "if [ -f  ${config_directory}/custom.cfg ]; then\n  source ${config_directory}/custom.cfg\nfi\n"

# name -> (files beside grub.cfg and itself, the image that boots, or "" for none)
NAMED: dict[str, tuple[Files, str]] = {
    "an entry of custom.cfg that it makes the default": (
        {"grub.cfg": MENU + CUSTOM, "custom.cfg": OTHER + "set default=two\n"},
        "/k2",
    ),
    "an entry of custom.cfg that nothing chooses": ({"grub.cfg": MENU + CUSTOM, "custom.cfg": OTHER}, "/k1"),
    "custom.cfg that is not there": ({"grub.cfg": MENU + CUSTOM}, "/k1"),
    "a menu in the place of the menu": ({"grub.cfg": MENU + "configfile $prefix/x.cfg\n", "x.cfg": OTHER}, "/k2"),
    "configfile keeps its variables": (
        {"grub.cfg": MENU + OTHER + "configfile $prefix/x.cfg\n", "x.cfg": "set default=two\n"},
        "/k1",
    ),
    "an entry that reads a menu": (
        {"grub.cfg": "menuentry 'more' { configfile $prefix/x.cfg; }\n" + MENU, "x.cfg": OTHER + MENU},
        "/k2",
    ),
    "the last linux of an entry": ({"grub.cfg": "menuentry 'a' { linux /k1; linux /k2 x; initrd /i; }\n"}, "/k2"),
    "grub-reboot": (
        {
            "grub.cfg": "load_env\nset default=$next_entry\n" + MENU + OTHER,
            "grubenv": BLOCK + "next_entry=two\n" + "#" * 900,
        },
        "/k2",
    ),
    "a file that sources a file": (
        {"grub.cfg": MENU + ". $prefix/x.cfg\n", "x.cfg": "source $prefix/y.cfg\n", "y.cfg": OTHER + "default=1\n"},
        "/k2",
    ),
    "a name with >": ({"grub.cfg": "set default='a>>b>two'\nsubmenu 'a>b' {\n" + MENU + OTHER + "}\n"}, "/k2"),
    "a title that begins with a number": ({"grub.cfg": "set default='1st'\n" + MENU + OTHER}, "/k2"),
    "a number past the end": ({"grub.cfg": "set default=7\n" + MENU + OTHER}, "/k1"),
    "fallback": ({"grub.cfg": "set fallback=1\nmenuentry 'none' { true; }\n" + OTHER}, "/k2"),
    "a variable that a submenu does not get": (
        {"grub.cfg": "set w=two\nexport v\nset v=two\nsubmenu 's' {\n" + MENU + OTHER + 'set default="$w"\n}\n'},
        "/k1",
    ),
    "an exported variable": (
        {"grub.cfg": "set v=two\nexport v\nsubmenu 's' {\n" + MENU + OTHER + 'set default="$v"\n}\n'},
        "/k2",
    ),
    "a function with a parameter": (
        {"grub.cfg": 'function pick {\n  set default="$1"\n}\npick two\n' + MENU + OTHER},
        "/k2",
    ),
    "a loop": (
        {
            "grub.cfg": 'for n in one two three; do\n  if [ "$n" = two ]; then set default=$n; break; fi\ndone\n'
            + MENU
            + OTHER
        },
        "/k2",
    ),
    "while": (
        {"grub.cfg": 'set default=one\nwhile [ "$default" = one ]; do set default=two; done\n' + MENU + OTHER},
        "/k2",
    ),
    **{
        f"`{word}` where there is nothing to leave": ({"grub.cfg": f"{word}\nset default=two\n{MENU}{OTHER}"}, "/k2")
        for word in ("return", "break", "continue", "eval return", "return 1")
    },
    "`break` in an entry": (
        {"grub.cfg": "menuentry 'x' --id x {\n  break\n  linux /kx a\n}\n" + "set default=x\n" + MENU},
        "/kx",
    ),
    "`break` in a function leaves no loop of the caller": (
        {
            "grub.cfg": "function leave {\n  break\n}\n"
            + "for n in one two; do\n  leave\n  set default=$n\ndone\n"
            + MENU
            + OTHER
        },
        "/k2",
    ),
    "`break` of more loops than there are": (
        {"grub.cfg": "for n in one; do\n  break 5\ndone\nset default=two\n" + MENU + OTHER},
        "/k2",
    ),
    "`return` in a loop of a function": (
        {"grub.cfg": "function pick {\n  for n in two one; do set default=$n; return; done\n}\npick\n" + MENU + OTHER},
        "/k2",
    ),
    "no entry loads a kernel": ({"grub.cfg": "menuentry 'a' { true; }\n"}, ""),
    "what grub-mkconfig writes": (
        {"grub.cfg": HEADER.replace("load_video\n", "true\n")},
        "/boot/vmlinuz-6.1.0-39-amd64",
    ),
}


def agree(files: Files, directory: Path) -> BootEntry | NoEntry:
    """What we foretell, after GRUB was asked the same: it may not say otherwise."""
    write(directory, {f"boot/grub/{name}": text for name, text in files.items()})
    ours = evaluate(Sysroot(str(directory)), "boot/grub/grub.cfg").entry
    theirs = grub_emu.run(directory / "boot/grub")
    if isinstance(ours, BootEntry):
        assert theirs is not None
        assert (ours.image, ours.args) == (theirs[0], kernel_text(theirs[1:]))
    elif ours.known:
        assert theirs is None
    return ours


@pytest.mark.parametrize("name", NAMED)
def test_a_named_configuration(name: str, on_disk: Path) -> None:
    files, image = NAMED[name]
    found = agree(files, on_disk)
    assert (found.image if isinstance(found, BootEntry) else "") == image


def test_a_script_that_grub_refuses_is_not_known(on_disk: Path) -> None:
    found = agree({"grub.cfg": "set a=1>2\n" + MENU}, on_disk)
    assert isinstance(found, NoEntry)
    assert (found.known, found.why) == (False, "a syntax error at /boot/grub/grub.cfg:1")


def _try_all(seeds: range) -> None:
    for seed in seeds:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
            files = made(seed)
            try:
                found = agree(files, Path(place))
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {files}") from error
            # Nothing in them depends on the machine.
            assert isinstance(found, BootEntry) or found.known, f"seed {seed}: {found}"


def test_made_up_configurations() -> None:
    _try_all(range(5))


@pytest.mark.slow
def test_more_made_up_configurations() -> None:
    _try_all(range(5, 80))


@pytest.mark.long
def test_a_thousand_made_up_configurations() -> None:
    _try_all(range(80, 1080))
