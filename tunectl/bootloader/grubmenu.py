"""What GRUB boots next: the default entry of a grub.cfg that grub-mkconfig wrote, and its kernel line.

The file is read and not run: what 00_header says of the default, the environment block that it loads, the entries in
their order, and the files that it reads for more of them. Where something else may decide (a `default` in custom.cfg or
printed by a script of somebody's own, a command that boots outside of an entry), the next boot is not known, and the
place is named.
Source: GRUB manual, 6.1 (default, saved entries, `1>2`); grub-core/normal/menu.c (the entry's number or name, submenus,
`fallback`); grub-mkconfig's 00_header, 10_linux and 41_custom.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tunectl.bootloader.entries import is_missing
from tunectl.bootloader.grubcfg import (
    INITRDS,
    LOADERS,
    Command,
    MenuEntry,
    Refused,
    entry_of,
    guarded,
    parse,
    parse_grubenv,
    section_at,
    section_marks,
    shown,
)
from tunectl.bootloader.grubscript import Word, expand_all, kernel_text
from tunectl.bootloader.oneshot import without_our_choice
from tunectl.command import as_data, quoted
from tunectl.host.sysroot import ABSENT_ERRNOS, Sysroot

# When it takes the place of another, the other's arguments go, and the new ones with them (docs/kernel-facts.md).
SECOND_KERNEL = "a second kernel that it loads, whose arguments GRUB for BIOS loses"
# Scripts of GRUB's own, and Fedora's, which counts boots that failed: what they say of the default is read.
GRUBS_OWN = re.compile(r"/etc/grub\.d/\d\d_(header|linux\w*|os-prober|fallback_counting)")
_BLSCFG = "blscfg"  # puts the files of loader/entries into the menu
_MOST_BYTES, _MOST_FILES = 1 << 20, 16  # grub-mkconfig writes a tenth for thirty kernels
_OTHER_LOADERS = re.compile(r"chainloader|multiboot2?|ntldr|freedos|\w+bsd|xen_hypervisor|exit|halt|reboot|fwsetup")
# Each goes on with what is not read here.
_ELSEWHERE = re.compile(r"\w*configfile|\w+_source|normal|eval|uki|while|until|blscfg")
_CHOOSING = ("default", "fallback", "next_entry", "saved_entry")
_MACHINES_OWN = re.compile(r"(feature|grub|net|pxe|config)_\w+|root|prefix|chosen|cmdpath|lang|[\d#*@?].*")
_SETS = re.compile(r"(?:\s(?:--set|--var|-s|-v)[= ](?:\d+:)?|^(?:read|unset|for) )(\w+)")
_UUID = re.compile(r"\broot=uuid=([0-9a-z-]+)")
_NUMBER = re.compile(r"\s*(?:0x([0-9a-f]{1,9})|0([0-7]{1,9})|(?!0x)([0-9]{1,9}))", re.IGNORECASE)
# What is asked by SUSE's way into a snapshot, by Fedora's count of failed boots, by Ubuntu's second try with an initrd.
_SNAPSHOT = 'if [ -n "$extra_cmdline" ]'
_COUNTED = re.compile(r'if \[ -n "\$\{boot_counter\}"[^\]]*\](?! else)')
_RETRY = 'if [ "${initrdfail}" = 1 ]'
_CONSOLE = "vt_handoff"  # Ubuntu's gfxmode() gives it a word for the console, or none


class Origin(NamedTuple):
    """Where a value comes from: a place in a script, or a variable of an environment block."""

    where: str  # `/boot/grub/custom.cfg:3`, or the block's path
    variable: str = ""  # in the block


class BootEntry(NamedTuple):
    """The entry that will be booted: its titles from the top, and its kernel line without the image's name."""

    title: str
    image: str
    args: str
    recovery: bool
    at: str = ""  # where it is defined, `/boot/grub/custom.cfg:3`
    decided: Origin | None = None  # what made it the default; None: nothing did, it is the first
    entry: MenuEntry | None = None


class NoEntry(NamedTuple):
    """Why nothing is said of an entry. Not `known`: GRUB boots something, and what it is cannot be told."""

    why: str
    known: bool = True  # the host boots no Linux kernel by itself
    errno: int | None = None  # of a file that could not be read
    decided: Origin | None = None  # where not `known`: the line that may decide


class Listed(NamedTuple):
    """An entry of the menu, where it is defined, and the condition under which it is there; "" for none."""

    entry: MenuEntry
    at: str
    condition: str = ""


class Undecided(Exception):  # noqa: N818 - a result of reading, not an error of ours
    """What boots cannot be told; the text is the reason, with file and line."""

    def __init__(self, why: str, at: str = "", errno: int | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.at = at  # the line that may decide, FILE:LINE
        self.errno = errno  # of a file that could not be read


class Menu(NamedTuple):
    """What a grub.cfg comes to: the entry, and the variables that are certain once it has been read."""

    entry: BootEntry | NoEntry
    variables: dict[str, str]


class _Set(NamedTuple):
    """Something that sets a variable; `word` is the assignment, None for a command that finds the value."""

    name: str
    word: Word | None
    at: str
    condition: str


def evaluate(root: Sysroot, path: str, without: tuple[str, ...] = ()) -> Menu:
    """What the grub.cfg at `path` boots, `without` some variables of the environment block. OSError for the file."""
    root.read_text(path)
    script = Script(root, path, without)
    try:
        script.read(path)
        return Menu(script.next_entry(), script.variables())
    except Undecided as end:
        entry = NoEntry(end.why, False, end.errno, Origin(end.at) if end.at else None)
        return Menu(entry, script.variables())


class Script:
    """A grub.cfg and what it reads: the menu, and what sets variables."""

    def __init__(self, root: Sysroot, path: str, without: tuple[str, ...] = (), shown: Sequence[Listed] = ()) -> None:
        """`shown` is what blscfg puts into the menu; without any, blscfg goes on with what is not read."""
        self.entries: list[Listed] = []
        self._root, self._main, self._without, self._shown = root, path, without, shown
        self._sets: list[_Set] = []
        self._environment: dict[str, str] = {}
        self._block = ""  # the environment block's file
        self._exported: set[str] = set()
        self._at_home = True  # is $root this host's root file system
        self._files: list[str] = []
        self._titles: list[str] = []  # of the entries on the way to the one that boots

    def read(self, path: str) -> None:
        """Reads a file of the host. Undecided as it comes."""
        if len(self._files) > _MOST_FILES:
            raise Undecided(f"/{path} is read again and again")
        self._files.append(path)
        text = self._text(path)
        try:
            self._read(parse(text), f"/{path}", section_marks(text))
        except Refused as refused:
            raise Undecided(f"a syntax error at {as_data(f'/{path}')}:{refused.line}") from refused

    def _read(self, commands: Sequence[Command], file: str, marks: Sequence[tuple[int, str]]) -> None:
        for command, condition in guarded(commands):
            self._command(command, condition, f"{file}:{command.line}", marks)

    def _text(self, path: str) -> str:
        try:
            return self._root.read_named(path, _MOST_BYTES).decode("utf-8", "backslashreplace")
        except OSError as error:
            raise Undecided(f"/{path} cannot be read ({error.strerror})", errno=error.errno) from error

    def _command(self, command: Command, condition: str, at: str, marks: Sequence[tuple[int, str]]) -> None:
        name, section = command.name, section_at(marks, command.line)
        if name in ("menuentry", "submenu"):
            entry = entry_of(command)
            self.entries += [Listed(entry, at, condition)] if entry and not condition.endswith(_SNAPSHOT) else []
        elif name == _BLSCFG and self._shown:
            self.entries += [entry._replace(condition=condition) for entry in self._shown]
        elif name in (".", "source"):
            self._source(command, at)
        elif name == "load_env":
            self._load_env(command)
        elif name == "export":
            self._exported |= {word.raw for word in command.words}
        elif _boots(name) and "--is-supported" not in command.text:
            raise Undecided(f"the command `{as_data(name)}` at {as_data(at)} may decide what boots", at)
        else:
            known = at.startswith(f"/{self._main}:") and not self._titles
            known = known and (not marks or GRUBS_OWN.fullmatch(section) is not None)
            for setter in self._assigned(command, condition, at):
                if setter.name in _CHOOSING and not known:
                    by = f", printed by {as_data(section)}," if section else ""
                    raise Undecided(
                        f"{as_data(at)}{by} sets {setter.name}, which grub-mkconfig does not write there", at
                    )
                self._sets.append(setter)

    def _assigned(self, command: Command, condition: str, at: str) -> Iterator[_Set]:
        """What a command does to variables: `set`, an assignment, or a search that leaves its result in one."""
        word = next(iter(command.words[command.name == "set" :]), None)
        name, equals, _ = shown(word).partition("=") if word else ("", "", "")
        if "$" in (name if equals or command.name == "set" else command.name):
            raise Undecided(f"a command at {as_data(at)} that depends on a variable may decide what boots", at)
        if equals:
            yield _Set(name, word, at, condition)
        elif command.name != "[":
            yield from (_Set(variable, None, at, condition) for variable in _SETS.findall(command.text))
        if command.name.startswith("search"):
            booted = _UUID.findall(self._root.get_text("proc/cmdline").lower())
            self._at_home = any(uuid in command.text.lower() for uuid in booted)
        elif name == "root":
            self._at_home = False

    def _source(self, command: Command, at: str) -> None:
        """A file that grub.cfg reads, whatever that depends on: it may add entries, and decide nothing."""
        try:
            place = self._locate(shown(command.words[1])) if len(command.words) == 2 else None
        except Undecided as hidden:
            raise Undecided(f"`{as_data(command.name)}` at {as_data(at)}: {hidden.why}", at, hidden.errno) from hidden
        if place:
            self.read(place)

    def _load_env(self, command: Command) -> None:
        words = [shown(word) for word in command.words[1:]]
        paths = [word.partition("=")[2] or word for word in words if "/" in word]
        names = [word for word in words if "/" not in word and not word.startswith("-")]
        place = self._locate(paths[0] if paths else "$prefix/grubenv")
        for name, value in without_our_choice(parse_grubenv(self._text(place) if place else "")).items():
            if name not in self._without and (not names or name in names):
                self._environment[name], self._block = value, f"/{place}"
                self._sets = [setter for setter in self._sets if setter.name != name]

    def _locate(self, path: str) -> str | None:
        """The host's name of a file; None where there is none. A path may be that of a separate /boot."""
        beside = re.fullmatch(r"\$(?:prefix|config_directory)(/[^$]*)", path)
        if not beside and (not path.startswith("/") or "$" in path or not self._at_home):
            raise Undecided(f"{quoted(path)} is on a device that is not known here")
        places = [self._main.rpartition("/")[0] + beside[1]] if beside else _places(path)
        there = []
        for place in places:
            try:
                self._root.check_named(place)
                there.append(place)
            except OSError as error:
                if error.errno not in ABSENT_ERRNOS:
                    raise Undecided(f"/{place} cannot be read ({error.strerror})", errno=error.errno) from error
        if len(there) > 1:
            raise Undecided(f"{quoted(path)} is /{there[0]} or /{there[1]}")
        return there[0] if there else None

    def variables(self) -> dict[str, str]:
        """The variables that are certain once all is read."""
        names = dict.fromkeys((*self._environment, *(setter.name for setter in self._sets)))
        return {name: value for name in names if (value := self._value(name, ())) is not None}

    def _value(self, name: str, more: Sequence[_Set]) -> str | None:
        """What a variable holds in the end, "" where nothing sets it; None where that is not known."""
        sets = [setter for setter in (*self._sets, *more) if setter.name == name]
        if not sets or (self._environment.get(name) and all(setter.condition == _unset(name) for setter in sets)):
            return self._environment.get(name, None if _MACHINES_OWN.fullmatch(name) else "")
        if any(setter.condition not in ("", _unset(name)) or setter.word is None for setter in sets):
            return None
        word = sets[-1].word
        known = word and not any(part.variable for part in word.parts)
        return shown(word).partition("=")[2] if word and known else None

    def _inner(self, words: Sequence[Word], more: Sequence[_Set], *, submenu: bool = False) -> dict[str, str] | None:
        """The variables in words; None where one is not known. A `submenu` has only those that are exported."""
        names = {part.text for word in words for part in word.parts if part.variable and part.text != _CONSOLE}
        if submenu:
            kept = self._exported | {setter.name for setter in more}
            names = {name for name in names if name in kept or _MACHINES_OWN.fullmatch(name)}
        values = {name: self._value(name, more) for name in names}
        known = {name: value for name, value in values.items() if value is not None}
        return known if len(known) == len(values) else None

    def default(self) -> tuple[str, Origin | None]:
        """(what names the default entry, what decided that; None where nothing did). Undecided as it comes."""
        sets = [setter for setter in self._sets if setter.name == "default"]
        if "boot_counter" not in self._environment:
            sets = [setter for setter in sets if not _COUNTED.match(setter.condition)]
        once = [setter for setter in sets if setter.word and shown(setter.word) == "default=$next_entry"]
        # 10_linux knows titles of old; what it asks, "x$default" = 'TITLE', holds for hardly any.
        usual = [setter for setter in sets if setter not in once and "$default" not in setter.condition]
        if once and (name := self._environment.get("next_entry")):
            return name, Origin(self._block, "next_entry")
        for setter in usual[1:] or (
            setter for setter in usual if setter.condition and "next_entry" not in setter.condition
        ):
            raise Undecided(f"which entry is the default depends on {as_data(setter.at)}", setter.at)
        return self._named_by(usual[0], sets) if usual else ("", None)

    def _named_by(self, setter: _Set, sets: Sequence[_Set]) -> tuple[str, Origin | None]:
        """What one assignment of `default` names; `sets` are all of them."""
        earlier = {
            other.name for other in self._sets[: self._sets.index(setter)] if "next_entry" not in other.condition
        }
        names = {part.text for part in setter.word.parts if part.variable} if setter.word else earlier
        if not setter.word or names & earlier or any(map(_MACHINES_OWN.fullmatch, names)):
            raise Undecided(f"which entry is the default depends on {as_data(setter.at)}", setter.at)
        name = "".join(expand_all([setter.word], self._environment)[:1]).partition("=")[2]
        if any(f"'x{name}'" in other.condition for other in sets):
            raise Undecided(f"which entry is the default depends on {as_data(sets[-1].at)}", sets[-1].at)
        block = next((variable for variable in names if variable in self._environment), "")
        return name, (Origin(self._block, block) if block else Origin(setter.at)) if name else None

    def next_entry(self) -> BootEntry | NoEntry:
        """The default entry, without a key pressed. Undecided as it comes."""
        name, decided = self.default()
        while self.entries:
            chosen = choose(self.entries, name)
            self._titles.append(chosen.entry.title)
            if not chosen.entry.submenu:
                return self._line_of(chosen, decided)
            name, self.entries = _path(name)[1], []
            self._read(chosen.entry.commands, chosen.at.rpartition(":")[0], ())
        above = quoted(">".join(self._titles))
        return NoEntry(f"the submenu {above} is empty" if self._titles else "there is no menu entry")

    def _line_of(self, chosen: Listed, decided: Origin | None) -> BootEntry | NoEntry:
        """What the block of an entry loads."""
        title, file = ">".join(self._titles), chosen.at.rpartition(":")[0]
        named = f"the default entry {quoted(title)}"
        commands = list(guarded(chosen.entry.commands))
        own = [
            setter for command, above in commands for setter in self._assigned(command, above, f"{file}:{command.line}")
        ]
        line = f"the kernel's line in {named} depends on"
        linux = self._loaded(commands, line, file)
        if linux is None or len(linux.words) < 2 or self._lacks(shown(linux.words[1])):
            if any(setter.name == "fallback" for setter in self._sets):
                raise Undecided(f"{named} boots no Linux kernel, and GRUB_FALLBACK names another")
            return NoEntry(f"{named} boots no Linux kernel", decided=decided)
        inner = self._inner(linux.words[2:], own, submenu=len(self._titles) > 1)
        if inner is None:
            raise Undecided(f"{line} a variable ({as_data(file)}:{linux.line})")
        for word in (word for command, _ in commands if command.name in INITRDS for word in command.words[1:]):
            if self._lacks(shown(word)):
                raise Undecided(f"{line} {quoted(shown(word))}, which is not there")
        recovery = "-recovery-" in chosen.entry.id or "(recovery mode)" in title
        args = kernel_text(expand_all(linux.words[2:], inner))
        return BootEntry(title, shown(linux.words[1]), args, recovery, chosen.at, decided, chosen.entry)

    def _loaded(self, commands: Sequence[tuple[Command, str]], line: str, file: str) -> Command | None:
        """The one command of an entry that loads a kernel; None where something else is booted, or nothing."""
        not_now = f"{_RETRY} else" if self._environment.get("initrdfail") == "1" else _RETRY
        loads = [load for load in commands if _boots(load[0].name) or load[0].name in (".", "source")]
        loads = [(command, above) for command, above in loads if above != not_now]
        for command, above in loads:
            if above.removesuffix(" else") not in ("", _RETRY) or not (
                command.name in LOADERS or _OTHER_LOADERS.fullmatch(command.name)
            ):
                raise Undecided(f"{line} {as_data(file)}:{command.line}")
        linux = [command for command, _ in loads if command.name in LOADERS]
        if len(linux) > 1:
            raise Undecided(f"{line} {SECOND_KERNEL} ({as_data(file)}:{linux[1].line})")
        return linux[0] if linux and loads[-1][0] is linux[0] else None

    def _lacks(self, path: str) -> bool:
        """Is a kernel or an initrd certainly not there? Only on this host's root file system that is known."""
        return self._at_home and is_missing(self._root, _places(path))


def _boots(name: str) -> bool:
    """Does a command load, boot or leave, or go on with what is not read here?"""
    return bool(name in (*LOADERS, "boot") or _OTHER_LOADERS.fullmatch(name) or _ELSEWHERE.fullmatch(name))


def choose(entries: Sequence[Listed], name: str) -> Listed:
    """The entry that `default` names: by its number, its id or its title; otherwise the first. Undecided in doubt."""
    if number := _NUMBER.match(name):
        place = int(number[1], 16) if number[1] else int(number[2], 8) if number[2] else int(number[3])
        return certain(entries[: place + 1] if place < len(entries) else entries[:1])
    wanted, _ = _path(name)
    matches = (listed for listed in entries if wanted in (listed.entry.title, listed.entry.id))
    return certain([next(matches, entries[0])])


def certain(entries: Sequence[Listed]) -> Listed:
    """The last of these entries. Undecided where one of them may be missing."""
    for listed in entries:
        if listed.condition:
            title, at = quoted(listed.entry.title), as_data(listed.at)
            raise Undecided(f"whether there is an entry {title} depends on the condition above {at}")
    return entries[-1]


def _path(name: str) -> tuple[str, str]:
    """(the entry's own name, what is left for the submenu): parted by a single `>`; a double one stands for `>`."""
    match = re.match(r"((?:[^>]|>>)*)(?:>(.*))?", name, re.DOTALL)
    assert match
    return match[1].replace(">>", ">"), match[2] or ""


def _unset(name: str) -> str:
    """What 10_linux of Red Hat's asks before it gives a variable a value that grubenv has not."""
    return f'if [ -z "${{{name}}}" ]'


def _places(path: str) -> list[str]:
    """Where a file of GRUB's may be on the host."""
    return [path.lstrip("/"), f"boot/{path.lstrip('/')}"]
