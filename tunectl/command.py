"""A command that is printed for a person: a value made of words. Its text is drawn here, and nowhere else. Pure.

Anybody on a host chooses names that fixes have to name: of threads, units, control groups, files. A word reaches the
text quoted, so whatever it holds, a shell hands it on as that word; and a word that names something never becomes an
option of the program.

A word that another program will read as part of a line (systemd, udev, a boot loader) must not end that line: what
comes from the command line, the environment or a host file and goes into a unit, a drop-in, a rule or a boot argument
passes through one_line(), where it is written.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tunectl.errors import UsageError

# These a shell and printf(1) leave alone.
_PLAIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-@:+,= "
_NAME = re.compile(r"[\w@%+=:,./\[\]-]+", re.ASCII)  # a name that cannot look like part of a sentence
_ECHO_CHANGES = re.compile(r"-[neE]+|.*\\.*", re.DOTALL)  # what some shells' echo does not write as it stands
# C0 (a newline is one of them), DEL, C1, Unicode's own line ends, and bytes that are not UTF-8.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_NAMES = {"\0": " (NUL)", "\n": " (a newline)", "\x1b": " (ESC)"}


class Step(NamedTuple):
    """One program with its words, `sudo` among them; `fed` is the line that it reads, None where it reads none."""

    words: tuple[str, ...]
    fed: str | None = None

    @property
    def place(self) -> int:
        """At which of its words the program stands."""
        return 1 if self.words[0] == "sudo" else 0

    @property
    def program(self) -> str:
        """The program's name, without its directory."""
        return self.words[self.place].rpartition("/")[2]

    @property
    def text(self) -> str:
        """As a POSIX shell takes it."""
        drawn = " ".join(map(shell_word, self.words))
        if self.fed is None:
            return drawn
        if _ECHO_CHANGES.fullmatch(self.fed):
            return f"printf '%s\\n' {shell_word(self.fed)} | {drawn}"
        return f"echo {shell_word(self.fed)} | {drawn}" if self.fed else f"echo | {drawn}"


class Command(str):
    """The text of steps, each done where the one before it succeeded; with the steps.

    `kind` and `arguments` are what another host's reader makes the same command of (tunectl/kinds.py); "" where only
    this host's own words say what it is.
    """

    steps: tuple[Step, ...]
    kind: str
    arguments: Mapping[str, object]

    def __new__(cls, steps: Iterable[Step], kind: str = "", arguments: Mapping[str, object] | None = None) -> Command:
        """Made by `run` and `write`."""
        every = tuple(steps)
        made = super().__new__(cls, " && ".join(step.text for step in every))
        made.steps, made.kind, made.arguments = every, kind, dict(arguments or {})
        return made

    def __getnewargs__(self) -> tuple[tuple[Step, ...], str, Mapping[str, object]]:  # type: ignore[override]
        """What a copy is made of."""
        return self.steps, self.kind, self.arguments

    def then(self, *others: Command) -> Command:
        """The same, and after it the others."""
        return all_of([self, *others])


def argv(*words: str, of: Iterable[str] = ()) -> Command:
    """One program with its words. `of` is what it is about: names that others chose, none of them an option."""
    names = tuple(of)
    ends = ("--",) if any(name.startswith("-") for name in names) else ()
    return Command([Step((*words, *ends, *names))])


def write(value: str, *files: str, append: bool = False) -> Command:
    """A value into files, as root: what a shell of the user's own could not redirect."""
    (step,) = argv("sudo", "tee", *(["-a"] if append else []), of=files).steps
    return Command([step._replace(fed=value)])


def all_of(commands: Iterable[Command]) -> Command:
    """One command of several, each done where the one before it succeeded."""
    return Command([step for command in commands for step in command.steps])


def shell_word(word: str) -> str:
    """One word as a POSIX shell takes it; a control character, which no line can show, by printf(1)."""
    if word.isprintable():
        return shlex.quote(word)
    kept = {"%": "%%", "\\": "\\\\"} | dict(zip(_PLAIN, _PLAIN, strict=True))
    bare = word.rstrip("\n")  # $(...) drops newlines at the end; the last character of IFS is one
    try:
        encoded = os.fsencode(bare)
    except UnicodeEncodeError:  # no name of a file has such a character, and no shell reads it; a document may hold one
        encoded = bare.encode("utf-8", "surrogatepass")
    said = "".join(kept.get(chr(byte), f"\\{byte:03o}") for byte in encoded)
    said = f"\\055{said[1:]}" if said.startswith("-") else said  # no option of printf's
    return f"\"$(printf '{said}')" + "${IFS#??}" * (len(word) - len(bare)) + '"'


def as_data(name: object, if_empty: str = "''") -> str:
    """A name that somebody chose, within a sentence: quoted and escaped where it is not plain, so that it says nothing.

    What it holds is data; no sentence goes on in it, and no command begins there. `if_empty` stands for an empty one.
    """
    text = str(name)
    return (text if _NAME.fullmatch(text) else quoted(text)) if text else if_empty


def as_place(where: str) -> str:
    """A file, with its line, within a sentence; what begins with no slash is our own words for where that is."""
    return as_data(where) if where.startswith("/") else where


def quoted(text: str) -> str:
    """A text that is somebody else's, between quotes that it cannot end."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    shown = (char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in escaped)
    return f"'{''.join(shown)}'"


def control_in(text: str) -> str:
    """The first character that ends a line, moves a cursor or is no character, as its escape; "" where none does."""
    match = _CONTROL.search(text)
    return match[0].encode("unicode_escape").decode("ascii") + _NAMES.get(match[0], "") if match else ""


def one_line(word: str, what: str) -> str:
    """The word. UsageError, which names `what` it is and repeats only the character, where it has one of these."""
    if bad := control_in(word):
        raise UsageError(f"{what}: has the control character {bad}", "printable characters, on one line")
    return word
