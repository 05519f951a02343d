"""What a row of the table is, and what a driver must be able to do. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

from tunectl.bootloader.cmdline import Arg
from tunectl.cpulist import CpuSet
from tunectl.fix import NOTHING, Fix, to_decide
from tunectl.host.modprobe import Barred
from tunectl.host.refusals import Refusals
from tunectl.host.sysroot import Sysroot
from tunectl.knobs.codecs import Codec, satisfies
from tunectl.model import (
    Change,
    Held,
    Lifetime,
    Match,
    NextBoot,
    Outcome,
    Reading,
    Scalar,
    Scope,
    Severity,
    State,
    Target,
)

_T = TypeVar("_T")


@dataclass(eq=False)
class View:
    """What a driver sees: the host's files, the operator's CPU sets and interfaces.

    - `texts`: the desired values by knob, as the kernel is given them, for drivers that write several at once
    - `invocation`: how this tunectl is started again, for the service at boot
    - `interfaces`: the NICs that carry market data
    - `bootloader`: which boot loader the host file names; "" for none
    - `journaled`: for each boot file that we wrote, what stood there before and what we wrote last
    - `settling`: a reading may interrupt an isolated CPU. Only the first apply of a boot may do that
    - `memo`: what was asked of it `once`
    """

    root: Sysroot
    scope: Scope
    texts: Mapping[str, str] = field(default_factory=dict)
    invocation: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    bootloader: str = ""
    journaled: Mapping[str, tuple[str | None, str]] = field(default_factory=dict)
    settling: bool = False
    memo: dict[object, object] = field(default_factory=dict)


def once(ask: Callable[[View], _T]) -> Callable[[View], _T]:
    """The same question, worked out once of each view: the rows of one facility share one reading of a large file."""

    @wraps(ask)
    def asked(view: View) -> _T:
        if ask not in view.memo:
            view.memo[ask] = ask(view)
        return cast(_T, view.memo[ask])

    return asked


def if_readable(reading: Reading, denied: Refusals) -> Reading:
    """The reading; unreadable, with what was denied, where it was made without files that this user may not read."""
    if not denied or reading.state is State.UNREADABLE:
        return reading
    return Reading(reading.knob, reading.instance, State.UNREADABLE, reason=str(denied), errno=denied.errno)


def missing(name: str, view: View, path: str) -> Reading | None:
    """The reading of a row that needs this directory: absent without it, unreadable where that cannot be known."""
    with view.root.noting() as denied:
        if view.root.exists(path):
            return None
    return if_readable(Reading(name, "", State.ABSENT, reason=f"this host has no /{path}"), denied)


def with_unseen(reason: str, denied: str) -> str:
    """The reason of a drift that is known anyway, with what this user may not read besides."""
    return f"{reason}; what else there is, is not known: {denied}" if denied else reason


class Step(NamedTuple):
    """One file to write, for one or more changes. What the journal and apply work on."""

    # "value": a kernel attribute; "affinity", "scheduling": a thread's; "file": a whole file; "link"; "removal";
    # "edit": words in another's file; "directory"
    kind: str
    path: str
    content: str
    changes: tuple[Change, ...]
    codec: Codec | None = None  # of the file's text, where it is a kernel attribute
    refusable: bool = False  # EIO or EPERM, twice: the kernel moves this one itself
    commands: tuple[str, ...] = ()  # names in tuning/commands.py, run on a live host once the file stands
    resets: tuple[str, ...] = ()  # attributes that the kernel may reset along with it; restore brings them back
    read_back: Callable[[Sysroot], str | None] | None = None  # says what is wrong with the written file, in use
    pristine: str | None = None  # of an edit: the file as it would be without us


class Judgement(NamedTuple):
    """What a row's own judge says of one reading."""

    outcome: Outcome
    observed: Scalar
    desired: Scalar
    reason: str = ""
    fix: Fix = NOTHING
    changeable: bool = True
    harmful: bool = True
    points: dict[str, Scalar] | None = None
    next: NextBoot | None = None
    next_from: str = ""


class Absence(NamedTuple):
    """Why a host may have no such knob any more, and what that means where the knob was in force before."""

    arguments: tuple[str, ...] = ()  # boot arguments that take it away: `cpufreq.off`, `intel_pstate=disable`
    hiding: tuple[str, ...] = ()  # boot arguments with which the kernel has it, and nobody can set it
    modules: tuple[str, ...] = ()  # modules of the kernel of which one provides it
    drivers: tuple[str, ...] = ()  # others of which one may provide it, built in or as modules
    of_drivers: tuple[str, ...] = ()  # boot arguments that take one of the drivers away, and leave room for others
    harmless: str = ""  # why nothing is lost then; "" where something is
    with_cpu: bool = False  # each target is a CPU: an argument that leaves the machine without the CPU takes it away
    with_tsc: bool = False  # it is about the TSC: so does an argument with which that is not the clock
    with_cgroup2: bool = False  # it is of control groups version 2: so does one with which systemd mounts version 1

    @property
    def by_words(self) -> bool:
        """May a word of the kernel's command line take it away, so that something is lost?"""
        words = self.arguments or self.hiding or self.modules or self.drivers
        return not self.harmless and bool(words or self.with_cpu or self.with_tsc or self.with_cgroup2)


JOURNAL_GONE = "is gone"  # apply ran here
JOURNAL_HIDDEN = "cannot be read"  # by this user
JOURNAL_IN_PART = "is not whole"  # damaged, or an older one


class NextWord(NamedTuple):
    """A word of the next boot's command line that this boot had not."""

    arg: Arg
    cpus: CpuSet  # those that the machine will not have with it
    clock: bool  # the TSC is the clock now, and will not be
    version1: bool  # control groups are version 2 now, and will not be
    place: str  # FILE:LINE with a leading slash, "" where no line is known
    fix: Fix  # takes the word out


class Facts(NamedTuple):
    """What the journal and the clock know and a reading does not hold. Judges get it as data."""

    boot_id: str = ""
    live: bool = True
    refused: frozenset[Target] = frozenset()  # what the kernel refused in this boot
    configured_in: str = ""  # the boot_id in which we last wrote the boot loader's configuration
    irq_counts: Mapping[str, int | None] = MappingProxyType({})  # on isolated CPUs, of refused IRQs; None: unreadable
    applied: bool = True  # does the journal know of a write of this boot, or may it not be read?
    moved: frozenset[Target] = frozenset()  # what the kernel let us write in this boot
    managed_pending: bool = False  # isolcpus=managed_irq takes effect with the next boot
    managed_kept: frozenset[int] = frozenset()  # the CPUs that isolcpus=managed_irq keeps free in this boot
    held: Mapping[str, Held] = MappingProxyType({})  # by knob what the last apply left in force
    arguments: tuple[Arg, ...] = ()  # the kernel's own of this boot
    modules: frozenset[str] = frozenset()  # in this kernel; empty where that is not known
    kernel: str = ""  # its release
    barred: tuple[Barred, ...] = ()  # modules that are kept from being loaded
    unseen: str = ""  # what of these lines this user was denied
    journal: str = ""  # why nobody knows what apply noted: one of JOURNAL_...; "" where it is known
    next_words: tuple[NextWord, ...] = ()
    not_owned: Mapping[str, str] = MappingProxyType({})  # by facility why the guest of a virtual machine has none


class Driver(Protocol):
    """How a knob's targets are enumerated, read and written. A driver holds paths, never policy."""

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """Every target of the knob on this host, as it is. Never raises for what a host may lack."""

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """The files to write for consecutive changes of rows that share this kind of driver, in order."""

    def describe(self) -> tuple[str, ...]:
        """The files it reads and writes, with a leading slash, for the catalogue."""

    def reads(self) -> tuple[str, ...]:
        """Every file it reads, as shell patterns without a leading slash: what a recording of a host must hold."""


@runtime_checkable
class Lasting(Protocol):
    """A driver that can say whether what it wrote is still there, and take it back (value None)."""

    def stands(self, root: Sysroot) -> bool:
        """Is what an earlier apply wrote still there?"""


Batch = Sequence[tuple["Knob", Change]]


class Knob(NamedTuple):
    """One row: a thing that can be tuned, where it lives, how its text is read, and why anyone would."""

    name: str
    driver: Driver
    codec: Codec
    severity: Severity
    why: str
    source: str
    risk: str = "none known"
    match: Match = Match.EQUAL
    lifetime: Lifetime = Lifetime.RUNTIME
    after: tuple[str, ...] = ()
    absence: Absence = Absence()
    # What every kernel starts with where nothing says otherwise, as findings show it (docs/kernel-facts.md); None where
    # that depends on the machine or on how the kernel was built.
    boots_with: Scalar = None
    # A judge may use the reading's instance only if it has facts: equal readings without facts are judged once.
    judge: Callable[[Knob, Any, Reading, Facts], Judgement] | None = None

    @property
    def facility(self) -> str:
        """The part of the name before the dot: the kernel's own name for the area."""
        return self.name.partition(".")[0]


def judge_value(knob: Knob, desired: Any, reading: Reading) -> Judgement:
    """By the value alone: the judge of every row that has none of its own."""
    shown = knob.codec.show(reading.value), knob.codec.show(desired)
    if satisfies(knob.match, reading.value, desired):
        return Judgement(Outcome.COMPLIANT, *shown)
    if reading.blocked:
        fix = to_decide(f"ask for another value of {knob.name} in the host file, or {knob.name} = unmanaged")
        return Judgement(Outcome.DRIFTED, *shown, reason=reading.blocked, fix=fix, changeable=False)
    return Judgement(Outcome.DRIFTED, *shown, reading.reason or knob.why)
