"""The one verdict of preflight: verify + check + probe + thermal state, with every reason. Pure.

GO means measured and judged (docs/interface.md): without a probe that was held to its limits it is never said.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from tunectl.cpulist import format_cpulist
from tunectl.fix import NOTHING, Fix
from tunectl.model import Finding, Outcome, cost
from tunectl.shapes import SMIS, Feed, Jitter, Smis
from tunectl.verdict import fails_gate, is_proof, verdict_of
from tunectl.wording import FEED, PROBE, UNDER_LOAD, broken_limits, plural, seconds_of, sentence, standing, written

STOP = "GO needs them stopped, or --intrude"


class Problem(NamedTuple):
    """Why something was not measured, or proves nothing; false where there is none."""

    what: str = ""  # was to be measured
    why: str = ""
    is_taken: bool = False  # somebody else's threads have the CPUs
    mending: Fix = NOTHING  # the command that mends it, where there is one

    def __bool__(self) -> bool:
        return bool(self.why)

    def __str__(self) -> str:
        return f"{self.what}: {self.why}" + (f"; {STOP}" if self.is_taken else "")


NO_PROBLEM = Problem()
_NOT_COUNTED = Smis()


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What preflight gathered. `probe` is None, with the cause, where it could not be had."""

    verify: tuple[Finding, ...] = ()
    check: tuple[Finding, ...] = ()
    thermal: tuple[Finding, ...] = ()
    thermal_verdict: str  # ok, throttled, unknown
    thermal_reason: str = ""
    probe: Jitter | None = None
    probe_problem: Problem = NO_PROBLEM
    beside: tuple[str, ...] = ()  # limits that counts alone show to be broken, on CPUs that were not probed
    not_measured: tuple[str, ...] = ()  # CPUs that were left to somebody else's threads, and what would measure them
    spared: frozenset[str] = frozenset()  # knobs that are left unread where reading would interrupt an isolated CPU
    unlimited: tuple[str, ...] = ()  # keys of [budget] that neither the profile nor the host file has
    loaded: Jitter | None = None  # the probe once more, beside a load, where one was asked for
    load_problem: Problem = NO_PROBLEM  # why it was not
    feed: Feed | None = None  # `probe feed`, where it was asked for
    feed_problem: str = ""  # why it was not measured
    smis: Smis = _NOT_COUNTED  # of the host, while preflight ran
    smi_limit: float | None = None  # a second
    stopped: str = ""  # when Ctrl-C came; "" where it did not


class Reason(NamedTuple):
    """Why a verdict is not GO. `about`: the knob, or what was measured where a limit broke; "" for anything else."""

    about: str
    text: str


def decide(parts: Parts, strict: bool) -> tuple[str, list[Reason]]:
    """(go | no-go | pending-reboot | unknown, every reason). What is unknown never improves a verdict; `strict` lets
    also count what is no part of the proof."""
    every = (*parts.verify, *parts.check, *parts.thermal)
    failing = sorted(filter(fails_gate, every), key=lambda finding: cost(finding.severity))
    # A limit that broke beside a load broke, whatever became of the load later.
    broken = [
        Reason(broken_limit.what, broken_limit.reason)
        for broken_limit in broken_limits(parts.probe, parts.loaded, parts.feed)
    ]
    reasons = [*_gathered(failing), *broken, *_plain(parts.beside), *_plain(_smis(parts))]
    unknown = _plain([parts.stopped] * bool(parts.stopped) + _unjudged(parts) + list(parts.not_measured))
    unknown += _plain(_unjudged_too(UNDER_LOAD, parts.load_problem, parts.loaded))
    unknown += _plain(_unjudged_too(FEED, parts.feed_problem, parts.feed))
    unreadable = [finding for finding in every if finding.outcome is Outcome.UNREADABLE]
    missed = [finding for finding in unreadable if strict or is_proof(finding.knob, parts.spared)]
    if verdict_of(parts.verify) == "unreadable" and not missed:
        unknown += _plain(["no knob could be read"])
    unknown += _gathered(missed)
    unknown += _plain(f"probe: neither the profile nor the host file limits {key}" for key in parts.unlimited)
    stops = parts.probe.simultaneous_stops if parts.probe else None
    shown = parts.smis.count is not None or (stops is not None and stops.count is not None)
    if strict and parts.smi_limit is not None and not shown:
        unknown += _plain([f"SMIs: {parts.smis.reason}"])
    if strict and parts.thermal_verdict == "unknown":
        unknown += _plain([f"thermal state: {parts.thermal_reason}"])
    pending = [finding for finding in every if finding.outcome is Outcome.PENDING_REBOOT]
    verdict = "no-go" if reasons else "unknown" if unknown else "pending-reboot" if pending else "go"
    return verdict, reasons + unknown + _gathered(pending)


def _smis(parts: Parts) -> Iterator[str]:
    """A reason where more came than the limit permits, though not while the probe measured."""
    rate, limit = parts.smis.per_s(0.0), parts.smi_limit
    told = parts.probe and SMIS in parts.probe.budget.broken_limits
    if rate is not None and limit is not None and rate > limit and not told:
        count = plural(parts.smis.count or 0, "SMI")
        took, allowed = seconds_of(parts.smis.seconds), written(SMIS, limit)
        yield f"{count} in {took} while the checks ran, allowed {allowed} ({SMIS})"


def _plain(texts: Iterable[str]) -> list[Reason]:
    return [Reason("", text) for text in texts]


def _unjudged(parts: Parts) -> list[str]:
    """Why the probe proves nothing; nothing where it was held to its limits, whether it kept them or not."""
    if parts.probe_problem:
        return [str(parts.probe_problem)]
    if parts.probe is None:
        return [] if parts.not_measured else ["probe: nothing was measured"]
    return _unjudged_too(PROBE, NO_PROBLEM, parts.probe)


def _unjudged_too(what: str, problem: Problem | str, result: Jitter | Feed | None) -> list[str]:
    """The same of what was measured besides, where it was asked for."""
    if problem:
        return [str(problem)]
    if result is None or result.budget.verdict in ("within", "broken"):
        return []
    return [f"{what}: not judged: {result.budget.reason or 'it was held to no limit'}"]


def _gathered(findings: Iterable[Finding]) -> list[Reason]:
    """One line for all targets of a knob with the same observed value, desired value and fix."""
    groups: dict[tuple[Any, ...], list[Finding]] = {}
    for finding in findings:
        fix = NOTHING if finding.knob.startswith("check.") else finding.fix
        key = (finding.knob, finding.outcome, str(finding.observed), str(finding.desired), fix)
        groups.setdefault(key, []).append(finding)
    reasons = []
    for members in groups.values():
        first, names = members[0], [finding.instance for finding in members]
        if all(name.isdecimal() for name in names):
            names = [format_cpulist(map(int, names))]
        name = f"{first.knob}[{','.join(names)}]" if any(names) else first.knob
        several = len({finding.reason for finding in members})
        more = f" (the first of {several} such reasons)" if several > 1 and first.reason else ""
        line = sentence(name, standing(first), first.reason) + more
        reasons.append(Reason(first.knob, line.rstrip(".") + (f"; fix: {first.fix}" if first.fix else "")))
    return reasons
