"""Who decided which entry of GRUB's menu is the default, and how the decision is taken back."""

import re
from collections import Counter

from tunectl.bootloader.cmdline import parse_cmdline
from tunectl.bootloader.grubmenu import BootEntry, NoEntry
from tunectl.bootloader.grubsettings import DEFAULT_GRUBENV, Configured, making_menu, menu_path, read_menu
from tunectl.bootloader.grubstate import Origin
from tunectl.bootloader.grubsyntax import Unfollowed, parse
from tunectl.command import Command, all_of, argv, as_data
from tunectl.fix import Fix, to_decide, to_type
from tunectl.host.sysroot import Sysroot

_MARK = re.compile(r"### (BEGIN|END) (/\S+) ###")
# Scripts of GRUB's own: what they say of the default follows GRUB_DEFAULT.
_FOLLOW_SETTINGS = frozenset({"00_header", "10_linux", "20_linux_xen", "30_os-prober"})
# Variables of the environment block that name an entry, and the program that sets each.
_SET_BY = {"next_entry": "grub-reboot", "saved_entry": "grub-set-default"}


def is_generated(root: Sysroot, entry: BootEntry) -> bool:
    """Is it an entry that the generator makes from the settings? Recovery entries do not get all of them."""
    file = entry.at.rpartition(":")[0]
    section = _section(root, entry.at)
    return file == f"/{menu_path(root)}" and not entry.recovery and (section is None or "linux" in section)


def decided_by(root: Sysroot, decided: Origin | None) -> str:
    """What made an entry the default, as half a sentence."""
    if decided is None:
        return "it is the first one"
    if not decided.variable:
        script = _section(root, decided.where)
        return f"{as_data(decided.where)}{f', from {script},' if script else ''} makes it the default"
    program = _SET_BY.get(decided.variable, "")
    return f"{as_data(decided.variable)} in {as_data(decided.where)} decides that" + (
        f" ({program} sets it)" if program else ""
    )


def mend(root: Sysroot, settings: Configured, entry: BootEntry | NoEntry) -> Fix:
    """What an operator does so that the next boot is an entry with the configured arguments."""
    decided = entry.decided
    if decided and decided.variable:
        return _unset(root, settings, decided)
    if decided:
        return _take_back(root, decided.where)
    if isinstance(entry, BootEntry):
        lacking = Counter(settings.args) - Counter(parse_cmdline(entry.args))
        words = " ".join(map(as_data, lacking)) or "the arguments"
        return to_decide(f"add {words} to the kernel's line of the entry at {as_data(entry.at)}")
    return to_decide("choose an entry that boots Linux")


def _unset(root: Sysroot, settings: Configured, decided: Origin) -> Fix:
    """The variables to take out of the environment block: those without which the default entry is a right one."""
    block = "-" if decided.where == f"/{DEFAULT_GRUBENV[menu_path(root)]}" else decided.where
    editor = "grub2-editenv" if "grub2" in menu_path(root) else "grub-editenv"
    for names in ((decided.variable,), tuple(_SET_BY)):
        menu = read_menu(root, names)
        if not isinstance(menu, OSError) and isinstance(menu.entry, BootEntry) and is_generated(root, menu.entry):
            outdated = Counter(settings.args) - Counter(parse_cmdline(menu.entry.args))
            unset = all_of(argv("sudo", editor, block, "unset", name) for name in names)
            return to_type(unset.then(making_menu(root)) if outdated else unset)
    return to_decide(
        f"have {as_data(decided.variable)} in {as_data(decided.where)} name an entry that has the arguments"
    )


def _take_back(root: Sysroot, where: str) -> Fix:
    """How a line of a GRUB script decides nothing any more; what the generator writes anew is mended at its source."""
    if where.rpartition(":")[0] != f"/{menu_path(root)}":
        return _take_out(where) if _can_go(root, where) else _do_nothing(where)
    script = _section(root, where)
    if script == "":
        return to_type(making_menu(root), f"it writes the menu anew, without what somebody wrote into it at {where}")
    if script is None or script.rpartition("/")[2] in _FOLLOW_SETTINGS:
        return to_decide(f"name another entry in GRUB_DEFAULT of /etc/default/grub, then {making_menu(root)}")
    if _can_go(root, where) and (source := _line_of(root, script, where)):
        return _take_out(source, making_menu(root))
    said = f"have {as_data(script)} print nothing that chooses the default (it printed {where})"
    return to_decide(f"{said}, then {making_menu(root)}")


def _take_out(place: str, after: Command | None = None) -> Fix:
    then = f", then {after}" if after else ""
    return to_decide(f"take {place} out, or have it name an entry that has the arguments{then}")


def _can_go(root: Sysroot, where: str) -> bool:
    """Is a script still one without this line? GRUB takes no `if` and no function with nothing in it."""
    file, _, number = where.rpartition(":")
    lines = root.get_text(file.lstrip("/")).split("\n")
    del lines[int(number) - 1]
    try:
        parse(file, "\n".join(lines))
    except Unfollowed:
        return False
    return True


def _do_nothing(where: str) -> Fix:
    file, _, number = where.rpartition(":")
    return to_type(argv("sudo", "sed", "-i", f"{number}s/.*/true/", of=[file]))


def _line_of(root: Sysroot, script: str, where: str) -> str:
    """The one line of a script of /etc/grub.d that has what it wrote into this line of the menu; "" where none has."""
    file, _, number = where.rpartition(":")
    printed = root.get_text(file.lstrip("/")).split("\n")[int(number) - 1].strip()
    lines = root.get_named(script.lstrip("/")).split("\n")
    found = [n for n, text in enumerate(lines, 1) if printed in text and not text.lstrip().startswith("#")]
    return f"{script}:{found[0]}" if len(found) == 1 else ""


def _section(root: Sysroot, at: str) -> str | None:
    """The script of /etc/grub.d that wrote a line of a menu; "" for one between theirs; None in a file without marks.

    grub-mkconfig writes a mark before and behind what each script prints.
    """
    file, _, line = at.rpartition(":")
    texts = root.get_text(file.lstrip("/")).split("\n")
    marks = [(n, match) for n, text in enumerate(texts, 1) if (match := _MARK.match(text))]
    if not marks or not line.isdecimal():
        return None
    last = next((match for n, match in reversed(marks) if n < int(line)), None)
    return last[2] if last and last[1] == "BEGIN" else ""
