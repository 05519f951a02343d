"""Attributes in /proc and /sys: one for the host, one for each CPU where the path holds `{cpu}`, or one for each
entry of a directory where it holds `{name}`."""

from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.errors import UsageError, shortened
from tunectl.host.cgroup import partitioned
from tunectl.host.cpusets import ISOLATED, NOHZ_FULL, read_cpu_list
from tunectl.host.sysroot import ABSENT_ERRNOS, Sysroot
from tunectl.knobs.codecs import Codec
from tunectl.knobs.row import Batch, Knob, Step, View, once
from tunectl.model import Reading, State

# isolcpus=domain and nohz_full=, as this boot's kernel took them
KERNEL_ISOLATED = (ISOLATED, NOHZ_FULL)


class PseudoFile(NamedTuple):
    """A kernel attribute that is a value."""

    path: str
    cpus: str = "online"  # which CPUs `{cpu}` runs over; see instances()
    words: tuple[tuple[str, str], ...] = ()  # a desired word, and the file that gives its value on this CPU
    choices: str = ""  # the file that lists what may be written
    disturbs: bool = False  # reading it interrupts the CPU it belongs to (docs/kernel-facts.md)
    interrupts: Callable[[View, str], CpuSet] | None = None  # the CPUs that reading an instance interrupts
    # Why nobody can see whether the attribute exists, and the errno of who may not; "" where one can.
    hidden: Callable[[View], tuple[str, int | None]] | None = None
    facts: Callable[[View], Any] | None = None  # what the row's own judge needs beside the value
    idle: Callable[[View], str] | None = None  # why the attribute exists and has no effect here; "" where it has one
    among: Callable[[View], Collection[str]] | None = None  # the only entries that `{name}` stands for

    def instances(self, view: View) -> list[str]:
        """One empty instance for a file of the host; otherwise the CPU numbers, or the entries that have the file."""
        if "{name}" in self.path:
            names = self.among(view) if self.among else view.root.listdir(self.path.partition("/{name}")[0])
            return [name for name in sorted(names) if view.root.exists(self.file(name))]
        if "{cpu}" not in self.path:
            return [""]
        scope = view.scope
        cpus = {
            "online": scope.online,
            "isolated": scope.online & scope.isolated,
            "isolated, also offline": scope.present & scope.isolated,
        }
        return [str(cpu) for cpu in sorted(cpus[self.cpus])]

    def file(self, instance: str) -> str:
        """The path of one instance."""
        return _filled(self.path, instance)

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading an instance; a single absent one where no instance has the file."""
        if self.idle and (why := self.idle(view)):
            yield Reading(knob.name, "", State.MOOT, reason=why)
            return
        why, number = self.hidden(view) if self.hidden else ("", None)
        if why:
            yield Reading(knob.name, "", State.UNREADABLE, reason=why, errno=number)
            return
        readings = [self._read(knob, view, instance, want) for instance in self.instances(view)]
        if all(reading.state is State.ABSENT for reading in readings):  # also where there is no instance
            yield Reading(knob.name, "", State.ABSENT, reason=f"this host has no {self.describe()[0]}")
            return
        yield from readings

    def _read(self, knob: Knob, view: View, instance: str, want: Any) -> Reading:
        disturbed: CpuSet = frozenset()  # the isolated CPUs that a reading on this host would interrupt
        if view.root.live and not view.settling and (self.disturbs or self.interrupts):
            asked = self.interrupts(view, instance) if self.interrupts else frozenset({int(instance)})
            disturbed = asked & _undisturbed(view)
        # Absent is not an error: to look whether the file is there disturbs nobody.
        if disturbed and view.root.exists(self.file(instance)):
            reason = f"reading it would interrupt CPU {format_cpulist(disturbed)}, which is isolated"
            return Reading(knob.name, instance, State.UNREADABLE, reason=reason)
        read_result = read_value(view.root, self.file(instance), knob.codec)
        if read_result.state is not State.READ:
            return Reading(knob.name, instance, *read_result)
        wanted, blocked = self._wanted(knob, view, instance, want)
        facts = self.facts(view) if self.facts else None
        value = read_result.value
        if isinstance(value, frozenset):  # a mask covers every CPU that may ever be plugged in
            value &= view.scope.present
        return Reading(knob.name, instance, State.READ, value, wanted=wanted, blocked=blocked, facts=facts)

    def _wanted(self, knob: Knob, view: View, instance: str, want: Any) -> tuple[Any, str]:
        """What a desired word stands for on this CPU; and why it cannot be written, where that is so."""
        if not isinstance(want, str):
            return None, ""
        for word, path in self.words:
            if word == want:
                read_result = read_value(view.root, _filled(path, instance), knob.codec)
                return read_result.value, read_result.reason
        offered = view.root.get(_filled(self.choices, instance)).split() if self.choices else []
        if offered and want not in [word.strip("[]") for word in offered]:
            return None, f"this kernel offers only {', '.join(offered)}"
        return None, ""

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """One write a change."""
        for knob, change in batch:
            assert isinstance(knob.driver, PseudoFile)
            path = knob.driver.file(change.instance)
            yield Step("value", path, knob.codec.encode(change.value), (change,), knob.codec)

    def describe(self) -> tuple[str, ...]:
        """The path, with `N` for a CPU."""
        return ("/" + self.file("N"),)

    def reads(self) -> tuple[str, ...]:
        """The attribute, and those that say what may be written."""
        paths = (self.path, *(path for _, path in self.words), *filter(None, (self.choices,)))
        return tuple(path.replace("{cpu}", "[0-9]*").replace("{name}", "*") for path in paths)


def _filled(path: str, instance: str) -> str:
    return path.replace("{cpu}", instance).replace("{name}", instance)


def is_spared(driver: object) -> bool:
    """Is an attribute of this driver left unread where reading it would interrupt an isolated CPU?"""
    if isinstance(driver, FirstOf):
        return any(is_spared(file) for file, _ in driver.options)
    return isinstance(driver, PseudoFile) and (driver.disturbs or driver.interrupts is not None)


class FirstOf(NamedTuple):
    """The first of several attributes that this host has; drivers name the same switch differently."""

    options: tuple[tuple[PseudoFile, Codec], ...]

    def _option(self, view: View) -> tuple[PseudoFile, Codec] | None:
        for file, codec in self.options:
            if any(view.root.exists(file.file(instance)) for instance in file.instances(view)):
                return file, codec
        return None

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """The readings of the first attribute there is."""
        option = self._option(view)
        if option is None:
            names = " nor ".join(self.describe())
            yield Reading(knob.name, "", State.ABSENT, reason=f"this host has neither {names}")
            return
        for instance in option[0].instances(view):
            yield Reading(knob.name, instance, *read_value(view.root, option[0].file(instance), option[1]))

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """One write a change, in the attribute's own sense of on and off."""
        for knob, change in batch:
            assert isinstance(knob.driver, FirstOf)
            if option := knob.driver._option(view):
                file, codec = option
                yield Step("value", file.file(change.instance), codec.encode(change.value), (change,), codec)

    def describe(self) -> tuple[str, ...]:
        """Every path it may be."""
        return tuple(path for file, _ in self.options for path in file.describe())

    def reads(self) -> tuple[str, ...]:
        """Of every option."""
        return tuple(path for file, _ in self.options for path in file.reads())


class ReadResult(NamedTuple):
    """What reading one file gave: the fields of a Reading, without its knob and instance."""

    state: State
    value: Any = None
    reason: str = ""
    errno: int | None = None


def read_value(root: Sysroot, path: str, codec: Codec) -> ReadResult:
    """One attribute, decoded. Never raises for what a host may lack."""
    try:
        text = root.read_value(path)
    except OSError as error:
        if error.errno in ABSENT_ERRNOS:
            return ReadResult(State.ABSENT, None, f"this host has no /{path}")
        return ReadResult(State.UNREADABLE, None, f"/{path}: {error.strerror}", error.errno)
    try:
        return ReadResult(State.READ, codec.decode(text))
    except (ValueError, UsageError) as error:
        return ReadResult(State.UNREADABLE, None, shortened(f"/{path} holds {text[:60]!r}: {error}"))


@once
def _undisturbed(view: View) -> CpuSet:
    """The CPUs that no reading may interrupt: those the kernel isolates, and those of an isolated partition."""
    return kernel_isolated(view) | partitioned(view.root)


@once
def kernel_isolated(view: View) -> CpuSet:
    """The CPUs the kernel isolates now, by isolcpus=domain or nohz_full=."""
    return frozenset[int]().union(*(read_cpu_list(view.root, one) for one in KERNEL_ISOLATED))
