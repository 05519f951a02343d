"""Probe results as files: read, checked field by field, and refused with the place of what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tunectl.errors import TunectlError
from tunectl.probe.shapes import Bucket, Jitter, Preflight, Wake

_LARGEST = 1 << 30  # bytes; a day's run of 64 CPUs with full lists is a tenth of it
_VERSION = "1"

Result = Jitter | Wake | Preflight
_KINDS: dict[str, type[Jitter] | type[Wake] | type[Preflight]] = {
    "tunectl.probe.jitter": Jitter,
    "tunectl.probe.wake": Wake,
    "tunectl.preflight": Preflight,
}


@dataclass(frozen=True)
class ProbeFile:
    """A file that was read: `body` is all of it, `result` what of it is known and checked."""

    path: str
    name: str  # the schema's: probe.jitter, probe.wake, preflight
    body: dict[str, Any]
    result: Result

    @property
    def measured(self) -> Jitter | Wake | None:
        """The probe's own part; None for a preflight whose probe did not run."""
        return self.result.probe if isinstance(self.result, Preflight) else self.result


def read_document(path: Path) -> ProbeFile:
    """The probe result or preflight in a file. TunectlError in one line: the file, the key, what would be right."""
    body = _parsed(path)
    name = _name(body, path)
    try:
        result = msgspec.convert(body, _KINDS[name])
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        raise TunectlError(f"{path}: {where.strip('`.') or 'the document'}: {what}", _fitting(name)) from error
    found = ProbeFile(str(path), name.removeprefix("tunectl."), body, result)
    if isinstance(found.measured, Jitter):
        _check_jitter(found.measured, path)
    elif isinstance(found.measured, Wake):
        _check_wake(found.measured, path)
    return found


def _fitting(name: str) -> str:
    return f"docs/schema/{name}-1.json says what stands there"


def _parsed(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise TunectlError(f"cannot read {path}: {error.strerror}") from error
    if len(data) > _LARGEST:
        raise TunectlError(f"{path}: is larger than 1 GiB", "no result of a probe is")
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        hint = "give it the whole document, as `tunectl probe` or `tunectl preflight --format json` wrote it"
        raise TunectlError(f"{path}: is not JSON: {error or 'nested too deep'}", hint) from error


def _name(body: Any, path: Path) -> str:
    """The schema's name without its version, once both are known here."""
    schema = body.get("schema") if isinstance(body, dict) else None
    if not isinstance(schema, str):
        raise TunectlError(f"{path}: schema: is missing", f"one of {', '.join(name + '/1' for name in _KINDS)}")
    name, _, version = schema.partition("/")
    if name not in _KINDS:
        raise TunectlError(f"{path}: schema: {schema} is no probe's result", f"one of {', '.join(_KINDS)}")
    if version != _VERSION:
        raise TunectlError(f"{path}: schema: {schema} is of another version", f"this tunectl reads {name}/{_VERSION}")
    return name


def _check_jitter(result: Jitter, path: Path) -> None:
    """What no type says: sums that must agree, times that run forwards."""
    if len({cpu.cpu for cpu in result.cpus}) < len(result.cpus):
        raise TunectlError(f"{path}: cpus: one of them is there twice", "every CPU once")
    if not result.cpus:
        raise TunectlError(f"{path}: cpus: no CPU was measured", "probe at least one")
    for place, cpu in enumerate(result.cpus):
        _check_histogram(cpu.histogram, cpu.interruptions, f"{path}: cpus[{place}].histogram")
        for number, (start, end, _) in enumerate(cpu.events):
            if end <= start:
                raise TunectlError(f"{path}: cpus[{place}].events[{number}]: ends before it begins, or at once")


def _check_wake(result: Wake, path: Path) -> None:
    if not result.cases:
        raise TunectlError(f"{path}: cells: nothing was measured", "measure at least one wait method")
    for place, case in enumerate(result.cases):
        _check_histogram(case.histogram, case.n, f"{path}: cells[{place}].histogram")


def _check_histogram(buckets: list[Bucket], expected: int, where: str) -> None:
    if any(high < low for low, high, _ in buckets):
        raise TunectlError(f"{where}: a bucket ends before it begins", "[from_ns, to_ns, count]")
    found = sum(count for _, _, count in buckets)
    if found != expected:
        raise TunectlError(f"{where}: holds {found:,} of {expected:,}", "a result is whole, or not to be compared")
