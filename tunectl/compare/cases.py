"""Two results that are tables of cases, as those of `wake`, `feed`, `hedge` and `contention`, side by side. Pure."""

import math

from tunectl.compare.chance import Interval
from tunectl.compare.estimate import Sample, gap_percentile
from tunectl.compare.judged import Measure
from tunectl.compare.tables import LONGEST, ratio_of, row, without_bounds
from tunectl.errors import TunectlError
from tunectl.probe.lengths import Lengths
from tunectl.shapes import (
    FEED_STAGES,
    AnyCase,
    Case,
    CaseTable,
    ContentionCase,
    FeedCase,
    HedgeCase,
    Row,
    RowGroup,
)
from tunectl.wording import few

_SHARES = {"50": 0.5, "99": 0.01, "99.9": 0.001}
_MEASURES: dict[type[AnyCase], str] = {
    Case: "wake_ns",
    FeedCase: "due_to_book_ns",
    HedgeCase: "answer_ns",
    ContentionCase: "due_to_had_ns",
}
_ONE = "one observation has no bounds"
_ONE_A_RUN = "one figure a run"
# What two results have nothing in common of, and what to ask both for.
_ASKED = {
    "wake": ("wait method", "mechanisms and idle times"),
    "feed": ("case", "transports, formats, rates and so on"),
    "hedge": ("case", "loads, delays, service times and so on, both measured or both simulated"),
    "contention": ("case", "buffers, hand-overs, threads, bytes and rate"),
}
_NO_FIGURE = {
    "due_to_book_ns": "no figure in one of the runs: too few messages, too many of them lost, or no result",
    "answer_ns": "no figure in one of the runs: too few requests, too many of them missed, or no result",
    "due_to_had_ns": "no figure in one of the runs: too few buffers, or no result",
}


def case_groups(before: CaseTable, after: CaseTable, confidence: float) -> list[RowGroup]:
    """A table for each case that both runs have."""
    later: dict[tuple[object, ...], AnyCase] = {case.key: case for case in after.cases}
    pairs = [(case, later[case.key]) for case in before.cases if case.key in later]
    pairs = [pair for pair in pairs if pair[0].n or pair[1].n]  # a case that neither run could measure has no table
    return [RowGroup(pair[0].name, None, _rows(*pair, confidence)) for pair in pairs]


def _rows(before: AnyCase, after: AnyCase, confidence: float) -> list[Row]:
    """Percentiles with their bounds, the longest, and what each run has one figure of."""
    measure = _MEASURES[type(before)]
    rows = []
    for nines, share in _SHARES.items():
        sides = [_percentile(case, nines, share, confidence) for case in (before, after)]
        reason = "" if all(sides) else _NO_FIGURE.get(measure, "")
        rows.append(row((measure, nines), sides, ratio_of(*sides), reason))
    rows.append(without_bounds(LONGEST, [before.max_ns, after.max_ns], _ONE))
    first, second = _figures(before), _figures(after)
    return [*rows, *(without_bounds(of, [first[of], second[of]], _ONE_A_RUN) for of in first)]


def _percentile(case: AnyCase, nines: str, share: float, confidence: float) -> Interval | None:
    """A percentile; no end above where something decides it that was never sent, or never came."""
    if isinstance(case, Case):  # messages are sent one after the other with a pause between them: they are independent
        return gap_percentile(_sample(case), share, confidence)
    missing = case.missed
    interval = gap_percentile(_sample(case, missing), share, confidence) if case.at(nines) is not None else None
    if interval is None or not math.isfinite(interval.value):
        return None
    is_bound = isinstance(case, FeedCase) and case.is_bound(interval.high)
    return interval._replace(high=math.inf) if is_bound else interval


def _sample(case: AnyCase, lost: int = 0) -> Sample:
    lengths = [(min((low + high) / 2, case.max_ns or high), count) for low, high, count in case.histogram]
    return Sample(0.0, Lengths([*lengths, *([(math.inf, lost)] if lost else [])]), (), 0.0, ())


def _figures(case: AnyCase) -> dict[Measure, float | None]:
    """What hedging costs, and what was refused; the stages of a feed; the receiver's CPU, which is no void cell's."""
    if isinstance(case, ContentionCase):
        return {}
    if isinstance(case, HedgeCase):
        return {
            ("hedged_percent", None): 100 * case.hedged / case.n if case.n else None,
            ("missed_percent", None): 100 * case.missed / case.n if case.n else None,
            ("utilisation_percent", None): None if case.utilisation is None else 100 * case.utilisation,
        }
    figures: dict[Measure, float | None] = {}
    if isinstance(case, FeedCase):
        figures = {(f"{name}_ns", "50"): case.stage(name, "50") for name in FEED_STAGES}
    return {**figures, ("receiver_cpu_percent", None): case.receiver_cpu_percent if case.n else None}


def nothing_in_common(before: CaseTable, after: CaseTable, names: tuple[str, str]) -> TunectlError:
    """Why two results have no table; `names` are what they are called."""
    common = {case.key for case in before.cases} & {case.key for case in after.cases}
    alike: list[AnyCase] = [case for of in (before, after) for case in of.cases if case.key in common]
    if not alike:
        what, asked = _ASKED[before.kind]
        said = f"{names[0]} and {names[1]} have no {what} in common"
        return TunectlError(f"nothing to compare: {said}", f"probe both hosts with the same {asked}")
    what = "void" if all(case.is_void for case in alike) else "void or not measured"
    several = "three" if before.kind == "hedge" else "two"
    reasons = dict.fromkeys(case.reason.removeprefix("void: ") for case in alike if case.reason)
    said = f"every cell that {names[0]} and {names[1]} have in common is {what}: {few(reasons, between='; ')}"
    return TunectlError(f"nothing to compare: {said}", f"measure where nobody else wants the {several} CPUs")
