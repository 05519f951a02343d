"""A CPU that is judged beside a running engine: by what the kernel counts there, for nothing of ours goes to it.

Interrupts, lost turns and stolen time can break a limit. They cannot keep one: the length of an interruption is not
counted anywhere, so percentiles stay unknown and no GO follows.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tunectl.host.cpus import STEAL, parse_cpu_times
from tunectl.host.interrupts import Interrupts, arrivals, parse_interrupts
from tunectl.host.occupants import Occupant
from tunectl.host.procs import Thread, read_thread
from tunectl.host.sysroot import Sysroot
from tunectl.wording import beside_limit, seconds_of

# A thread that sleeps has timers of its own to wake it: its interrupts are nobody's fault. One that spins has none.
_SPINS = 0.9


class Beheld(NamedTuple):
    """What the kernel had counted on some CPUs, and of the threads that run there, at one moment."""

    at: float  # time.monotonic()
    interrupts: Interrupts
    steal_s: Mapping[int, float]
    threads: Mapping[tuple[int, int], Thread]


class Beside(NamedTuple):
    """One CPU for a while."""

    cpu: int
    threads: tuple[str, ...]
    seconds: float
    spins: bool  # did one thread keep the CPU busy?
    interrupts: int
    lost_turns: int  # how often its threads lost the CPU against their will
    waited_s: float  # how long they were runnable and did not run
    steal_s: float  # taken by the hypervisor

    @property
    def interruptions_per_s(self) -> float:
        """Each interrupt and each lost turn is an interruption of the thread there, at least one."""
        return (self.interrupts + self.lost_turns) / self.seconds

    @property
    def stolen_ppm(self) -> float:
        """Of the time, at least."""
        return (self.waited_s + self.steal_s) / self.seconds * 1e6

    @property
    def shown(self) -> str:
        """In a sentence."""
        stolen = seconds_of(self.waited_s + self.steal_s)
        return (
            f"CPU {self.cpu} beside {'; '.join(self.threads)}: {self.interrupts} interrupts, {self.lost_turns} lost "
            f"turns, {stolen} stolen in {seconds_of(self.seconds)}; percentiles: not measured"
        )

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "cpu": self.cpu,
            "threads": list(self.threads),
            "duration_s": round(self.seconds, 3),
            "spins": self.spins,
            "interrupts": self.interrupts,
            "lost_turns": self.lost_turns,
            "waited_ns": round(self.waited_s * 1e9),
            "steal_ns": round(self.steal_s * 1e9),
            "percentiles": "not measured",
        }


def behold(root: Sysroot, at: float, found: Mapping[int, Iterable[Occupant]], ticks_per_s: int) -> Beheld:
    """The counters now. `ticks_per_s` is the unit of /proc/stat."""
    table = parse_interrupts(root.get_text("proc/interrupts"))
    keys = {(occupant.thread.pid, occupant.thread.tid) for there in found.values() for occupant in there}
    threads = {key: thread for key in keys if (thread := read_thread(root, *key, affinity=True))}
    times = parse_cpu_times(root.get_text("proc/stat"))
    steal_s = {cpu: ticks[STEAL] / ticks_per_s for cpu, ticks in times.items() if cpu in found and len(ticks) > STEAL}
    return Beheld(at, table, steal_s, threads)


def compare(before: Beheld, after: Beheld, found: Mapping[int, Iterable[Occupant]]) -> list[Beside]:
    """What happened on each CPU between the two. Pure."""
    seconds = max(after.at - before.at, 1e-9)
    judged = []
    for cpu, there in sorted(found.items()):
        keys = [(occupant.thread.pid, occupant.thread.tid) for occupant in there]
        seen = [key for key in keys if key in before.threads and key in after.threads]
        pairs = [(before.threads[key], after.threads[key]) for key in seen]
        counted = Beside(
            cpu,
            tuple(occupant.shown for occupant in there),
            seconds,
            # A CPU without a tick charges its thread late: one that never gave the CPU up spun all the time.
            any(now.run_s - then.run_s > _SPINS * seconds or _never_left(then, now) for then, now in pairs),
            sum(arrivals(before.interrupts, after.interrupts, cpu).values()),
            sum(max(now.preempted - then.preempted, 0) for then, now in pairs),
            sum(max(now.waited_s - then.waited_s, 0.0) for then, now in pairs),
            max(after.steal_s.get(cpu, 0.0) - before.steal_s.get(cpu, 0.0), 0.0),
        )
        judged.append(counted)
    return judged


def _never_left(then: Thread, now: Thread) -> bool:
    return (then.state, now.state) == ("R", "R") and now.slices - then.slices == now.preempted - then.preempted


def broken(judged: Iterable[Beside], limits: Mapping[str, float]) -> list[str]:
    """A sentence for each limit that the counts alone show to be broken. Pure."""
    lines: list[str] = []
    rate, ppm = limits.get("interruptions_per_s"), limits.get("stolen_ppm")
    for counted in judged:
        where = f"CPU {counted.cpu}, beside {'; '.join(counted.threads)}"
        if rate is not None and counted.spins and counted.interruptions_per_s > rate:
            stands, allowed = beside_limit("interruptions_per_s", counted.interruptions_per_s, rate)
            lines.append(
                f"{where}: {counted.interrupts} interrupts and {counted.lost_turns} lost turns in "
                f"{seconds_of(counted.seconds)}, {stands}, allowed {allowed} (interruptions_per_s)"
            )
        if ppm is not None and counted.stolen_ppm > ppm:
            waited, steal = map(seconds_of, (counted.waited_s, counted.steal_s))
            stands, allowed = beside_limit("stolen_ppm", counted.stolen_ppm, ppm)
            lines.append(
                f"{where}: it waited {waited} for its CPU and the hypervisor took {steal}, "
                f"{stands}, allowed {allowed} (stolen_ppm)"
            )
    return lines
