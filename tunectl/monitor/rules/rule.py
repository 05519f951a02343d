"""The row of a rule. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tunectl.monitor.model import Condition, Severity
from tunectl.monitor.rules.history import History

FAILED = "rule"  # the subject of the one condition of a rule that broke: nothing is known of any other


class Rule(NamedTuple):
    """How one kind of trouble is told, and when that is worth an alert."""

    name: str  # as its alerts are named
    severity: Severity
    why: str  # the mechanism, one sentence
    source_of_truth: str  # which reading decides, and who says so
    judge: Callable[[History], Iterable[Condition]]
    bad: tuple[int, int] = (1, 1)  # fires when N of the last M looks that could tell were bad
    good: int = 3  # resolves after so many good looks in a row; what is unknown between them counts for nothing
    lasts: bool = False  # a subject that no look mentions any more stays as it was; otherwise it is over after `good`
    explained_by: tuple[str, ...] = ()  # while an alert of these rules fires for the same CPUs, this is its evidence
