"""`tunectl show`: the host at a glance, and what it is made of."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tunectl.model import Outcome
from tunectl.report.escape import printable
from tunectl.report.findings import WORDS
from tunectl.report.text.cpugrid import draw, legend, size
from tunectl.report.text.page import VERDICT_STYLES, Part, TextPage, columns, heading, notes, prose
from tunectl.report.text.screen import clipped
from tunectl.shapes import KernelClock, typed
from tunectl.wording import awaits, ghz, kernels_own, plural

MAX_IRQS = 2  # without -v
MAX_NICS = 16
_LABEL = 12


def show(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.show/1 body."""
    _system(page, body)
    explained = legend(body)
    heading(page, "CPUs", (f"   {explained}" if explained else "", "dim"))
    draw(page, body)
    if offline := body["cpu_sets"]["offline"]:
        prose(page, offline, indent=2, label="offline ")
    _hardware(page, body)
    _guest(page, body.get("guest"))
    _network(page, body)
    _interrupts(page, body)
    _tuned(page, body)
    _tuners(page, body["managers"])


def _system(page: TextPage, body: Mapping[str, Any]) -> None:
    system, sets = body["system"], body["cpu_sets"]
    name = printable(system["hostname"] or "this host")
    known = [system["os"], f"Linux {system['kernel']}" if system["kernel"] else "", system["machine"]]
    prose(page, ", ".join(part for part in known if part), label=f"{name}  ")
    hypervisor = system["hypervisor"]
    virtual = f"a virtual machine ({hypervisor})".removesuffix(" (unknown)") if hypervisor else ""
    if machine := ", ".join(part for part in (system["model"], virtual) if part):
        prose(page, machine)
    online = [cpu for cpu in body["cpus"] if cpu["online"]]
    cores = {tuple(cpu["smt_siblings"]) for cpu in online}
    counts = [plural(len(online), "CPU"), plural(len(cores), "core")]
    counts += [f"{max(map(len, cores))} threads a core"] if max(map(len, cores)) > 1 else []
    counts.append(plural(len({cpu["package"] for cpu in online}), "package"))
    counts += [plural(len(body["numa_nodes"]), "NUMA node")] if body["numa_nodes"] else []
    prose(page, ", ".join(counts))
    rows = [("isolated", f"{sets['isolated']}, from {body['roles_from']}")] if sets["isolated"] else []
    rows += [("housekeeping", sets["housekeeping"])] if sets["isolated"] else []
    if body["roles_from"] != "the kernel":
        booted = {"isolcpus": sets["kernel_isolated"], "nohz_full": sets["nohz_full"]}
        said = ", ".join(f"{name} {cpus}" for name, cpus in booted.items() if cpus)
        rows.append(("this boot", said or "isolates none"))
    if loader := body.get("bootloader"):
        rows.append(("boot loader", f"{loader['name']}, by {', '.join(loader['evidence'])}".removesuffix(", by ")))
    if waits := body.get("unconfirmed"):
        until = awaits(waits.get("back_at", ""), waits.get("overdue", False), waits.get("tried", ""))
        rows.append(("unconfirmed", until))
    columns(page, [(label, printable(text)) for label, text in rows], styles=("dim", "cyan"))
    notes(page, body.get("notes", ()))
    if not sets["isolated"]:
        prose(page, "no CPU is isolated; `tunectl propose` says which could be", style="yellow")


def _network(page: TextPage, body: Mapping[str, Any]) -> None:
    nics = body["nics"]
    if not nics:
        return
    heading(page, "Network")
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
    columns(page, rows, indent=2, right=(2,), styles=("cyan",))
    if len(nics) > MAX_NICS:
        prose(page, f"and {len(nics) - MAX_NICS} more", indent=2)


def _interrupts(page: TextPage, body: Mapping[str, Any]) -> None:
    irqs = body["irqs"]
    managed = sum(irq["managed"] == "yes" for irq in irqs)
    is_known = all(irq["managed"] != "unknown" for irq in irqs)
    said = (
        f"{plural(len(irqs), 'line')}, {managed:,} of them moved by the kernel alone"
        if is_known
        else plural(len(irqs), "line")
    )
    hits = sorted((irq for irq in irqs if irq["hits_isolated"]), key=lambda irq: (-irq["count_isolated"], irq["irq"]))
    if body["cpu_sets"]["isolated"]:
        said += f"; {len(hits):,} may arrive on isolated CPUs" if hits else "; none arrives on an isolated CPU"
    heading(page, "Interrupts", f"   {said}")
    shown = hits if page.verbose else hits[:MAX_IRQS]
    movers = {"yes": "kernel-managed", "no": "movable", "unknown": ""}
    rows = [
        (
            str(irq["irq"]),
            printable(irq["name"]),
            f"CPU {irq['effective'] or irq['affinity']}",
            f"{irq['count_isolated']:,} since boot",
            movers[irq["managed"]],
        )
        for irq in shown
    ]
    columns(page, rows, indent=2, right=(0, 3), styles=("", "cyan"))
    if len(hits) > len(shown):
        prose(page, f"and {len(hits) - len(shown):,} more: -v", indent=2)


def _tuned(page: TextPage, body: Mapping[str, Any]) -> None:
    if counts := {outcome: count for outcome, count in (body.get("tuned") or {}).items() if count}:
        parts: list[Part] = []
        for outcome, count in counts.items():
            parts += [", ", (f"{count:,} {WORDS[Outcome(outcome)]}", VERDICT_STYLES.get(outcome, ""))]
        heading(page, "Tuned", "   ", *parts[1:], "; `tunectl verify` lists each")


def _tuners(page: TextPage, tuners: Sequence[Mapping[str, Any]]) -> None:
    heading(page, "Who else tunes this host")
    working = [tuner for tuner in tuners if tuner["active"] or tuner["enabled"]]
    for tuner in working:
        program = tuner.get("program", True)
        state = "runs" if tuner["active"] else "starts at boot"
        said = "; ".join(filter(None, (state, tuner["detail"]))) if program else tuner["detail"]
        clipped(page, said, indent=2, label=f"{tuner['name']:<{_LABEL - 2}}  ", lines=1)
        known = tuner["settings"] or not tuner["overwrites"]
        what = ", ".join(tuner["overwrites"]) or "nothing that tunectl sets"
        clipped(page, f"{'writes' if known else 'may overwrite'} {what}", indent=2 + _LABEL, style="yellow", lines=1)
    if idle := [tuner["name"] for tuner in tuners if tuner not in working]:
        prose(page, f"installed, but neither active nor enabled: {', '.join(idle)}", indent=2, style="dim")
    if not tuners:
        prose(page, "nobody that tunectl knows of", indent=2)


# What some of the kernel's words in smt/control mean.
_SMT = {
    "on": "",
    "notsupported": "none: one thread a core",
    "notimplemented": "",
    "forceoff": "off until the next boot",
}


def _hardware(page: TextPage, body: Mapping[str, Any]) -> None:
    """Prints caches, frequencies, idle states and clock of a tunectl.show/1 body."""
    drivers = body["drivers"]
    heading(page, "Hardware and drivers")
    caches = []
    for cache in body["caches"]:
        letter, instances = {"Data": "d", "Instruction": "i"}.get(cache["kind"], ""), len(cache["shared_by"])
        times = f" x {instances}" if instances > 1 else ""
        caches.append(f"L{cache['level']}{letter} {size(cache['size_bytes'])}{times}")
    others = [name for name in drivers["clocksources"] if name != drivers["clocksource"]]
    rows = {
        "caches": "; ".join(caches),
        "frequency": "; ".join(_frequency(body)) or "no cpufreq: the host below or the firmware decides",
        "idle": _idle(drivers),
        "clock": f"{drivers['clocksource']} (also {', '.join(others)})" if others else str(drivers["clocksource"]),
        "time": kernels_own(typed(body["kernel_clock"], KernelClock)) if body.get("kernel_clock") else "",
        "SMT": _SMT.get(drivers["smt"], drivers["smt"]),
        "mitigations": _mitigations(drivers.get("vulnerabilities", ())),
        "firmware": printable(_firmware(body)),
        "lockdown": drivers["lockdown"] if drivers["lockdown"] not in ("", "none") else "",
    }
    for label, text in rows.items():
        if text:
            clipped(page, text, indent=2, label=f"{label:<{_LABEL}}", lines=1)


def _firmware(body: Mapping[str, Any]) -> str:
    system, cards = body["system"], body["firmware"]["cards"]
    known = [f"{word} {system[key]}" for key, word in (("microcode", "microcode"), ("bios", "BIOS")) if key in system]
    return "; ".join([*known, *(f"{card['nic']} {card['version']}" for card in cards)])


def _guest(page: TextPage, guest: Mapping[str, Any] | None) -> None:
    """What a virtual machine's guest does not own; nothing on bare metal."""
    if not guest:
        return
    provider = printable(guest["provider"])
    more = "" if page.verbose or not any(lack["documented"] for lack in guest["not_owned"]) else ", whose documents: -v"
    whose = f"   by {provider}{more}" if provider else "   by whom is not known"
    heading(page, "Set from outside this virtual machine", (whose, "dim"))
    for lack in guest["not_owned"]:
        prose(page, lack["shown"], indent=2, label=f"{lack['what']}  ")
        if lack["documented"] and page.verbose:
            prose(page, f"{provider} documents: {lack['documented']} ({lack['source']})", indent=4, style="dim")


def _frequency(body: Mapping[str, Any]) -> Iterator[str]:
    """A phrase for each kind of CPU, then the driver."""
    drivers = body["drivers"]
    kinds: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for cpu in body["cpus"]:
        if cpu["online"]:
            kinds.setdefault((cpu["core_type"], cpu["min_khz"], cpu["max_khz"], cpu["base_khz"]), []).append(cpu)
    for (kind, low, high, base), cpus in kinds.items():
        parts = [f"{ghz(low).removesuffix(' GHz')} to {ghz(high)}"] if low and high else []
        parts += [f"base {ghz(base)} ({cpus[0]['base_source']})"] if base else []
        if parts:
            yield (f"{kind} cores " if kind != "unknown" else "") + ", ".join(parts)
    if drivers["cpufreq"]:
        status = f" ({drivers['cpufreq_status']})" if drivers["cpufreq_status"] else ""
        governors = sorted({cpu["governor"] for cpu in body["cpus"] if cpu["governor"]})
        boost = {True: ", boost on", False: ", boost off", None: ""}[drivers["boost"]]
        yield f"{drivers['cpufreq']}{status}, governor {', '.join(governors)}{boost}"


def _idle(drivers: Mapping[str, Any]) -> str:
    if not drivers["idle_states"]:
        return "no cpuidle states"
    states = ", ".join(f"{state['name']} {state['latency_us']}" for state in drivers["idle_states"])
    named = [name for name in (drivers["cpuidle"], drivers["cpuidle_governor"]) if name]
    return f"{', '.join(named)}; exit latency in us: {states}"


def _mitigations(flaws: Sequence[Mapping[str, Any]]) -> str:
    """How many of the CPU's flaws are mitigated, and which are not; tunectl changes none unasked."""
    affected = [flaw for flaw in flaws if not flaw["state"].startswith("Not affected")]
    open_ = [printable(flaw["name"]) for flaw in affected if flaw["state"].startswith("Vulnerable")]
    if not flaws:
        return ""
    if not affected:
        return "none needed: this CPU has none of the flaws the kernel knows"
    left = f"; vulnerable: {', '.join(open_)}" if open_ else ""
    return f"against {len(affected) - len(open_)} of {len(affected)} flaws of this CPU{left}"
