"""The reader of a generated grub.cfg: entries, sections, and what GRUB would refuse."""

import shutil
import subprocess

import pytest

from tests.bootloader.trees import grub_cfg
from tunectl.bootloader.grubcfg import (
    INITRDS,
    LOADERS,
    MenuEntry,
    Refused,
    entry_of,
    guarded,
    parse,
    section_at,
    section_marks,
)

SECTIONS = """\
### BEGIN /etc/grub.d/10_linux ###
menuentry 'one' {
  linux /k1 quiet
}
### END /etc/grub.d/10_linux ###
menuentry 'between' { linux /k2; initrd /i; }
### BEGIN /etc/grub.d/40_custom ###
if [ "$grub_platform" = "efi" ]; then menuentry "three" --class x --id=3 { chainloader /x.efi; }; fi
### END /etc/grub.d/40_custom ###
"""


def entries_of(text: str) -> list[MenuEntry]:
    """Those of a menu, without what is in its submenus."""
    return [entry for command, _ in guarded(parse(text)) if (entry := entry_of(command))]


def loads(entry: MenuEntry) -> list[str]:
    """Its commands that load something, as written."""
    return [command.text for command in entry.commands if command.name in (*LOADERS, *INITRDS)]


def test_each_entry_of_a_generated_menu() -> None:
    simple, advanced, other = entries_of(grub_cfg(args="quiet isolcpus=2-3"))
    assert [simple.id, advanced.id, other.id] == ["gnulinux-simple-5f3c", "gnulinux-advanced-5f3c", "osprober-efi-1"]
    assert (simple.title, simple.submenu, advanced.submenu) == ("Debian GNU/Linux", False, True)
    assert simple.command.text.startswith("menuentry 'Debian GNU/Linux' --class debian")
    assert simple.command.text.endswith("\n}")
    assert loads(simple) == [
        "linux\t/boot/vmlinuz-6.1.0-39-amd64 root=UUID=5f3c ro quiet isolcpus=2-3",
        "initrd\t/boot/initrd.img-6.1.0-39-amd64",
    ]
    assert loads(other) == []
    inner = [entry for command in advanced.commands if (entry := entry_of(command))]
    assert [entry.id for entry in inner] == [
        "gnulinux-6.1.0-advanced-5f3c",
        "gnulinux-6.1.0-recovery-5f3c",
        "gnulinux-5.10.0-advanced-5f3c",
    ]
    assert loads(inner[2]) == ["linux\t/boot/vmlinuz-5.10.0-9-amd64 root=UUID=5f3c ro old"]


def test_the_script_that_printed_an_entry() -> None:
    marks = section_marks(SECTIONS)
    assert [(entry.title, entry.id, section_at(marks, entry.command.line)) for entry in entries_of(SECTIONS)] == [
        ("one", "one", "/etc/grub.d/10_linux"),
        ("between", "between", ""),
        ("three", "3", "/etc/grub.d/40_custom"),
    ]


REFUSED = {"menuentry x {\n": 1, "true\n}\n": 2, "true\nset a=1>2\n": 2, "{ true; }\n": 1, "set a=$(date)\n": 1,
           "a;;\n": 1, "x {\n}\n": 2}  # fmt: skip
needs_check = pytest.mark.skipif(not shutil.which("grub-script-check"), reason="grub-common is not installed")


@pytest.mark.parametrize("text", REFUSED)
def test_a_text_that_grub_refuses(text: str) -> None:
    with pytest.raises(Refused) as refused:
        parse(text)
    assert refused.value.line == REFUSED[text]


@needs_check
@pytest.mark.parametrize("text", [*REFUSED, "menuentry x {\n}\n", SECTIONS])
def test_grub_script_check_agrees(text: str) -> None:
    done = subprocess.run(["grub-script-check"], input=text, text=True, capture_output=True, check=False)
    assert (done.returncode == 0) is (text == SECTIONS)
