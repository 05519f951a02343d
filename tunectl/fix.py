"""A fix: what to do about a finding, task after task. Who knows a fix makes it of tasks; its text is drawn here alone.

`to_type` and `to_decide` make one task, APPLY, REBOOT and `add_words` the tasks that every room knows, `in_turn` makes
one fix of several. Pure.
"""

from collections.abc import Sequence
from enum import IntEnum, auto
from functools import lru_cache
from typing import NamedTuple

from tunectl import kinds
from tunectl.command import Command


class Kind(IntEnum):
    """What a task asks of the operator, in the order of doing: what is done later may need what was done before."""

    PROPOSE = auto()  # to have the host file written, which says what all the others are about
    TYPE = auto()  # a command that is typed as it stands
    APPLY = auto()
    WORDS = auto()  # to add words to the kernel's command line, which is not tunectl's to write
    REBOOT = auto()
    DECIDE = auto()  # what no command does before somebody has decided, or done something by hand


class Task(NamedTuple):
    """One thing to do. `text` is the command, the words, or what is to be decided; only a Command is typed."""

    kind: Kind
    text: Command | str
    note: str = ""  # what else is to be known of it
    settled_by: tuple[str, str] = ("", "")  # a boot knob and a flag: where the host file asks for it, that is the fix
    line: str = ""  # FILE:LINE that is to be decided about: what is to be decided about one line is one action
    before_boot: bool = False  # the next boot takes it, and so it comes before the reboot

    @property
    def said(self) -> str:
        """The task within a fix's text."""
        if self.kind is Kind.WORDS:
            return f"add {self.text} to the kernel command line yourself{f', {self.note}' if self.note else ''}"
        if self.kind is Kind.REBOOT:
            return f"reboot {self.note}".rstrip()
        return f"{self.text}; {self.note}" if self.note else self.text


class Fix(NamedTuple):
    """Tasks, one after the other; false where there is none. Its text is drawn by `str`, and nobody asks that text."""

    tasks: tuple[Task, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.tasks)

    def __str__(self) -> str:
        return _drawn(self.tasks)

    @property
    def is_typed(self) -> bool:
        """Is it commands, and nothing else?"""
        return all(task.kind is Kind.TYPE for task in self.tasks)

    @property
    def commands(self) -> tuple[Command, ...]:
        """What of it is typed."""
        return tuple(task.text for task in self.tasks if isinstance(task.text, Command))


def of_tasks(tasks: Sequence[Task]) -> Fix:
    """The fix that asks for these tasks in this order; each is asked for once."""
    return Fix(tuple(dict.fromkeys(tasks)))


@lru_cache
def _drawn(tasks: tuple[Task, ...]) -> str:
    """Once: thousands of findings have the same fix."""
    texts = []
    for before, task, after in zip((None, *tasks), tasks, (*tasks[1:], None), strict=False):
        # A note that the next command bears as well is written there.
        is_repeated = after and task.kind is after.kind is Kind.TYPE and task.note == after.note
        texts.append(_joint(before, task) + (str(task.text) if is_repeated else task.said))
    return "".join(texts)


def _joint(before: Task | None, task: Task) -> str:
    """What stands before a task; after a command ours can be typed on the same line."""
    if before is None:
        return ""
    if task.kind in (Kind.PROPOSE, Kind.APPLY):
        return " && " if before.kind in (Kind.TYPE, Kind.PROPOSE) and not before.note else ", then "
    return ", then " if task.kind is Kind.REBOOT else "; "


def in_turn(*fixes: Fix) -> Fix:
    """One fix after the other."""
    return of_tasks([task for fix in fixes for task in fix.tasks])


def to_type(command: Command, note: str = "") -> Fix:
    """A command that does it."""
    return of_tasks([Task(Kind.TYPE, command, note)])


def to_decide(what: str, *, settled_by: tuple[str, str] = ("", ""), line: str = "", before_boot: bool = False) -> Fix:
    """What no command does: a decision, or something to do by hand; the rest are fields of Task."""
    return of_tasks([Task(Kind.DECIDE, what, settled_by=settled_by, line=line, before_boot=before_boot)])


def of_text(text: str) -> Fix:
    """The fix of a document that is read, or a text of somebody's: what to do is in that document's `actions`."""
    return to_decide(text) if text else NOTHING


def noted(fix: Fix, note: str) -> Fix:
    """The fix with a note to its last task."""
    return of_tasks([*fix.tasks[:-1], fix.tasks[-1]._replace(note=note)])


def add_words(words: str, place: str = "") -> Fix:
    """Words for a kernel command line that tunectl does not write, and their place; they hold from the next boot on."""
    return of_tasks([Task(Kind.WORDS, words, place), *REBOOT.tasks])


def reboot(how: str = "") -> Fix:
    """A reboot; `how`, where it matters."""
    return of_tasks([Task(Kind.REBOOT, kinds.reboot(), how)])


def apply(note: str = "") -> Fix:
    """`tunectl apply`; `note` is what does the same by hand."""
    return of_tasks([Task(Kind.APPLY, kinds.apply(), note)])


NOTHING = Fix()
APPLY = apply()
REBOOT = reboot()
