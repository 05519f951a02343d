"""The host under check: what one run of checks knows of it. What takes time happens once, when first asked for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from tunectl.checking.ipis import IpiTrace, trace_events, trace_senders
from tunectl.checking.kthreads import Servers, read_servers
from tunectl.checking.measure import Spinning, measure, measure_beside, measure_spinning
from tunectl.checking.outcomes import Settled
from tunectl.checking.traders import paired
from tunectl.checking.visits import SWITCHES
from tunectl.checking.window import Window
from tunectl.cpulist import CpuSet, named_cpus
from tunectl.fix import to_decide
from tunectl.host.cards import Card, trading_cards
from tunectl.host.cpusets import CpuFacts, read_scope_facts
from tunectl.host.occupants import Occupant, Place, occupants
from tunectl.host.procs import Thread, find_threads, hidden_threads
from tunectl.host.refusals import ON_HOST
from tunectl.host.sysroot import Sysroot
from tunectl.hostfile.shape import Clock
from tunectl.model import Scope, Trading
from tunectl.tuners.conflicts import FoundTuner
from tunectl.tuners.find import read_tuners

Watched = TypeVar("Watched")


@dataclass(frozen=True)
class Subject:
    """One host, the CPUs the operator decided on, and the values that were asked for."""

    root: Sysroot
    scope: Scope
    window_s: float
    settings: Mapping[str, Any]
    on_progress: Callable[[str], None]
    interfaces: tuple[str, ...] = ()  # the NICs that carry market data
    trading: Sequence[Trading] = ()
    intrude: bool = False  # spin also where somebody else's threads run
    clock_limit_ns: float = Clock().limit_ns  # how far the clock may be from UTC

    @cached_property
    def facts(self) -> CpuFacts:
        """What the kernel says of its CPUs."""
        return read_scope_facts(self.root)

    @cached_property
    def cores(self) -> list[CpuSet]:
        """The physical cores with an isolated CPU; a CPU whose siblings are unknown is a core of its own."""
        cores = {self.facts.siblings.get(cpu) or frozenset({cpu}) for cpu in self.scope.isolated}
        return sorted(cores, key=min)

    @cached_property
    def cards(self) -> tuple[Card, ...]:
        """The network cards that carry market data, graphics cards and accelerators."""
        return trading_cards(self.root, self.interfaces)

    @cached_property
    def hidden(self) -> str:
        """Why threads that are not found may run all the same; "" where all can be seen."""
        return hidden_threads(self.root)

    @cached_property
    def tuners(self) -> list[FoundTuner] | Exception:
        """Who else tunes this host. It is asked while checks are collected: an error is kept for the check to tell."""
        try:
            return read_tuners(self.root, self.interfaces)
        except Exception as error:
            return error

    @cached_property
    def servers(self) -> Servers:
        """The kernel threads that serve interrupts, as they are scheduled now."""
        return read_servers(self.root)

    @cached_property
    def trading_threads(self) -> Mapping[str, tuple[Thread, ...]]:
        """The threads that fit each declaration of the host file, by its name."""
        return paired(self.trading, {trading.name: tuple(find_threads(self.root, trading)) for trading in self.trading})

    @cached_property
    def window(self) -> Window | Settled:
        """The counters over some seconds in which nothing was done to the host, or why there are none."""
        declared = {
            (thread.pid, thread.tid) for trading_thread in self.trading_threads.values() for thread in trading_thread
        }
        self.on_progress(f"watching the host for {self.window_s:g} s")
        return _or_settled(lambda: measure(self.root, self.window_s, declared))

    @cached_property
    def ipi_trace(self) -> IpiTrace:
        """Half a second of who interrupts other CPUs, as the kernel's trace says it."""
        if self.untraced:
            return self.untraced
        self.on_progress("tracing who interrupts the isolated CPUs")
        return trace_senders(self.root, self.scope.housekeeping & self.scope.online)

    @cached_property
    def visit_trace(self) -> str:
        """What was put on the isolated CPUs in a window's time, as the kernel's trace says it; "" without a trace."""
        if self.untraced:
            return ""
        self.on_progress("tracing what runs on the isolated CPUs")
        return trace_events(self.root, SWITCHES, self.scope.isolated & self.scope.online, self.window_s).text

    @cached_property
    def untraced(self) -> IpiTrace | None:
        """Why nothing may be traced; None where it may.

        To trace interrupts every CPU a few times, so it is not done while a thread of somebody else is at work on an
        isolated one, nor while a declared thread is there at all.
        """
        runs = self.window.runs if isinstance(self.window, Window) else []
        at_work = {run.thread.cpu for run in runs if run.ran and not run.thread.kernel}
        if not self.root.live:
            return IpiTrace("")
        if self.hidden:
            return IpiTrace("", f"{self.hidden}: nothing is traced, for that could interrupt one at work", ON_HOST)
        if any(self.trading_threads.values()) or at_work & self.scope.isolated:
            why = "while a thread is at work there, nothing is traced: that would interrupt it"
            again = to_decide("check again as root while no thread is at work on an isolated CPU")
            return IpiTrace("", why, again)
        return None

    @cached_property
    def taken(self) -> dict[int, list[Occupant]]:
        """The isolated CPUs that somebody else's threads want: nothing of ours goes there."""
        if self.intrude or isinstance(self.window, Settled):
            return {}
        names = {(thread.pid, thread.tid): name for name, there in self.trading_threads.items() for thread in there}
        place = Place.of(self.facts, self.scope.isolated & self.scope.online, self.scope.isolated)
        found = occupants(self.window.before.threads, self.window.after.threads, place, names)
        # On a recorded host nothing of ours runs anyway: only a declared thread is known to be a spinner.
        return {cpu: there for cpu, there in found.items() if self.root.live or there[0].name}

    def spinning_on(self, cpu: int) -> Spinning | Settled:
        """What this CPU did while a thread spun there: one of somebody else's where there is one, else ours."""
        if there := self.taken.get(cpu):
            return self.window if isinstance(self.window, Settled) else measure_beside(self.window, cpu, there[0])
        return self.spinning

    @cached_property
    def spinning(self) -> Spinning | Settled:
        """The same, while a thread of tunectl-probe spins on each isolated CPU that nobody else wants."""
        cpus = self.scope.isolated & self.scope.online - self.taken.keys()
        self.on_progress(f"spinning on {named_cpus(cpus)} for {self.window_s:g} s")
        return _or_settled(lambda: measure_spinning(self.root, cpus, self.window_s, self.intrude))


def _or_settled(watch: Callable[[], Watched]) -> Watched | Settled:
    # A failure is kept as well: on a host that stands still, each check would wait for it again.
    try:
        return watch()
    except Settled as settled:
        return settled
