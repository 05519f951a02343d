"""What the host is made of, for `tunectl show`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tunectl.report.escape import printable
from tunectl.report.text.cpugrid import size
from tunectl.report.text.layout import heading, prose
from tunectl.report.text.sheet import Sheet

_LABEL = 12
# The kernel's words in smt/control, where they do not speak for themselves.
_SMT = {"notsupported": "none: one thread a core", "notimplemented": "", "forceoff": "off until the next boot"}


def render_hardware(sheet: Sheet, body: Mapping[str, Any]) -> None:
    """Prints caches, frequencies, idle states and clock of a tunectl.show/1 body."""
    drivers = body["drivers"]
    heading(sheet, "Hardware and drivers")
    rows = {
        "caches": "; ".join(_caches(body["caches"])),
        "frequency": "; ".join(_frequency(body)) or "no cpufreq: the host below or the firmware decides",
        "idle": _idle(drivers),
        "clock": _clock(drivers),
        "SMT": _SMT.get(drivers["smt"], drivers["smt"]),
        "mitigations": _mitigations(drivers.get("vulnerabilities", ())),
        "lockdown": drivers["lockdown"] if drivers["lockdown"] not in ("", "none") else "",
    }
    for label, text in rows.items():
        if text:
            prose(sheet, text, indent=2, label=label, hang=_LABEL)


def _caches(caches: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for cache in caches:
        letter = {"Data": "d", "Instruction": "i"}.get(cache["kind"], "")
        instances = len(cache["shared_by"])
        yield f"L{cache['level']}{letter} {size(cache['size_bytes'])}" + (f" x {instances}" if instances > 1 else "")


def _frequency(body: Mapping[str, Any]) -> Iterator[str]:
    """A phrase for each kind of CPU, then the driver."""
    drivers = body["drivers"]
    kinds: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for cpu in body["cpus"]:
        if cpu["online"]:
            kinds.setdefault((cpu["core_type"], cpu["min_khz"], cpu["max_khz"], cpu["base_khz"]), []).append(cpu)
    for (kind, low, high, base), cpus in kinds.items():
        parts = [f"{_ghz(low)} to {_ghz(high)} GHz"] if low and high else []
        parts += [f"base {_ghz(base)} GHz ({cpus[0]['base_source']})"] if base else []
        if parts:
            yield (f"{kind} cores " if kind != "unknown" else "") + ", ".join(parts)
    if drivers["cpufreq"]:
        status = f" ({drivers['cpufreq_status']})" if drivers["cpufreq_status"] else ""
        governors = sorted({cpu["governor"] for cpu in body["cpus"] if cpu["governor"]})
        boost = {True: ", boost on", False: ", boost off", None: ""}[drivers["boost"]]
        yield f"{drivers['cpufreq']}{status}, governor {', '.join(governors)}{boost}"


def _ghz(khz: int) -> str:
    return f"{khz / 1_000_000:.2f}".rstrip("0").rstrip(".")


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


def _clock(drivers: Mapping[str, Any]) -> str:
    others = [name for name in drivers["clocksources"] if name != drivers["clocksource"]]
    return str(drivers["clocksource"]) + (f" (also {', '.join(others)})" if others else "")
