"""The operator's own threads: as declared and found, what they did in a window, what they poll. Reads nothing."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from tunectl.checking.kthreads import Servers, outranked
from tunectl.checking.outcomes import unknown, unsupported
from tunectl.checking.window import Trespass, Window
from tunectl.command import as_data
from tunectl.cpulist import CpuSet
from tunectl.fix import Fix, to_decide
from tunectl.host.cpus import NumaNode
from tunectl.host.interrupts import Irq
from tunectl.host.openfiles import Polled
from tunectl.host.procs import Thread
from tunectl.host.scheduling import Scheduling, scheduling_of
from tunectl.model import Trading
from tunectl.shapes import Nic
from tunectl.wording import plural


class Trader(NamedTuple):
    """One declaration, and the threads that fit it: one, where all is well."""

    declared: Trading
    threads: tuple[Thread, ...]

    @property
    def thread(self) -> Thread:
        """The thread; a check that needs it has no say where it does not run."""
        return self.threads[0] if self.threads else unsupported(f"{whose(self.declared)} does not run now")


def whose(declared: Trading) -> str:
    """A declaration in words: `thread rx of unit feed.service`."""
    process = f"unit {as_data(declared.unit)}" if declared.unit else f"command {as_data(declared.command)}"
    process += f" of user {as_data(declared.user)}" if declared.user else ""
    return f"thread {as_data(declared.thread)} of {process}" if declared.thread else f"the first thread of {process}"


def paired(declared: Sequence[Trading], found: Mapping[str, tuple[Thread, ...]]) -> dict[str, tuple[Thread, ...]]:
    """The threads of each declaration, where several declare threads of one name: each takes the one on its CPU.

    A pool of workers has one name and a CPU each. What no pin tells apart is shared out in order if the
    numbers agree: those threads are interchangeable, and the check says where each of them has to go.
    """
    result = dict(found)
    kinds: dict[tuple[str, str, str, str], list[Trading]] = {}
    for trading in declared:
        kinds.setdefault((trading.unit, trading.command, trading.user, trading.thread), []).append(trading)
    for group in kinds.values():
        if len(group) > 1:
            result.update(_shared_out(group, found[group[0].name]))
    return result


def _shared_out(group: Sequence[Trading], threads: Sequence[Thread]) -> dict[str, tuple[Thread, ...]]:
    taken: dict[str, tuple[Thread, ...]] = {}
    for trading in group:
        own = tuple(thread for thread in threads if thread.allowed == frozenset({trading.cpu}))
        if own:
            taken[trading.name] = own
    rest = [thread for thread in threads if not any(thread in own for own in taken.values())]
    waiting = [trading.name for trading in group if trading.name not in taken]
    if len(rest) <= len(waiting):
        alone = [*((thread,) for thread in rest), *[()] * (len(waiting) - len(rest))]
        return taken | dict(zip(waiting, alone, strict=True))
    return taken | {name: tuple(rest) for name in waiting}


def to_tell_apart(
    declared: Trading, threads: Sequence[Thread], units: Mapping[int, str], users: Mapping[int, Collection[int]]
) -> Fix:
    """What to decide where a declaration fits several threads. `units` are the services of their processes, by pid."""
    services = {units.get(thread.pid, "") for thread in threads}
    if not declared.unit and "" not in services and len(services) == len(threads):
        keys = " or ".join(f'unit = "{as_data(units[thread.pid])}" (tid {thread.tid})' for thread in threads)
        return to_decide(f"decide which one it is, and name its unit instead of the command: {keys}")
    owners = {max(users[thread.pid]) for thread in threads if users.get(thread.pid)}
    if declared.command and not declared.user and len(owners) == len(threads):
        keys = " or ".join(f'user = "{max(users[thread.pid])}" (tid {thread.tid})' for thread in threads)
        return to_decide(f"decide which one it is, and say whose: {keys}")
    names = {thread.comm for thread in threads}
    if not declared.thread and len(names) == len(threads):
        keys = " or ".join(f'thread = "{as_data(thread.comm)}" (tid {thread.tid})' for thread in threads)
        return to_decide(f"decide which one it is: {keys}")
    others = [thread.tid for thread in threads if thread.allowed != frozenset({declared.cpu})]
    which = ", ".join(map(str, others if 0 < len(others) < len(threads) else [thread.tid for thread in threads[1:]]))
    return to_decide(
        f"nothing in the host file can tell them apart: have the program give tid {which} another name "
        f"(pthread_setname_np(3), prctl(2) PR_SET_NAME); or, if each is a trading thread, declare each of them in "
        f"[[threads]] with the CPU it is pinned to"
    )


def strangers(trespasses: Iterable[Trespass], traders: Iterable[Trader], cpu: int) -> list[Trespass]:
    """Those that are not declared for this CPU."""
    own = {(thread.pid, thread.tid) for trader in traders if trader.declared.cpu == cpu for thread in trader.threads}
    return [trespass for trespass in trespasses if (trespass.run.thread.pid, trespass.run.thread.tid) not in own]


def neighbours(trader: Trader, traders: Iterable[Trader], core: CpuSet) -> list[str]:
    """The other declared threads on the same physical core."""
    others = (one.declared for one in traders if one.declared.name != trader.declared.name)
    return [f"{as_data(other.name)} on CPU {other.cpu}" for other in others if other.cpu in core]


def local_nodes(nodes: Sequence[NumaNode], cpus: CpuSet) -> frozenset[int]:
    """For each CPU the node its memory should lie on: its own, or, where that has none, the nearest that has some."""
    numbers = [node.node for node in nodes]
    found = set()
    for node in nodes:
        if not node.cpus & cpus:
            continue
        far = dict(zip(numbers, node.distances, strict=False))
        rich = [node.node for node in nodes if node.memory_bytes]
        found.add(node.node if node.memory_bytes or not rich else min(rich, key=lambda one: far.get(one, 255)))
    return frozenset(found)


def starved(
    trader: Trader, traders: Iterable[Trader], nics: Iterable[Nic], irqs: Mapping[int, Irq], servers: Servers
) -> list[str]:
    """What feeds a real-time thread and would have to run on its CPU.

    `nics` are those that feed it. An interrupt that has a thread is served in that, and is not kept from it by a thread
    of a lower priority.
    """
    declared = trader.declared
    cpu = declared.cpu
    threaded = {server.thread.interrupt for server in servers.of_interrupts}
    found = []
    for nic in nics:
        here = [irqs[irq] for irq in nic.irqs if irq in irqs and cpu in irqs[irq].where]
        found += [f"interrupt {irq.irq} of {as_data(nic.name)}" for irq in here if irq.irq not in threaded]
        below = outranked(servers.of(cpu, here), declared_scheduling(declared))
        found += [f"{server} of {as_data(nic.name)}" for server in below]
    for other in traders:
        if other.declared.name in declared.fed_by:
            here_too = (thread for thread in other.threads if thread.allowed == frozenset({cpu}) or thread.cpu == cpu)
            found += [f"{as_data(other.declared.name)} (tid {thread.tid})" for thread in here_too]
    return found


def declared_scheduling(declared: Trading) -> Scheduling:
    """How a thread is declared to be scheduled."""
    return Scheduling(declared.policy, declared.priority)


STARVED = 0.01  # of the window: what waits less than this for its CPU is fed from elsewhere soon enough
_STOPPED = ("T", "t")  # by a signal, by a debugger (fs/proc/array.c)


class Span(NamedTuple):
    """One thread before and after."""

    before: Thread
    after: Thread


def span_of(window: Window, trader: Trader) -> Span:
    """The declared thread. Settled as unknown where it is several, or was not the same one all the time."""
    thread = trader.thread
    if len(trader.threads) > 1:
        unknown(f"{whose(trader.declared)} is {len(trader.threads)} threads: see check.trading_thread")
    span = same_thread(window, thread)
    if not span:
        again = to_decide("check again while it runs")
        unknown(f"{as_data(trader.declared.name)} (tid {thread.tid}) began or ended while it was watched", again)
    return span


def same_thread(window: Window, thread: Thread) -> Span | None:
    """A thread before and after; None where it was not there all the time."""
    key = (thread.pid, thread.tid)
    before, after = window.before.threads.get(key), window.after.threads.get(key)
    same = before and after and after.alive and before.began == after.began
    return Span(before, after) if same and before and after else None


def sleeps(span: Span) -> int | None:
    """How often it gave its CPU up of its own accord, 1 at least where it slept all along; None where nothing says."""
    before, after = span
    if before.slept is None or after.slept is None:
        return None
    times = max(after.slept - before.slept, 0)
    return max(times, 1) if {before.state, after.state} <= {"S", "D"} else times


def is_stopped(span: Span) -> bool:
    """Was it stopped at an end of the window? A stop counts as giving the CPU up."""
    return bool({span.before.state, span.after.state} & {*_STOPPED})


class Waiting(NamedTuple):
    """A thread that feeds another, and how long it was ready to run on that one's CPU and did not, seconds."""

    thread: Thread
    seconds: float


def counts_waits(window: Window) -> bool:
    """Does this kernel count how often threads run, and how long they wait? Not without CONFIG_SCHED_INFO."""
    return any(thread.slices for thread in window.after.threads.values())


def kept_waiting(window: Window, trader: Trader, feeders: list[Thread]) -> list[Waiting]:
    """Which of these wait for the trader's CPU for more than STARVED of the window."""
    spans = [span for feeder in feeders if (span := same_thread(window, feeder))]
    here = [span for span in spans if trader.declared.cpu in (span.before.cpu, span.after.cpu)]
    waits = [Waiting(span.after, _waited(span, trader, window.seconds)) for span in here]
    return [wait for wait in waits if wait.seconds > STARVED * window.seconds]


def _waited(span: Span, trader: Trader, seconds: float) -> float:
    before, after = span
    still = (before.slices, before.run_s, before.cpu_s) == (after.slices, after.run_s, after.cpu_s)
    # The kernel counts a wait when it ends: who is ready at both ends and never ran has waited all along. A spinner
    # that nobody interrupts has no new slice either, but it is not behind a real-time thread on the same CPU.
    if still and before.state == after.state == "R" and scheduling_of(after).rank <= scheduling_of(trader.thread).rank:
        return seconds
    return max(after.waited_s - before.waited_s, 0.0)


def feeding_threads(window: Window, trader: Trader, traders: list[Trader], irqs: frozenset[int]) -> list[Thread]:
    """The threads it is declared to be fed by, and the threaded interrupts and NAPI threads of its interfaces."""
    named = {thread for other in traders if other.declared.name in trader.declared.fed_by for thread in other.threads}
    keys = {(thread.pid, thread.tid) for thread in named}
    begins = (*(f"irq/{irq}-" for irq in sorted(irqs)), *(f"napi/{nic}-"[:15] for nic in trader.declared.fed_by))
    return [
        thread
        for key, thread in window.after.threads.items()
        if key in keys or (thread.kernel and thread.comm.startswith(begins))
    ]


def dropped(window: Window, trader: Trader, traders: list[Trader]) -> list[str]:
    """What came for it in the window and was thrown away: at its CPU's backlog, and at sockets of its feeders."""
    cpu, (before, after) = trader.declared.cpu, (window.before, window.after)
    backlog = after.backlog_drops.get(cpu, 0) - before.backlog_drops.get(cpu, 0)
    found = (
        [f"the backlog of CPU {cpu} dropped {backlog} packets"] if cpu in before.backlog_drops and backlog > 0 else []
    )
    fed = {trader.declared.name, *trader.declared.fed_by}
    pids = {thread.pid: thread.comm for other in traders if other.declared.name in fed for thread in other.threads}
    for (pid, _), socket in after.sockets.items():
        earlier = before.sockets.get((pid, socket.inode))
        lost = socket.drops - earlier.drops if earlier else 0
        if pid in pids and lost > 0:
            found.append(f"UDP port {socket.port} of {pids[pid]} (pid {pid}) dropped {lost} datagrams")
    return found


def loose(threads: list[Thread], traders: list[Trader], isolated: CpuSet) -> list[Thread]:
    """Those that may run on isolated CPUs and are not declared."""
    own = {(thread.pid, thread.tid) for trader in traders for thread in trader.threads}
    return [
        thread
        for thread in threads
        if (thread.pid, thread.tid) not in own and thread.allowed and thread.allowed & isolated
    ]


class Defaults(NamedTuple):
    """What a socket and an epoll instance poll by default, us: net.core.busy_read and busy_poll."""

    read: int
    poll: int

    def __str__(self) -> str:
        on = {"busy_read": self.read, "busy_poll": self.poll}
        return " ".join(f"{name}={usecs}" for name, usecs in on.items() if usecs)


def pollers(polled: Iterable[Polled], defaults: Defaults) -> list[Polled]:
    """Those that are really polled: an epoll instance by its own parameters, or by default."""
    return [one for one in polled if one.usecs or (one.is_epoll and defaults.poll)]


def cpus_for(threads: Sequence[Thread]) -> int:
    """On how many CPUs at once these threads can be; on one each where nobody says where they may run."""
    places: list[CpuSet | None] = [thread.allowed for thread in threads]
    if not all(places):
        return len(threads)
    return min(len(threads), len(frozenset().union(*(place for place in places if place))))


def named(polling: Sequence[Polled]) -> str:
    """`2 sockets and 1 epoll instance`."""
    sockets, epolls = sum(not polled.is_epoll for polled in polling), sum(polled.is_epoll for polled in polling)
    parts = [plural(sockets, "socket")] * bool(sockets) + [plural(epolls, "epoll instance")] * bool(epolls)
    return " and ".join(parts)
