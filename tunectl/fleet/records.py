"""What a session holds: who was asked, and what became of each. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from tunectl.fleet.summary import Summary

VERDICTS = ("no-go", "unknown", "pending-reboot", "go")  # the worst first


class Answer(StrEnum):
    """What became of asking one host."""

    DOCUMENT = "document"  # it left its preflight document
    UNREACHABLE = "unreachable"  # no connection to it
    FAILED = "failed"  # reached, but the preflight itself failed
    SILENT = "silent"  # nothing came back, and nobody said why
    UNUSABLE = "unusable"  # it left something that is no whole preflight document


class Absent(NamedTuple):
    """Why a host left no document, as who asked it has written down."""

    kind: Answer  # UNREACHABLE or FAILED
    reason: str
    at: str = ""


class Asked(NamedTuple):
    """One host of a session: `document` where it left one, else `problem` says what is known instead."""

    name: str
    answer: Answer
    document: Summary | None = None
    problem: str = ""
    file: str = ""  # of the document, relative to the session; "" without one
    expected: bool = True  # the session's list has it


class Session(NamedTuple):
    """One round of asking. `at` is when it began: UTC, RFC 3339; "" where nobody wrote that down."""

    name: str
    directory: str
    at: str = ""
    selection: str = ""  # which part of the inventory, in the words of who asked
    hosts: tuple[str, ...] = ()
