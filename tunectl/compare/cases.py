"""Two results that are tables of cases, as those of `wake`, `feed`, `hedge` and `contention`, side by side. Pure."""

import math
from collections.abc import Callable, Iterable, Sequence

from tunectl.compare.chance import Interval
from tunectl.compare.estimate import Sample, gap_percentile
from tunectl.compare.judged import Measure
from tunectl.compare.tables import LONGEST, ratio_of, row, without_bounds
from tunectl.errors import TunectlError
from tunectl.probe.lengths import Lengths
from tunectl.shapes import (
    FEED_STAGES,
    AnyCase,
    Bucket,
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
_BUSY: Measure = ("receiver_cpu_percent", None)
DueCase = FeedCase | HedgeCase | ContentionCase
_DUE: dict[type[DueCase], str] = {
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
    return [RowGroup(pair[0].name, None, _rows(pair, confidence)) for pair in pairs]


def _rows(pair: tuple[AnyCase, AnyCase], confidence: float) -> list[Row]:
    before, after = pair
    if isinstance(before, ContentionCase) and isinstance(after, ContentionCase):
        return _due_rows(before, after, confidence)
    if isinstance(before, HedgeCase) and isinstance(after, HedgeCase):
        return [*_due_rows(before, after, confidence), *_hedge_rows(before, after)]
    if isinstance(before, FeedCase) and isinstance(after, FeedCase):
        rows = [*_due_rows(before, after, confidence), *_stage_rows(before, after)]
    else:
        rows = _wake_rows(pair, confidence)
    return [*rows, without_bounds(_BUSY, [_busy(case) for case in pair], _ONE_A_RUN)]


def _busy(case: AnyCase) -> float | None:
    """The receiver's CPU; of a void cell it is no cost."""
    return case.receiver_cpu_percent if case.n and isinstance(case, Case | FeedCase) else None


def _wake_rows(pair: Sequence[AnyCase], confidence: float) -> list[Row]:
    """Messages are sent one after the other with a pause between them, so they count as independent."""
    samples = [_sample(case) for case in pair]
    rows = []
    for nines, share in _SHARES.items():
        sides = [gap_percentile(side, share, confidence) for side in samples]
        rows.append(row(("wake_ns", nines), sides, ratio_of(*sides)))
    return [*rows, without_bounds(LONGEST, [case.max_ns for case in pair], _ONE)]


def _due_rows(before: DueCase, after: DueCase, confidence: float) -> list[Row]:
    measure = _DUE[type(before)]
    rows = []
    for nines, share in _SHARES.items():
        sides = [_due(case, nines, share, confidence) for case in (before, after)]
        reason = "" if all(sides) else _NO_FIGURE[measure]
        rows.append(row((measure, nines), sides, ratio_of(*sides), reason))
    return [*rows, without_bounds(LONGEST, [before.max_ns, after.max_ns], _ONE)]


def _due(case: DueCase, nines: str, share: float, confidence: float) -> Interval | None:
    """A percentile; no end above where something decides it that was never sent, or never came."""
    missing = case.n - case.counted if case.n else 0
    interval = gap_percentile(_sample(case, missing), share, confidence) if case.at(nines) is not None else None
    if interval is None or not math.isfinite(interval.value):
        return None
    is_bound = isinstance(case, FeedCase) and case.is_bound(interval.high)
    return interval._replace(high=math.inf) if is_bound else interval


def _hedge_rows(before: HedgeCase, after: HedgeCase) -> list[Row]:
    """What hedging costs, and what was refused: one figure a run each."""
    figures: tuple[tuple[str, Callable[[HedgeCase], float | None]], ...] = (
        ("hedged_percent", lambda case: 100 * case.hedged / case.n if case.n else None),
        ("missed_percent", lambda case: 100 * case.missed / case.n if case.n else None),
        ("utilisation_percent", lambda case: None if case.utilisation is None else 100 * case.utilisation),
    )
    return [without_bounds((name, None), [of(before), of(after)], _ONE_A_RUN) for name, of in figures]


def _stage_rows(before: FeedCase, after: FeedCase) -> list[Row]:
    return [
        without_bounds((f"{name}_ns", "50"), [case.stage(name, "50") for case in (before, after)], _ONE_A_RUN)
        for name in FEED_STAGES
    ]


def _sample(case: AnyCase, lost: int = 0) -> Sample:
    lengths = [*_lengths(case.histogram, case.max_ns), *([(math.inf, lost)] if lost else [])]
    return Sample(0.0, Lengths(lengths), (), 0.0, ())


def _lengths(histogram: Iterable[Bucket], longest: float | None) -> Iterable[tuple[float, int]]:
    return ((min((low + high) / 2, longest or high), count) for low, high, count in histogram)


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
