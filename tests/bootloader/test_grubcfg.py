"""The reader of a generated grub.cfg: entries, sections, and what GRUB would refuse."""

import shutil
import subprocess

import pytest

from tests.bootloader.trees import grub_cfg
from tunectl.bootloader.grubcfg import Refused, parse, read_entries, section_at, section_marks

ADVANCED = "Advanced options for Debian GNU/Linux"
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


def test_each_entry_of_a_generated_menu() -> None:
    entries = {entry.id: entry for entry in read_entries(grub_cfg(args="quiet isolcpus=2-3"))}
    assert list(entries) == [
        "gnulinux-simple-5f3c",
        "gnulinux-advanced-5f3c",
        "gnulinux-6.1.0-advanced-5f3c",
        "gnulinux-6.1.0-recovery-5f3c",
        "gnulinux-5.10.0-advanced-5f3c",
        "osprober-efi-1",
    ]
    simple = entries["gnulinux-simple-5f3c"]
    assert (simple.title, simple.inside, simple.submenu) == ("Debian GNU/Linux", (), False)
    assert simple.linux == "linux\t/boot/vmlinuz-6.1.0-39-amd64 root=UUID=5f3c ro quiet isolcpus=2-3"
    assert simple.initrd == "initrd\t/boot/initrd.img-6.1.0-39-amd64"
    assert simple.text.startswith("menuentry 'Debian GNU/Linux' --class debian")
    assert simple.text.endswith("\n}")
    old = entries["gnulinux-5.10.0-advanced-5f3c"]
    assert (old.inside, old.initrd) == ((ADVANCED,), "")
    assert entries["gnulinux-advanced-5f3c"].submenu
    assert entries["osprober-efi-1"].linux == ""


def test_the_script_that_printed_an_entry() -> None:
    entries = read_entries(SECTIONS)
    assert [(entry.title, entry.id, entry.section, entry.line) for entry in entries] == [
        ("one", "one", "/etc/grub.d/10_linux", 2),
        ("between", "between", "", 6),
        ("three", "3", "/etc/grub.d/40_custom", 8),
    ]
    assert section_at(section_marks(SECTIONS), 8) == "/etc/grub.d/40_custom"


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
