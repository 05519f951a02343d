"""Who decided which entry of GRUB's menu is the default, and how the decision is taken back."""

from tunectl.bootloader.grubcfg import Refused, guarded, parse, section_at, section_marks
from tunectl.bootloader.grubmenu import GRUBS_OWN, BootEntry, NoEntry, Origin
from tunectl.bootloader.grubsettings import DEFAULT_GRUBENV, Configured, making_menu, menu_path, read_menu
from tunectl.command import all_of, argv, as_data
from tunectl.fix import NOTHING, Fix, to_decide, to_type
from tunectl.host.sysroot import Sysroot

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
        return take_back(root, decided.where)
    if isinstance(entry, BootEntry):
        words = " ".join(map(as_data, settings.lacking(entry.args))) or "the arguments"
        return to_decide(f"add {words} to the kernel's line of the entry at {as_data(entry.at)}")
    return to_decide("choose an entry that boots Linux")


def _unset(root: Sysroot, settings: Configured, decided: Origin) -> Fix:
    """The variables to take out of the environment block: those without which the default entry is a right one."""
    block = "-" if decided.where == f"/{DEFAULT_GRUBENV[menu_path(root)]}" else decided.where
    editor = "grub2-editenv" if "grub2" in menu_path(root) else "grub-editenv"
    for names in ((decided.variable,), tuple(_SET_BY)):
        menu = read_menu(root, names)
        if not isinstance(menu, OSError) and isinstance(menu.entry, BootEntry) and is_generated(root, menu.entry):
            unset = all_of(argv("sudo", editor, block, "unset", name) for name in names)
            return to_type(unset.then(making_menu(root)) if settings.lacking(menu.entry.args) else unset)
    return to_decide(
        f"have {as_data(decided.variable)} in {as_data(decided.where)} name an entry that has the arguments"
    )


def take_back(root: Sysroot, where: str) -> Fix:
    """How a line of a GRUB script decides nothing any more, "" for no line; what the generator writes is mended there.

    Of a line that may decide what boots next, this is how that becomes known.
    """
    if not where:
        return NOTHING
    file, _, number = where.rpartition(":")
    if file != f"/{menu_path(root)}" and _can_go(root, file, int(number)):
        return to_decide(f"take {as_data(where)} out, or have it name an entry that has the arguments")
    if file != f"/{menu_path(root)}":
        return to_type(argv("sudo", "sed", "-i", f"{number}s/.*/true/", of=[file]))
    script = _section(root, where)
    if script == "":
        return to_type(making_menu(root), f"it writes the menu anew, without what somebody wrote into it at {where}")
    if script is None or GRUBS_OWN.fullmatch(script):
        return to_decide(f"name another entry in GRUB_DEFAULT of /etc/default/grub, then {making_menu(root)}")
    printed = f"have {as_data(script)} print nothing that chooses the default (it printed {as_data(where)})"
    return to_decide(f"{printed}, then {making_menu(root)}")


def _can_go(root: Sysroot, file: str, number: int) -> bool:
    """Is a script still one without this line? GRUB takes no `if` and no function with nothing in it."""
    lines = root.get_text(file.lstrip("/")).split("\n")
    del lines[number - 1]
    try:
        list(guarded(parse("\n".join(lines))))
    except Refused:
        return False
    return True


def _section(root: Sysroot, at: str) -> str | None:
    """The script of /etc/grub.d that printed a line of a menu; "" between their parts; None in a file without marks."""
    file, _, line = at.rpartition(":")
    marks = section_marks(root.get_text(file.lstrip("/")))
    return section_at(marks, int(line)) if marks and line.isdecimal() else None
