"""A comparison as the body of a tunectl.compare/1 document. Pure."""

from __future__ import annotations

from typing import Any

from tunectl.compare.conditions import common_conditions, jitter_conditions, wake_conditions
from tunectl.compare.tables import jitter_groups, wake_groups
from tunectl.cpulist import format_cpulist
from tunectl.errors import TunectlError
from tunectl.probe.document import ProbeFile
from tunectl.probe.shapes import Host, Jitter, Wake

CONFIDENCE = 0.95
_KINDS: dict[type[Jitter] | type[Wake], str] = {Jitter: "jitter", Wake: "wake"}


def compared(before: ProbeFile, after: ProbeFile, confidence: float = CONFIDENCE) -> dict[str, Any]:
    """{kind, confidence, before, after, warnings, groups}. TunectlError where the files have nothing in common."""
    first, second = _measured(before), _measured(after)
    if isinstance(first, Jitter) and isinstance(second, Jitter):
        groups = jitter_groups(first, second, confidence)
        warnings = [*common_conditions(first, second), *jitter_conditions(first, second)]
    elif isinstance(first, Wake) and isinstance(second, Wake):
        groups = wake_groups(first, second, confidence)
        warnings = [*common_conditions(first, second), *wake_conditions(first, second)]
    else:
        kinds = [f"{file.path} is of `probe {_KINDS[type(run)]}`" for file, run in ((before, first), (after, second))]
        raise TunectlError(f"nothing to compare: {', '.join(kinds)}", "give two results of the same probe")
    if not groups:
        raise TunectlError(
            f"nothing to compare: {before.path} and {after.path} have no wait method in common",
            "probe both hosts with the same mechanisms and idle times",
        )
    return {
        "kind": _KINDS[type(first)],
        "confidence": confidence,
        "before": _described(before, first),
        "after": _described(after, second),
        "warnings": warnings,
        "groups": groups,
    }


def _measured(file: ProbeFile) -> Jitter | Wake:
    measured = file.measured
    if measured is None:
        raise TunectlError(f"{file.path}: probe: was not run in this preflight", "give it one in which the probe ran")
    return measured


def _described(file: ProbeFile, run: Jitter | Wake) -> dict[str, Any]:
    """The file, host and time of one side. The probe inside a preflight has no header of its own."""
    host: Host = run.host if run.host.hostname else file.result.host
    described: dict[str, Any] = {
        "file": file.path,
        "host": {name: getattr(host, name) for name in host.__struct_fields__},
        "at": run.at or file.result.at,
    }
    if isinstance(run, Jitter):
        described["cpus"] = format_cpulist(cpu.cpu for cpu in run.cpus)
        described["duration_s"] = run.duration_s
        described["threshold_ns"] = run.threshold_ns
    return described
