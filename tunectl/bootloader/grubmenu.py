"""Reads a generated grub.cfg: its menu, which entry is the default, and that entry's kernel line. Pure.

Source: GRUB manual, 6.1 (default, saved entries, `1>2`), 7.1; grub-mkconfig's 00_header and 10_linux.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tunectl.bootloader.grubscript import Word, expand, expand_all, kernel_text, split_words

_LINUX = ("linux", "linux16", "linuxefi")
_MAX_VARIABLE = 1 << 14
_MACHINES_OWN = re.compile(r"(grub|feature)_|[?#@*\d]")
_SET = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


class Entry:
    """A menuentry, or a submenu with its own entries."""

    def __init__(self, title: str = "", id: str = "", submenu: bool = False) -> None:
        self.title = title
        self.id = id
        self.submenu = submenu
        self.linux: tuple[Word, ...] | None = None
        self.entries: list[Entry] = []


class Menu(NamedTuple):
    """The top level of the menu, and the variables as the script leaves them, `default` among them."""

    entries: tuple[Entry, ...]
    variables: dict[str, str]


class BootEntry(NamedTuple):
    """The entry that will be booted: its titles from the top, and its kernel line without the image's name."""

    title: str
    image: str
    args: str
    recovery: bool


def parse_grubenv(text: str) -> dict[str, str]:
    """The variables of a grubenv block, as load_env sets them: `name=value` lines, `#` ends and fills the block."""
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name: value.replace("\\\\", "\\") for name, equals, value in pairs if equals and name}


def parse_grub_cfg(text: str, grubenv: dict[str, str] | None = None) -> Menu:
    """The menu of a grub.cfg. Conditions it can decide are honoured; of the others both branches are taken."""
    script = _Script({"feature_menuentry_id": "y", **(grubenv or {})})
    words: list[Word] = []
    for word in split_words(text):
        if word.mark:
            script.command(words, word.mark)
            words = []
        else:
            words.append(word)
    script.command(words, ";")
    return Menu(tuple(script.top.entries), script.variables)


def default_entry(menu: Menu) -> BootEntry | str:
    """What boots if nobody touches the keyboard; or, where that cannot be told, the reason."""
    wanted = menu.variables.get("default", "")
    # In an entry's name ">>" stands for ">".
    path = [part.replace("\0", ">") for part in wanted.replace(">>", "\0").split(">")]
    entries: Sequence[Entry] = menu.entries
    titles: list[str] = []
    while entries:
        entry = _choose(entries, path.pop(0) if path else "")
        titles.append(entry.title)
        if entry.submenu:
            entries = entry.entries
            continue
        shown = ">".join(titles)
        words = None if entry.linux is None else expand_all(entry.linux, menu.variables)
        if not words:
            return f"the default entry '{shown}' boots no Linux kernel"
        recovery = "-recovery-" in entry.id or "(recovery mode)" in entry.title
        return BootEntry(shown, words[0], kernel_text(words[1:]), recovery)
    return f"the submenu '{'>'.join(titles)}' is empty" if titles else "there is no menu entry"


def _choose(entries: Sequence[Entry], name: str) -> Entry:
    if name.isascii() and name.isdigit() and len(name) < 6:
        return entries[int(name)] if int(name) < len(entries) else entries[0]
    return next((entry for entry in entries if name and name in (entry.id, entry.title)), entries[0])


class _Script:
    """Walks the commands of a grub.cfg as GRUB would, as far as `default` and the menu depend on them."""

    def __init__(self, variables: dict[str, str]) -> None:
        self.top = Entry(submenu=True)
        self.variables = variables
        self._open: list[Entry | None] = [self.top]  # None: the body of a function
        self._taken: list[list[bool | None]] = []  # of each open `if`, what its branches so far came to

    def command(self, words: list[Word], mark: str) -> None:
        """One command and what ended it."""
        if words:
            self._run(words, opens=mark == "{")
        elif mark == "{":
            self._open.append(None)
        if mark == "}" and len(self._open) > 1:
            self._open.pop()

    def _run(self, words: list[Word], *, opens: bool) -> None:
        texts = expand_all(words[:1], self.variables)
        name = texts[0] if texts else ""
        if name in ("then", "else"):
            self._condition(name, [])
            if len(words) > 1 or opens:
                self._run(words[1:], opens=opens)
        elif opens:
            here = self._open[-1]
            entry = self._entry(name, words[1:]) if name in ("menuentry", "submenu") and here else None
            if entry and here:
                here.entries.append(entry)
            self._open.append(entry)
        elif name in ("elif", "fi", "if"):
            self._condition(name, words[1:])
        elif len(self._open) == 1:
            self._assign(expand_all(words, self.variables))
        elif name in _LINUX and (entry := self._open[-1]) and entry.linux is None:
            entry.linux = tuple(words[1:])

    def _entry(self, kind: str, words: list[Word]) -> Entry:
        texts = expand_all(words, self.variables)
        at = texts.index("--id") + 1 if "--id" in texts else len(texts)
        return Entry(texts[0] if texts else "", texts[at] if at < len(texts) else "", kind == "submenu")

    def _condition(self, name: str, rest: list[Word]) -> None:
        if name == "if":
            self._taken.append([self._test(rest)])
        elif not self._taken:
            return
        elif name == "fi":
            self._taken.pop()
        elif name in ("else", "elif"):
            before = self._taken[-1]
            verdict = True if name == "else" else self._test(rest)
            before.append(False if True in before else verdict)

    def _test(self, words: list[Word]) -> bool | None:
        """The value of `[ … ]`; None where it depends on the machine GRUB runs on."""
        used = {part.text for word in words for part in word.parts if part.variable}
        if any(_MACHINES_OWN.match(name) for name in used - self.variables.keys()):
            return None
        operands = [" ".join(expand(word, self.variables)) for word in words]
        if len(operands) < 2 or operands[0] != "[" or operands[-1] != "]":
            return None
        match operands[1:-1]:
            case [one]:
                return bool(one)
            case ["-n", one]:
                return bool(one)
            case ["-z", one]:
                return not one
            case [one, "=" | "==", other]:
                return one == other
            case [one, "!=", other]:
                return one != other
        return None

    def _assign(self, texts: list[str]) -> None:
        if any(branches[-1] is False for branches in self._taken):
            return
        found = _SET.fullmatch(texts[1] if texts[:1] == ["set"] and len(texts) > 1 else texts[0] if texts else "")
        if found and len(found[2]) <= _MAX_VARIABLE:
            self.variables[found[1]] = found[2]
