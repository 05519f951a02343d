"""The host's CPUs as a grid: node by node and core by core, with role, clock and the longest gap of each. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from tunectl.cpulist import parse_isolcpus, parse_shown
from tunectl.errors import UsageError
from tunectl.model import Outcome
from tunectl.shapes import Cpu, CpuSets, Jitter, JudgedTarget
from tunectl.wording import ghz, nanoseconds


def cpu_grid(
    sets: CpuSets, probe: Jitter | None, clocks: Mapping[str, Any], findings: Iterable[JudgedTarget] = ()
) -> list[dict[str, Any]]:
    """[{name, cores: [[CPU]]}], a row a node; `clocks` is what a preflight's evidence has of each CPU, and `findings`
    say which CPUs the kernel isolates."""
    measured = {cpu.cpu: cpu for cpu in (probe.cpus if probe else ())}
    every = _cpus(sets.online) | set(measured)
    nodes = [_cpus(cpulist) & every for cpulist in sets.nodes]
    alone = every - set().union(*nodes)
    siblings = {cpu: tuple(sorted(core)) for core in map(_cpus, sets.cores) for cpu in core}
    limit = probe.budget.limits.get("max_ns") if probe else None
    wanted, in_force = _cpus(sets.isolated), set().union(*map(_isolated, findings))
    roles = {cpu: "isolated" if cpu in in_force else "to be isolated" for cpu in wanted}
    rest = "housekeeping" if sets.online else "probed"
    khz = {int(cpu): _clock(clock) for cpu, clock in clocks.items() if cpu.isdecimal()}
    grid = []
    for name, cpus in [*((f"node {number}", of) for number, of in enumerate(nodes)), ("", alone)]:
        cores = dict.fromkeys(siblings.get(cpu, (cpu,)) for cpu in sorted(cpus))
        cells = [[_cell(cpu, roles.get(cpu, rest), measured.get(cpu), limit, khz) for cpu in core] for core in cores]
        if cells:
            grid.append({"name": name, "cores": cells})
    return grid


def _isolated(finding: JudgedTarget) -> set[int]:
    """The CPUs that it shows to be out of the scheduler's load balancing: by this boot's isolcpus=, or a partition."""
    if finding.knob == "cpuset.isolated":
        return _cpus(str(finding.observed)) if finding.outcome is Outcome.COMPLIANT else set()
    if finding.knob != "boot.isolcpus" or finding.observed is None:
        return set()
    try:
        isolated = parse_isolcpus(str(finding.observed))
    except UsageError:
        return set()
    return set(isolated.cpus) if "domain" in isolated.flags else set()


def _cell(cpu: int, role: str, of: Cpu | None, limit: float | None, khz: Mapping[int, float]) -> dict[str, Any]:
    clock = khz.get(cpu) or (of and of.core_khz and min(of.core_khz.before, of.core_khz.after)) or 0
    is_over = of is not None and limit is not None and of.max_ns > limit
    return {
        "cpu": cpu,
        "role": role,
        "look": "plain" if of is None else "bad" if is_over else "good" if limit else "plain",
        "longest": nanoseconds(of.max_ns) if of else "",
        "clock": ghz(clock) if clock else "",
    }


def _clock(clock: Any) -> float:
    """In kHz, the lower one of before and after; an older document has one number."""
    known: Iterable[Any] = clock.values() if isinstance(clock, Mapping) else (clock,)
    return min((float(khz) for khz in known if isinstance(khz, int | float) and khz > 0), default=0.0)


def _cpus(cpulist: str) -> set[int]:
    """None where a document has no cpulist there."""
    try:
        return set(parse_shown(cpulist))
    except UsageError:
        return set()
