"""Is a change fit for the whole fleet? The hosts that have it, the canary, against their peers of the session. Pure.

Hosts are the unit, not gaps: what is settled once for a host, as its card or its place in the rack, stays on it however
long it is measured. So the bounds of one host say nothing of the next one.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from tunectl.command import as_data
from tunectl.compare.chance import holm, share_interval
from tunectl.compare.ranks import Stratum, chance_of, factor_of
from tunectl.errors import TunectlError
from tunectl.fleet.body import Round, Verdict, of_now, round_of
from tunectl.fleet.judge import Judged, counts, judge
from tunectl.fleet.peers import alike, conditions_of
from tunectl.fleet.records import MEASURES, VERDICTS, Asked, Measure, Measured, MeasureName, Session
from tunectl.shapes import Amount, Bounds, Count, Hardware, fields_of, words
from tunectl.wording import few, plural

# What a canary may be known by, as `--canary kernel=6.12.9`: a condition that peers are compared by.
FACTS = {
    "kernel": "the kernel",
    "build": "the kernel's build",
    "microcode": "the microcode",
    "bios": "the BIOS",
    "cards": "the firmware of network cards",
    "tunectl": "tunectl",
    "isolated": "the list of isolated CPUs",
}
_NOTES = 20


class Canary(NamedTuple):
    """Who has the change: `hosts`, or those whose document says that `fact` is `value`."""

    said: str
    hosts: frozenset[str] = frozenset()
    fact: str = ""
    value: str = ""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """How many hosts of the canary are NO-GO, against what is permitted."""

    verdict: Verdict
    hosts: Count
    no_go: Count
    not_known: Annotated[Count, Meta(description="Neither GO nor NO-GO; each may be one.")]
    low_percent: Annotated[Amount, Meta(description="With none of those that are not known.")]
    high_percent: Annotated[Amount, Meta(description="With all of those that are not known.")]
    max_no_go_percent: Amount
    fewest: Annotated[Count, Meta(description="Hosts that it takes, all of them GO, for the verdict go.")]


class FigureRow(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of the canary's hosts against that of their peers of the same hardware."""

    measure: MeasureName
    verdict: Annotated[str, words("go", "no-go", "unknown")]
    hosts: Annotated[Count, Meta(description="Of the canary, that are compared.")]
    peers: Count
    ratio: Annotated[Bounds, Meta(description="Canary over peers. high is null where too few hosts bound it.")]
    chance: Annotated[float, Meta(description="Of lying so far apart, were nothing different; Holm's, of all figures.")]
    tolerated_ratio: Annotated[Amount, Meta(description="Nobody would notice less.")]


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """What `tunectl fleet gate` says: may what the canary has go to all hosts?"""

    verdict: Annotated[Verdict, Meta(description="no-go if one of both judgements is; else unknown if one is.")]
    session: Round
    canary: Annotated[str, Meta(description="As it was asked for.")]
    confidence: Annotated[float, Meta(description="Of all bounds; its rest to 1 is the level of the tests.")]
    share: Share
    figures: Annotated[list[FigureRow], Meta(description="Of each host's worst isolated CPU.")]
    hosts: Annotated[dict[str, list[str]], Meta(description="Of the canary, by verdict.")]
    peers: Annotated[dict[str, Count], Meta(description="How many others, by verdict.")]
    notes: Annotated[list[str], Meta(description="What the reader should know beside the result.")]


def gate_body(
    session: Session, asked: Iterable[Asked], now: str, canary: Canary, max_no_go: float, confidence: float
) -> dict[str, Any]:
    """The fields of tunectl.fleet.gate/1. `max_no_go`: a share of the canary, between 0 and 1. `now`: UTC, RFC 3339.

    TunectlError where no host is of the canary.
    """
    judged = judge(session, asked, now)
    facts = {name: conditions_of(document) for name, document in of_now(judged)}
    own, others = ([one for one in judged if _has(one.name, canary, facts) is has] for has in (True, False))
    unclear = [one for one in own if canary.fact and one.name not in facts]
    if not own:
        racks = sorted({as_data(rack) for _, rack in session.racks})
        hint = f"racks: {few(racks, 10)}" if racks else "a rack, a list of hosts (@FILE) or a fact names it"
        raise TunectlError(f"no host of {session.name} is of the canary {canary.said}", hint)
    share = _share(own, max_no_go, confidence)
    figures, notes = _figures(own, others, confidence)
    alone = len(own) - max((row.hosts for row in figures), default=0)
    if alone:
        notes.insert(0, f"{plural(alone, 'host')} of the canary: not measured, or no peers of the same hardware")
    if unclear:
        notes.append(f"{plural(len(unclear), 'host')} left no document of now, and may have the change")
    if not session.hosts:
        notes.append("no list says who was asked: a host that left no document is missing here")
    verdicts = {share.verdict, *(row.verdict for row in figures)}
    if alone > max_no_go * len(own):  # their figures may be anything
        verdicts.add("unknown")
    gate = Gate(
        verdict=next(verdict for verdict in VERDICTS if verdict in verdicts),
        session=round_of(session),
        canary=canary.said,
        confidence=confidence,
        share=share,
        figures=figures,
        hosts={verdict: [one.name for one in own if one.verdict == verdict] for verdict in VERDICTS},
        peers=counts(others),
        notes=notes,
    )
    body: dict[str, Any] = fields_of(gate)
    return body


def _has(name: str, canary: Canary, facts: Mapping[str, Mapping[str, str]]) -> bool:
    """Has the host the change? One that does not say counts as one that has: it may have been lost to the change."""
    if not canary.fact:
        return name in canary.hosts
    return name not in facts or facts[name][FACTS[canary.fact]] == canary.value


def _share(own: Sequence[Judged], max_no_go: float, confidence: float) -> Share:
    """The share of NO-GO with its bounds: who is not known may be one. GO needs an upper bound within the limit."""
    found = counts(own)
    no_go, not_go, hosts = found["no-go"], len(own) - found["go"], len(own)
    bounds = share_interval(no_go, not_go, hosts, confidence)
    booted = share_interval(no_go, not_go - found["pending-reboot"], hosts, confidence)
    verdict = "no-go" if bounds.low > max_no_go else "go" if bounds.high <= max_no_go else "unknown"
    if found["pending-reboot"] and verdict != "no-go" and booted.high <= max_no_go:
        verdict = "pending-reboot"
    return Share(
        verdict=verdict,
        hosts=hosts,
        no_go=no_go,
        not_known=not_go - no_go,
        low_percent=100 * bounds.low,
        high_percent=100 * bounds.high,
        max_no_go_percent=100 * max_no_go,
        fewest=math.ceil(math.log((1 - confidence) / 2) / math.log1p(-max_no_go)),
    )


def _figures(own: Sequence[Judged], others: Sequence[Judged], confidence: float) -> tuple[list[FigureRow], list[str]]:
    """Each figure that somebody measured, of hosts of the same hardware; and who was not measured as others were."""
    changed = frozenset(one.name for one in own)
    kinds: dict[Hardware, dict[str, Measured]] = {}
    for one in (*own, *others):
        document = one.asked.document
        if document and document.hardware and document.figures and one.verdict in ("go", "no-go"):
            kinds.setdefault(document.hardware, {})[one.name] = document.figures
    measured: list[Mapping[str, Measured]] = []
    notes: list[str] = []
    for of in kinds.values():
        compared, told = alike(of)
        measured.append(compared)
        notes += told
    strata = {measure: [*_strata(measure, measured, changed)] for measure in MEASURES}
    known = {measure: of for measure, of in strata.items() if of}
    chances = holm({measure: chance_of(of) for measure, of in known.items()})
    rows = [_row(measure, of, chances[measure], confidence) for measure, of in known.items()]
    return rows, notes[:_NOTES]


def _strata(measure: Measure, kinds: Iterable[Mapping[str, Measured]], changed: Set[str]) -> Iterator[Stratum]:
    """The values of peers and of the canary, hardware by hardware, where both sides have some."""
    for of in kinds:
        sides: tuple[list[float], list[float]] = [], []
        for name, figures in of.items():
            value = getattr(figures, measure.name)
            if value is not None:
                sides[name in changed].append(max(value, measure.floor))
        if all(sides):
            yield sides


def _row(measure: Measure, strata: Sequence[Stratum], chance: float, confidence: float) -> FigureRow:
    """GO where the bounds exclude what somebody would notice; NO-GO where the figure is worse for certain."""
    ratio = factor_of(strata, confidence)
    is_worse = ratio.value > 1 and chance <= 1 - confidence
    return FigureRow(
        measure=measure.name,
        verdict="go" if ratio.high < measure.ratio else "no-go" if is_worse else "unknown",
        hosts=sum(len(changed) for _, changed in strata),
        peers=sum(len(peers) for peers, _ in strata),
        ratio=Bounds(ratio.value, ratio.low, ratio.high if math.isfinite(ratio.high) else None),
        chance=float(f"{chance:.3g}"),
        tolerated_ratio=measure.ratio,
    )
