"""The charts of the HTML page: plain numbers and paths that the templates draw as SVG. Pure."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple
from typing import Any, NamedTuple

from tunectl.report.charts import LogScale, levels, limit_axis
from tunectl.report.feed import DUE, due_figure
from tunectl.report.figures import Limited, change_of
from tunectl.shapes import FEED_STAGES, Bounds, Case, Cpu, FeedCase, HedgeCase, Jitter, Row
from tunectl.wording import nanoseconds, plain

WIDTH, HEIGHT = 480, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 28, 10, 44
SLICES = 240
MAX_CURVES = 6  # more lines cannot be told apart
SPARKLINE_HEIGHT = 48
_LABEL, _LABEL_IF_NARROW = 19, 28  # percent of the budget's axis: so far apart labels do not touch
_LABEL_OF_FACTOR = 12  # percent of the forest's axis, which is wider
_FURTHEST = 1000.0  # times: a ratio beyond is drawn at the edge
_LEAST_SHARE = 1e-6  # share of all moments; for rarer waits look at the longest gap
_NINES = {0.1: "P90", 0.01: "P99", 1e-3: "P99.9", 1e-4: "P99.99", 1e-5: "P99.999"}


class Curve(NamedTuple):
    """A run or a CPU: its gaps as (ns, count), ascending, in `run_ns` of time."""

    name: str
    gaps: Sequence[tuple[float, int]]
    run_ns: float


def curve(name: str, result: Jitter, cpus: Sequence[Cpu]) -> Curve:
    """The gaps of these CPUs together."""
    buckets = sorted(
        (min((low + high) / 2, cpu.max_ns), count) for cpu in cpus for low, high, count in cpu.histogram if count
    )
    return Curve(name, buckets, sum(map(result.seconds, cpus)) * 1e9)


def frequency_plot(curves: Sequence[Curve]) -> dict[str, Any] | None:
    """How many gaps a second of one CPU are longer than so many ns; None where there is no gap at all."""
    return _longer_plot(curves, _box("a gap is longer than", "times a second"), plain)


def share_plot(cases: Sequence[FeedCase]) -> dict[str, Any] | None:
    """Which share of the messages of each case takes longer than so many ns; None without a message."""
    curves = []
    for case in cases:
        known = [(min((low + high) / 2, case.max_ns or high), count) for low, high, count in case.histogram if count]
        # A lost message is longer than any scale.
        lost = [(math.inf, case.lost)] if case.lost and case.n else []
        # A message a second: what is counted in a second is then a share.
        curves.append(Curve(case.name, [*sorted(known), *lost], case.n * 1e9))
    return _longer_plot(curves, _box("a message takes longer than", "share of messages"), _nine)


def _longer_plot(
    curves: Sequence[Curve], box: Mapping[str, Any], label: Callable[[float], str]
) -> dict[str, Any] | None:
    known = [one for one in curves if one.gaps and one.run_ns]
    if not known:
        return None
    rates = [sum(count for _, count in one.gaps) * 1e9 / one.run_ns for one in known]
    x = _across(known)
    y = LogScale.over(min(1e9 / one.run_ns for one in known), max(rates), HEIGHT - BOTTOM, TOP)
    paths = []
    for one in curves:
        left = sum(count for _, count in one.gaps)
        points = []
        for ns, count in one.gaps:
            points.append((x.at(ns), y.at(left * 1e9 / one.run_ns)))
            left -= count
        paths.append({"name": one.name, "d": _steps(points, HEIGHT - BOTTOM)})
    marks = [{"at": y.at(rate), "label": label(rate)} for rate in y.decades()]
    return {"paths": paths, "x": _time_marks(x), "y": _thinned(marks), **_read_by(x, y), **box}


def wait_plot(curves: Sequence[Curve]) -> dict[str, Any] | None:
    """Which share of random arrivals waits longer than so many ns; None where none does."""
    known = [one for one in curves if one.gaps and one.run_ns]
    shares = [sum(ns * count for ns, count in one.gaps) / one.run_ns for one in known]
    if not known or max(shares) <= _LEAST_SHARE:
        return None
    x = _across(known)
    y = LogScale.over(_LEAST_SHARE, min(max(shares), 1.0), HEIGHT - BOTTOM, TOP)
    paths = [{"name": one.name, "d": _line([(x.at(ns), y.at(share)) for ns, share in _waits(one)])} for one in curves]
    marks = [{"at": y.at(share), "label": _nine(share)} for share in y.decades()]
    return {
        "paths": paths,
        "x": _time_marks(x),
        "y": marks,
        **_read_by(x, y),
        **_box("an arrival waits longer than", "share of arrivals"),
    }


def _waits(one: Curve) -> list[tuple[float, float]]:
    """(ns, share of moments that wait longer), down to the lowest share on the axis.

    Between two gap lengths the share falls in a straight line, which logarithmic axes bend. So points are added between
    them: one for each factor of 1.1 in share and of 1.2 in time.
    """
    points: list[tuple[float, float]] = []
    total = float(sum(ns * count for ns, count in one.gaps))
    left = sum(count for _, count in one.gaps)
    before = one.gaps[0][0] if one.gaps else 0.0
    for ns, count in one.gaps:
        end = min(ns, (total - _LEAST_SHARE * one.run_ns) / left)
        if end < before:
            return points
        shares = [(total - left * at) / one.run_ns for at in (before, end)]
        times = {before, end, *_between(before, end, 1.2)}
        times |= {(total - share * one.run_ns) / left for share in _between(shares[1], shares[0], 1.1)}
        points += [(at, (total - left * at) / one.run_ns) for at in sorted(times)]
        total -= ns * count
        left -= count
        before = ns
    return points


def _between(low: float, high: float, factor: float) -> list[float]:
    """Values between `low` and `high`, each `factor` times the one before."""
    steps = math.floor(math.log(high / low) / math.log(factor)) if 0 < low < high else 0
    return [low * factor**step for step in range(1, steps + 1)]


def load_plot(cases: Sequence[HedgeCase]) -> dict[str, Any] | None:
    """Median and P99.9 of requests by load, a pair of lines for each delay; None where two loads have no figure."""
    loads = sorted({case.load for case in cases if case.at("50")})
    known = [ns for case in cases for key in ("50", "99.9") if (ns := case.at(key))]
    if len(loads) < 2:
        return None
    y = LogScale.over(min(known), max(known), HEIGHT - BOTTOM, TOP)
    across = (WIDTH - RIGHT - LEFT) / (loads[-1] - loads[0])
    paths = []
    for second in list(dict.fromkeys(case.second for case in cases if case.n))[: MAX_CURVES // 2]:
        own = sorted((case for case in cases if case.second == second), key=lambda case: case.load)
        for key, name in (("50", "P50"), ("99.9", "P99.9")):
            points = [
                (round(LEFT + (case.load - loads[0]) * across, 1), y.at(ns)) for case in own if (ns := case.at(key))
            ]
            paths.append({"name": f"{second}, {name}", "d": _line(points)})
    marks = [{"at": round(LEFT + (load - loads[0]) * across, 1), "label": f"{load:g}"} for load in loads]
    heights = [{"at": y.at(ns), "label": nanoseconds(ns)} for ns in y.decades()]
    return {
        "paths": paths,
        "x": marks,
        "y": _thinned(heights),
        "scale": "",
        **_box("load of each server", "due to answer"),
    }


def _nine(share: float) -> str:
    known = [name for value, name in _NINES.items() if math.isclose(value, share)]
    return known[0] if known else ("all" if share >= 1 else f"{share * 1e6:g} ppm")


def _across(curves: Sequence[Curve]) -> LogScale:
    lengths = [ns for one in curves for ns, _ in one.gaps if math.isfinite(ns)] or [1.0]
    return LogScale.over(max(min(lengths), 1.0), max(lengths), LEFT, WIDTH - RIGHT)


def _time_marks(x: LogScale) -> list[dict[str, Any]]:
    return _thinned([{"at": x.at(ns), "label": nanoseconds(ns)} for ns in x.decades()])


def _read_by(x: LogScale, y: LogScale) -> dict[str, str]:
    """Both scales for the page's script, which reads a curve's value at the pointer."""
    return {"scale": " ".join(f"{end:g}" for scale in (x, y) for end in astuple(scale))}


def _thinned(marks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most eight labels: of more, only every second (third, ...) stays. All lines stay."""
    step = -(-len(marks) // 8)
    return [mark if at % step == 0 else {**mark, "label": ""} for at, mark in enumerate(marks)]


def _box(x_title: str, y_title: str) -> dict[str, Any]:
    sizes = {"width": WIDTH, "height": HEIGHT, "left": LEFT, "top": TOP}
    return {**sizes, "right": WIDTH - RIGHT, "bottom": HEIGHT - BOTTOM, "x_title": x_title, "y_title": y_title}


def _steps(points: Sequence[tuple[float, float]], floor: float) -> str:
    """A path of steps: level up to each length, then down; after the longest, down to the axis."""
    if not points:
        return ""
    path = f"M{points[0][0]:g} {points[0][1]:g}"
    drawn = points[0]
    for x, y in points[1:]:
        if (x, y) != drawn:
            path += f"H{drawn[0]:g}V{y:g}" if y != drawn[1] else ""
            drawn = (x, y)
    return path + f"H{points[-1][0]:g}V{floor:g}"


def _line(points: Sequence[tuple[float, float]]) -> str:
    unique = list(dict.fromkeys(points))
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in unique) if unique else ""


def series_plot(case: FeedCase) -> dict[str, Any] | None:
    """A case over time, by when messages were due: the longest of each slice, logarithmic, and the mean."""
    slices = levels(case.series, SLICES) if case.series else []
    known = [level for level in slices if level]
    if not case.series or not known:
        return None
    longest, mean = (max(level[at] for level in known) for at in (0, 1))
    run_ns = len(case.series.intervals) * case.series.interval_s * 1e9
    at = run_ns * [level.longest_ns if level else 0.0 for level in slices].index(longest) / len(slices)
    floor = max(min(level.longest_ns for level in known), 1.0)
    return {
        "name": case.name,
        "above": "longest message",
        "below": f"mean, up to {nanoseconds(mean)}",
        "known": len(slices),
        "end": nanoseconds(run_ns),
        "said": f"Longest message {nanoseconds(longest)}, due after {nanoseconds(at)}",
        **_strip(
            [level and level.longest_ns for level in slices], [one and one.mean_ns for one in slices], floor, longest
        ),
    }


def _strip(above: Sequence[float | None], below: Sequence[float | None], floor: float, top: float) -> dict[str, Any]:
    """Bars above on a logarithmic scale, and below as parts of the highest of them."""
    height = LogScale.over(floor, top, 2, SPARKLINE_HEIGHT)
    most = max((value for value in below if value), default=0.0)
    return {
        "slices": len(above),
        "longest": _bars([height.at(value) if value else 0.0 for value in above]),
        "stolen": _bars([value / most * SPARKLINE_HEIGHT / 2 if value and most else 0.0 for value in below]),
        "low": nanoseconds(height.low),
        "high": nanoseconds(height.high),
    }


def stacked_bars(case: FeedCase) -> list[dict[str, Any]]:
    """Of what the time at each percentile is made: parts of a bar of 100, each stage with its share."""
    bars = [(key, name, case.bars_ns.get(key)) for key, name in (("50", "P50"), ("90", "P90"), *DUE[1:])]
    return [{"name": name, "total": due_figure(case, key), "parts": _parts(bar)} for key, name, bar in bars if bar]


def _parts(bar: Mapping[str, float | None]) -> list[dict[str, Any]]:
    """A stage that is negative, by the stamps' uncertainty, has no part."""
    widths = {stage: max(bar.get(stage) or 0.0, 0.0) for stage in FEED_STAGES}
    whole = sum(widths.values()) or 1.0
    parts, x = [], 0.0
    for number, (stage, ns) in enumerate(widths.items(), 1):
        width = 100 * ns / whole
        if ns:
            parts.append({"stage": stage, "number": number, "x": round(x, 2), "width": round(width, 2)})
        x += width
    return parts


def _bars(heights: Sequence[float]) -> str:
    """Bars, each one unit wide, as one path."""
    return "".join(
        f"M{at} 0v{round(height, 1):g}h1v{-round(height, 1):g}" for at, height in enumerate(heights) if height
    )


def range_marks(case: Case, x: LogScale) -> dict[str, float] | None:
    """The positions of a wake case's median, P99 and longest; None without messages."""
    near = case.at("50")
    if not case.n or near is None:
        return None
    far = case.at("99") or near
    return {"p50": x.at(near), "p99": x.at(far), "max": x.at(case.max_ns or far)}


def warmth(value: float, least: float, most: float, classes: int = 5) -> int:
    """Which of `classes` shades, on a logarithmic scale."""
    if most <= least:
        return 0
    edges = [least * (most / least) ** (at / classes) for at in range(1, classes)]
    return bisect_left(edges, value)


def budget_bars(rows: Sequence[Limited]) -> dict[str, Any]:
    """Figures in their limits on one logarithmic axis of 100, so that all limits stand one above the other."""
    known = any(row.share is not None for row in rows)
    axis = limit_axis((row.share for row in rows), 0, 100)
    times = [f"\N{MULTIPLICATION SIGN}{share:,}" for share in (10, 100, 1000, 10_000)]
    named = dict(zip((0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4), ("1 %", "10 %", "limit", *times), strict=True))
    places = {axis.at(share): label for share, label in named.items() if known and share < axis.high}
    kept = _apart(places, axis.at(1), _LABEL)
    far = _apart(kept, axis.at(1), _LABEL_IF_NARROW)
    looks = {at: "strong" if at == axis.at(1) else "" if at in far else "near" for at in kept}
    return {
        "limit": axis.at(1) if known else None,
        "marks": [{"at": at, "label": label, "look": looks.get(at)} for at, label in places.items()],
        "rows": [{"row": row, "width": axis.at(row.share) if row.share else 0} for row in rows],
    }


def _apart(places: Iterable[float], middle: float, least: float) -> list[float]:
    """Those of the places, from the middle outwards, that stand so far from each other."""
    kept: list[float] = []
    for at in sorted(places, key=lambda place: abs(place - middle)):
        if all(abs(at - other) >= least for other in kept):
            kept.append(at)
    return kept


def forest(rows: Sequence[Row], words: Mapping[tuple[str, str | None], str]) -> dict[str, Any]:
    """Each ratio with its bounds on one logarithmic axis of 100 that has `equal` in its middle.

    `words`: what was judged of some rows. Of the others it cannot be told whose bounds hold `equal`, or are not known.
    """
    ends = [end for row in rows if (of := row.ratio) for end in (of.value, of.low, of.high) if end]
    reach = math.log(min(max([2.2, *ends, *(1 / end for end in ends)]), _FURTHEST))

    def at(ratio: float) -> float:
        return round(50 + 48 * min(max(math.log(ratio) / reach, -1), 1), 1) if ratio else 2

    *nearer, furthest = [times for times in (2, 5, 10, 100) if math.log(times) <= reach]
    apart = [times for times in nearer if min(at(times) - 50, at(furthest) - at(times)) >= _LABEL_OF_FACTOR]
    marks = [
        {"at": at(ratio), "label": f"{sign}{times}", "is_near": times != furthest}
        for times in (*apart[-1:], furthest)
        for sign, ratio in (("\N{DIVISION SIGN}", 1 / times), ("\N{MULTIPLICATION SIGN}", times))
    ]
    return {"marks": marks, "rows": [_whisker(row, words.get((row.measure, row.percentile), ""), at) for row in rows]}


def _whisker(row: Row, word: str, at: Callable[[float], float]) -> dict[str, Any]:
    """A row's estimate and its bounds; an end that is not known goes to the edge."""
    ratio = row.ratio or Bounds(None, None, None)
    low, high = ratio.low or 0.0, math.inf if ratio.high is None else ratio.high
    is_open = ratio.low is None or low <= 1 <= high
    look = "unsure" if is_open or word in ("none", "unknown") else "lower" if high < 1 else "higher"
    said = {"none": "no difference found"}.get(word, "cannot tell") if look == "unsure" and row.ratio else ""
    return {
        "look": look,
        "said": said,
        "at": None if ratio.value is None else at(ratio.value),
        "bounds": None if ratio.low is None else (at(low), at(high) if high < math.inf else 98),
        "change": change_of(row),
    }
