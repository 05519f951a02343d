"""Probe results as files: read, checked field by field, and refused with the place of what is wrong."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tunectl.command import as_data
from tunectl.durable import read_given
from tunectl.errors import TunectlError
from tunectl.experiments.contention_cells import CONTENTION
from tunectl.experiments.feed_cells import FEED, explained_feed
from tunectl.experiments.hedge_cells import HEDGE
from tunectl.experiments.wake_cells import WAKE, explained_wake
from tunectl.probe.explain import explained
from tunectl.probe.raw import SCHEMA as JITTER_RAW
from tunectl.shapes import (
    AnyCase,
    Bucket,
    CaseTable,
    Contention,
    Feed,
    Hedge,
    Jitter,
    JitterLoaded,
    JitterRuns,
    Preflight,
    Wake,
    typed,
)

_WHOLE = "a result is whole, or not to be compared"
LARGEST = 1 << 30  # bytes; a day's run of 64 CPUs with full lists is a tenth of it
_VERSION = "1"
_PREFLIGHT = "tunectl.preflight"
_EXPLAINED: dict[str, Callable[[Any], Any]] = {
    WAKE.raw_schema: explained_wake,
    FEED.raw_schema: explained_feed,
    **{of.raw_schema: of.explained for of in (HEDGE, CONTENTION)},
}
_RAW = [schema.partition("/")[0] for schema in (JITTER_RAW, *_EXPLAINED)]  # explained by now, in this version

_Found = tuple[tuple[int, ...], ...]
Result = Jitter | JitterRuns | JitterLoaded | CaseTable | Preflight
_KINDS: dict[str, type[Result]] = {
    "tunectl.probe.jitter": Jitter,
    "tunectl.probe.jitter.runs": JitterRuns,
    "tunectl.probe.jitter.loaded": JitterLoaded,
    "tunectl.probe.wake": Wake,
    "tunectl.probe.feed": Feed,
    "tunectl.probe.hedge": Hedge,
    "tunectl.probe.contention": Contention,
    _PREFLIGHT: Preflight,
}


class _Named(msgspec.Struct):
    """What a document says of itself."""

    schema: str


class _NamedPreflight(Preflight, frozen=True, kw_only=True):
    """A preflight that says that it is one."""

    schema: str


@dataclass(frozen=True)
class ProbeFile:
    """A file that was read: `body` is all of it, `result` what of it is known and checked."""

    path: str
    name: str  # the schema's: probe.jitter, probe.jitter.runs, probe.jitter.loaded, ...
    body: dict[str, Any]
    result: Result

    @property
    def measured(self) -> Sequence[Jitter] | CaseTable | None:
        """The probe's own part: runs, or a table of cases; None for a preflight whose probe did not run.

        Of quiet and loaded runs the loaded ones, where there are any: the quiet ones could be had without.
        """
        result = self.result.probe if isinstance(self.result, Preflight) else self.result
        if isinstance(result, JitterLoaded):
            return result.loaded or result.quiet
        if isinstance(result, JitterRuns):
            return result.runs
        return [result] if isinstance(result, Jitter) else result


def read_document(path: Path) -> ProbeFile:
    """The probe result or preflight in a file or pipe. TunectlError in one line: it, the key, what would be right."""
    try:
        return document_of(read_given(str(path), LARGEST), path)
    except OSError as error:
        raise TunectlError(f"cannot read {path}: {error.strerror}") from error


def document_of(data: bytes, path: Path) -> ProbeFile:
    """The same of its bytes; `path` is what it is called."""
    try:
        body = msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        hint = "give it the whole document, as `tunectl probe` or `tunectl preflight --format json` wrote it"
        raise TunectlError(f"{path}: is not JSON: {error or 'nested too deep'}", hint) from error
    if isinstance(body, dict):  # also what tunectl-probe wrote by itself can be read
        explain: Callable[[Any], Any] = _EXPLAINED.get(str(body.get("schema")), explained)
        try:
            body = explain(body)
        except TunectlError as error:
            raise TunectlError(f"{path}: {error}", "give it the whole document, as tunectl-probe wrote it") from error
    return checked(body, path)


def is_preflight(data: bytes) -> bool:
    """Are these bytes a whole document that says of itself that it is a preflight's, of whichever version?"""
    try:
        return msgspec.json.decode(data, type=_Named).schema.startswith(f"{_PREFLIGHT}/")
    except (msgspec.DecodeError, ValueError, RecursionError):  # of msgspec 0.19 the first is no ValueError
        return False


def preflight_of(data: bytes, path: Path) -> Preflight | None:
    """The preflight in these bytes, decoded once; None for a probe's result. TunectlError as of read_document()."""
    try:
        named = msgspec.json.decode(data, type=_NamedPreflight)
        whole = named if named.schema == f"{_PREFLIGHT}/{_VERSION}" else None
    except (msgspec.DecodeError, ValueError, RecursionError):
        whole = None
    if whole is None:  # what is wrong, and what else it is, is told where any document is read
        other = document_of(data, path).result
        return other if isinstance(other, Preflight) else None
    for run in (whole.probe, whole.loaded):
        if run:
            _check_jitter(run, str(path))
    return whole


def checked(body: dict[str, Any], path: Path) -> ProbeFile:
    """The same of a document that is at hand; `path` is what it is called."""
    name = _name(body, path)
    try:
        result: Result = typed(body, _KINDS[name], str(path))
    except TunectlError as error:
        raise TunectlError(error.message, f"docs/schema/{name}-1.json says what stands there") from error
    probe_file = ProbeFile(str(path), name.removeprefix("tunectl."), body, result)
    if isinstance(probe_file.measured, CaseTable):
        cases: Sequence[AnyCase] = probe_file.measured.cases
        if not cases:
            raise TunectlError(f"{path}: cells: nothing was measured", "measure at least one case")
        for place, case in enumerate(cases):
            _check_histogram(case.histogram, case.n - case.missed, f"{path}: cells[{place}].histogram")
        return probe_file
    for where, runs in _sets(probe_file):
        for same, number in shared_runs(runs, runs):  # each is an observation of its own: one that is twice is none
            if same < number:
                raise TunectlError(f"{path}: {where}[{number}]: is the same run as {where}[{same}]", "every run once")
        for number, run in enumerate(runs):
            _check_jitter(run, f"{path}: {where}[{number}]" if where else str(path))
    return probe_file


def _sets(file: ProbeFile) -> list[tuple[str, Sequence[Jitter]]]:
    """Each list of runs in it with its key; a run that is no list's has none."""
    match file.result:
        case JitterRuns(runs=runs):
            return [("runs", runs)]
        case JitterLoaded(quiet=quiet, loaded=loaded):
            return [("quiet", quiet), ("loaded", loaded)]
        case Preflight(probe=probe, loaded=beside):
            return [("", [run]) for run in (probe, beside) if run]
        case Jitter() as run:
            return [("", [run])]
    return []


def _name(body: Any, path: Path) -> str:
    """The schema's name without its version, once both are known here."""
    schema = body.get("schema") if isinstance(body, dict) else None
    if not isinstance(schema, str):
        raise TunectlError(f"{path}: schema: is missing", f"one of {', '.join(name + '/1' for name in _KINDS)}")
    name, _, version = schema.partition("/")
    if name not in (*_KINDS, *_RAW):
        raise TunectlError(f"{path}: schema: {as_data(schema)} is no probe's result", f"one of {', '.join(_KINDS)}")
    if name in _RAW or version != _VERSION:
        said = f"{path}: schema: {as_data(schema)} is of another version"
        raise TunectlError(said, f"this tunectl reads {name}/{_VERSION}")
    return name


def _check_jitter(result: Jitter, path: str) -> None:
    """What no type says, and a document that is whole does: every CPU once, all gaps in its histogram, times that run
    forwards.
    """
    if len({cpu.cpu for cpu in result.cpus}) < len(result.cpus):
        raise TunectlError(f"{path}: cpus: one of them is there twice", "every CPU once")
    if not result.duration_s:
        raise TunectlError(f"{path}: duration_s: Expected `float` > 0", "measure for longer")
    if not result.cpus:
        raise TunectlError(f"{path}: cpus: no CPU was measured", "probe at least one")
    took_s = max(cpu.duration_ns for cpu in result.cpus) / 1e9
    if took_s and abs(result.duration_s - took_s) > 1e-6:
        raise TunectlError(f"{path}: duration_s: {result.duration_s:g}, and the longest duration_ns is {took_s:g} s")
    labels = len(result.labels)
    for place, cpu in enumerate(result.cpus):
        _check_histogram(cpu.histogram, cpu.interruptions, f"{path}: cpus[{place}].histogram")
        for number, (start, end, label) in enumerate(cpu.events):
            if end <= start:
                raise TunectlError(f"{path}: cpus[{place}].events[{number}]: ends before it begins, or at once")
            if label >= labels:
                raise TunectlError(f"{path}: cpus[{place}].events[{number}]: has no cause among the labels")
        if (listed := len(cpu.events)) + cpu.events_lost != cpu.interruptions:
            said = f"{listed:,} and {cpu.events_lost:,} lost are not the {cpu.interruptions:,} interruptions"
            raise TunectlError(f"{path}: cpus[{place}].events: {said}", _WHOLE)


def _check_histogram(buckets: list[Bucket], expected: int, where: str) -> None:
    found = 0
    for low, high, count in buckets:  # of a fleet millions: a loop takes a third of what two generators take
        if high < low:
            raise TunectlError(f"{where}: a bucket ends before it begins", "[from_ns, to_ns, count]")
        found += count
    if found != expected:
        raise TunectlError(f"{where}: holds {found:,} of {expected:,}", _WHOLE)


def shared_runs(first: Sequence[Jitter], second: Sequence[Jitter]) -> Iterator[tuple[int, int]]:
    """The places of each run of the one list and the same run in the other: two observations of one run are one.

    A copy may have other words beside its figures. A run is known by when it began and what it found: on one boot, no
    counter of a CPU shows the same reading twice. A table of cases has no such reading: its time and cases have to do.
    """
    places = defaultdict[_Found, list[int]](list)
    for place, run in enumerate(second):
        places[_found(run)].append(place)
    for place, run in enumerate(first):
        yield from ((place, one) for one in places[_found(run)] if _is_of_one_time(run, second[one]))


def _found(run: Jitter) -> _Found:
    return tuple((cpu.cpu, cpu.tsc_start, cpu.interruptions, cpu.stolen_ns, cpu.max_ns) for cpu in run.cpus)


def _is_of_one_time(one: Jitter, other: Jitter) -> bool:
    """A run inside a preflight has neither a time nor a host of its own."""
    known = ((one.at, other.at), (one.host.boot_id, other.host.boot_id))
    return all(not first or not second or first == second for first, second in known)


def is_same_table(first: CaseTable, second: CaseTable) -> bool:
    """Do both have the cases of one run?"""
    return first.at == second.at and first.host.boot_id == second.host.boot_id and first.cases == second.cases
