"""GRUB's own commands, by what they mean for the next boot, and its `test`.

Source: GRUB manual, "Available commands"; the modules that Debian, Ubuntu, SUSE and Arch load in their grub.cfg.

GRUB's `test` command, and its way to read a number. Pure, except for the files that the caller looks up.

Source: grub-core/commands/test.c (the order in which forms are tried), grub-core/kern/misc.c (grub_strtoull).
"""

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

# Each loads a Linux kernel; the words behind it are the image and the kernel's line.
LOADERS = ("linux", "linux16", "linuxefi")
# Each loads something else: another boot loader, a hypervisor, another kernel.
_OTHER_LOADERS = """
chainloader multiboot multiboot2 ntldr freedos kfreebsd knetbsd kopenbsd truecrypt xen_hypervisor xen_linux
xnu_kernel xnu_kernel64 plan9 pxechainloader
"""
OTHER_LOADERS = tuple(_OTHER_LOADERS.split())
LEAVING = ("exit", "halt", "reboot", "fwsetup")
# They show, load or look for something, or set a variable that an option names; the menu stays as it is.
_EFFECTLESS = """
initrd initrd16 initrdefi module module2 devicetree xen_module xen_initrd insmod rmmod loadfont
echo clear cls sleep play date help ls lsmod lsfonts lspci lsacpi lssal lsefi lsefimmap lsefisystab lscoreboot cat
hexdump terminal_input terminal_output terminfo serial keymap keystatus videoinfo videotest vbeinfo vbetest usb acpi
background_color background_image gfxmenu password password_pbkdf2 authenticate cryptomount loopback
search search.file search.fs_label search.fs_uuid search.fs_type probe regexp read smbios cpuid rdmsr wrmsr
inb inl inw outb outl outw read_byte read_dword read_word setpci parttool gptsync hdparm drivemap nativedisk
list_env list_trusted trust distrust verify_detached hashsum md5sum sha1sum sha256sum sha512sum crc cmp testspeed
time pcidump efitextmode net_bootp net_bootp6 net_dhcp net_add_addr net_add_dns net_add_route net_ls_addr
net_ls_cards net_ls_dns net_ls_routes net_nslookup increment decrement sendkey btrfs-get-default-subvol
btrfs-list-subvols
"""
EFFECTLESS = frozenset(_EFFECTLESS.split())
# Functions that grub-mkconfig's scripts define. Where one is not defined, GRUB says so and goes on.
MKCONFIGS_FUNCTIONS = ("load_video", "gfxmode", "savedefault", "recordfail", "initrdfail")
_NAMING = ("--set", "-s", "--var", "-v")


def assigned_by(texts: Sequence[str]) -> Iterator[str]:
    """The variables that a command of EFFECTLESS may set: those that an option names, or their place."""
    name, words = texts[0], texts[1:]
    if name in ("read", "increment", "decrement"):
        yield from words[-1:]
    if name.startswith("search"):
        yield "root"
    if name.startswith("search."):
        yield from words[1:2]
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        if option in _NAMING:
            yield (value if equals else following).rpartition(":")[2]


_NUMBER = re.compile(r"[ \t\n\v\f\r]*(?:0x([0-9a-fA-F]{1,4000})|0([0-7]{1,4000})|(?!0x)([0-9]{1,4000}))")
_MAX_DEPTH = 100

_STRINGS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NUMBERS: dict[str, Callable[[Any, Any], bool]] = {
    "-eq": operator.eq,
    "-ge": operator.ge,
    "-gt": operator.gt,
    "-le": operator.le,
    "-lt": operator.lt,
    "-ne": operator.ne,
}
_FILES = ("-d", "-e", "-f", "-s")

# (kind of question, path): does the path answer it? May raise.
AboutFile = Callable[[str, str], bool]


def number(text: str) -> int | None:
    """The number that a text begins with (`0x1f`, `017`, `5 apples`); None where it begins with none."""
    match = _NUMBER.match(text)
    if not match:
        return None
    if match[1]:
        return int(match[1], 16)
    return int(match[2], 8) if match[2] else int(match[3])


def is_true(operands: Sequence[str], about_file: AboutFile) -> bool | None:
    """What `test OPERANDS` gives; None for a form that is not followed."""
    words = list(operands)
    if words[-1:] == ["]"]:
        words.pop()
    try:
        return _Test(words, about_file).value()
    except _NotFollowed:
        return None


class _NotFollowed(Exception):  # noqa: N818 - a signal inside this module
    """A comparison of file times or versions, or parentheses without an end."""


class _Test:
    def __init__(self, words: list[str], about_file: AboutFile) -> None:
        self._words = words
        self._about_file = about_file
        self._at = 0
        self._depth = 0

    def value(self) -> bool:
        """The rest, up to the `)` that ends it. Between two terms without `-o`, both count."""
        either, both, invert = False, True, False
        while self._at < len(self._words):
            term = self._term()
            if term is None:
                word = self._words[self._at]
                self._at += 1
                if word == ")":
                    break
                if word == "!":
                    invert = not invert
                if word == "-o":
                    either, both = either or both, True
                if word in ("!", "-a", "-o"):
                    continue
                term = self._nested() if word == "(" else bool(word)
            both, invert = both and term != invert, False
        return either or both

    def _nested(self) -> bool:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _NotFollowed
        return self.value()

    def _term(self) -> bool | None:
        """The test that begins here, of three words or of two; None for none."""
        words = self._words[self._at : self._at + 3]
        if len(words) == 3:
            one, sign, other = words
            if sign in _STRINGS or sign in _NUMBERS:
                self._at += 3
                found = _STRINGS[sign](one.encode(), other.encode()) if sign in _STRINGS else None
                return _NUMBERS[sign](_signed(one), _signed(other)) if found is None else found
            if sign[:3] in ("-nt", "-ot") or sign in ("-pgt", "-plt"):
                raise _NotFollowed
        if len(words) >= 2 and words[0] in _FILES:
            self._at += 2
            return self._about_file(words[0], words[1])
        if len(words) >= 2 and words[0] in ("-n", "-z"):
            self._at += 2
            return bool(words[1]) == (words[0] == "-n")
        return None


def _signed(text: str) -> int:
    return -(number(text[1:]) or 0) if text.startswith("-") else number(text) or 0
