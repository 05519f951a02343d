"""A fleet's report for people: hosts that say the same gathered, figures in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tunectl.report.measures import nanoseconds, plain

VERDICTS = ("no-go", "unknown", "pending-reboot", "go")
MEANS = {
    "go": "every host is ready to trade",
    "no-go": "do not trade on the hosts below",
    "pending-reboot": "configured everywhere, but not in force everywhere before a reboot",
    "unknown": "could not find out enough about some hosts",
}
_WORDS = {"go": "GO", "no-go": "NO-GO", "pending-reboot": "pending reboot", "unknown": "UNKNOWN"}
MEASURES = {
    "max_ns": "longest",
    "p99_9_ns": "arrival P99.9",
    "interruptions_per_s": "interruptions",
    "stolen_ppm": "stolen",
    "loop_ns": "loop turn",
}


class Alike(NamedTuple):
    """Hosts with the same verdict and the same reasons."""

    verdict: str
    reasons: tuple[str, ...]
    hosts: tuple[str, ...]


def tally(counts: Mapping[str, int]) -> str:
    """`200 hosts: 3 NO-GO, 16 UNKNOWN, 181 GO`"""
    hosts = counts.get("hosts", 0)
    parts = [f"{counts.get(verdict, 0):,} {_WORDS[verdict]}" for verdict in VERDICTS if counts.get(verdict)]
    return f"{hosts:,} host{'' if hosts == 1 else 's'}" + (f": {', '.join(parts)}" if parts else "")


def alike(hosts: Iterable[Mapping[str, Any]]) -> list[Alike]:
    """The hosts gathered by verdict and reasons, the worst verdict first, in it the most hosts first."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for host in hosts:
        found.setdefault((host["verdict"], tuple(host["reasons"])), []).append(host["name"])
    made = [Alike(verdict, reasons, tuple(names)) for (verdict, reasons), names in found.items()]
    order = {verdict: place for place, verdict in enumerate(VERDICTS)}
    return sorted(made, key=lambda one: (order.get(one.verdict, 1), -len(one.hosts)))


def word(verdict: str) -> str:
    """A verdict as it is written for people."""
    return _WORDS.get(verdict, verdict)


def written(measure: str, value: float | None) -> str:
    """A figure with its unit; `-` where there is none."""
    if value is None:
        return "-"
    if measure.endswith("_ns"):
        return nanoseconds(value)
    return f"{plain(value)}/s" if measure == "interruptions_per_s" else f"{plain(value)} ppm"


def times(ratio: float) -> str:
    """How far from the median, as a factor."""
    return f"\N{MULTIPLICATION SIGN}{plain(ratio)}"


def odd_hosts(outliers: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """The outliers host by host, the oddest first."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for one in outliers:
        found.setdefault(one["host"], []).append(one)
    return list(found.items())
