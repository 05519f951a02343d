"""What the sources of one host keep between snapshots: its open files, their last content, the events that came."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from tunectl.cpulist import CpuSet
from tunectl.host.cpus import Cpu, read_cpus
from tunectl.host.cpusets import CpuFacts, read_cpu_list, read_scope_facts
from tunectl.host.devices import DeviceEvent
from tunectl.host.nonintrusive import NonIntrusiveSysroot
from tunectl.model import Scope
from tunectl.monitor.interrupt_table import InterruptTable
from tunectl.monitor.model import Sample
from tunectl.monitor.moments import boottime
from tunectl.monitor.open_files import allow_many_files
from tunectl.tuning.inspection import Inspection

T = TypeVar("T")
ONLINE = "sys/devices/system/cpu/online"
ALONE = "the daemon's alone, not seen here: its journal and /metrics have it"
_MANY_EVENTS = 1000  # a storm of them must not fill the memory; one is enough to read everything again


class Lasting:
    """What outlives a reload, each with what the host file asked for: the sentinel, the application's socket."""

    def __init__(self) -> None:
        self._there: dict[str, tuple[Hashable, Any]] = {}

    def get(self, name: str, asked: Hashable, make: Callable[[Any], Any]) -> Any:
        """What is there for this wish. What is there for another one is closed first: it may have the same address."""
        before, there = self._there.get(name, (None, None))
        if there is None or before != asked:
            self.close(name)
            self._there[name] = (asked, make(there))
        return self._there[name][1]

    def close(self, *names: str) -> None:
        """Closes these; without a name, all."""
        for name in names or tuple(self._there):
            if name in self._there:
                _close(self._there.pop(name)[1])


def _close(kept: Any) -> None:
    if callable(close := getattr(kept, "close", None)):
        close()


class WatchedHost:
    """One host that is watched. One thread uses it; only announce() may be called from another.

    Everything is read through `root`, which refuses what would interrupt an isolated CPU. `now` counts seconds
    (CLOCK_BOOTTIME) and may be replaced in a test, which then sets the pace.
    """

    def __init__(
        self,
        inspection: Inspection,
        *,
        now: Callable[[], float] = boottime,
        lasting: Lasting | None = None,
        beside: bool = False,
    ) -> None:
        """`lasting` is what a reload hands on; its owner closes it. `beside`: the daemon has what only one can have."""
        self.room = allow_many_files()  # descriptors this process may have
        facts = read_scope_facts(inspection.root)
        self.isolated: CpuSet = inspection.config.scope.isolated
        # What the kernel isolates is left alone, too, whatever the host file says.
        self.quiet: CpuSet = self.isolated | facts.quiet
        self.root = NonIntrusiveSysroot(inspection.root.root, self.quiet)
        self.inspection = inspection._replace(root=self.root)
        self.config = inspection.config
        self.now = now
        self.beside = beside
        self.is_once = False  # after two looks it is left alone: nothing is kept to compare a third one with
        self.taken_at = 0.0  # now() at the beginning of this snapshot
        self.snapshots = 0
        self.table = InterruptTable(self.root, self.isolated, now)
        self.table_read = False  # in this snapshot
        self.events: tuple[DeviceEvent, ...] = ()  # that came since the last snapshot
        self.online: CpuSet = facts.online
        self.changed = True  # CPUs or devices came or went since the last snapshot, or this is the first
        self.cpus_changed = True  # CPUs did
        self.clocks_asked: CpuSet = frozenset()  # of these the probe is to measure the clock, once
        self.suspicious = False  # somebody may have written: read every knob again, at once
        self.doubtful: set[str] = set()  # knobs that the kernel may just have changed: read these again
        self._announced: deque[DeviceEvent] = deque(maxlen=_MANY_EVENTS)
        self._kept: dict[str, Any] = {}
        self._lasting = Lasting() if lasting is None else lasting
        self._owns_lasting = lasting is None

    @property
    def scope(self) -> Scope:
        """Who is who, with the CPUs that are on now."""
        return self.config.scope._replace(online=self.online)

    def announce(self, event: DeviceEvent) -> None:
        """A device event, from any thread: the next snapshot knows of it."""
        self._announced.append(event)

    def keep(self, name: str, make: Callable[[], T], *, anew: bool = False) -> T:
        """What a source wants to find again in the next snapshot; made at the first, and again if `anew`."""
        if anew:
            self._kept.pop(name, None)
        if name not in self._kept:
            self._kept[name] = make()
        found: T = self._kept[name]
        return found

    def keep_on(self, name: str, asked: Hashable, make: Callable[[T | None], T]) -> T:
        """As keep(), but a reload whose host file asks for the same finds it again.

        `make` is handed what was there for another wish; it is closed.
        """
        found: T = self._lasting.get(name, asked, make)
        return found

    def let_go(self, name: str) -> None:
        """Closes what keep_on() has of this name: nobody asks for it any more."""
        self._lasting.close(name)

    def close(self) -> None:
        """Ends what sources started, but what a reload hands on. Everything else ends with this object."""
        for kept in self._kept.values():
            _close(kept)
        self._kept.clear()
        if self._owns_lasting:
            self._lasting.close()

    def begin(self) -> None:
        """A new snapshot: which CPUs are on, and which events came. Never raises."""
        self.taken_at = self.now()
        self.table_read = False
        self.events = tuple(self._announced.popleft() for _ in range(len(self._announced)))
        online = read_cpu_list(self.root, ONLINE) or self.online
        announced = any(event.subsystem == "cpu" for event in self.events)
        self.cpus_changed = announced or online != self.online or not self.snapshots
        self.changed = self.cpus_changed or bool(self.events)
        if self.cpus_changed:
            self.online = online
            for name in ("facts", "cpus", "packages"):
                self.__dict__.pop(name, None)
        self.snapshots += 1

    @cached_property
    def facts(self) -> CpuFacts:
        """The CPU sets and sibling groups, since CPUs last came or went."""
        return read_scope_facts(self.root)

    @cached_property
    def cpus(self) -> dict[int, Cpu]:
        """The CPUs that are on, with package, siblings and base frequency, since CPUs last came or went."""
        cpus = read_cpus(self.root, self.facts, (), self.quiet, with_caches=False)
        return {cpu.cpu: cpu for cpu in cpus if cpu.online}

    @property
    def judged(self) -> CpuSet:
        """The CPUs whose speed matters: the isolated ones that are on; every CPU where none is isolated."""
        return self.isolated & self.online or self.online

    @cached_property
    def packages(self) -> dict[int, CpuSet]:
        """The CPUs that are on, by package; 0 where the firmware does not number them."""
        found: dict[int, set[int]] = {}
        for cpu in self.cpus.values():
            found.setdefault(cpu.package or 0, set()).add(cpu.cpu)
        return {package: frozenset(members) for package, members in sorted(found.items())}


class Source(NamedTuple):
    """One way to learn of the host. It keeps what it needs between snapshots in `host.keep`."""

    name: str
    reads: tuple[str, ...]  # paths, as in the catalogue
    disturbs: str  # whom reading interrupts, and why not an isolated CPU
    valid: str  # when what it reads says something about now
    read: Callable[[WatchedHost], Iterable[Sample]]
