"""The causes of gaps on a page: grouped by what held the CPU longest, so that few rows hold all of them. Pure."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tunectl.shapes import Cause, Jitter
from tunectl.wording import nanoseconds

MOST_ROWS = 20  # with the one that adds the others up
_OF_A_CPU = re.compile(r"/u?\d.*")  # kworker/3:1, ksoftirqd/3, migration/3
# Of the kinds that have many names; the remainder of a kind is one row.
_MANY = {
    "timer": "timers",
    "irq": "interrupts",
    "ipi": "inter-processor interrupts",
    "softirq": "softirqs",
    "nmi": "NMIs",
    "thread": "threads",
    "work": "work of kernel threads",
    "unknown": "gaps that are not known",
}


@dataclass(frozen=True)
class Group:
    """Gaps of one kind and name, all CPUs together. `percent` is of the time."""

    cause: str
    count: int
    total_ns: int
    max_ns: int
    percent: float = 0.0


_Key = tuple[str, str]  # kind, name


def grouped(result: Jitter) -> list[Group]:
    """At most MOST_ROWS, most time first, and a last one with their sum; none where causes were not traced."""
    named: dict[_Key, Group] = {}
    for cpu in result.cpus:
        for row in cpu.causes or ():
            name = _name(row)
            group = Group(name, row.count, row.total_ns, row.max_ns)
            before = named.get((row.kind, name))
            named[row.kind, name] = _sum(name, (before, group)) if before else group
    if not named:
        return []
    rows = sorted(_few(named), key=lambda row: -row.total_ns)
    whole = _sum("all gaps", rows)
    return [replace(row, percent=100 * row.total_ns / (whole.total_ns or 1)) for row in (*rows, whole)]


def names_of(result: Jitter) -> dict[str, str]:
    """For the label of a single gap the name under which `grouped` counts it."""
    return {row.cause: _name(row) for cpu in result.cpus for row in cpu.causes or ()}


def of_any_cpu(cause: str) -> str:
    """`local timer + thread kworker`: without the CPU that a thread's name ends in."""
    return " + ".join(_OF_A_CPU.sub("", part) for part in cause.split(" + "))


def _name(row: Cause) -> str:
    return _OF_A_CPU.sub("", row.name) if row.kind == "thread" else row.name


def totals(result: Jitter) -> list[str]:
    """What stands beside the table, and is no gap's cause: the totals that the hypervisor and control groups count."""
    kinds: Counter[str] = Counter()
    for cpu in result.cpus:
        for row in cpu.causes or ():
            kinds[row.kind] += row.total_ns
    stolen, throttled = sum(cpu.counted.steal_ns for cpu in result.cpus), result.throttled_ns
    said = []
    if stolen:
        most = min(stolen, kinds["outside"] + kinds["unknown"])
        text = f"at most {nanoseconds(most)} of what is not the kernel or not known was the hypervisor's"
        said.append(f"{text}: it kept these CPUs for {nanoseconds(stolen)} in all (steal)")
    if throttled:
        most = min(max(throttled - kinds["throttle"], 0), kinds["thread"] + kinds["work"] + kinds["unknown"])
        text = f"at most {nanoseconds(most)} of what threads had, or is not known, was throttling"
        said.append(f"{text}: the probe's control groups were throttled for {nanoseconds(throttled)} in all (cpu.stat)")
    return said


def _few(named: Mapping[_Key, Group]) -> list[Group]:
    """The groups with most time, and of the others one for each kind."""
    ordered = sorted(named.items(), key=lambda item: (-item[1].total_ns, item[0]))
    for shown in range(min(len(ordered), MOST_ROWS - 1), -1, -1):
        rest: dict[str, list[Group]] = {}
        for (kind, _), row in ordered[shown:]:
            rest.setdefault(kind, []).append(row)
        if shown + len(rest) < MOST_ROWS:
            break
    few = [row for _, row in ordered[:shown]]
    for kind, rows in rest.items():
        few.append(rows[0] if len(rows) == 1 else _sum(f"{len(rows)} other {_MANY.get(kind, kind)}", rows))
    return few


def _sum(cause: str, rows: Sequence[Group]) -> Group:
    count, total_ns = sum(row.count for row in rows), sum(row.total_ns for row in rows)
    return Group(cause, count, total_ns, max(row.max_ns for row in rows))
