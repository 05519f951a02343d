"""How the files that hold a command line are read and rewritten: only the line changes, no other byte does. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from tunectl.bootloader.words import Lines, split

_OPTIONS = re.compile(r"^(?P<key>[ \t]*options[ \t]+)(?P<line>[^\n]*)$", re.MULTILINE)


class Form(NamedTuple):
    """One kind of file.

    `lines` gives its command line, perhaps in several parts; a text says why it cannot be edited.
    `render` gives the file's text with other lines, as many as there were.
    """

    lines: Callable[[str], Lines | str]
    render: Callable[[str, Lines], str]


def _one_line(text: str) -> Lines | str:
    return (text.rstrip(),)


def _render_one_line(text: str, lines: Lines) -> str:
    return lines[0] + (text[len(text.rstrip()) :] or "\n")


def _first_line(text: str) -> Lines | str:
    return (text.partition("\n")[0],)


def _render_first_line(text: str, lines: Lines) -> str:
    _, newline, rest = text.partition("\n")
    return lines[0] + (newline or "\n") + rest


def _options(text: str) -> Lines | str:
    return tuple(found["line"] for found in _OPTIONS.finditer(text)) or ("",)


def _render_options(text: str, lines: Lines) -> str:
    left = list(lines)
    if not _OPTIONS.search(text):
        return text + ("" if not text or text.endswith("\n") else "\n") + f"options {lines[0]}\n" if lines[0] else text
    return _OPTIONS.sub(lambda found: found["key"] + left.pop(0), text)


def variable(name: str) -> Form:
    """A file of shell assignments: the words between the quotes of the last assignment of one variable."""
    assignment = re.compile(rf"^(?P<head>[ \t]*(?:export[ \t]+)?{name}=)(?P<value>[^\n]*)$", re.MULTILINE)
    # Nothing in it that a shell would read as anything else; `$` stays, for words that are not ours are not touched.
    quoted = re.compile(r"(?P<quote>[\"'])(?P<line>[^\"'`\\]*)(?P=quote)(?P<tail>[ \t]*(?:#.*)?)")

    def value(text: str) -> tuple[int, int, str] | None:
        """(start, end, the line) of the words in the file; None where it is written in another way."""
        found = list(assignment.finditer(text))[-1]
        inner = quoted.fullmatch(found["value"])
        if inner is None:
            return (found.start("value"), found.end("value"), "") if not found["value"].strip() else None
        start = found.start("value")
        return start + inner.start("line"), start + inner.end("line"), inner["line"]

    def lines(text: str) -> Lines | str:
        if not assignment.search(text):
            return ("",)
        found = value(text)
        return (found[2],) if found else f"{name} is not one plain text in quotes"

    def render(text: str, lines: Lines) -> str:
        found = value(text) if assignment.search(text) else None
        if found is None:
            head = text + ("" if not text or text.endswith("\n") else "\n")
            return f'{head}{name}="{lines[0]}"\n' if lines[0] else text
        start, end, _ = found
        bare = text[start - 1 : start] == "="
        return text[:start] + (f'"{lines[0]}"' if bare and lines[0] else lines[0]) + text[end:]

    return Form(lines, render)


def _kernelstub(text: str) -> Lines | str:
    import json  # slow to import: only where there is a kernelstub

    try:
        options = _user_options(json.loads(text.encode("latin-1")))
    except (ValueError, KeyError, TypeError) as error:
        return f"it is not what kernelstub writes ({error!r})"
    return (" ".join(options),)


def _user_options(document: Any) -> list[str]:
    """kernelstub's own list; the operator's arguments and ours are in `user`, `default` is the installer's."""
    options = document["user"]["kernel_options"]
    if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
        raise TypeError("kernel_options")
    return options


def _render_kernelstub(text: str, lines: Lines) -> str:
    import json

    document = json.loads(text.encode("latin-1"))  # the text is bytes, one a character: JSON is UTF-8
    if " ".join(_user_options(document)) == lines[0]:
        return text
    document["user"]["kernel_options"] = split(lines[0])
    return json.dumps(document, indent=2) + ("\n" if text.endswith("\n") else "")


LINE = Form(_one_line, _render_one_line)
FIRST_LINE = Form(_first_line, _render_first_line)
OPTIONS = Form(_options, _render_options)
KERNELSTUB = Form(_kernelstub, _render_kernelstub)
