"""What is to be typed, as it has to be typed here: with the options that name this host, and its host file first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tunectl import kinds
from tunectl.cli.main import COMMANDS
from tunectl.command import Command, shell_word
from tunectl.fix import Fix, Kind, Task, of_tasks
from tunectl.model import Finding

_OF_NO_HOST = ("knobs", "compare", "report", "fleet")
_COMMAND = re.compile(rf"(?<![\w/.-])tunectl(?= (?:{'|'.join(one for one in COMMANDS if one not in _OF_NO_HOST)})\b)")
_SAID = ("reasons", "notes", "fix", "restore")  # fields with commands


class Typed(NamedTuple):
    """How this command's reader types the next one."""

    words: tuple[str, ...]  # --root, --host and --state, as they were given to this command
    missing: str = ""  # the host file that has to be written before `apply`; "" where it is there
    program: str = "tunectl"  # or its full path

    def text(self, text: str) -> str:
        """A text with commands of ours, each with the options. sudo hands no environment on, so they are words."""
        if isinstance(text, Command):
            return kinds.started(text, (self.program, *self.words))
        named = " ".join(map(shell_word, (self.program, *self.words)))
        return _COMMAND.sub(lambda _: named, text)

    def fix(self, fix: Fix) -> Fix:
        """The same of a fix: without a host file `apply` has nothing to go by."""
        return of_tasks(list(self._tasks(fix)))

    def _tasks(self, fix: Fix) -> Iterator[Task]:
        for task in fix.tasks:
            if self.missing and task.kind is Kind.APPLY:
                yield Task(Kind.PROPOSE, self.text(kinds.propose(self.missing)))
            yield task._replace(text=self.text(task.text), note=self.text(task.note))

    def finding(self, finding: Finding) -> Finding:
        """The same finding, whose fix can be typed here."""
        return finding._replace(fix=self.fix(finding.fix))

    def body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A document's fields, with all that they say to type. What the probe measured says nothing of the kind."""
        return {key: value if key == "probe" else self._field(key, value) for key, value in body.items()}

    def _field(self, key: str, value: Any) -> Any:
        if isinstance(value, Finding):
            return self.finding(value)
        if isinstance(value, Fix):
            return str(self.fix(value))
        if isinstance(value, str) and key in _SAID:
            return self.text(value)
        if isinstance(value, dict):
            return self.body(value)
        return type(value)(self._field(key, one) for one in value) if type(value) in (list, tuple) else value
