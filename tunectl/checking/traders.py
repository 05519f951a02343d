"""The operator's own threads, as declared and as found: what the checks ask of them. Reads nothing by itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from tunectl import kinds
from tunectl.checking.irqthreads import Servers, outranked
from tunectl.checking.judges import Trespass
from tunectl.checking.outcomes import unsupported
from tunectl.command import argv, as_data
from tunectl.cpulist import CpuSet
from tunectl.fix import Fix, to_decide, to_type
from tunectl.host.irqs import Irq
from tunectl.host.nics import Nic
from tunectl.host.numa import NumaNode
from tunectl.host.procs import Thread
from tunectl.host.scheduling import Scheduling, scheduling_of
from tunectl.model import Trading

_CHRT = {"other": "-o", "fifo": "-f", "rr": "-r", "batch": "-b", "idle": "-i"}


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
    for one in declared:
        kinds.setdefault((one.unit, one.command, one.user, one.thread), []).append(one)
    for group in kinds.values():
        if len(group) > 1:
            result.update(_shared_out(group, found[group[0].name]))
    return result


def _shared_out(group: Sequence[Trading], threads: Sequence[Thread]) -> dict[str, tuple[Thread, ...]]:
    taken: dict[str, tuple[Thread, ...]] = {}
    for one in group:
        own = tuple(thread for thread in threads if thread.allowed == frozenset({one.cpu}))
        if own:
            taken[one.name] = own
    rest = [thread for thread in threads if not any(thread in own for own in taken.values())]
    waiting = [one.name for one in group if one.name not in taken]
    if len(rest) <= len(waiting):
        alone = [*((thread,) for thread in rest), *[()] * (len(waiting) - len(rest))]
        return taken | dict(zip(waiting, alone, strict=True))
    return taken | {name: tuple(rest) for name in waiting}


def to_tell_apart(
    declared: Trading, threads: Sequence[Thread], units: Mapping[int, str], users: Mapping[int, Collection[int]]
) -> Fix:
    """What to decide where a declaration fits several threads. `units` are the services of their processes, by pid."""
    services = {units.get(one.pid, "") for one in threads}
    if not declared.unit and "" not in services and len(services) == len(threads):
        keys = " or ".join(f'unit = "{as_data(units[one.pid])}" (tid {one.tid})' for one in threads)
        return to_decide(f"decide which one it is, and name its unit instead of the command: {keys}")
    owners = {max(users[one.pid]) for one in threads if users.get(one.pid)}
    if declared.command and not declared.user and len(owners) == len(threads):
        keys = " or ".join(f'user = "{max(users[one.pid])}" (tid {one.tid})' for one in threads)
        return to_decide(f"decide which one it is, and say whose: {keys}")
    names = {one.comm for one in threads}
    if not declared.thread and len(names) == len(threads):
        keys = " or ".join(f'thread = "{as_data(one.comm)}" (tid {one.tid})' for one in threads)
        return to_decide(f"decide which one it is: {keys}")
    others = [one.tid for one in threads if one.allowed != frozenset({declared.cpu})]
    which = ", ".join(map(str, others if 0 < len(others) < len(threads) else [one.tid for one in threads[1:]]))
    return to_decide(
        f"nothing in the host file can tell them apart: have the program give tid {which} another name "
        f"(pthread_setname_np(3), prctl(2) PR_SET_NAME); or, if each is a trading thread, declare each of them in "
        f"[[threads]] with the CPU it is pinned to"
    )


def misplaced(declared: Trading, thread: Thread) -> list[tuple[str, Fix]]:
    """What is not as declared of where and how a thread runs: (what, what to do about it)."""
    found = []
    tid, cpu = thread.tid, declared.cpu
    if thread.allowed != frozenset({cpu}):
        where = "may run on CPUs " + ",".join(map(str, sorted(thread.allowed))) if thread.allowed else "is not pinned"
        found.append((f"it {where}, not on CPU {cpu} alone", to_type(kinds.move_thread(tid, str(cpu)))))
    seen, wanted = scheduling_of(thread), declared_scheduling(declared)
    if seen != wanted:
        found.append((f"it is scheduled as {seen}, not {wanted}", _reschedule(declared, tid)))
    return found


def _reschedule(declared: Trading, tid: int) -> Fix:
    if declared.policy == "deadline":  # needs a runtime and a deadline, which the host file does not have
        return to_decide(f"have the program ask for it, with its runtime and deadline: sched_setattr(2) of tid {tid}")
    return to_type(argv("sudo", "chrt", _CHRT[declared.policy], "-p", str(declared.priority), str(tid)))


def strangers(found: Iterable[Trespass], traders: Iterable[Trader], cpu: int) -> list[Trespass]:
    """Those that are not declared for this CPU."""
    own = {(one.pid, one.tid) for trader in traders if trader.declared.cpu == cpu for one in trader.threads}
    return [one for one in found if (one.run.thread.pid, one.run.thread.tid) not in own]


def neighbours(trader: Trader, traders: Iterable[Trader], core: CpuSet) -> list[str]:
    """The other declared threads on the same physical core."""
    others = (one.declared for one in traders if one.declared.name != trader.declared.name)
    return [f"{as_data(one.name)} on CPU {one.cpu}" for one in others if one.cpu in core]


def local_nodes(nodes: Sequence[NumaNode], cpus: CpuSet) -> frozenset[int]:
    """For each CPU the node its memory should lie on: its own, or, where that has none, the nearest that has some."""
    numbers = [node.node for node in nodes]
    found = set()
    for node in nodes:
        if not node.cpus & cpus:
            continue
        far = dict(zip(numbers, node.distances, strict=False))
        rich = [one.node for one in nodes if one.memory_bytes]
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
    threaded = {one.thread.interrupt for one in servers.of_interrupts}
    found = []
    for nic in nics:
        here = [irqs[irq] for irq in nic.irqs if irq in irqs and cpu in irqs[irq].where]
        found += [f"interrupt {irq.irq} of {as_data(nic.name)}" for irq in here if irq.irq not in threaded]
        below = outranked(servers.of(cpu, here), declared_scheduling(declared))
        found += [f"{one} of {as_data(nic.name)}" for one in below]
    for other in traders:
        if other.declared.name in declared.fed_by:
            here_too = (one for one in other.threads if one.allowed == frozenset({cpu}) or one.cpu == cpu)
            found += [f"{as_data(other.declared.name)} (tid {one.tid})" for one in here_too]
    return found


def declared_scheduling(declared: Trading) -> Scheduling:
    """How a thread is declared to be scheduled."""
    return Scheduling(declared.policy, declared.priority)
