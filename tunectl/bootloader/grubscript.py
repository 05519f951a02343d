"""Splits GRUB's own script language into words, and expands them as GRUB hands them to the kernel. Pure.

Source: GRUB manual, 7.1 (Writing full configuration files directly); grub-core/script/yylex.l for what is a word;
grub-core/lib/cmdline.c for the quotes around what holds a space.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

_PART = re.compile(
    r"(?P<gap>(?:[ \t\r]|\\\n)+)|(?P<mark>[\n;{}<>|&])|'(?P<single>[^']*)'"
    r'|"(?P<double>(?:[^"\\]|\\.)*+)"|\$(?:\{(?P<braced>[A-Za-z_]\w*|\d+|[?#@*])\}'
    r"|(?P<variable>[A-Za-z_]\w*|\d+|[?#@*]))"
    r"|\\(?P<escaped>.)|(?P<plain>[^ \t\r\n;{}<>|&'\"$\\]+)|(?P<bad>.)",
    re.DOTALL | re.ASCII,
)
_COMMENT = re.compile(r"#[^\n]*")
_IN_DOUBLE = re.compile(
    r'\\(?P<escaped>[\\"$\n])|\$(?:\{(?P<braced>[A-Za-z_]\w*|\d+|[?#@*])\}|(?P<variable>[A-Za-z_]\w*|\d+|[?#@*]))'
    r"|(?P<bad>\$)|(?P<plain>.[^\\$]*)",
    re.DOTALL | re.ASCII,
)
MAX_EXPANDED = 1 << 16


class Part(NamedTuple):
    """A piece of a word: literal text, or the name of a variable, in quotes or not."""

    text: str
    variable: bool = False
    quoted: bool = True


_BAD = Part("$")  # a dollar in double quotes that begins no variable


class Word(NamedTuple):
    """One word as written; `at` is where it starts in the text. Braces and ends of commands are words of their own."""

    parts: tuple[Part, ...]
    at: int
    mark: str = ""  # "{", "}", ";", a newline, "<", ">", "|", "&"; "bad" where GRUB finds no word
    raw: str = ""  # as it stands in the text, quotes included


def split_words(text: str) -> Iterator[Word]:
    """Every word, brace and end of command of a GRUB script."""
    parts: list[Part] = []
    start = at = 0
    while at < len(text):
        if not parts and (comment := _COMMENT.match(text, at)):
            at = comment.end()
            continue
        match = _PART.match(text, at)
        assert match  # the last choice matches any character
        kind = match.lastgroup or ""
        if kind in ("gap", "mark", "bad"):
            if parts:
                yield Word(tuple(parts), start, raw=text[start:at])
                parts = []
            if kind != "gap":
                yield Word((), at, match[0] if kind == "mark" else "bad")
        else:
            start = start if parts else at
            parts += _parts(match, kind)
            if any(part is _BAD for part in parts):
                yield Word((), at, "bad")
                parts = []
        at = match.end()
    if parts:
        yield Word(tuple(parts), start, raw=text[start:])


def _parts(match: re.Match[str], kind: str) -> list[Part]:
    if kind == "double":
        inner = [_quoted_part(part) for part in _IN_DOUBLE.finditer(match["double"])]
        return inner or [Part("")]
    if kind in ("braced", "variable"):
        return [Part(match[kind], variable=True, quoted=False)]
    return [Part(match[kind])]


def _quoted_part(match: re.Match[str]) -> Part:
    if match["bad"]:
        return _BAD
    name = match["braced"] or match["variable"]
    if name:
        return Part(name, variable=True)
    return Part(match["plain"] if match["escaped"] is None else match["escaped"].replace("\n", ""))


def expand(word: Word, variables: Mapping[str, str]) -> list[str]:
    """What a word becomes: one text, or none or several where a bare variable is empty or holds spaces."""
    texts: list[str] = []
    current: str | None = None
    room = MAX_EXPANDED  # a hostile file can make a word huge
    for part in word.parts:
        room -= len(variables.get(part.text, "") if part.variable else part.text)
        if room < 0:
            break
        if not part.variable or part.quoted:
            current = (current or "") + (variables.get(part.text, "") if part.variable else part.text)
            continue
        # Spaces part words inside a value only: not at its ends.
        for n, piece in enumerate(variables.get(part.text, "").split()):
            if n and current is not None:
                texts.append(current)
                current = None
            current = (current or "") + piece
    return texts if current is None else [*texts, current]


def expand_all(words: Iterable[Word], variables: Mapping[str, str]) -> list[str]:
    """expand() of several words in a row, cut off at the same length."""
    texts: list[str] = []
    room = MAX_EXPANDED
    for word in words:
        more = expand(word, variables)
        room -= sum(map(len, more))
        if room < 0:
            break
        texts += more
    return texts


def kernel_text(texts: Sequence[str]) -> str:
    """The line GRUB makes of the words of its `linux` command: a word with a space in quotes, quotes escaped."""
    escaped = (re.sub(r"(['\"\\])", r"\\\1", text) for text in texts)
    return " ".join(f'"{text}"' if " " in text else text for text in escaped)
