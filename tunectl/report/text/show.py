"""`tunectl show`: the host at a glance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tunectl.report.escape import printable
from tunectl.report.text.cpugrid import draw, legend
from tunectl.report.text.findings import plural
from tunectl.report.text.hardware import render_hardware
from tunectl.report.text.layout import columns, heading, line, prose
from tunectl.report.text.sheet import Sheet

MAX_IRQS = 8
MAX_NICS = 16
_LABEL = 12
_OUTCOME_STYLES = {"drifted": "red", "pending-reboot": "yellow", "unreadable": "magenta", "compliant": "green"}


def render(body: Mapping[str, Any], sheet: Sheet) -> None:
    """Prints a tunectl.show/1 body."""
    _header(sheet, body)
    explained = legend(body)
    heading(sheet, "CPUs", (f"   {explained}" if explained else "", "dim"))
    draw(sheet, body)
    if offline := body["cpu_sets"]["offline"]:
        prose(sheet, offline, indent=2, label="offline ")
    render_hardware(sheet, body)
    _network(sheet, body)
    _interrupts(sheet, body)
    _tuned(sheet, body)
    _managers(sheet, body["managers"])


def _header(sheet: Sheet, body: Mapping[str, Any]) -> None:
    system, sets = body["system"], body["cpu_sets"]
    name = printable(system["hostname"] or "this host")
    known = [system["os"], f"Linux {system['kernel']}" if system["kernel"] else "", system["machine"]]
    line(sheet, (name, "bold"), "  ", ", ".join(printable(part) for part in known if part))
    if machine := ", ".join(part for part in (system["model"], _virtual(system["hypervisor"])) if part):
        prose(sheet, machine)
    online = [cpu for cpu in body["cpus"] if cpu["online"]]
    cores = {tuple(cpu["smt_siblings"]) for cpu in online}
    counts = [plural(len(online), "CPU"), plural(len(cores), "core")]
    counts += [f"{max(map(len, cores))} threads a core"] if max(map(len, cores)) > 1 else []
    counts.append(plural(len({cpu["package"] for cpu in online}), "package"))
    counts += [plural(len(body["numa_nodes"]), "NUMA node")] if body["numa_nodes"] else []
    prose(sheet, ", ".join(counts))
    rows = [("isolated", f"{sets['isolated']}, from {body['roles_from']}")] if sets["isolated"] else []
    rows += [("housekeeping", sets["housekeeping"])] if sets["isolated"] else []
    if body["roles_from"] != "the kernel":
        booted = {"isolcpus": sets["kernel_isolated"], "nohz_full": sets["nohz_full"]}
        said = ", ".join(f"{name} {cpus}" for name, cpus in booted.items() if cpus)
        rows.append(("this boot", said or "isolates none"))
    if loader := body.get("bootloader"):
        rows.append(("boot loader", f"{loader['name']}, by {', '.join(loader['evidence'])}".removesuffix(", by ")))
    columns(sheet, [(label, printable(text)) for label, text in rows], styles=("dim", "cyan"))
    if not sets["isolated"]:
        prose(sheet, "no CPU is isolated; `tunectl propose` says which could be", style="yellow")


def _virtual(hypervisor: str) -> str:
    if not hypervisor:
        return ""
    return "a virtual machine" if hypervisor == "unknown" else f"a virtual machine ({hypervisor})"


def _network(sheet: Sheet, body: Mapping[str, Any]) -> None:
    nics = body["nics"]
    if not nics:
        return
    heading(sheet, "Network")
    where = {irq["irq"]: irq for irq in body["irqs"]}
    rows = []
    for nic in nics[:MAX_NICS]:
        known = nic["numa_node"] is not None
        node = f"node {nic['numa_node']}" if known else "node ?" if len(body["numa_nodes"]) > 1 else ""
        speed = f"{nic['speed_mbps'] / 1000:g} Gb/s" if nic["speed_mbps"] else "-"
        irqs = plural(len(nic["irqs"]), "IRQ")
        hits = sum(where[number]["hits_isolated"] for number in nic["irqs"] if number in where)
        irqs += f", {hits} to isolated CPUs" if hits else ""
        rows.append((printable(nic["name"]), printable(nic["driver"]), speed, printable(nic["state"]), node, irqs))
    columns(sheet, rows, indent=2, right=(2,), styles=("cyan",))
    if len(nics) > MAX_NICS:
        prose(sheet, f"and {len(nics) - MAX_NICS} more", indent=2)


def _interrupts(sheet: Sheet, body: Mapping[str, Any]) -> None:
    irqs = body["irqs"]
    heading(sheet, "Interrupts")
    managed = sum(irq["managed"] == "yes" for irq in irqs)
    told = all(irq["managed"] != "unknown" for irq in irqs)
    said = (
        f"{plural(len(irqs), 'line')}, {managed:,} of them moved by the kernel alone"
        if told
        else plural(len(irqs), "line")
    )
    hits = sorted((irq for irq in irqs if irq["hits_isolated"]), key=lambda irq: (-irq["count_isolated"], irq["irq"]))
    if body["cpu_sets"]["isolated"]:
        said += f"; {len(hits):,} may arrive on isolated CPUs" if hits else "; none arrives on an isolated CPU"
    prose(sheet, said, indent=2)
    movers = {"yes": "kernel-managed", "no": "movable", "unknown": ""}
    rows = [
        (
            str(irq["irq"]),
            printable(irq["name"]),
            f"CPU {irq['effective'] or irq['affinity']}",
            f"{irq['count_isolated']:,} since boot",
            movers[irq["managed"]],
        )
        for irq in hits[:MAX_IRQS]
    ]
    columns(sheet, rows, indent=4, right=(0, 3), styles=("", "cyan"))
    if len(hits) > MAX_IRQS:
        prose(sheet, f"and {len(hits) - MAX_IRQS:,} more; --format json lists each", indent=4)


def _tuned(sheet: Sheet, body: Mapping[str, Any]) -> None:
    if counts := {outcome: count for outcome, count in (body.get("tuned") or {}).items() if count}:
        heading(sheet, "Tuned")
        parts = [
            (f"{count:,} {outcome.replace('-', ' ')}", _OUTCOME_STYLES.get(outcome, ""))
            for outcome, count in counts.items()
        ]
        separated = [part for each in parts for part in (", ", each)][1:]
        line(sheet, "  ", *separated, "; `tunectl verify` lists each")


def _managers(sheet: Sheet, managers: Sequence[Mapping[str, Any]]) -> None:
    heading(sheet, "Who else tunes this host")
    working = [manager for manager in managers if manager["active"] or manager["enabled"]]
    for manager in working:
        program = manager.get("program", True)
        state = "runs" if manager["active"] else "starts at boot"
        said = "; ".join(filter(None, (state, manager["detail"]))) if program else manager["detail"]
        prose(sheet, said, indent=2, label=f"{manager['name']}  ", hang=_LABEL)
        known = manager["settings"] or not manager["overwrites"]
        what = ", ".join(manager["overwrites"]) or "nothing that tunectl sets"
        prose(sheet, f"{'writes' if known else 'may overwrite'} {what}", indent=2 + _LABEL, style="yellow")
    if idle := [manager["name"] for manager in managers if manager not in working]:
        prose(sheet, f"installed, but neither active nor enabled: {', '.join(idle)}", indent=2, style="dim")
    if not managers:
        prose(sheet, "nobody that tunectl knows of", indent=2)
