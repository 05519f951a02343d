"""The CPUs as a picture: a row of cores for each last-level cache, isolated cores in brackets."""

from collections.abc import Mapping, Sequence
from typing import Any

from tunectl.cpulist import format_cpulist
from tunectl.report.text.page import Part, TextPage, columns, line

MAX_CORES = 64  # with more, a picture of every core would fill several screens
_KINDS = {"performance": "P", "efficiency": "E"}
_INDENT = 4

Cpu = Mapping[str, Any]


def draw(page: TextPage, body: Mapping[str, Any]) -> None:
    """Prints every online CPU of a tunectl.show/1 body, by package and NUMA node."""
    cores = _cores(body["cpus"])
    memory = {node["node"]: node["memory_bytes"] for node in body["numa_nodes"]}
    places: dict[tuple[int | None, int | None], list[list[Cpu]]] = {}
    for core in cores:
        places.setdefault((core[0]["package"], core[0]["numa_node"]), []).append(core)
    if len(cores) > MAX_CORES:
        _summary(page, places, memory)
    else:
        for (package, node), members in places.items():
            line(page, "  ", (_place(package, node, memory), "dim"))
            _rows(page, members)
    for node in sorted(memory.keys() - {node for _, node in places}):
        line(page, "  ", (f"node {node}, {size(memory[node])}, without CPUs", "dim"))


def legend(body: Mapping[str, Any]) -> str:
    """What the brackets and commas of this host's picture mean; "" where it has none."""
    online = [cpu for cpu in body["cpus"] if cpu["online"]]
    roles = [{cpu["role"] for cpu in core} for core in _cores(online)]
    pictured = len(roles) <= MAX_CORES
    parts = ["[n] isolated"] if pictured and {"isolated"} in roles else []
    parts += ["(n,m) half of a core isolated"] if pictured and {"isolated", "housekeeping"} in roles else []
    parts += ["n,m SMT siblings"] if pictured and any(len(cpu["smt_siblings"]) > 1 for cpu in online) else []
    return "; ".join(parts)


def _cores(cpus: Sequence[Cpu]) -> list[list[Cpu]]:
    """The online CPUs by physical core."""
    found: dict[tuple[int, ...], list[Cpu]] = {}
    for cpu in cpus:
        if cpu["online"]:
            found.setdefault(tuple(cpu["smt_siblings"]), []).append(cpu)
    return list(found.values())


def _place(package: int | None, node: int | None, memory: Mapping[int, int | None]) -> str:
    parts = [f"package {package}"] if package is not None else []
    parts += [f"node {node}"] if node is not None else []
    bytes_ = memory.get(node) if node is not None else None
    parts += [size(bytes_)] if bytes_ else []
    return ", ".join(parts) or "one package"


def _rows(page: TextPage, cores: Sequence[Sequence[Cpu]]) -> None:
    groups: dict[tuple[str, str], list[Sequence[Cpu]]] = {}
    for core in cores:
        groups.setdefault((core[0]["last_level_cache"], core[0]["core_type"]), []).append(core)
    caches = {cache for cache, _ in groups}
    width = max(len(_name(core)) for core in cores) + 2
    for (_, kind), members in groups.items():
        label = _KINDS.get(kind, "L3" if len(caches) > 1 else "")
        lead = _INDENT + (len(label) + 1 if label else 0)
        fit = max((page.width - lead) // (width + 1), 1)
        for at in range(0, len(members), fit):
            parts: list[Part] = [" " * _INDENT]
            parts += [(label if at == 0 else " " * len(label), "dim"), " "] if label else []
            for core in members[at : at + fit]:
                parts += [*_cell(core, width), " "]
            line(page, *parts)


def _name(core: Sequence[Cpu]) -> str:
    return ",".join(str(cpu["cpu"]) for cpu in core)


def _cell(core: Sequence[Cpu], width: int) -> list[Part]:
    isolated = [cpu["role"] == "isolated" for cpu in core]
    name = _name(core)
    if all(isolated):
        return [" " * (width - len(name) - 2), (f"[{name}]", "bold cyan")]
    if any(isolated):  # SMT siblings share a core, so half a core is never quiet: this is always a mistake
        return [" " * (width - len(name) - 2), (f"({name})", "bold red")]
    return [" " * (width - len(name) - 1), name, " "]


def _summary(
    page: TextPage,
    places: Mapping[tuple[int | None, int | None], Sequence[Sequence[Cpu]]],
    memory: Mapping[int, int | None],
) -> None:
    rows = []
    for (package, node), cores in places.items():
        cpus = [cpu for core in cores for cpu in core]
        isolated, rest = (
            format_cpulist(cpu["cpu"] for cpu in cpus if cpu["role"] == role) or "-"
            for role in ("isolated", "housekeeping")
        )
        rows.append((_place(package, node, memory), str(len(cores)), isolated, rest))
    header = ("", "cores", "isolated", "housekeeping")
    columns(page, rows, indent=2, right=(1,), styles=("dim", "", "cyan"), header=header)


def size(number: int | None) -> str:
    """`32 KiB`, `1 MiB`, `125 GiB`: rounded to what a person compares."""
    if number is None:
        return "?"
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= step:
            value = number / step
            return f"{value:.0f} {unit}" if value >= 10 or value == round(value) else f"{value:.1f} {unit}"
    return f"{number} B"
