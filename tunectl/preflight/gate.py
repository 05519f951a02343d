"""The one verdict of preflight: verify + check + probe + thermal state, with every reason. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tunectl.cpulist import format_cpulist
from tunectl.model import Finding, Outcome
from tunectl.report.findings import cost
from tunectl.verdict import fails_gate, verdict_of


class Parts(NamedTuple):
    """What preflight gathered. `probe` and `thermal` are None, with the cause, where they could not be had."""

    verify: tuple[Finding, ...]
    check: tuple[Finding, ...]
    thermal: tuple[Finding, ...]
    thermal_verdict: str  # ok, throttled, unknown
    thermal_reason: str
    probe: Mapping[str, Any] | None
    probe_problem: str
    beside: tuple[str, ...] = ()  # limits that counts alone show to be broken, on CPUs that were not probed
    not_measured: tuple[str, ...] = ()  # CPUs that were left to somebody else's threads, and what would measure them


def decide(parts: Parts, strict: bool) -> tuple[str, list[str]]:
    """(go | no-go | pending-reboot | unknown, every reason). What is unknown fails only where nothing was measured,
    or with `strict`; it never improves a verdict."""
    every = (*parts.verify, *parts.check, *parts.thermal)
    failing = sorted(filter(fails_gate, every), key=lambda finding: cost(finding.severity))
    reasons = _gathered(failing) + _budget(parts.probe) + list(parts.beside)
    unknown = ([parts.probe_problem] if parts.probe_problem else []) + list(parts.not_measured)
    if verdict_of(parts.verify) == "unreadable":
        unknown.append("no knob could be read")
    if strict:
        unknown += _gathered(finding for finding in every if finding.outcome is Outcome.UNREADABLE)
        if parts.thermal_verdict == "unknown":
            unknown.append(f"thermal state: {parts.thermal_reason}")
    pending = [finding for finding in every if finding.outcome is Outcome.PENDING_REBOOT]
    verdict = "no-go" if reasons else "unknown" if unknown else "pending-reboot" if pending else "go"
    return verdict, reasons + unknown + _gathered(pending)


def _gathered(findings: Iterable[Finding]) -> list[str]:
    """One line for all targets of a knob with the same observed value, desired value and fix."""
    groups: dict[tuple[Any, ...], list[Finding]] = {}
    for finding in findings:
        fix = "" if finding.knob.startswith("check.") else finding.fix
        key = (finding.knob, finding.outcome, str(finding.observed), str(finding.desired), fix)
        groups.setdefault(key, []).append(finding)
    return [_line(members) for members in groups.values()]


def _line(members: list[Finding]) -> str:
    first = members[0]
    names = [finding.instance for finding in members]
    if all(name.isdecimal() for name in names):
        names = [format_cpulist(map(int, names))]
    line = f"{first.knob}[{','.join(names)}]" if any(names) else first.knob
    if first.observed is not None or first.desired is not None:
        line += f" is {_shown(first.observed)}, should be {_shown(first.desired)}"
    several = len({finding.reason for finding in members})
    if first.reason:
        line += f": {first.reason}" + (f" (the first of {several} such reasons)" if several > 1 else "")
    return line.rstrip(".") + (f"; fix: {first.fix}" if first.fix else "")


def _shown(value: Any) -> str:
    return "not set" if value is None else "empty" if value == "" else str(value)


def _budget(probe: Mapping[str, Any] | None) -> list[str]:
    broken = (probe or {}).get("budget", {}).get("broken", [])
    return [f"probe: {line if isinstance(line, str) else line.get('text', line)}" for line in broken]
