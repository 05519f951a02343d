"""Two results that are tables of cases, as those of `wake` and of `feed`, side by side. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from tunectl.compare.bounds import Interval
from tunectl.compare.estimate import gap_percentile
from tunectl.compare.judged import Measure
from tunectl.compare.sample import Sample
from tunectl.compare.tables import LONGEST, ratio_of, row, without_bounds
from tunectl.errors import TunectlError
from tunectl.probe.lengths import Lengths
from tunectl.shapes import FEED_STAGES, Bucket, Case, Feed, FeedCase, Wake
from tunectl.wording import few

Table = Wake | Feed
AnyCase = Case | FeedCase
_SHARES = {"50": 0.5, "99": 0.01, "99.9": 0.001}
_BUSY: Measure = ("receiver_cpu_percent", None)
_ONE = "one observation has no bounds"
_ONE_A_RUN = "one figure a run"
_NO_FIGURE = "no figure in one of the runs: too few messages, too many of them lost, or no result"


def case_groups(before: Table, after: Table, confidence: float) -> list[dict[str, Any]]:
    """A table for each case that both runs have."""
    later: dict[tuple[object, ...], AnyCase] = {case.key: case for case in after.cases}
    pairs = [(case, later[case.key]) for case in before.cases if case.key in later]
    pairs = [pair for pair in pairs if pair[0].n or pair[1].n]  # a case that neither run could measure has no table
    return [{"name": pair[0].name, "cpu": None, "rows": _rows(pair, confidence)} for pair in pairs]


def _rows(pair: tuple[AnyCase, AnyCase], confidence: float) -> list[dict[str, Any]]:
    before, after = pair
    if isinstance(before, FeedCase) and isinstance(after, FeedCase):
        rows = [*_due_rows(before, after, confidence), *_stage_rows(before, after)]
    else:
        rows = _wake_rows(pair, confidence)
    shares = [case.receiver_cpu_percent if case.n else None for case in pair]  # of a void cell it is no cost
    return [*rows, without_bounds(_BUSY, shares, _ONE_A_RUN)]


def _wake_rows(pair: Sequence[AnyCase], confidence: float) -> list[dict[str, Any]]:
    """Messages are sent one after the other with a pause between them, so they count as independent."""
    samples = [_sample(case) for case in pair]
    rows = []
    for nines, share in _SHARES.items():
        sides = [gap_percentile(side, share, confidence) for side in samples]
        rows.append(row(("wake_ns", nines), sides, ratio_of(*sides)))
    return [*rows, without_bounds(LONGEST, [case.max_ns for case in pair], _ONE)]


def _due_rows(before: FeedCase, after: FeedCase, confidence: float) -> list[dict[str, Any]]:
    rows = []
    for nines, share in _SHARES.items():
        sides = [_due(case, nines, share, confidence) for case in (before, after)]
        reason = "" if all(sides) else _NO_FIGURE
        rows.append(row(("due_to_book_ns", nines), sides, ratio_of(*sides), reason))
    return [*rows, without_bounds(LONGEST, [before.max_ns, after.max_ns], _ONE)]


def _due(case: FeedCase, nines: str, share: float, confidence: float) -> Interval | None:
    """A percentile; no end above where a message that was never sent, or never came, decides it."""
    found = gap_percentile(_sample(case, case.lost), share, confidence) if case.at(nines) is not None else None
    if found is None or not math.isfinite(found.value):
        return None
    return found._replace(high=math.inf) if case.is_bound(found.high) else found


def _stage_rows(before: FeedCase, after: FeedCase) -> list[dict[str, Any]]:
    return [
        without_bounds((f"{name}_ns", "50"), [case.stage(name, "50") for case in (before, after)], _ONE_A_RUN)
        for name in FEED_STAGES
    ]


def _sample(case: AnyCase, lost: int = 0) -> Sample:
    lengths = [*_lengths(case.histogram, case.max_ns), *([(math.inf, lost)] if lost else [])]
    return Sample(0.0, Lengths(lengths), (), 0.0, ())


def _lengths(histogram: Iterable[Bucket], longest: float | None) -> Iterable[tuple[float, int]]:
    return ((min((low + high) / 2, longest or high), count) for low, high, count in histogram)


def nothing_in_common(before: Table, after: Table, names: tuple[str, str]) -> TunectlError:
    """Why two results have no table; `names` are what they are called."""
    common = {case.key for case in before.cases} & {case.key for case in after.cases}
    alike: list[AnyCase] = [case for of in (before, after) for case in of.cases if case.key in common]
    if not alike:
        what = "wait method" if isinstance(before, Wake) else "case"
        asked = "mechanisms and idle times" if isinstance(before, Wake) else "transports, formats, rates and so on"
        said = f"{names[0]} and {names[1]} have no {what} in common"
        return TunectlError(f"nothing to compare: {said}", f"probe both hosts with the same {asked}")
    what = "void" if all(case.is_void for case in alike) else "void or not measured"
    reasons = dict.fromkeys(case.reason.removeprefix("void: ") for case in alike if case.reason)
    said = f"every cell that {names[0]} and {names[1]} have in common is {what}: {few(reasons, between='; ')}"
    return TunectlError(f"nothing to compare: {said}", "measure where nobody else wants the two CPUs")
