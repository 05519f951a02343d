"""Hosts of the same hardware compared with each other: whose figures are outliers, and what else differs there. Pure.

The same hardware is: the same server by vendor and product, CPU model, sockets, cores, CPUs online, NUMA nodes and
hypervisor. So a host whose SMT is off, or that has lost a CPU, is a peer of hosts like itself only. Kernel and tuning
are not hardware: where they differ, they are named as what may be the cause.

An outlier is told by the median and the median absolute deviation (MAD) of logarithms. Both stand still however wild up
to half of the values are, so the outliers cannot hide themselves by widening the spread, as they do with a mean and a
standard deviation. Logarithms, because latencies spread by factors: 12 µs among peers with 4 µs is as odd as 120 µs
among 40 µs. The score is Iglewicz and Hoaglin's modified z-score ("How to Detect and Handle Outliers", ASQC 1993):
0.6745 times the distance over the MAD; 3.5 is their limit, which 1 of 2,000 normally distributed values passes.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from statistics import median
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from tunectl.command import as_data
from tunectl.fleet.records import MEASURES, Measured, MeasureName, Summary
from tunectl.shapes import Amount, Count, Hardware, Maybe
from tunectl.wording import nanoseconds, natural, seconds_of

SCORE = 3.5
FEWEST = 5  # values; with fewer, a median and a MAD say little
_TO_SIGMA = 0.6745  # MAD over the standard deviation, of a normal distribution
_LEAST_MAD = math.log(1.02)  # peers that are more alike than that are so by chance, or by a coarse clock


class Spread(msgspec.Struct, frozen=True):
    """What is usual."""

    n: Count
    median: Amount
    spread: Annotated[float, Meta(ge=1, description="Half of the values lie within this factor of the median.")]
    low: Annotated[Amount, Meta(description="Below it is an outlier.")]
    high: Annotated[Amount, Meta(description="Above it is an outlier.")]
    floor: Annotated[Amount, Meta(description="Values below count as this: all are equally good.")]


class Outlier(NamedTuple):
    """One value that is not usual."""

    value: float
    ratio: float  # to the median
    score: float  # negative below it


def outliers(values: Mapping[str, float], floor: float, ratio: float) -> tuple[Spread | None, dict[str, Outlier]]:
    """What is usual, and the names whose value is not; nothing of fewer than FEWEST.

    Values count as at least `floor`, which is above 0. A value within a factor of `ratio` of the median is usual.
    """
    if len(values) < FEWEST:
        return None, {}
    logs = [math.log(max(value, floor)) for value in values.values()]
    middle = median(logs)
    mad = max(median(abs(log - middle) for log in logs), _LEAST_MAD)
    reach = max(SCORE * mad / _TO_SIGMA, math.log(ratio))
    usual = Spread(
        len(values), math.exp(middle), math.exp(mad), math.exp(middle - reach), math.exp(middle + reach), floor
    )
    found = {}
    for name, value in values.items():
        counted = max(value, floor)
        if not usual.low <= counted <= usual.high:
            score = _TO_SIGMA * math.log(counted / usual.median) / math.log(usual.spread)
            found[name] = Outlier(value, counted / usual.median, score)
    return usual, found


_LONGER = 1.1  # as in compare: with a larger ratio of lengths the runs have different chances of a rare gap
_COARSER = 2.0  # the threshold follows the CPU's speed; twice that of the peers is another measurement


class OddRow(msgspec.Struct, frozen=True):
    """A figure of a host that is not its peers'."""

    host: str
    measure: MeasureName
    value: Amount
    median: Annotated[Amount, Meta(description="Of its peers, itself included.")]
    ratio: Annotated[Amount, Meta(description="To the median.")]
    score: Annotated[float, Meta(description="0.6745 (ln value - median) / MAD, of logarithms.")]
    worse: bool
    differs: Annotated[list[str], Meta(description="What else of this host is not its peers'.")]


class GroupRow(msgspec.Struct, frozen=True):
    """Hosts that are compared with each other."""

    hardware: Annotated[Hardware | None, Meta(description="Of all of them; null where it differs, or is not said.")]
    hosts: list[str]
    compared: Annotated[list[str], Meta(description="Those measured alike.")]
    usual: Annotated[
        dict[MeasureName, Spread],
        Meta(description="Of each measure that could be judged."),
    ]
    notes: list[str]
    alike: Annotated[str, Meta(description="What they have in common where that is not the hardware."), Maybe] = ""


# What hosts have in common that are compared with each other.
PEERS: dict[str, Callable[[Summary], str]] = {
    "hardware": lambda _: "",
    "fleet": lambda _: "the whole fleet",
    "firmware": lambda of: f"BIOS {of.host.bios or _NONE}, microcode {of.host.microcode or _NONE}",
    "kernel": lambda of: f"kernel {of.host.kernel or _NONE}",
}


def groups_of(documents: Mapping[str, Summary], by: str = "hardware") -> tuple[list[GroupRow], list[OddRow]]:
    """Every host that left a document, in the group of its peers, the largest first; and the outliers of all groups,
    the oddest first."""
    members: dict[tuple[str, Hardware | None], dict[str, Summary]] = {}
    for name in sorted(documents, key=natural):
        document = documents[name]
        key = PEERS[by](document), document.hardware if by == "hardware" else None
        members.setdefault(key, {})[name] = document
    judged = [_group(alike, of) for (alike, _), of in members.items()]
    groups = sorted((group for group, _ in judged), key=lambda group: -len(group.hosts))
    return groups, sorted((row for _, odd in judged for row in odd), key=lambda row: -abs(row.score))


def _group(common: str, documents: Mapping[str, Summary]) -> tuple[GroupRow, list[OddRow]]:
    """Hosts of one kind, and the outliers among them."""
    hosts = list(documents)
    kinds = {document.hardware for document in documents.values()}
    hardware = kinds.pop() if len(kinds) == 1 else None
    measured = {name: figures for name, document in documents.items() if (figures := document.figures)}
    firmware = _differing(documents, documents, _FIRMWARE)
    own = [f"{name}: {text}" for name, texts in firmware.items() for text in texts]
    if hardware is None and not common:
        note = "these documents do not say what hardware it is, so no host is compared"
        return GroupRow(hardware, hosts, [], {}, [note]), []
    compared, notes = alike(measured)
    notes += own[:_NOTES] + ([f"{len(own) - _NOTES} more differences of firmware"] if len(own) > _NOTES else [])
    if len(compared) < FEWEST:
        notes.append(f"{len(compared)} of them measured: too few to tell what is usual, which takes {FEWEST}")
        return GroupRow(hardware, hosts, list(compared), {}, notes, common), []
    usual: dict[str, Spread] = {}
    found: list[tuple[str, str, Outlier]] = []
    for measure in MEASURES:
        each = {name: getattr(of, measure.name) for name, of in compared.items()}
        values = {name: value for name, value in each.items() if value is not None}
        spread, beyond = outliers(values, measure.floor, measure.ratio)
        if spread:
            usual[measure.name] = spread
            found += [(name, measure.name, outlier) for name, outlier in beyond.items()]
    differing = _differing(
        {name for name, _, _ in found}, {name: documents[name] for name in compared}, (*_WHAT, *_FIRMWARE)
    )
    odd = [
        OddRow(name, of, value, usual[of].median, ratio, score, score > 0, differing[name])
        for name, of, (value, ratio, score) in found
    ]
    return GroupRow(hardware, hosts, list(compared), usual, notes, common), odd


def alike(measured: Mapping[str, Measured]) -> tuple[dict[str, Measured], list[str]]:
    """The hosts whose run was about as long and as fine as most runs; a note about each of the others."""
    if not measured:
        return {}, []
    seconds = median(of.duration_s for of in measured.values())
    threshold = median(of.threshold_ns for of in measured.values())
    alike, notes = {}, []
    for name, of in measured.items():
        if not seconds / _LONGER <= of.duration_s <= seconds * _LONGER:
            each = f"{seconds_of(of.duration_s)}; the median is {seconds_of(seconds)}"
            notes.append(f"{name} is not compared: measured for {each}")
        elif not threshold / _COARSER <= of.threshold_ns <= threshold * _COARSER:
            each = f"gaps over {nanoseconds(of.threshold_ns)}; the median is {nanoseconds(threshold)}"
            notes.append(f"{name} is not compared: it counts {each}")
        else:
            alike[name] = of
    return alike, notes


def _differing(
    hosts: Collection[str], peers: Mapping[str, Summary], conditions: Collection[str]
) -> dict[str, list[str]]:
    """For each of these hosts, the conditions in which at least half of its peers agree on another value."""
    own = {name: conditions_of(document) for name, document in peers.items()}
    all_ways = {what: Counter(of[what] for of in own.values()) for what in conditions}
    differing = {}
    for host in hosts:
        texts = []
        for what, ways in all_ways.items():
            value, others = own[host][what], len(own) - 1
            common, count = next(((way, n) for way, n in ways.most_common(2) if way != value), ("", 0))
            if 2 * count >= max(others, 1) and (what in _WHAT or (value and common)):
                texts.append(f"{what} is {as_data(value, _NONE)}; {count} of {others} peers: {as_data(common, _NONE)}")
        differing[host] = texts
    return differing


_NONE = "not said"
_WHAT = ("the kernel", "tunectl", "the list of isolated CPUs", "the clock")
# Told of every host that says it: nothing else shows that one was left out of an update.
_FIRMWARE = (
    *("the microcode", "the BIOS", "the kernel's build", "the kernel's configuration"),
    "the firmware of network cards",
)
_NOTES = 20  # of a group


def conditions_of(document: Summary) -> dict[str, str]:
    """What may differ between hosts of the same hardware, by what it is called."""
    host, firmware = document.host, document.firmware
    cards = ", ".join(sorted({f"{card.driver} {card.version}" for card in firmware.cards}))
    values = (host.kernel, document.tunectl_version, document.isolated, document.clock)
    loaded = (host.microcode or "", host.bios or "", firmware.kernel_build, firmware.kernel_config, cards)
    return dict(zip((*_WHAT, *_FIRMWARE), (*values, *loaded), strict=True))
