"""A page as man(7) has it: text escaped so that no word of it is a request, and a hyphen stays what is typed."""

import re
from collections.abc import Iterable, Iterator, Sequence

from tunectl.cli.manuals.pages import Item, Page

_ESCAPES = str.maketrans(
    {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", '"': r"\(dq"}
)


_MANUALS = {"1": "User Commands", "5": "File Formats"}


def escaped(text: str) -> str:
    """One line of text for roff, in ASCII."""
    line = "".join(char if ord(char) < 128 else f"\\[u{ord(char):04X}]" for char in text.translate(_ESCAPES))
    return f"\\&{line}" if line.startswith(".") else line


def rich(text: str) -> str:
    """The same, with `code` in bold."""
    parts = re.split(r"`([^`]+)`", text)
    line = "".join(rf"\fB{escaped(part)}\fR" if at % 2 else _inner(part) for at, part in enumerate(parts))
    return f"\\&{line}" if line.startswith(".") else line


def _inner(text: str) -> str:
    return escaped(text).removeprefix("\\&")


def title(name: str) -> str:
    """The page's own name: a command's words joined by hyphens."""
    return name.replace(" ", "-")


def man_page(page: Page, version: str, date: str, also: Sequence[Page] = ()) -> str:
    """The page's source. `also` are the pages that stand in it as subsections: experiments of tunectl-probe."""
    head = (title(page.name).upper(), page.section, date, f"tunectl {version}", _MANUALS[page.section])
    lines = [" ".join([".TH", *(f'"{word}"' for word in head)])]
    lines += [".SH NAME", rf"{escaped(title(page.name))} \- {rich(page.summary.rstrip('.'))}"]
    lines += [".SH SYNOPSIS", *_usage(page.usage)]
    lines += _section("DESCRIPTION", _paragraphs(page.body))
    lines += _section("COMMANDS", _items(page.commands))
    for one in also:
        lines += [f'.SH "{escaped(one.name.upper())}"', *_usage(one.usage), ".PP", *_paragraphs(one.body)]
        lines += [*_items(one.commands), *_items(one.options)]
    lines += _section("OPTIONS", _items(page.options))
    lines += _section("GLOBAL OPTIONS", _items(page.shared))
    lines += _section("EXAMPLES", _examples(page))
    lines += _section("EXIT STATUS", _items(page.exits))
    lines += _section("FILES", _items(page.files))
    lines += _section("ENVIRONMENT", _items(page.environment))
    lines += _section("SEE ALSO", _see_also(page))
    return "\n".join(lines) + "\n"


def _section(name: str, lines: Iterable[str]) -> list[str]:
    made = list(lines)
    return [f'.SH "{name}"' if " " in name else f".SH {name}", *made] if made else []


def _usage(lines: Sequence[str]) -> Iterator[str]:
    for at, line in enumerate(lines):
        words = re.match(r"([a-z -]+?)(?= [^a-z]|$)(.*)", line)
        name, rest = (words[1], words[2]) if words else (line, "")
        yield from ([".br"] if at else [])
        yield rf"\fB{escaped(name)}\fR{_inner(rest)}"


def _paragraphs(body: Sequence[str]) -> Iterator[str]:
    for at, text in enumerate(body):
        yield from ([".PP"] if at else [])
        yield rich(text)


def _items(items: Sequence[Item]) -> Iterator[str]:
    for item in items:
        yield from (".TP", rf"\fB{escaped(item.term)}\fR", rich(item.text))


def _examples(page: Page) -> Iterator[str]:
    for at, example in enumerate(page.examples):
        if example.does:
            yield from ([".PP"] if at else [])
            yield rich(example.does)
        yield from (".PP", ".in +4n", ".nf", escaped(example.line), ".fi", ".in")


def _see_also(page: Page) -> Iterator[str]:
    named = list(dict.fromkeys(title(one) for one in page.see_also))
    for at, name in enumerate(named):
        yield rf".BR \%{escaped(name)} (1){',' if at < len(named) - 1 else ''}"
