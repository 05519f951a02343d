"""May a reader of a preflight document repeat its GO? The document is judged again, by our own judge. Pure.

Only where nothing else in the document contradicts it. Earlier versions said GO with less, and a document may have
been edited or put together from two. What it does not say is not proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

from tunectl.cpulist import CpuSet, format_cpulist, parse_cpulist
from tunectl.errors import TunectlError, UsageError
from tunectl.model import Outcome
from tunectl.probe.budget import KEYS, judge
from tunectl.probe.result import check_result
from tunectl.verdict import SECTIONS, is_proof

# The verdicts beside which GO can stand. `check` is "unreadable" where only the engine's own threads were to be judged.
_ALLOWED = {
    "verify": ("its settings", ("compliant",)),
    "check": ("its checks", ("compliant", "unreadable")),
}
# The knobs that are left unread where reading would interrupt an isolated CPU, for whom the table of knobs is too high.
SPARED = frozenset(
    {
        "cpufreq.energy_perf_bias",
        "cpufreq.energy_performance_preference",
        "uncore.max_khz",
        "uncore.min_khz",
    }
)
_OUTCOMES = frozenset(Outcome)
# What else a preflight does takes seconds; and the clock of a host may be set meanwhile.
BESIDE_THE_RUN = timedelta(minutes=5)


def doubt_of_go(document: Mapping[str, Any]) -> str:
    """Why the GO of a tunectl.preflight/1 document cannot be repeated, after "it says GO, and"; "" where it can.

    The document's types were checked when it was read. When it was made is for the reader to judge.
    """
    probe = document.get("probe")
    if not probe:
        return "measured nothing"
    parts = (_said(probe), _part_of(document, probe), _measured(document, probe), _again(probe))
    return next(chain(*parts, _reasons(document), _sections(document), _findings(document)), "")


def moment_of(text: str) -> datetime | None:
    """A time of RFC 3339; None for anything else."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _said(probe: Mapping[str, Any]) -> Iterator[str]:
    """Does it say that it ran to its end, and kept within limits that exist?"""
    budget = probe.get("budget") or {}
    limits = budget.get("limits") or {}
    verdict, reason, short = (budget.get(key) or "" for key in ("verdict", "reason", "not_judged"))
    if probe.get("interrupted"):
        yield "its probe was interrupted"
    for text in budget.get("broken") or ():
        yield f"its probe broke a limit: {text}"
    if verdict == "broken":
        yield "its probe broke a limit"
    if all(limit is None for limit in limits.values()):
        yield "judged nothing: its probe was held to no limit"
    if missing := [key for key in KEYS if limits.get(key) is None]:
        yield f"its probe was held to no limit of {', '.join(missing)}"
    if short:
        yield f"its probe was not judged by a limit: {short[0]}"
    if verdict != "within":
        yield f"its probe was not judged: {reason or 'no reason is given'}"


def _part_of(document: Mapping[str, Any], probe: Mapping[str, Any]) -> Iterator[str]:
    """Did it run on this boot of this host, within the time of this preflight?"""
    boot, probed = ((one.get("host") or {}).get("boot_id") or "" for one in (document, probe))
    if not boot or not probed:
        yield "does not say on which boot its probe ran"
    if boot != probed:
        yield f"its probe ran on another boot: {probed}, not {boot}"
    texts = [one.get("at") or "" for one in (document, probe)]
    made, ran = map(moment_of, texts)
    if made is None or ran is None:
        yield "does not say when its probe ran"
    elif not -BESIDE_THE_RUN <= made - ran <= BESIDE_THE_RUN + timedelta(seconds=probe["duration_s"]):
        yield f"its probe ran at another time: {texts[1]}, and it is of {texts[0]}"


def _measured(document: Mapping[str, Any], probe: Mapping[str, Any]) -> Iterator[str]:
    """Was every isolated CPU measured that is online, and no other?"""
    for one in (*(probe.get("not_measured") or ()), *(document.get("beside") or ())):
        yield f"CPU {one['cpu']} was left out of its probe"
    isolated, online = (_cpus((document.get("cpu_sets") or {}).get(key)) for key in ("isolated", "online"))
    expected, found = isolated & online, {cpu["cpu"] for cpu in probe["cpus"]}
    if not expected:
        yield "does not say which CPU is isolated and online"
    if missed := expected - found:
        yield f"its probe did not measure CPU {format_cpulist(missed)}, isolated as it says"
    if others := found - expected:
        yield f"its probe measured CPU {format_cpulist(others)}, not isolated as it says"


def _cpus(text: str | None) -> CpuSet:
    try:
        return parse_cpulist(text or "")
    except UsageError:
        return frozenset()


def _again(probe: Mapping[str, Any]) -> Iterator[str]:
    """Do the figures themselves keep within the limits that it states?"""
    if any("99.9" not in cpu["arrival_ns"] for cpu in probe["cpus"]):
        yield "its probe cannot be judged again: it lacks the 99.9 of arrival_ns"
        return
    try:
        judged = judge(check_result(probe, "probe"), probe["budget"]["limits"])
    except TunectlError as error:
        yield f"its probe cannot be judged again: {error.message}"
        return
    for text in judged["broken"]:
        yield f"the figures of its probe break a limit: {text}"
    if judged["verdict"] != "within":
        yield f"the figures of its probe prove nothing: {judged['reason']}"


def _reasons(document: Mapping[str, Any]) -> Iterator[str]:
    for reason in document.get("reasons") or ():
        yield f"gives a reason against it: {reason}"


def _sections(document: Mapping[str, Any]) -> Iterator[str]:
    for name, (what, allowed) in _ALLOWED.items():
        section = document.get(name) or {}
        if not section.get("findings"):
            yield f"judged none of {what}: {name} is empty"
        elif section.get("verdict") not in allowed:
            yield f"its {name} says {section.get('verdict') or 'nothing'}"


def _findings(document: Mapping[str, Any]) -> Iterator[str]:
    waivers = (document.get("waivers") or {}).get("standing") or 0
    for one in chain.from_iterable((document.get(name) or {}).get("findings") or () for name in SECTIONS):
        outcome, named = one["outcome"], f"{one['target']} in it is {one['outcome']}"
        if outcome not in _OUTCOMES:
            yield f"{named}, which tunectl does not know"
        elif outcome == Outcome.WAIVED and not waivers:
            yield f"{named}, and no waiver stands"
        elif _counts_against(one, outcome, document.get("strict") is True):
            yield named


def _counts_against(one: Mapping[str, Any], outcome: str, strict: bool) -> bool:
    if outcome == Outcome.REFUSED:
        return bool(one.get("harmful", True))
    if outcome == Outcome.UNREADABLE:
        return strict or is_proof(one["knob"], SPARED)
    return outcome in (Outcome.DRIFTED, Outcome.PENDING_REBOOT)
