"""Who decided which entry of GRUB's menu is the default, and how the decision is taken back."""

from __future__ import annotations

import re
from collections import Counter

from tunectl.bootloader.cmdline import parse_cmdline
from tunectl.bootloader.grubmenu import BootEntry, NoEntry
from tunectl.bootloader.grubsettings import DEFAULT_GRUBENV, Configured, generator, menu_path, read_menu
from tunectl.bootloader.grubstate import Origin
from tunectl.host.sysroot import Sysroot

_SECTION = re.compile(r"### BEGIN (/\S+) ###")
# Variables of the environment block that name an entry, and the program that sets each.
_SET_BY = {"next_entry": "grub-reboot", "saved_entry": "grub-set-default"}


def is_generated(root: Sysroot, entry: BootEntry) -> bool:
    """Is it an entry that the generator makes from the settings? Recovery entries do not get all of them."""
    file = entry.at.rpartition(":")[0]
    section = _section(root, entry.at)
    return file == f"/{menu_path(root)}" and not entry.recovery and (not section or "linux" in section)


def decided_by(root: Sysroot, decided: Origin | None) -> str:
    """What made an entry the default, as half a sentence."""
    if decided is None:
        return "it is the first one"
    if not decided.variable:
        return f"{decided.where} makes it the default"
    program = _SET_BY.get(decided.variable, "")
    return f"{decided.variable} in {decided.where} decides that" + (f" ({program} sets it)" if program else "")


def mend(root: Sysroot, settings: Configured, entry: BootEntry | NoEntry) -> str:
    """What an operator does so that the next boot is an entry with the configured arguments."""
    decided = entry.decided
    if decided and decided.variable:
        return _unset(root, settings, decided)
    if decided and _section(root, decided.where) in ("", "/etc/grub.d/00_header") and _is_menu(root, decided.where):
        return f"name another entry in GRUB_DEFAULT of /etc/default/grub, then sudo {generator(root)}"
    if decided:
        source = _section(root, decided.where)
        after = f" (it comes from {source}: then sudo {generator(root)})" if source else ""
        return f"take {decided.where} out, or have it name an entry that has the arguments{after}"
    if isinstance(entry, BootEntry):
        lacking = Counter(settings.args) - Counter(parse_cmdline(entry.args))
        return f"add {' '.join(map(str, lacking))} to the kernel's line of the entry at {entry.at}"
    return "choose an entry that boots Linux"


def _unset(root: Sysroot, settings: Configured, decided: Origin) -> str:
    """The variables to take out of the environment block: those without which the default entry is a right one."""
    block = "-" if decided.where == f"/{DEFAULT_GRUBENV[menu_path(root)]}" else decided.where
    editor = "grub2-editenv" if "grub2" in menu_path(root) else "grub-editenv"
    for names in ((decided.variable,), tuple(_SET_BY)):
        menu = read_menu(root, names)
        if not isinstance(menu, OSError) and isinstance(menu.entry, BootEntry) and is_generated(root, menu.entry):
            outdated = Counter(settings.args) - Counter(parse_cmdline(menu.entry.args))
            unset = " && ".join(f"sudo {editor} {block} unset {name}" for name in names)
            return unset + (f", then sudo {generator(root)}" if outdated else "")
    return f"have {decided.variable} in {decided.where} name an entry that has the arguments"


def _is_menu(root: Sysroot, at: str) -> bool:
    return at.rpartition(":")[0] == f"/{menu_path(root)}"


def _section(root: Sysroot, at: str) -> str:
    """The script of /etc/grub.d that wrote a line of the menu; "" where none is named."""
    file, _, line = at.rpartition(":")
    above = root.get_text(file.lstrip("/")).split("\n")[: int(line)] if line.isdecimal() else []
    return next((found[1] for text in reversed(above) if (found := _SECTION.match(text))), "")
