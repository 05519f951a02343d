"""Our entry in GRUB's menu: a copy of the default one with another line, in custom.cfg, which grub.cfg goes on with.

It is the menu's last but for what later scripts print, so that no number of an entry before it changes. What the
default entry does for boots to come (savedefault, recordfail) is left out.
Source: grub-mkconfig's 10_linux and 41_custom; Debian's 10_linux (recordfail); GRUB manual, 16.1.1 (menuentry).
"""

import re
from typing import NamedTuple

from tunectl.bootloader import grubonce
from tunectl.bootloader.cmdline import length_problem
from tunectl.bootloader.editor import read
from tunectl.bootloader.entries import first_there
from tunectl.bootloader.family import OnceEntry, Refusal, Write
from tunectl.bootloader.grubcfg import INITRDS, LOADERS, Command, MenuEntry
from tunectl.bootloader.grubmenu import BootEntry, evaluate
from tunectl.bootloader.grubsettings import menu_path
from tunectl.bootloader.grubstart import starts_elsewhere
from tunectl.bootloader.onceentries import standing_names
from tunectl.bootloader.oneshot import entry_name
from tunectl.command import as_data
from tunectl.errors import UsageError
from tunectl.host.sysroot import Sysroot

_LINUX = re.compile(r"(?P<load>\S+[ \t]+(?P<image>[^\s'\"\\$]+))[ \t]*(?P<line>[^\n]*)")
_FOR_LATER = re.compile(r"^[ \t]*(?:savedefault|recordfail)[ \t]*\n", re.MULTILINE)
_CUSTOM = re.compile(r"^[ \t]*(?:source|\.)[ \t]+\S*/custom\.cfg[ \t]*$", re.MULTILINE)
_BEGIN = "### BEGIN tunectl {} (one boot tries this line; `tunectl restore` removes it) ###\n"
_END = "### END tunectl ###\n"
_BLOCK = re.compile(r"^### BEGIN tunectl (?P<name>\S+) .*###\n(?:.*\n)*?### END tunectl ###(?:\n|\Z)", re.MULTILINE)


class Made(NamedTuple):
    """The default entry, as far as ours is made of it."""

    entry: MenuEntry
    linux: str  # its command that loads the kernel, as written
    load: str  # of that the command and its kernel
    image: str
    line: str

    @property
    def unrestricted(self) -> bool:
        """May anybody start it, where GRUB has superusers?"""
        return any(word.raw == "--unrestricted" for word in self.entry.command.words)


def read_default(root: Sysroot) -> Made | str:
    """The default entry of grub.cfg, whatever is chosen for one boot; a text: why ours cannot be made of it.

    OSError where grub.cfg cannot be read.
    """
    menu = menu_path(root)
    if read(root, menu) is None:
        return f"there is no /{menu}"
    found = evaluate(root, menu, ("next_entry",)).entry
    if not isinstance(found, BootEntry):
        return found.why
    entry = found.entry
    if entry is None or found.recovery or not found.at.startswith(f"/{menu}:"):
        return f"the default entry is the one at {as_data(found.at)}, of which tunectl makes none"
    loads = [command.text for command in map(Command.bare, entry.commands) if command.name in LOADERS]
    match = _LINUX.fullmatch(loads[0]) if len(loads) == 1 else None
    if not match or entry.command.text.count(loads[0]) != 1:
        return f"what the entry at {as_data(found.at)} loads is not one kernel with one line"
    return Made(entry, loads[0], match["load"], match["image"], match["line"])


def refusals(root: Sysroot) -> tuple[Refusal, ...]:
    """Why GRUB would not boot an entry of ours once on this host; () where it would."""
    menu, made = menu_path(root), read_default(root)
    if isinstance(made, str):
        return (Refusal(made),)
    text = root.read_text(menu)
    told = []
    goes_on = _CUSTOM.search(text)
    if not goes_on:
        told.append(f"/{menu} does not go on with custom.cfg")
    elif text.count("\n", 0, goes_on.start()) < made.entry.command.line:
        told.append(f"the default entry stands behind custom.cfg in /{menu}: ours would change its number")
    if elsewhere := starts_elsewhere(root, menu):
        told.append(f"GRUB starts with {as_data(f'/{elsewhere.path}')}, which does not go on with /{menu}")
    asked = () if made.unrestricted else grubonce.asks_for_a_password(root, menu)
    return (*map(Refusal, told), *grubonce.refusals(root, menu), *asked)


def loaded_files(root: Sysroot, made: Made) -> tuple[str, ...]:
    """The kernel and the initrds that the entry loads, as paths on the host, as far as they are there."""
    initrds = [command.text for command in map(Command.bare, made.entry.commands) if command.name in INITRDS]
    paths = [word.lstrip("/") for word in (made.image, *"".join(initrds[-1:]).split()[1:])]
    return first_there(root, ((f"boot/{path}", path) for path in paths))


def once_entry(root: Sysroot, trial_id: str, line: str) -> OnceEntry:
    """Our entry at the end of custom.cfg. UsageError where the kernel would cut the line."""
    made = read_default(root)
    assert not isinstance(made, str)  # nothing refused
    if too_long := length_problem(f"BOOT_IMAGE={made.image} {line}"):
        raise UsageError(too_long)
    path = grubonce.custom_cfg(root)
    text = read(root, path)
    operators = _BLOCK.sub("", text or "")
    newline = "" if not operators or operators.endswith("\n") else "\n"
    ours = f"{_BEGIN.format(entry_name(trial_id))}{_render(made, trial_id, line)}{_END}"
    write = Write("edit", path, f"{operators}{newline}{ours}", None if text is None else operators)
    return OnceEntry((write,), "choose-grub-once", "unchoose-grub-once")


def _render(made: Made, trial_id: str, line: str) -> str:
    """The text of our entry: what the default one does, and its own line."""
    command = made.entry.command
    last = command.words[-1]  # of the head; a title may have braces in it
    behind = command.text[last.at - command.words[0].at + len(last.raw) :].partition("{")[2]
    body = _FOR_LATER.sub("", behind.replace(made.linux, f"{made.load} {line}"))
    free = " --unrestricted" if made.unrestricted else ""
    return f"menuentry 'tunectl tries {trial_id}' --id '{entry_name(trial_id)}'{free} {{{body}\n"


def without_ours(root: Sysroot) -> tuple[Write, ...]:
    """custom.cfg without our entry, where it holds one; every other byte stays."""
    path = grubonce.custom_cfg(root)
    text = read(root, path) or ""
    clean = _BLOCK.sub("", text)
    return (Write("edit", path, clean, clean),) if clean != text else ()


def choosing(root: Sysroot) -> list[tuple[str, ...]]:
    """What has the next boot take our entry, from custom.cfg or from loader/entries."""
    standing = [match["name"] for match in _BLOCK.finditer(read(root, grubonce.custom_cfg(root)) or "")]
    names = standing or [name.removesuffix(".conf") for name in standing_names(root)]
    return [grubonce.choosing(root, name) for name in names]
