"""Figures: which ones a probe's result and a comparison have, what they are called, and how they are written. Pure."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tunectl.cpulist import named_cpus
from tunectl.model import Document
from tunectl.shapes import (
    FEED_STAGES,
    LIMITS,
    Bounds,
    Comparison,
    DecidingRow,
    Feed,
    Jitter,
    JitterLoaded,
    Load,
    Period,
    Row,
    Stops,
    Wake,
    typed,
)
from tunectl.wording import (
    MEASURES,
    beside_limit,
    limit_name,
    nanoseconds,
    plain,
    plural,
    seconds_of,
    stood_still,
    written,
)

_NAMES = {
    **MEASURES,
    "arrival_ns": "arrival",
    "gap_ns": "gap",
    "wake_ns": "wake-up",
    "receiver_cpu_percent": "receiver's CPU",
    "due_to_book_ns": "due to book",
    "answer_ns": "due to answer",
    "due_to_had_ns": "due to had",
    "hedged_percent": "hedged",
    "missed_percent": "missed",
    "utilisation_percent": "servers busy",
    **{f"{stage}_ns": stage for stage in FEED_STAGES},
}
SIDES = ("before", "after")
LOADED = ("quiet", "loaded")
_SHORTER, _FEWER, _LESS = ("shorter", "longer"), ("fewer", "more"), ("less", "more")
_PERCENT = ("receiver_cpu_percent", "hedged_percent", "missed_percent", "utilisation_percent")
_DIRECTIONS = {"interruptions_per_s": _FEWER, "stolen_ppm": _LESS, **dict.fromkeys(_PERCENT, _LESS)}
_FOUND = {"lower": "lower", "higher": "higher", "none": "no difference found", "unknown": "cannot tell"}
_OUTCOMES = {"different": "{} differ", "no-difference": "no difference between {} was found"}
_OF_RUNS = (
    "this is about these two runs; whether two set-ups differ, only several runs a side can tell, each side from "
    "`tunectl probe jitter --runs 5 --output FILE`"
)
_TIMERS = ("timerfd", "clock_nanosleep")
_HEAD_BYTES = 32  # a message has no less
_SENDERS = {
    True: "a warm sender: it sends to itself until shortly before; --cold-sender is as the published benchmark",
    False: "a cold sender, as in the published benchmark: the delays are also of its own path, out of the caches",
}
_OF_LOADED = (
    "this is about these runs; whether a load makes this host worse, only several runs a side can tell: `tunectl probe "
    "jitter --load NAME --runs 5`"
)
_NO_VERDICT = "no verdict: the bounds of {} say what differs between these two runs, not between set-ups"
_BOUNDED = {
    "wake": "wake-up times",
    "feed": "messages' times",
    "hedge": "answers' times",
    "contention": "buffers' times",
}


def wake_conditions(result: Wake) -> list[str]:
    """Under what conditions the cases were measured: sentences."""
    timers = [case.mechanism in _TIMERS for case in result.cases]
    found = []
    if not all(timers) or not timers:
        found.append(_SENDERS[result.has_warm_sender])
    if any(timers):
        slack = "unknown" if result.timer_slack_ns is None else nanoseconds(result.timer_slack_ns)
        found.append(f"timers: from when they were due, on the receiver's CPU alone; timer slack {slack}")
    if result.bytes != _HEAD_BYTES:
        found.append(f"messages of {result.bytes:,} bytes")
    if result.fds != 1:
        found.append(f"{result.fds:,} descriptors in each poll and epoll set, all but one idle")
    if result.dirty_kib:
        found.append(f"a cold working set: before each message the receiver wrote to {result.dirty_kib:,} KiB")
    return found


def label_of(row: Row | DecidingRow) -> str:
    """`gap P99.9`, `interruptions`."""
    name = _NAMES.get(row.measure, row.measure)
    return f"{name} P{row.percentile}" if row.percentile else name


def value_of(row: Row, side: Bounds | None) -> str:
    """The estimate of a row's `before` or `after`, with its unit."""
    return written(row.measure, side.value if side else None)


def bounds_of(row: Row, side: Bounds | None) -> str:
    """`12 µs to 15 µs`; `over 12 µs` where the run was too short to bound it above; empty without bounds."""
    if not side or side.low is None:
        return ""
    if side.high is None:
        return f"over {written(row.measure, side.low)}"
    return f"{written(row.measure, side.low)} to {written(row.measure, side.high)}"


def change_of(row: Row) -> tuple[str, str]:
    """What became of it, and the bounds of that: ("270 times shorter", "200 to 350 times shorter"); "-" if unknown."""
    ratio = row.ratio
    if not ratio:
        return "-", ""
    value, low, high = _printed_ratio(row, ratio.value), ratio.low, ratio.high
    percent = value is not None and 0.5 < value < 2  # and of the bounds the same, so that they can be compared
    said = "up from 0" if value is None else " ".join(_times(row, value, percent)).strip()
    if low is None or (not low and high == 0):
        return said, ""
    if not low and high is None:
        return said, "unknown"
    if high is None or not low:  # open to one side
        end = low or high or 0.0
        return said, f"at {'least' if (end >= 1) == (high is None) else 'most'} {' '.join(_times(row, end, percent))}"
    ends = [_times(row, end, percent) for end in ((low, high) if high > 1 else (high, low))]
    if ends[0] == ends[1]:
        ends.pop()
    elif ends[0][1:] == ends[1][1:]:
        ends[0] = (ends[0][0], "", "")
    elif low < 1 < high:
        ends = [(number, unit, word if unit else "") for (number, unit, _), word in zip(ends, _LESS, strict=True)]
    return said, " to ".join(" ".join(filter(None, end)) for end in ends)


def _printed_ratio(row: Row, ratio: float | None) -> float | None:
    """The ratio of the two figures as they are printed, so that a reader who divides them gets what stands beside."""
    before, after = (bounds and bounds.value for bounds in (row.before, row.after))
    if not ratio or not before or not after:
        return ratio
    return _as_printed(row.measure, after) / _as_printed(row.measure, before)


def _as_printed(measure: str, value: float) -> float:
    """Three digits; what has no unit of time, and is no share from one percent on, keeps those before the point."""
    is_whole = not measure.endswith("_ns") and abs(value) >= 999.5 and not (measure == "stolen_ppm" and value >= 9999.5)
    return float(round(value)) if is_whole else float(f"{value:.3g}")


def _times(row: Row, ratio: float, percent: bool) -> tuple[str, str, str]:
    """(270, times, shorter), (13, %, fewer), (equal, , )."""
    way = _DIRECTIONS.get(row.measure, _SHORTER)[ratio > 1]
    if not ratio:
        return "down to 0", "", ""
    if abs(ratio - 1) < 0.0005:
        return "equal", "", ""
    if percent:
        return plain(abs(ratio - 1) * 100), "%", way
    return plain(max(ratio, 1 / ratio)), "times", way


def verdict_of(compared: Comparison, names: tuple[str, str] = SIDES) -> list[str]:
    """The verdict of a comparison in a sentence, then what it rests on, or what would help."""
    verdict = compared.judged
    if not verdict:
        return [_NO_VERDICT.format(_BOUNDED[compared.kind])]
    of_runs = verdict.of == "runs"
    of_loads = names == LOADED
    who = "the quiet and the loaded runs" if of_loads else "the two runs" if of_runs else "the two set-ups"
    rows = {(row.measure, row.percentile): row for row in compared.groups[0].rows}
    each = [(row, rows.get((row.measure, row.percentile))) for row in verdict.rows]
    if verdict.outcome == "cannot-tell":
        said = [f"cannot tell whether {who} differ: {verdict.reason}", f"what would help: {verdict.would_help}"]
    else:
        found = [f"{label_of(row)} {change_of(of)[0]}" for row, of in each if of and row.change in ("lower", "higher")]
        said = [
            _OUTCOMES.get(verdict.outcome, "{}").format(who) + (f"; {names[1]}: {', '.join(found)}" if found else "")
        ]
        words = [_FOUND.get(row.change, row.change) for row in verdict.rows]
        chances = [f"{label_of(row)} {word} ({plain(row.chance)})" for (row, _), word in zip(each, words, strict=True)]
        said.append(f"decided by {', '.join(chances)}; in brackets: its chance if nothing differed, of three looks")
    return [*said, _OF_LOADED if of_loads else _OF_RUNS] if of_runs else said


def probe_of(document: Document) -> Jitter | None:
    """The jitter result a document carries: itself, or a preflight's `probe`; None without one."""
    body = document.body if document.name == "probe.jitter" else document.body.get("probe")
    return typed(body, Jitter) if body else None


def feed_of(document: Document) -> Feed | None:
    """The result of `feed` that a preflight carries; None in every other document."""
    return runs_in(document.body).feed if document.name == "preflight" else None


class Runs(NamedTuple):
    """The results that a preflight carries."""

    probe: Jitter | None = None
    loaded: Jitter | None = None  # the same under load
    feed: Feed | None = None


def runs_in(body: Mapping[str, Any]) -> Runs:
    """Those of a preflight's body."""
    probe, loaded = (typed(body[key], Jitter) if body.get(key) else None for key in ("probe", "loaded"))
    return Runs(probe, loaded, typed(body["feed"], Feed) if body.get("feed") else None)


_OF_A_RUN = ("interruptions_per_s", "stolen_ppm", "p99_9_ns", "max_ns")
OF_A_RUN = tuple(MEASURES[measure] for measure in _OF_A_RUN)


def runs_of(runs: Iterable[Jitter]) -> list[tuple[str, ...]]:
    """(when, OF_A_RUN...) of each of these runs: of its worst CPU."""
    return [(run.at, *(written(measure, run.worst(measure)) for measure in _OF_A_RUN)) for run in runs]


def problems_of(kept: JitterLoaded) -> list[str]:
    """Why runs were not under load, each sentence once."""
    if not kept.loaded:
        return ["nothing was measured under load"]
    loads = [run.load for run in kept.loaded if run.load]
    return list(dict.fromkeys(f"not measured under load: {load.reason}" for load in loads if not load.ran))


def listed_cpus(cpulist: str) -> str:
    """`CPU 2`, `CPUs 2-3`, of a list as a document has it."""
    return f"CPU{'' if cpulist.isdecimal() else 's'} {cpulist}"


def loads_of(load: Load | None) -> tuple[str, list[tuple[str, str, str]]]:
    """Of a run under load: what ran and where, and what each load did."""
    if not load:
        return "", []
    rows = [
        (
            stressor.load,
            f"{stressor.stressor} x {stressor.instances}",
            f"{stressor.bogo_ops:,} bogo ops, {seconds_of(stressor.cpu_s)}",
        )
        for stressor in load.stressors
    ]
    return f"{', '.join(load.names)} on {listed_cpus(load.cpus)} ({load.program})", rows


def searched_of(result: Jitter) -> str:
    """How far periods were looked for, in a sentence or two; "" where all gaps were searched."""
    away = [cpu.cpu for cpu in result.cpus if cpu.periods_searched_ns == 0]
    rest = f"whether gaps come at regular intervals is not known of {named_cpus(away)}"
    unknown = f"{rest}: others had the CPU most of the time" if away else ""
    cut = {cpu.cpu: ns for cpu in result.cpus if (ns := cpu.periods_searched_ns)}
    if not cut:
        return unknown
    least, most = (nanoseconds(end(cut.values())) for end in (min, max))
    length = least if least == most else f"{least} to {most}"
    full = all(ns == cpu.complete_until_ns for cpu in result.cpus if (ns := cpu.periods_searched_ns))
    why = f"of the listed gaps at most {Period.searched:,} of a length and more are searched"
    why = "the list of gaps was then full of short ones (--events)" if full else why
    searched = f"periods of short gaps were looked for in the first {length} of {named_cpus(cut)} alone: {why}"
    return f"{searched}; {unknown}" if unknown else searched


class Limited(NamedTuple):
    """A figure beside its limit; `share` is the figure in limits, None where there is no limit."""

    label: str
    measured: str
    limit: str
    where: str  # the CPU, or the case
    word: str
    share: float | None


def limits_of(probe: Jitter | None) -> list[Limited]:
    """Of the worst CPU for each measure of the budget."""
    rows: list[Limited] = []
    if not probe:
        return rows
    for measure, shape in LIMITS.items():
        each = [(value, cpu.cpu) for cpu in probe.cpus if (value := probe.figure(cpu, measure)) is not None]
        if each:
            value, cpu = max(each)
            limit = probe.budget.limits.get(measure)
            rows.append(limited(measure, value, limit, "the host" if shape.of_host else f"CPU {cpu}"))
    return rows


def limited(key: str, value: float, limit: float | None, where: str, bound: str = "") -> Limited:
    """A figure, judged by its limit; `bound` stands before it. A limit of nothing is one, too."""
    stands, said = (written(key, value), "-") if limit is None else beside_limit(key, value, limit)
    word = "no limit" if limit is None else "OVER" if value > limit else "within"
    share = None if limit is None else value / limit if limit else math.inf if value else 0.0
    return Limited(limit_name(key), bound + stands, said, where, word, share)


def stopped_together(stops: Stops | None, seconds: float) -> str:
    """What stopped all CPUs of a result of this length, as a sentence; "" where there is none."""
    if not stops or not stops.count:
        return ""
    times = f"{plural(stops.count, 'time')}, {nanoseconds(stops.total_ns)} in all, and the kernel had no part in it"
    chance = f"of gaps of {nanoseconds(stops.least_ns)} and more; by chance it would be {plain(stops.by_chance)}"
    return f"{stood_still(stops, seconds)} ({times}; {chance})"
