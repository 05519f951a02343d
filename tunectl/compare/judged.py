"""The verdict of a comparison: three measures over all CPUs together decide, corrected for being three. Pure.

Two runs are compared by how each went over its time, in BATCHES equal parts that are exchangeable where nothing differs
and nothing lasts longer than a part. Sets of runs are compared run by run, and against what a drift of the host would
make of them.
"""

import math
from collections.abc import Mapping, Sequence

from tunectl.compare.chance import Interval, correlation_time, fewest_runs, holm, permuted, ranked, trend
from tunectl.compare.drift import Course, judge_drift, untimed_course
from tunectl.compare.estimate import Sample
from tunectl.probe.lengths import Lengths
from tunectl.shapes import DecidingRow, Difference
from tunectl.wording import nanoseconds, percent

Measure = tuple[str, str | None]
Sides = tuple[Sequence[float], Sequence[float]]
ARRIVAL: Measure = ("arrival_ns", "99.9")
RATE: Measure = ("interruptions_per_s", None)
STOLEN: Measure = ("stolen_ppm", None)
NAMES = {ARRIVAL: "arrival P99.9", RATE: "their number", STOLEN: "stolen time"}
DECIDING = (ARRIVAL, RATE, STOLEN)

BATCHES = 8  # all C(16, 8) ways to deal them out are visited
_SHORT = 0.04  # of a run: what lasts longer makes neighbouring batches alike, which the test takes for a difference
# Two runs are called different at a fifth of the level: in storms, of which a run has few, half of the false calls have
# the wrong sign, and these have to be rare.
_STRICTER = 5
_FEWEST_SLICES = 3  # of a course: what lasts less cannot be told from chance
_LONG = 0.1  # of a run: a run ten times as long is better spent on several runs
_DRIFTS = 0.005  # the chance of a trend below which it is taken for one, times six looks
_DRIFTED = 1.1  # between the halves of a run; a smaller trend is left alone
_WIDE = 2.0  # bounds that hold a doubling or a halving say nothing
_FEWEST_INTERVALS = 40
_AS_LONG = 1.1

_QUIET = "nothing interrupted either side", "measure longer, or count shorter gaps (--threshold-ns)"
SEVERAL = "compare several runs a side: `tunectl probe jitter --runs {runs}` before and after"


def judge_runs(
    before: Sample, after: Sample, ratios: Mapping[Measure, Interval | None], confidence: float
) -> Difference:
    """The verdict on two runs. `ratios` are those of the table: after / before with their bounds; None for 0 / 0."""
    if not _as_long(before.run_ns, after.run_ns):
        reason = " and ".join(nanoseconds(side.run_ns) for side in (before, after))
        reason = f"the runs last {reason} of CPU time"
        return _verdict("runs", {}, ratios, 0.0, reason, "measure both for the same time")
    if not ratios[RATE]:
        return _verdict("runs", {}, ratios, 0.0, *_QUIET)
    courses = courses_of(before, after)
    chances = dict.fromkeys(DECIDING, 1.0)
    chances |= {measure: permuted(*map(batches, sides)) for measure, sides in courses.items()}
    corrected = holm(chances)
    runs = fewest_runs(confidence, len(DECIDING))
    reason, helps = _doubt_of_runs(courses, runs)
    level = (1 - confidence) / _STRICTER
    if not reason and min(corrected.values()) > level:
        reason, helps = _too_wide(ratios, "make the runs {times} times as long")
    return _verdict("runs", corrected, ratios, level, reason, helps)


def judge_sets(
    sides: Mapping[Measure, Sides],
    ratios: Mapping[Measure, Interval | None],
    confidence: float,
    names: tuple[str, str] = ("before", "after"),
    course: Course | None = None,
) -> Difference:
    """The verdict on two sets of runs: what each run had, the ratios of the table, and when the runs were."""
    counts = [len(side) for side in sides[RATE]]
    fewest = fewest_runs(confidence, len(DECIDING))
    if min(counts) < fewest:
        reason = f"runs {names[0]}: {counts[0]}, {names[1]}: {counts[1]}; below {fewest} a side they give no verdict"
        return _verdict("sets", {}, ratios, 0.0, reason, SEVERAL.format(runs=fewest))
    if not ratios[RATE]:
        return _verdict("sets", {}, ratios, 0.0, *_QUIET)
    chances, level = {}, 1 - confidence
    for measure in DECIDING:
        first, second = sides[measure]
        ranks = ranked([*first, *second])
        chances[measure] = permuted(ranks[: len(first)], ranks[len(first) :])
    corrected = holm(chances)
    course = course or untimed_course(*counts)
    drifts = {measure: judge_drift(*sides[measure], course) for measure in DECIDING}
    either = {measure: max(chance, drifts[measure].of_step) for measure, chance in corrected.items()}
    reason, helps = "", ""
    if min(either.values()) > level:
        if min(corrected.values()) <= level:
            reason, helps = "a drift of the host from run to run would explain the difference", _further(course)
        elif (wide := _too_wide(ratios, ""))[0]:
            reason = f"runs of one side disagree with each other: {wide[0]}"
            helps = f"compare more runs a side than {min(counts)}, with a reboot between some of them"
        elif min(drift.of_independence for drift in drifts.values()) <= level:
            reason, helps = "the host drifts from run to run, and a drift may hide a difference", _further(course)
    return _verdict("sets", either, ratios, level, reason, helps)


def _further(course: Course) -> str:
    """Runs as far apart as the sides lie have forgotten more of their neighbours, and in turn they drift alike."""
    pause = f" (`--pause {course.side_s:.0f}`)" if course.is_timed else " (`--pause`)"
    return f"compare more runs a side, further apart{pause}, or measure both sides in turn (docs/compare.md)"


def _verdict(
    of: str,
    corrected: Mapping[Measure, float],
    ratios: Mapping[Measure, Interval | None],
    level: float,
    reason: str,
    helps: str,
) -> Difference:
    rows = []
    for measure in DECIDING:
        chance = None if reason else corrected[measure]
        is_found = chance is not None and chance <= level
        ratio = ratios.get(measure)
        change = "unknown" if chance is None else "none"
        if is_found and ratio:
            change = "lower" if ratio.value < 1 else "higher"
        shown = None if chance is None else float(f"{chance:.3g}")
        rows.append(DecidingRow(*measure, change, shown))
    different = any(row.change in ("lower", "higher") for row in rows)
    outcome = "cannot-tell" if reason else "different" if different else "no-difference"
    return Difference(outcome=outcome, of=of, rows=rows, reason=reason, would_help=helps)


def courses_of(before: Sample, after: Sample) -> dict[Measure, Sides]:
    """How each measure went over each run: what it came to in each part of the time. Only what is known.

    Of arrivals it is the time spent in waits longer than what lies between both runs' P99.9. A run whose P99.9 is above
    that has more than a thousandth of its time there, one below has less: the sums compare the percentiles.
    """
    sides = (before, after)
    listed_ns = [side.run_ns * side.covered for side in sides]
    alike = min(listed_ns) > 0 and _as_long(*listed_ns)
    found: dict[Measure, Sides] = {}
    if alike and (between := sum(map(_p99_9, sides)) / 2):  # else it is 0 in both
        found[ARRIVAL] = _per_ns(
            sides, [[sum(max(ns - between, 0.0) for ns in at) for at in side.parts] for side in sides]
        )
    if not all(side.sliced for side in sides) and all(len(side.intervals) >= _FEWEST_INTERVALS for side in sides):
        for which, measure in enumerate((RATE, STOLEN)):
            first, second = ([interval[which] for interval in side.intervals] for side in sides)
            found[measure] = first, second
    elif alike:
        found[RATE] = _per_ns(sides, [[float(len(at)) for at in side.parts] for side in sides])
        found[STOLEN] = _per_ns(sides, [[sum(at) for at in side.parts] for side in sides])
    return found


def _as_long(first: float, second: float) -> bool:
    """Are parts of one run as long as parts of the other? Storms that a short part misses are in every long one."""
    return max(first, second) <= min(first, second) * _AS_LONG


def _per_ns(sides: Sequence[Sample], sums: Sequence[Sequence[float]]) -> Sides:
    """Of parts that are not exactly as long."""
    first, second = ([one / (side.run_ns * side.covered) for one in of] for side, of in zip(sides, sums, strict=True))
    return first, second


def _p99_9(side: Sample) -> float:
    """Of the part in which all gaps are listed."""
    return Lengths((ns, 1) for part in side.parts for ns in part).wait_exceeded(side.run_ns * side.covered / 1000)


def batches(course: Sequence[float]) -> list[float]:
    """The means of BATCHES equal parts of a course; what is over at its end is left out."""
    width = len(course) // BATCHES
    return [sum(course[at * width : (at + 1) * width]) / width for at in range(BATCHES)]


def _doubt_of_runs(courses: Mapping[Measure, Sides], runs: int) -> tuple[str, str]:
    """Why the parts of these runs are not exchangeable, and what would help; two empty texts where they are."""
    if not courses:
        lost = "neither a list of all gaps nor a series with 40 intervals of both runs"
        return lost, "probe with a larger --events, and the same --threshold-ns"
    each = [course for sides in courses.values() for course in sides]
    if any(_drifts(course) for course in each):
        return "the rate drifts within a run", SEVERAL.format(runs=runs)
    lasts = max(correlation_time(course) / len(course) for course in each)
    if lasts > _LONG:
        return "bursts outlast a tenth of a run", SEVERAL.format(runs=runs)
    if lasts > max(_SHORT, _FEWEST_SLICES / min(map(len, each))):
        times = math.ceil(lasts / _SHORT * 10) / 10
        return f"bursts last for {percent(lasts * 100)} of a run", f"make the runs {times:g} times as long"
    return "", ""


def _drifts(course: Sequence[float]) -> bool:
    means = batches(course)
    half = BATCHES // 2
    low, high = sorted((sum(means[:half]), sum(means[half:])))
    return trend(means) < _DRIFTS and high > low * _DRIFTED


def _too_wide(ratios: Mapping[Measure, Interval | None], longer: str) -> tuple[str, str]:
    """Bounds that hold a doubling or a halving: then "no difference" would say too much."""
    for measure in DECIDING:
        ratio = ratios[measure]
        if ratio is None or (measure == ARRIVAL and ratio.value in (0, math.inf)):
            continue
        if ratio.low <= 1 / _WIDE or ratio.high >= _WIDE:
            down, up = (math.log(one) if 0 < one < math.inf else math.inf for one in (ratio.low, ratio.high))
            times = max((max(abs(down), abs(up)) / math.log(_WIDE)) ** 2, 2.0)  # bounds narrow with the square root
            longer = longer.format(times=f"{math.ceil(times)}" if times < 1000 else "many")
            return f"too few independent interruptions: {NAMES[measure]} may have doubled or halved", longer
    return "", ""
