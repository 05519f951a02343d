"""The vocabulary: outcomes, settings, readings, changes, findings, plans. Pure data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from tunectl.cpulist import CpuSet, parse_cpulist
from tunectl.errors import UsageError
from tunectl.fix import NOTHING, Fix

_Facts = TypeVar("_Facts")
Scalar = str | int | float | bool | None


class Outcome(StrEnum):
    """What was found of one target; docs/interface.md, "Outcomes"."""

    COMPLIANT = "compliant"
    DRIFTED = "drifted"
    PENDING_REBOOT = "pending-reboot"
    UNSUPPORTED = "unsupported"
    REFUSED = "refused"
    UNREADABLE = "unreadable"
    WAIVED = "waived"


class NextBoot(StrEnum):
    """Will the next boot have what is asked for? Another answer than what is in force now."""

    SAME = "same"
    OTHER = "other"
    UNKNOWN = "unknown"


class Proved(StrEnum):
    """How it is known what the next boot will have. No outcome depends on it."""

    TRIED = "tried"
    DECLARED = "declared"


NEXT_BOOT = "nextboot"  # the finding that the next boot is not known, for all arguments together


class Severity(StrEnum):
    """What it costs while a target is not as it should be, the worst first. It decides an order, and never a verdict.

    The order of the members is the order on every page (docs/interface.md, "Severity").
    """

    STALL = "stall"  # a trading thread stands still for milliseconds: another thread's turn, a fault that goes to disk
    INTERRUPT = "interrupt"  # something runs on an isolated CPU for microseconds: a handler, a kernel thread, a tick
    SLOWER = "slower"  # each step takes longer: a lower clock, a CPU or a link that has to wake, a farther memory
    HYGIENE = "hygiene"  # nothing now: what keeps the other settings in force, and what is written down of them


def severity_of(word: object) -> Severity | None:
    """The severity that a document names; None for a word that this version does not know, and for none."""
    return _SEVERITIES.get(word) if isinstance(word, str) else None


_SEVERITIES = {severity.value: severity for severity in Severity}


_COSTS: dict[Severity | None, int] = {severity: place for place, severity in enumerate((*Severity, None))}


def cost(severity: Severity | None) -> int:
    """Its place among the severities, the worst first; that of no row comes last."""
    return _COSTS[severity]


class Lifetime(StrEnum):
    """From when on a written value counts: in this boot, or from the next one on."""

    RUNTIME = "runtime"
    BOOT = "boot"


class Match(StrEnum):
    """When an observed value satisfies the desired one."""

    EQUAL = "equal"
    WITHIN = "within"  # a CPU set that is not empty and holds no other CPU
    NO_OTHER = "no other"  # a CPU set that holds no other CPU, and may be empty
    COVERS = "covers"  # a CPU set (or isolcpus= value) that holds at least these
    AT_MOST = "at most"
    AT_LEAST = "at least"


def match_of(word: object) -> Match:
    """How a document compares; by equality where it does not say, or names what this version does not know."""
    return _MATCHES.get(word, Match.EQUAL) if isinstance(word, str) else Match.EQUAL


_MATCHES = {match.value: match for match in Match}


class Target(NamedTuple):
    """One thing that a knob sets. `instance` is the CPU, interrupt or device; "" where the host has only one."""

    knob: str
    instance: str = ""

    def __str__(self) -> str:
        """Its name in documents and in the journal: `irq.affinity[42]`, or only the knob's."""
        return f"{self.knob}[{self.instance}]" if self.instance else self.knob


def parse_target(name: str, knob: str = "") -> Target:
    """The target that a document, a journal record or a waiver names; the inverse of `str(target)`.

    `knob` is the knob where it is known already. Then the name may also be the instance alone.
    """
    knob = knob or name.partition("[")[0]
    if name == knob:
        return Target(knob)
    inner = name.removeprefix(f"{knob}[")
    return Target(knob, inner[:-1] if inner != name and inner.endswith("]") else name)


class Finding(NamedTuple):
    """One target judged: what was found, what was wanted, why it matters, what to do."""

    knob: str
    instance: str
    outcome: Outcome
    observed: Scalar = None
    desired: Scalar = None
    reason: str = ""
    fix: Fix = NOTHING
    harmful: bool = True  # of a refused write only: does the value that stays disturb an isolated CPU?
    points: Mapping[str, Scalar] | None = None  # of a boot argument: asked, next_boot, this_boot, kernel
    severity: Severity | None = None  # its row's; None only of what is no row's: a condition of the monitor
    match: Match = Match.EQUAL  # how `observed` and `desired` are compared
    next: NextBoot | None = None  # None of what no boot configuration decides
    next_from: str = ""  # the file or the owner that says so
    proved: Proved = Proved.DECLARED  # of `next`
    until: str = ""  # ISO date, the last day of its waiver: of one that has expired where the outcome is not `waived`

    @property
    def target(self) -> str:
        """The target's name, as documents have it."""
        return str(Target(self.knob, self.instance))


class Change(NamedTuple):
    """One write `apply` would make. `value` is typed, `observed` and `desired` are for people."""

    knob: str
    instance: str
    observed: Scalar
    desired: Scalar
    lifetime: Lifetime
    reason: str
    value: Any

    @property
    def target(self) -> str:
        """The target's name, as documents have it."""
        return str(Target(self.knob, self.instance))


class Plan(NamedTuple):
    """desired minus observed: what to write, and how every target was judged."""

    changes: tuple[Change, ...]
    findings: tuple[Finding, ...]
    reboot_required: bool


class State(StrEnum):
    """Could a target be read?"""

    READ = "read"
    ABSENT = "absent"
    MOOT = "moot"  # there is nothing that it could act on, or nothing is asked of it
    UNREADABLE = "unreadable"


class Reading(NamedTuple):
    """One target as the host shows it; `value` is typed by the knob's codec, and hashable."""

    knob: str
    instance: str  # "" where the host has only one
    state: State
    value: Any = None
    reason: str = ""
    errno: int | None = None  # of the failed read, where one failed
    wanted: Any = None  # the desired value, where the setting is a word whose meaning depends on the host
    write: Any = None  # what to write, where that is not the desired value alone (a union of CPU sets)
    blocked: str = ""  # why the desired value cannot be written on this host
    facts: object = None  # what the knob's own judge needs beside the value
    fix: Fix = NOTHING  # what makes an unreadable one readable

    def of_facts(self, kind: type[_Facts]) -> _Facts:
        """The facts as the type that the knob's driver makes; TypeError for any other."""
        if not isinstance(self.facts, kind):
            raise TypeError(f"{self.knob}: {self.facts!r} is no {kind.__name__}")
        return self.facts


class Held(NamedTuple):
    """What a run of apply left in force of one knob: it outlives the boot, so that a loss is seen."""

    value: Scalar  # as people see it, of the first target
    at: str  # UTC, RFC 3339; "" where an earlier version did not say
    kernel: str
    numbers: CpuSet  # the instances that are numbers: CPUs, nodes, interrupts
    names: tuple[str, ...]  # the other instances, each up to its first slash: interfaces, dies

    def covers(self, instance: str) -> bool:
        """Was this instance among them? Without an instance: was any?"""
        if instance.isdecimal():
            return int(instance) in self.numbers
        return not instance or instance.partition("/")[0] in self.names

    def with_instances(self, instances: Iterable[str]) -> Held:
        """The same knob, with these instances among its own."""
        given = set(filter(None, instances))
        numbers = frozenset(int(one) for one in given if one.isdecimal())
        names = {one.partition("/")[0] for one in given if not one.isdecimal()}
        return self._replace(numbers=self.numbers | numbers, names=tuple(sorted({*self.names, *names})))


class Setting(NamedTuple):
    """One desired value, with the reason the profile or the host file gives for it."""

    knob: str
    value: Any
    reason: str


class Waiver(NamedTuple):
    """An operator's written permission for one target to differ, until a date."""

    knob: str
    instance: str | None  # None: all instances of the knob; a list of numbers (2-3,8-15:1/2) stands for each
    reason: str
    until: str  # ISO date, the last day it holds
    origin: str = ""  # the file and the key that it stands under

    def covers(self, instance: str) -> bool:
        """Is this instance what it names, or among what it names?"""
        if self.instance in (None, instance):
            return True
        try:
            return instance.isdecimal() and int(instance) in parse_cpulist(self.instance or "")
        except UsageError:  # what it names has no numbers
            return False


class Trading(NamedTuple):
    """One of the operator's own threads, as the host file declares it: where it is, and how it should run."""

    name: str
    unit: str  # the systemd unit it belongs to, or ""
    command: str  # or the name of its process, or ""
    thread: str  # its own name (comm); "" for the process's first thread
    cpu: int
    policy: str  # other, batch, idle, fifo, rr, deadline
    priority: int  # 1 to 99 for fifo and rr, otherwise 0
    locked: bool  # its memory must be locked
    fed_by: tuple[str, ...]  # interfaces and other declared threads that give it its data
    spins: bool = False  # it never sleeps
    user: str = ""  # whose process a command is, by name or number; "" for anybody's


class Scope(NamedTuple):
    """The CPUs of this machine, and which of them the operator isolates. All sets hold logical CPU numbers."""

    present: CpuSet
    online: CpuSet
    isolated: CpuSet
    nr_cpus: int  # the kernel's nr_cpu_ids: one more than the last possible CPU

    @property
    def housekeeping(self) -> CpuSet:
        """Present CPUs that are not isolated."""
        return self.present - self.isolated


class HostId(NamedTuple):
    """Which host, and which of its boots."""

    hostname: str = ""
    kernel: str = ""
    boot_id: str = ""
    machine: str = ""
    microcode: str = ""
    bios: str = ""


class Document(NamedTuple):
    """A result to be reported: `name` is the schema's (verify, plan, ...), `body` its fields."""

    name: str
    host: HostId
    at: str  # UTC, RFC 3339
    body: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()
    verbose: int = 0  # how much more a person asked to see
    recorded: str = ""  # the directory of a recorded host; "" for this machine
    start: tuple[str, ...] = ("tunectl",)  # how its reader starts tunectl: the program, and what names the host
