"""What GRUB boots next: the default entry of the menu that grub.cfg makes, that entry's kernel line, and who decided.

Source: GRUB manual, 6.1 (default, saved entries, `1>2`); grub-core/normal/menu.c (the entry's number or name, submenus,
`fallback`); grub-mkconfig's 00_header and 10_linux.
"""

import re
from typing import NamedTuple

from tunectl.bootloader import grubcommands
from tunectl.bootloader.grubdisk import PREFIX, Disk
from tunectl.bootloader.grubrun import Halt, Script
from tunectl.bootloader.grubscript import kernel_text
from tunectl.bootloader.grubstate import Entry, Loaded, Origin, State
from tunectl.bootloader.grubsyntax import Unfollowed
from tunectl.command import as_data, quoted
from tunectl.host.sysroot import Sysroot

_OVERFLOW = 1 << 64
_FIRMWARE = "sys/firmware/efi"


class BootEntry(NamedTuple):
    """The entry that will be booted: its titles from the top, and its kernel line without the image's name."""

    title: str
    image: str
    args: str
    recovery: bool
    at: str = ""  # where it is defined, `/boot/grub/custom.cfg:3`
    decided: Origin | None = None  # what made it the default; None: nothing did, it is the first


class NoEntry(NamedTuple):
    """Why nothing is said of an entry. Not `known`: GRUB boots something, and what it is cannot be told."""

    why: str
    known: bool = True  # the host boots no Linux kernel by itself
    errno: int | None = None  # of a file that could not be read
    decided: Origin | None = None


class Menu(NamedTuple):
    """What a grub.cfg comes to: the entry, and the variables that are certain once it has been read."""

    entry: BootEntry | NoEntry
    variables: dict[str, str]


def evaluate(root: Sysroot, path: str, without: tuple[str, ...] = ()) -> Menu:
    """Runs the grub.cfg at `path`, `without` some variables of the environment block. OSError for the file itself."""
    root.read_text(path)
    directory, _, name = path.rpartition("/")
    script = Script(Disk(root, directory), "efi" if root.exists(_FIRMWARE) else "", without)
    boot = _Boot(script)
    entry = boot.next(f"{PREFIX}/{name}")
    return Menu(entry, boot.variables)


class _Found(Exception):  # noqa: N818 - how the search ends
    def __init__(self, entry: BootEntry | NoEntry) -> None:
        super().__init__(entry)
        self.entry = entry


class _Boot:
    """A script, and the menus that it shows one inside the other."""

    def __init__(self, script: Script) -> None:
        self.variables: dict[str, str] = {}
        self._script = script
        script.show_menu = self._shown
        self._titles: tuple[str, ...] = ()
        self._decided: Origin | None = None

    def next(self, path: str) -> BootEntry | NoEntry:
        """What boots, without a key pressed."""
        try:
            self._script.run_file(path)
            self.variables = dict(self._script.state.values)
            return self._menu()
        except _Found as found:
            return found.entry
        except Halt as end:
            return self._booted(end.loaded, end.at)
        except Unfollowed as hidden:
            return NoEntry(hidden.why, known=False, errno=hidden.errno)
        finally:
            self.variables = self.variables or dict(self._script.state.values)

    def _shown(self, at: str) -> None:
        """`configfile` shows a menu: what it boots is the end."""
        self._decided = self._decided or Origin(at)
        raise _Found(self._menu())

    def _menu(self) -> BootEntry | NoEntry:
        state = self._script.state
        if not state.entries:
            return NoEntry(
                f"the submenu {quoted('>'.join(self._titles))} is empty" if self._titles else "there is no menu entry"
            )
        if why := state.doubts.get("default"):
            raise Unfollowed(f"which entry is the default depends on {why}")
        found = self._run(choose(state.entries, state.values.get("default", "")))
        while isinstance(found, NoEntry) and (number := _fallback(self._script.state)) is not None:
            if number >= len(state.entries):
                break
            found = self._run(_certain(state.entries[: number + 1]))
        return found

    def _run(self, entry: Entry) -> BootEntry | NoEntry:
        """Boots an entry, or the default of the menu that a submenu's block makes."""
        script, before, titles = self._script, self._script.state, self._titles
        default = before.values.get("default", "")
        if default and not self._decided:
            self._decided = before.origins.get("default")
        self._titles = (*titles, entry.title)
        state = script.state = before.inner() if entry.submenu else before.copy()
        _, inner = _path(default)
        state.unset("default")
        if inner:
            state.values["default"] = inner
        chosen = before.values.get("chosen")
        state.set("chosen", "".join((chosen + ">" if chosen else "", entry.id.replace(">", ">>"))), Origin(entry.at))
        script.run_entry(entry)
        found = self._menu() if entry.submenu else self._booted(script.state.loaded, entry.at, entry.id)
        self._titles, script.state = titles, before if entry.submenu else script.state
        return found

    def _booted(self, loaded: Loaded | None, at: str, id: str = "") -> BootEntry | NoEntry:
        title = ">".join(self._titles)
        named = f"the default entry {quoted(title)}" if title else f"the command at {at}"
        if loaded and loaded.doubt:
            raise Unfollowed(f"the kernel's line in {named} depends on {loaded.doubt}")
        none = NoEntry(f"{named} boots no Linux kernel", decided=self._decided)
        if loaded is None:
            return none
        if not loaded.command.startswith("linux"):
            raise _Found(none)
        recovery = "-recovery-" in id or "(recovery mode)" in title
        return BootEntry(title, loaded.words[0], kernel_text(loaded.words[1:]), recovery, at, self._decided)


def choose(entries: tuple[Entry, ...], name: str) -> Entry:
    """The entry that `default` names: by its number, its id or its title; otherwise the first. Unfollowed in doubt."""
    number = grubcommands.number(name)
    if number is None:
        wanted, _ = _path(name)
        found = next((entry for entry in entries if wanted in (entry.title, entry.id) or not entry.file), None)
        return _certain((found,)) if found else _certain(entries[:1])
    index = -1 if number >= _OVERFLOW else (number + (1 << 31)) % (1 << 32) - (1 << 31)
    return _certain(entries[: index + 1] if 0 <= index < len(entries) else entries[:1])


def _certain(entries: tuple[Entry, ...]) -> Entry:
    """The last of these entries, none of which may be missing."""
    for entry in entries:
        if entry.doubt:
            raise Unfollowed(
                f"whether there is an entry {quoted(entry.title)} ({as_data(entry.at)}) depends on {entry.doubt}"
            )
    return entries[-1]


def _path(name: str) -> tuple[str, str]:
    """(the entry's own name, what is left for the submenu): parted by a single `>`; a double one stands for `>`."""
    match = re.match(r"((?:[^>]|>>)*)(?:>(.*))?", name, re.DOTALL)
    assert match
    return match[1].replace(">>", ">"), match[2] or ""


def _fallback(state: State) -> int | None:
    """The first number of `fallback`, which is taken away."""
    if why := state.doubts.get("fallback"):
        raise Unfollowed(f"the fallback entry depends on {why}")
    value = state.values.get("fallback", "")
    number = grubcommands.number(value)
    if number is None or number >= 1 << 31:
        return None
    state.values["fallback"] = re.sub(r"\A\s*\w+\s*", "", value)
    return number
