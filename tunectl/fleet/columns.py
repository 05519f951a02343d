"""The store's tables: a type each, whose fields are its columns, and how a row is drawn from a document and read again.

Every table has the column `session` besides. A list in a row of HistogramRow and EventRow is a column of rows there.
A finding that is in force is not kept by itself: hosts that have the same outcomes share a pattern, which has a count
for each knob, kind of instance and outcome. Pure.
"""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from heapq import nlargest
from itertools import chain
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET
from msgspec.structs import asdict

from tunectl.fleet.causes import Told, told_by, without_numbers
from tunectl.fleet.records import Measured, Shared, Summary, summary_of
from tunectl.fleet.todo import Doing
from tunectl.model import parse_target
from tunectl.probe.doubt import in_utc
from tunectl.shapes import CardFirmware, Cpu, Firmware, Hardware, Host, Jitter, Preflight, Returned, Unconfirmed

REASONS = 5  # of a run; its own document has all
_EVENTS = 16  # of a CPU, the longest
_STEPS = 3  # bits: each power of two in eight steps
_LONGEST = (1 << 63) - 1
# Patterns of both engines: what a terminal obeys or nobody sees, and how a text begins that a spreadsheet computes.
UNSHOWN = r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]"
FORMULA = "^[-=+@\uff0b\uff0d\uff1d\uff20]"


class HostRow(msgspec.Struct, frozen=True):
    """hosts: who was asked, and what became of each: a host that did not report is as visible as one that failed."""

    host: str
    rack: str
    expected: bool  # the inventory has it
    answer: str
    problem: str
    verdict: str  # as judged when it was taken in
    digest: str  # of the document's bytes
    began: str  # the session
    selection: str


class RunRow(msgspec.Struct, frozen=True):
    """runs: a document, with the machine's facts and the figures of its worst isolated CPU."""

    host: str
    said: str  # its own verdict
    made_at: str
    headline: str
    reasons: list[str]  # the first of them
    more_reasons: int
    unexplained: list[str]
    doubt: str
    hostname: str
    kernel: str
    boot_id: str
    machine: str
    microcode: str | None
    bios: str | None
    tunectl_version: str
    vendor: str | None  # null with the rest of the hardware where the document does not say it
    product: str | None
    cpu_model: str | None
    sockets: int | None
    cores: int | None
    cpus: int | None
    numa_nodes: int | None
    hypervisor: str | None
    kernel_build: str
    kernel_config: str
    cards: str  # JSON, as firmware.cards of the document
    isolated: str
    clock: str
    duration_s: float | None  # null with the rest of the figures where the probe did not run
    threshold_ns: float | None
    measured_cpus: int | None
    budget: str | None
    max_ns: float | None
    p99_9_ns: float | None
    interruptions_per_s: float | None
    stolen_ppm: float | None
    loop_ns: float | None
    smis_per_s: float | None
    looser: list[str]
    waivers: int
    todo: str  # JSON, of Doing
    unconfirmed: str  # JSON; empty without one
    returned: str
    pattern: str


class FindingRow(msgspec.Struct, frozen=True):
    """findings: what is not in force and decides, once for each cause of a run; `observed` is of the first target."""

    host: str
    place: int  # among the causes of its document
    knob: str
    instances: str
    outcome: str
    severity: str
    cause: str
    targets: int
    observed: str
    desired: str
    text: str


class PatternRow(msgspec.Struct, frozen=True):
    """patterns: how many targets of a knob have an outcome, on every host that has the pattern."""

    pattern: str
    knob: str
    instances: str
    outcome: str
    targets: int


class HistogramRow(msgspec.Struct, frozen=True):
    """histograms: the gaps of a CPU, in eight steps for each power of two."""

    host: str
    cpu: int
    up_to_ns: list[int]
    gaps: list[int]


class EventRow(msgspec.Struct, frozen=True):
    """events: the longest gaps of a CPU, with what took it where that was traced."""

    host: str
    cpu: int
    at_ns: list[int]  # from the start of the run
    length_ns: list[int]
    cause: list[str]


AnyRow = HostRow | RunRow | FindingRow | PatternRow | HistogramRow | EventRow


class Table(NamedTuple):
    """A table: its row, by what its rows are ordered in a file, and the columns of which a row has a list."""

    row: type[AnyRow]
    order: str
    unnested: tuple[str, ...] = ()


TABLES = {
    "hosts": Table(HostRow, "host"),
    "runs": Table(RunRow, "host"),
    "findings": Table(FindingRow, "knob, instances, cause, host"),
    "patterns": Table(PatternRow, "knob, pattern"),
    "histograms": Table(HistogramRow, "host, cpu, up_to_ns", ("up_to_ns", "gaps")),
    "events": Table(EventRow, "host, cpu, at_ns", ("at_ns", "length_ns", "cause")),
}
_PLAIN: dict[Any, str] = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}
_LISTS: dict[Any, str] = {list[str]: "VARCHAR[]", list[int]: "BIGINT[]"}
_DUCKDB = {**_PLAIN, **_LISTS, **{kind | None: name for kind, name in _PLAIN.items()}}


CLICKHOUSE: dict[Any, str] = {
    **(_CLICK := {str: "String", int: "Int64", float: "Float64", bool: "Bool"}),
    list[str]: "Array(String)",
    list[int]: "Array(Int64)",
    **{kind | None: f"Nullable({name})" for kind, name in _CLICK.items()},
}


def columns(table: str, kinds: Mapping[Any, str] = _DUCKDB) -> dict[str, str]:
    """The columns of a row as it is handed over, each with the engine's type."""
    return {field.name: kinds[field.type] for field in msgspec.structs.fields(TABLES[table].row)}


def rows_of(host: str, document: Preflight, shared: Shared) -> tuple[Summary, dict[str, list[AnyRow]]]:
    """What is kept of a document: its summary, and the rows of each table."""
    causes = told_by(document)
    summary = summary_of(document, REASONS, causes)
    pattern = _pattern(document, shared)
    probe = document.probe
    cpus = probe.cpus if probe else []
    return summary, {
        "runs": [_run(host, summary, pattern[0].pattern if pattern else "")],
        "findings": [_finding(host, place, told) for place, told in enumerate(causes[0])],
        "patterns": [*pattern],
        "histograms": [_histogram(host, cpu) for cpu in cpus if cpu.histogram],
        "events": [_events(host, cpu, probe) for cpu in cpus if probe and cpu.events],
    }


def _run(host: str, summary: Summary, pattern: str) -> RunRow:
    figures: dict[str, Any] = asdict(summary.figures) if summary.figures else dict.fromkeys(Measured.__struct_fields__)
    figures["measured_cpus"] = figures.pop("cpus")
    built: dict[str, Any] = asdict(summary.hardware) if summary.hardware else dict.fromkeys(Hardware.__struct_fields__)
    of_host: dict[str, Any] = {name: None if value is UNSET else value for name, value in asdict(summary.host).items()}
    return RunRow(
        host=host,
        said=summary.verdict,
        made_at=in_utc(summary.at),
        reasons=list(summary.reasons),
        looser=list(summary.looser),
        unexplained=list(summary.unexplained),
        kernel_build=summary.firmware.kernel_build,
        kernel_config=summary.firmware.kernel_config,
        cards=_text(summary.firmware.cards),
        todo=_text(summary.todo),
        unconfirmed=_text(summary.unconfirmed),
        returned=_text(summary.returned),
        pattern=pattern,
        **{name: getattr(summary, name) for name in _AS_THEY_ARE},
        **of_host,
        **built,
        **figures,
    )


_AS_THEY_ARE = ("headline", "more_reasons", "doubt", "tunectl_version", "isolated", "clock", "waivers")


def summary_in(row: RunRow) -> Summary:
    """The summary that the row was made of, but for its causes, which are the table findings."""
    figures = {**_of(Measured, row), "cpus": row.measured_cpus}
    of_host: dict[str, Any] = {name: UNSET if value is None else value for name, value in _of(Host, row).items()}
    return Summary(
        verdict=row.said,
        at=row.made_at,
        reasons=tuple(row.reasons),
        looser=tuple(row.looser),
        unexplained=tuple(row.unexplained),
        host=Host(**of_host),
        hardware=Hardware(**_of(Hardware, row)) if row.vendor is not None else None,
        figures=Measured(**figures) if row.duration_s is not None else None,
        firmware=Firmware(row.kernel_build, row.kernel_config, msgspec.json.decode(row.cards, type=_CARDS)),
        todo=msgspec.json.decode(row.todo, type=tuple[Doing, ...]),
        unconfirmed=msgspec.json.decode(row.unconfirmed, type=Unconfirmed) if row.unconfirmed else UNSET,
        returned=msgspec.json.decode(row.returned, type=Returned) if row.returned else UNSET,
        **{name: getattr(row, name) for name in _AS_THEY_ARE},
    )


_CARDS = tuple[CardFirmware, ...]


def _of(kind: type[msgspec.Struct], row: RunRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in kind.__struct_fields__}


def _text(value: object) -> str:
    return "" if value is UNSET else msgspec.json.encode(value, enc_hook=str).decode()  # a Command is its text


def _finding(host: str, place: int, told: Told) -> FindingRow:
    cause, targets, text, observed, desired = told
    has, wants = ("" if value is None else str(value) for value in (observed, desired))
    what = (cause.knob, cause.instances, cause.outcome, cause.severity, cause.data)
    return FindingRow(host, place, *what, targets, has, wants, text)


_kind_of = lru_cache(1 << 14)(lambda target, knob: without_numbers(parse_target(target, knob).instance))


def _pattern(document: Preflight, shared: Shared) -> tuple[PatternRow, ...]:
    """How many targets of each knob and kind of instance have which outcome."""
    sections = (document.verify, document.check, document.thermal)
    found = chain.from_iterable(section.findings for section in sections if section)
    counted = Counter((one.knob, _kind_of(one.target, one.knob), one.outcome) for one in found)
    key = tuple(sorted(counted.items()))
    if key not in shared:
        name = blake2b(repr(key).encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()
        shared[key] = tuple(PatternRow(name, *what, targets) for what, targets in key)
    rows: tuple[PatternRow, ...] = shared[key]
    return rows


def _histogram(host: str, cpu: Cpu) -> HistogramRow:
    found: Counter[int] = Counter()
    least = most = total = 0
    for _, high, gaps in cpu.histogram:  # of a fleet millions
        if least < high <= most:
            total += gaps
            continue
        found[most] += total
        step = max(high.bit_length() - _STEPS - 1, 0)
        most, total = min(-(-high >> step) << step, _LONGEST), gaps
        least = most - (1 << step)
    found[most] += total
    found = +found
    return HistogramRow(host, cpu.cpu, list(found), list(found.values()))


def _events(host: str, cpu: Cpu, probe: Jitter) -> EventRow:
    longest = nlargest(_EVENTS, cpu.events, key=lambda event: event[1] - event[0])
    start, ns = cpu.tsc_start, 1e9 / probe.clock.hz
    at = [round(max(event[0] - start, 0) * ns) for event in longest]
    lengths = [round((event[1] - event[0]) * ns) for event in longest]
    return EventRow(host, cpu.cpu, at, lengths, [probe.labels[event[2]] for event in longest])
