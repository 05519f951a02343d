"""The text of a grub.cfg as grub-mkconfig writes it: its entries, and which script of /etc/grub.d wrote each. Pure.

Source: grub-mkconfig (the marks around what each script prints); grub-core/script/parser.y (commands and blocks);
grub-core/commands/menuentry.c (the options of an entry).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tunectl.bootloader.grubscript import Word, split_words

LOADERS = ("linux", "linux16", "linuxefi")
INITRDS = ("initrd", "initrd16", "initrdefi")
_MARK = re.compile(r"^### (BEGIN|END) (/\S+) ###", re.MULTILINE)
_KEYWORDS = ("then", "else", "do")  # a command may follow on the same line
_BEGINNING, _ENDING = ("if", "for", "while", "until"), ("elif", "else", "fi", "done")
_MOST_NESTED = 64  # GRUB's own limit is of the same size
_WITH_VALUE = ("--class", "--users", "--hotkey", "--id")
BLOCK = "# GRUB Environment Block\n"
_ID_OPTION = "menuentry_id_option"  # 00_header sets it to --id


class Refused(Exception):  # noqa: N818 - GRUB's verdict on a text, not an error of ours
    """GRUB finds a syntax error in a text; `line` is where."""

    def __init__(self, line: int) -> None:
        super().__init__(f"a syntax error in line {line}")
        self.line = line


class Command(NamedTuple):
    """A command of a script, keywords such as `if` and `then` in front, and what is in braces behind it."""

    line: int
    words: tuple[Word, ...]
    text: str  # as it stands in the file, braces included
    block: tuple[Command, ...] | None = None

    @property
    def name(self) -> str:
        """Its first word as written."""
        return self.words[0].raw

    def bare(self) -> Command:
        """The command behind `then`, `else` or `do`; the keyword alone where none follows."""
        words = self.words
        while len(words) > 1 and words[0].raw in _KEYWORDS:
            words = words[1:]
        return self._replace(words=words, text=self.text[words[0].at - self.words[0].at :])

    def condition(self) -> Command:
        """The command that an `if` or `elif` asks; the loop itself where it is one."""
        return self._replace(words=self.words[self.name in ("if", "elif") and len(self.words) > 1 :])


class MenuEntry(NamedTuple):
    """A menuentry or a submenu."""

    title: str
    id: str  # the title where it has none of its own
    command: Command = Command(0, (), "")  # as it stands in the menu; an entry of loader/entries does not
    submenu: bool = False

    @property
    def commands(self) -> tuple[Command, ...]:
        """What is in its braces."""
        return self.command.block or ()


def parse(text: str) -> tuple[Command, ...]:
    """The commands of a script, in their order. Refused where GRUB would not take it."""
    lines = [at for at, char in enumerate(text) if char == "\n"]
    blocks: list[list[Command]] = [[]]
    heads: list[list[Word]] = []
    words: list[Word] = []
    last = "\n"  # what ended the command before

    def ended(head: Sequence[Word], end: int, block: list[Command] | None = None) -> Command:
        start = head[0].at
        inner = None if block is None else tuple(block)
        return Command(bisect_left(lines, start) + 1, tuple(head), text[start:end], inner)

    for word in (*split_words(text), Word((), len(text), "\n")):
        if not word.mark:
            words.append(word)
            continue
        if (
            word.mark not in ("{", "}", ";", "\n")
            or (word.mark == "{" and (not words or len(heads) > _MOST_NESTED))
            or (word.mark == ";" and not words and last != "}")
            or (word.mark == "}" and not (heads and (words or blocks[-1])))
        ):
            raise Refused(bisect_left(lines, word.at) + 1)
        if word.mark == "{":
            heads.append(words)
            blocks.append([])
        elif words:
            blocks[-1].append(ended(words, words[-1].at + len(words[-1].raw)))
        words, last = [], word.mark
        if word.mark == "}":
            inner = blocks.pop()
            blocks[-1].append(ended(heads.pop(), word.at + 1, inner))
    if heads:
        raise Refused(bisect_left(lines, heads[-1][0].at) + 1)
    return tuple(blocks[0])


def guarded(commands: Sequence[Command]) -> Iterator[tuple[Command, str]]:
    """Each command and the conditions above it, "" for none. Refused where an `if` or a loop is not complete.

    What stands in a function is under its name. A condition is a command, too, and is not under itself.
    """
    above: list[str] = []
    before = ""  # a keyword that wants a command behind it
    for command in commands:
        name, bare = command.name, command.bare()
        if name in _ENDING and (before or not above):
            raise Refused(command.line)
        before = name if name in _KEYWORDS and bare.words == command.words[:1] else ""
        if name in _ENDING:
            last = above.pop()
            if name == "elif":
                yield command.condition(), " ".join(above)
            above += [f"{last} {command.text if name == 'elif' else name}"] if name in ("elif", "else") else []
            if name == "else" and bare.name != "else":
                yield bare, " ".join(above)
        elif name == "function":
            yield from ((inner, f"function {command.text}") for inner, _ in guarded(command.block or ()))
        elif name in _BEGINNING:
            yield command.condition(), " ".join(above)
            above.append(command.text)
        else:
            yield bare, " ".join(above)
    if above:
        raise Refused(commands[-1].line)


def entry_of(command: Command) -> MenuEntry | None:
    """The entry that a command adds to the menu; None for another command."""
    if command.name not in ("menuentry", "submenu") or command.block is None:
        return None
    options: dict[str, str] = {}
    titles: list[str] = []
    texts = ["--id" if word.raw.strip('"${}') == _ID_OPTION else shown(word) for word in command.words[1:]]
    while texts:
        text = texts.pop(0)
        name, equals, value = text.partition("=")
        if name in _WITH_VALUE:
            options[name] = value if equals else texts.pop(0) if texts else ""
        elif text != "--unrestricted":
            titles.append(text)
    if not titles or not titles[0]:
        return None
    return MenuEntry(titles[0], options.get("--id", titles[0]), command, command.name == "submenu")


def shown(word: Word) -> str:
    """The text of a word, its variables as written."""
    return "".join(f"${part.text}" if part.variable else part.text for part in word.parts)


def section_marks(text: str) -> list[tuple[int, str]]:
    """(line, the script whose part begins there; "" where it ends) of each mark that grub-mkconfig wrote."""
    return [
        (text.count("\n", 0, match.start()) + 1, match[2] if match[1] == "BEGIN" else "")
        for match in _MARK.finditer(text)
    ]


def section_at(marks: Sequence[tuple[int, str]], line: int) -> str:
    """The script of /etc/grub.d that printed a line; "" between their parts, and in a text without marks."""
    return next((script for at, script in reversed(marks) if at < line), "")


def parse_grubenv(text: str) -> dict[str, str]:
    """The variables of a grubenv block, as load_env sets them: `name=value` lines, `#` ends and fills the block.

    A file whose first line is another than GRUB's sets nothing: load_env refuses it (lib/envblk.c, grub_envblk_open()).
    """
    if not text.startswith(BLOCK):
        return {}
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name: value.replace("\\\\", "\\") for name, equals, value in pairs if equals and name}
