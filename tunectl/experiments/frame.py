"""The frame of every experiment: a table of cases, each measured in its turn, and void or a cell, with warnings.

An experiment is a row (Experiment) and what only it has: `wake`, `feed`, `hedge` and `contention` ask and measure, and
`wake_cells` and its like (pure) have the raw counts as types, and say what follows from them. What a case is before it
is measured, that it is void where a cpu.max stopped its threads, and that a void one has no figures, is said here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import msgspec
from msgspec import Meta

from tunectl.cpulist import CpuSet, named_cpus, parse_cpulist
from tunectl.errors import TunectlError, UsageError
from tunectl.experiments.tick_figures import Figures
from tunectl.host.sysroot import Sysroot
from tunectl.probe.budget import LONGEST_S
from tunectl.probe.counter import shown_clock
from tunectl.probe.hostfiles import Machine, machine_of
from tunectl.probe.jitter_warnings import throttling
from tunectl.probe.runner import given
from tunectl.shapes import AnyCase, Counter, Maybe, Measured, about, typed

_LONGEST_LIST = 16


Count = Annotated[int, Meta(ge=0)]
_THROTTLED = "How long a limit of cgroups (cpu.max) stopped the threads; null: one may stand outside what is seen."
Values = Annotated[list[int], about("Value in ticks and how often it came, in turns; ascending.")]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for; why it cannot be measured, "" where it can; and once it was, what was counted."""

    shape: ClassVar[type[AnyCase]]  # of its cell in a result
    asked: ClassVar[tuple[str, ...]]  # the fields that say which case it is

    reason: Annotated[str, Measured, about("Why it was not measured; else empty.")] = ""
    throttled_us: Annotated[Count | None, about(_THROTTLED)] = 0

    @classmethod
    def of(cls, *asked: Any, reason: str = "") -> Self:
        """One that is to be measured, by the values of what is `asked`."""
        return cls(**dict(zip(cls.asked, asked, strict=True)), reason=reason)

    @property
    def cell(self) -> dict[str, Any]:
        """As the cell of a raw document in which nothing was counted."""
        return {name: getattr(self, name) for name in (*self.asked, "reason")}

    @property
    def title(self) -> str:
        """As the progress and all pages have it: the same before it is measured and after."""
        return typed({**self.cell, "n": 0, "max_ns": None, "histogram": []}, self.shape).label

    def words(self) -> list[str]:
        """The program's arguments that say which case it is."""
        return list(given(**{name: getattr(self, name) for name in self.asked}))


class Takes(NamedTuple):
    """How long a case is to take, in seconds: the sum of both."""

    warm_up: float  # nothing is counted in it
    rest: float


class CaseError(TunectlError):
    """This case cannot be measured; others may be."""


RawCase = TypeVar("RawCase", bound=Case)
Value = TypeVar("Value")


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


def listed(option: str, text: str, parse: Callable[[str], Value], expected: str, once: bool = True) -> list[Value]:
    """The values of a list, each `once`, in their order. UsageError where `parse` has a ValueError for a word."""
    try:
        values = [parse(word) for word in text.split(",")]
    except ValueError:
        raise UsageError(f"{option} {text}: expected {expected}") from None
    values = list(dict.fromkeys(values)) if once else values
    if len(values) > _LONGEST_LIST:
        raise UsageError(f"{option} {text}: at most {_LONGEST_LIST} of them")
    return values


def within(value: float, least: float, most: float) -> float:
    """The same; ValueError where it is outside, or nan."""
    if not least <= value <= most:
        raise ValueError
    return value


def check_duration(duration_s: float) -> None:
    """UsageError for one that is none."""
    if not 0 < duration_s <= LONGEST_S:  # nan is in no range
        raise UsageError(f"--duration {duration_s:g}: seconds, above 0 and at most a day")


def joined(before: Mapping[str, Any], measured: dict[str, Any]) -> dict[str, Any]:
    """The later document of two, but when the first began, and how long both took.

    One whose case was not measured says nothing of the run; the first one stands until another is.
    """
    said = before if before and measured["cells"][0]["reason"] else measured
    return {**said, "interrupted": measured["interrupted"]} | {
        "at": before.get("at", measured["at"]),
        "duration_s": round(before.get("duration_s", 0.0) + measured["duration_s"], 3),
    }


def require_online(root: Sysroot, cpus: CpuSet, said: str) -> None:
    """CaseError with what is said of the CPUs that are not online."""
    listed = root.get("sys/devices/system/cpu/online")
    if gone := cpus - parse_cpulist(listed) if listed else frozenset():
        raise CaseError(f"{named_cpus(gone)}: {said}")


class CpuFact(msgspec.Struct, frozen=True, kw_only=True):
    """A CPU of the experiment; files of /sys as they stood, "" where they could not be read."""

    is_isolated: bool
    governor: str
    core_cpus: Annotated[str, about("The hardware threads of its core, as a CPU list.")]


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What decides how much the figures of a run mean."""

    shares_main: Annotated[bool, about("No CPU was left for the program's main thread.")] = False
    is_locked: bool = True
    user_hz: Annotated[int, Meta(gt=0, description="What /proc/stat counts time in.")] = 100
    timer_slack_ns: Annotated[
        Count, about("So much later than asked the kernel may end the receiver's sleeps; it was set to 1.")
    ] = 1
    cpus: tuple[CpuFact, ...]


class RawClock(Counter, frozen=True, kw_only=True):
    """The counter."""

    hz: Annotated[float, Meta(gt=0)]
    cpuid: Annotated[
        list[tuple[Count, Count, Count, Count, Count]],
        about("x86: a leaf of CPUID, and its EAX, EBX, ECX and EDX."),
        Maybe,
    ] = msgspec.field(default_factory=list)
    cntfrq: Annotated[Count, about("arm64: the register CNTFRQ_EL0."), Maybe] = 0
    offset_ticks: Annotated[
        tuple[int, int] | None, about("The receiver's counter is ahead of the sender's by at least, by at most."), Maybe
    ] = None

    def shown(self, written: dict[str, Any]) -> dict[str, Any]:
        """What the program wrote of it, with the offset in ns."""
        clock = {name: value for name, value in shown_clock(written).items() if name != "offset_ticks"}
        if self.offset_ticks:
            ends = [round(ticks * 1e9 / self.hz, 1) for ticks in self.offset_ticks]
            clock |= {"offset_least_ns": ends[0], "offset_most_ns": ends[1]}
        return clock


class CasesRun(msgspec.Struct, Generic[RawCase], frozen=True, kw_only=True):
    """A whole run, with its cases."""

    holds: Annotated[str, about("What this document is, for whoever reads it alone.")] = ""
    interrupted: bool
    fifo_priority: Annotated[Count, about("0: the scheduling class was left alone.")]
    clock: RawClock
    cases: list[RawCase] = msgspec.field(name="cells")
    cpus: tuple[Count, ...]
    host: dict[str, str]
    at: str
    tunectl_version: str
    duration_s: Annotated[float, Meta(ge=0)]
    host_files: Annotated[dict[str, str], about("As they stood before the run, by path.")] = {}

    @property
    def machine(self) -> Machine:
        """What its files say of the host."""
        return machine_of(self.host_files)


Run = TypeVar("Run", bound="CasesRun[Any]")
_BY_CPU_MAX = ("a cpu.max stopped the probe's threads", "a start where no control group above has a cpu.max")
_NOT_ALONE = (
    "the probe's threads did not have their CPUs to themselves, as far as is known",
    "--cpus with some that the kernel isolates (what has the CPUs: `tunectl probe jitter --attribute`)",
)
Lists = dict[str, tuple[list[int], int | None]]
_KEPT = ("tunectl_version", "host", "at", "duration_s", "interrupted")  # of every raw document


class Judged(NamedTuple):
    """A case that was counted, and why it has no figures; "" where it has."""

    case: Any
    reason: str
    is_void: bool

    @property
    def has_figures(self) -> bool:
        """Is it a result?"""
        return not self.reason

    def figures(self, values: Sequence[int], hz: float, beyond: int = 0) -> Figures:
        """Of a list of values; of none where it is no result, so that nothing of it can be read as one."""
        return Figures(values, hz, beyond) if self.has_figures else Figures((), hz)


@dataclass(frozen=True)
class Experiment(Generic[Run]):
    """A row: what the raw document of an experiment is, and what becomes of each of its cases. Pure."""

    name: str
    shape: type[Run]
    kept: tuple[str, ...]  # of the raw document, as it is, beside what each has
    lists: Callable[[Any], Lists]  # of a case, by name, with the number of values; None: however many
    why_nothing: Callable[[Any], str]  # of a case: why nothing was counted
    why_void: Callable[[Any, Run], str]  # of a case whose threads no cpu.max stopped
    counted: Callable[[Run, Judged], dict[str, Any]]  # a cell's figures, all null without a result, and counts
    run_warnings: Callable[[Run], Iterable[str]]  # of a whole run
    warnings: Callable[[Any, Run], Iterable[str]]  # of a case in which something was counted
    cause: Callable[[Any, Run], tuple[str, str]] = lambda *_: _NOT_ALONE  # of a void case, in short, and what helps
    contradiction: Callable[[Any], str] = lambda _: ""  # of a case: what neither types nor lists say
    prepared: Callable[[Any], Any] = lambda document: document  # before it is read

    @property
    def raw_schema(self) -> str:
        """Of what the native program writes."""
        return f"tunectl.probe.{self.name}.raw/1"

    def read(self, document: dict[str, Any]) -> Run:
        """The raw document as types. TunectlError with the place of what is wrong."""
        schema = self.raw_schema
        if document.get("schema") != schema:
            raise TunectlError(f"tunectl-probe: expected a document of schema {schema}")
        try:
            run: Run = msgspec.convert(self.prepared(document), self.shape)
        except msgspec.ValidationError as error:
            raise TunectlError(f"tunectl-probe wrote what is no {schema}: {error}") from error
        for place, case in enumerate(run.cases):
            if problem := "" if case.reason else _miscounted(self.lists(case)) or self.contradiction(case):
                raise TunectlError(f"{schema}: cells[{place}]: {problem}")
        return run

    def judged(self, run: Run) -> list[Judged]:
        """Every case of a run."""
        judgements = []
        for case in run.cases:
            nothing = case.reason or self.why_nothing(case)
            void = ""
            if not nothing and run.cpus:  # without any it was simulated
                void = why_throttled(case.throttled_us) or self.why_void(case, run)
            judgements.append(Judged(case, nothing or void, bool(void)))
        return judgements

    def opening(self, raw: dict[str, Any]) -> dict[str, Any]:
        """How the result begins: with what the raw document says of the whole run."""
        return {"schema": f"tunectl.probe.{self.name}/1", **{name: raw[name] for name in (*_KEPT, *self.kept)}}

    def explained(self, raw: dict[str, Any]) -> dict[str, Any]:
        """The result of what the program counted. TunectlError as read()."""
        run = self.read(raw)
        judgements = self.judged(run)
        return {
            **self.opening(raw),
            "clock": run.clock.shown(raw["clock"]),
            "warnings": list(self.run_warnings(run)),
            "no_result": self.no_result(run, judgements),
            "cells": self.cells(run, judgements),
        }

    def no_result(self, run: Run, judgements: Sequence[Judged]) -> str:
        """Why a run has no result though cases were measured, and what would give it one; "" where it has."""
        void = [judged.case for judged in judgements if judged.is_void]
        if not void or any(judged.has_figures for judged in judgements):
            return ""
        causes = dict.fromkeys(
            _BY_CPU_MAX if why_throttled(case.throttled_us) else self.cause(case, run) for case in void
        )
        whys, helps = zip(*causes, strict=True)
        return f"{', and '.join(whys)}; what would help: {'; '.join(helps)}"

    def cells(self, run: Run, judgements: Iterable[Judged], **of_all: Any) -> list[dict[str, Any]]:
        """A cell for each case; `of_all` is the same in every one."""
        return [
            {
                **{name: getattr(judged.case, name) for name in judged.case.asked},
                "cpus": list(run.cpus),
                **of_all,
                "reason": judged.reason,
                "is_void": judged.is_void,
                **self.counted(run, judged),
                "warnings": [] if self.why_nothing(judged.case) else list(self.warnings(judged.case, run)),
            }
            for judged in judgements
        ]


def why_throttled(throttled_us: int | None) -> str:
    """Why the times of threads that a cgroup's cpu.max stopped for so long, or may have, are no result; or ""."""
    throttled = throttling(throttled_us)
    may = "" if throttled_us else "may "
    return f"void: {throttled}: the delays {may}hold that" if throttled else ""


def _miscounted(lists: Lists) -> str:
    """Which of these is no list of values and how often each came, or is of another number; "" where all are right."""
    for name, (values, expected) in lists.items():
        if len(values) % 2:
            return f"{name} is no list of values and how often each came"
        if expected is not None and (held := sum(values[1::2])) != expected:
            return f"{name} holds {held} of {expected}"
    return ""
