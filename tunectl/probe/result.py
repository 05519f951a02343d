"""A result of `tunectl-probe jitter`: checked for its shape, written to a file, and summed up a line for each CPU."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tunectl.errors import TunectlError

SCHEMA = "tunectl.probe.jitter/1"

# What every reader relies on; docs/schema/tunectl.probe.jitter-1.json has the rest.
_OF_RESULT: Mapping[str, type | tuple[type, ...]] = {
    "threshold_ns": int,
    "duration_s": (int, float),
    "clock": dict,
    "warnings": list,
    "budget": dict,
    "cpus": list,
}
_OF_CPU: Mapping[str, type | tuple[type, ...]] = {
    "cpu": int,
    "loops": int,
    "interruptions": int,
    "stolen_ns": int,
    "stolen_ppm": (int, float),
    "max_ns": int,
    "gap_ns": dict,
    "arrival_ns": dict,
    "histogram": list,
    "events_lost": int,
    "events": list,
}


@dataclass(frozen=True)
class CpuSummary:
    """One probed CPU as a row. Times in ns; `p99_9_ns` is of arrivals, so long gaps count by their length."""

    cpu: int
    seconds: float
    interruptions: int
    interruptions_per_s: float
    stolen_ppm: float
    max_ns: int
    p99_9_ns: float
    percentile_error_ppm: int
    events_lost: int


def write_result(path: str, result: object) -> None:
    """Writes a document to the file the user named. TunectlError where that fails."""
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    except OSError as error:
        raise TunectlError(f"cannot write {path}: {error.strerror}") from error


def check_result(document: Any, where: str) -> dict[str, Any]:
    """The same document, once its schema and the fields that readers rely on are there.

    TunectlError, with `where`, for any other.
    """
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else None
        raise TunectlError(f"{where}: expected a document of schema {SCHEMA}, found {found or 'none'}")
    _check_fields(document, _OF_RESULT, where)
    for index, cpu in enumerate(document["cpus"]):
        if not isinstance(cpu, dict):
            raise TunectlError(f"{where}: cpus[{index}] is no object")
        _check_fields(cpu, _OF_CPU, f"{where}: cpus[{index}]")
    return document


def _check_fields(found: Mapping[str, Any], expected: Mapping[str, type | tuple[type, ...]], where: str) -> None:
    for name, kind in expected.items():
        # bool is an int to isinstance, and true is no count
        if not isinstance(found.get(name), kind) or isinstance(found[name], bool):
            raise TunectlError(f"{where}: {name} is missing or of the wrong type")


def left_out(result: Mapping[str, Any]) -> str:
    """Which CPUs were not measured, and why; "" where none was left out."""
    return "; ".join(f"CPU {one['cpu']} was not measured: {one['reason']}" for one in _left(result))


def nothing_measured(result: Mapping[str, Any]) -> str:
    """Why a run has no CPU at all, in a sentence; "" where it has one. Such a run is no result."""
    if result["cpus"]:
        return ""
    why = "; ".join(f"CPU {one['cpu']}: {one['reason']}" for one in _left(result))
    return f"nothing was measured: {why or 'no CPU was left'}"


def _left(result: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return result.get("not_measured") or ()


def duration_s(result: Mapping[str, Any], cpu: Mapping[str, Any]) -> float:
    """How long this CPU was measured: its own length where stated, else the run's."""
    own_ns = cpu.get("duration_ns")
    return float(own_ns) / 1e9 if own_ns else float(result["duration_s"])


def summary_rows(result: Mapping[str, Any]) -> list[CpuSummary]:
    """One row for each probed CPU, in the document's order."""
    return [_summary(result, cpu) for cpu in result["cpus"]]


def _summary(result: Mapping[str, Any], cpu: Mapping[str, Any]) -> CpuSummary:
    seconds = duration_s(result, cpu)
    return CpuSummary(
        cpu=cpu["cpu"],
        seconds=seconds,
        interruptions=cpu["interruptions"],
        interruptions_per_s=cpu["interruptions"] / seconds if seconds else 0.0,
        stolen_ppm=cpu["stolen_ppm"],
        max_ns=cpu["max_ns"],
        p99_9_ns=cpu["arrival_ns"]["99.9"],
        percentile_error_ppm=cpu.get("percentile_error_ppm", 0),
        events_lost=cpu["events_lost"],
    )
