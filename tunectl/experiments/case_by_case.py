"""An experiment of several cases: those asked for, each measured in its turn, and the document that they make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from tunectl.cpulist import CpuSet, named_cpus, parse_cpulist
from tunectl.errors import TunectlError, UsageError
from tunectl.host.sysroot import Sysroot
from tunectl.probe.runner import document_of, start

_INTERRUPTED = "interrupted before it was measured"
_LONG_WARM_UP_S = 1.0  # it is named


class PlannedCase(Protocol):
    """A case, and why it cannot be measured; "" where it can."""

    @property
    def reason(self) -> str:
        """Why not."""

    @property
    def title(self) -> str:
        """Which one it is, for the progress."""

    @property
    def cell(self) -> dict[str, Any]:
        """As the cell of a raw document in which nothing was counted."""


class Takes(NamedTuple):
    """How long a case is to take, in seconds."""

    warm_up: float  # nothing is counted in it
    rest: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.warm_up + self.rest


class CaseError(TunectlError):
    """This case cannot be measured; others may be."""


Case = TypeVar("Case", bound=PlannedCase)


def chosen(
    option: str, text: str, names: Iterable[str], groups: Mapping[str, Iterable[str]] | None = None
) -> list[str]:
    """Those of `names`, in their order, that a list of names and groups holds. UsageError for any other word."""
    rows, sets, found = tuple(names), groups or {}, set[str]()
    for word in text.split(","):
        if word not in rows and word not in sets:
            raise UsageError(f"{option} {text}: there is no '{word}'", f"of {', '.join((*rows, *sets))}")
        found.update(sets.get(word, (word,)))
    return [name for name in rows if name in found]


def measured_cases(
    cases: Sequence[Case],
    measure: Callable[[Case], dict[str, Any]],
    takes: Callable[[Case], Takes],
    tell: Callable[[str], None],
    after_s: float = 0.0,
) -> dict[str, Any]:
    """What was counted, as if one run of the program had counted it.

    `measure` hands back the document of one case. `tell` is handed a line for each, with what is left: what the cases
    take, and `after_s` behind the last. A case that cannot be measured has the reason instead. Ctrl-C ends a case
    early, and leaves out the rest. TunectlError where none could be measured at all.
    """
    document: dict[str, Any] = {}
    cells = []
    for place, case in enumerate(cases):
        left = after_s + sum(takes(one).total for one in cases[place:] if not one.reason)
        reason = case.reason or (_INTERRUPTED if document.get("interrupted") else "")
        if not reason:
            try:
                warm_up = takes(case).warm_up
                first = f", the first {warm_up:.0f} s to warm up" if warm_up >= _LONG_WARM_UP_S else ""
                tell(f"{case.title}: case {place + 1} of {len(cases)}, {left:.0f} s left{first}")
                measured = measure(case)
                document = joined(document, measured)
                cells += measured["cells"]
                continue
            except CaseError as error:
                reason = str(error)
            except KeyboardInterrupt:
                if not document:
                    raise TunectlError("interrupted before anything was measured") from None
                document["interrupted"] = True
                reason = _INTERRUPTED
        cells.append(case.cell | {"reason": reason})
    if all(cell["reason"] for cell in cells):
        reasons = dict.fromkeys(cell["reason"] for cell in cells)
        raise TunectlError(f"nothing was measured: {'; '.join(reasons)}")
    return document | {"cells": cells}


def joined(before: Mapping[str, Any], measured: dict[str, Any]) -> dict[str, Any]:
    """The later document of two, but when the first began, and how long both took.

    One whose case was not measured says nothing of the run; the first one stands until another is.
    """
    said = before if before and measured["cells"][0]["reason"] else measured
    return {**said, "interrupted": measured["interrupted"]} | {
        "at": before.get("at", measured["at"]),
        "duration_s": round(before.get("duration_s", 0.0) + measured["duration_s"], 3),
    }


def case_document(words: Sequence[str], cpus: CpuSet, timeout_s: float, keep: int | None = None) -> dict[str, Any]:
    """What the program wrote of one case, on CPUs that were there before it and after. CaseError where one was not."""
    require_online(Sysroot(), cpus, "not online any more")
    done = start(words, cpus, timeout_s=timeout_s, keep=keep)
    require_online(Sysroot(), cpus, "went offline during the case, which moved the thread there to another CPU")
    measured: dict[str, Any] = document_of(done)
    return measured


def require_online(root: Sysroot, cpus: CpuSet, said: str) -> None:
    """CaseError with what is said of the CPUs that are not online."""
    listed = root.get("sys/devices/system/cpu/online")
    if gone := cpus - parse_cpulist(listed) if listed else frozenset():
        raise CaseError(f"{named_cpus(gone)}: {said}")
