"""Figures of `probe feed`, as its pages write them: bounds, stages, and the conditions they were taken under. Pure."""

from tunectl.report.escape import printable
from tunectl.report.figures import Limited, limited
from tunectl.shapes import FEED_STAGES, FEWEST_P99_9, Feed, FeedCase, FeedReplay
from tunectl.wording import nanoseconds, percent, plain, plural

DUE = (("50", "P50"), ("99", "P99"), ("99.9", "P99.9"), ("max", "longest"))  # of a case: the key and its name
OF_STAGES = ("median", "P99", *(f"in {name}" for _, name in DUE))


def feed_conditions(result: Feed) -> list[str]:
    """Under what conditions the cases were measured: sentences."""
    asked = {(case.rate, case.burst) for case in result.cases}
    bursts = {1: "each due at a time of its own"}
    found = [f"{plural(rate, 'message')} a second, {bursts.get(n, f'{n} due at a time')}" for rate, n in sorted(asked)]
    if replay := result.replay:
        found = [_replayed(replay, rate) for rate, _ in sorted(asked)]
    if result.peer:
        to = f"messages go to {printable(result.peer.address)} and come back"
        found.append(f"{to}: wire (without time stamps kernel) holds both ways and the other host")
    if any(case.lower_bounds_from_ns is not None for case in result.cases):
        found.append("a figure with ≥ is a lower bound: messages that were never sent count as what they had waited")
    measured = [case for case in result.cases if case.n]
    if any(case.n < FEWEST_P99_9 for case in measured):
        found.append(f"P99.9 needs {FEWEST_P99_9:,} messages")
    if any(case.stamped_by == "the network card" for case in measured):
        found.append("wire ends at the network card's time stamp")
    if measured and not all(case.stamped for case in measured):
        found.append("without time stamps (wire is -) kernel contains wire")
    if (cost := result.stamp_cost_ns) is not None:
        more = "longer" if cost >= 0 else "shorter"
        found.append(f"with time stamps the median is {nanoseconds(abs(cost))} {more} than without")
    return found


def _replayed(replay: FeedReplay, rate: int) -> str:
    said = f"{plural(replay.messages, 'message')} of {printable(replay.file)} at {replay.speed:.4g} times its speed"
    changed = f"; {replay.grown:,} were shorter than ours can be" if replay.grown else ""
    changed += f"; {replay.shortened:,} were longer than ours can be, and were cut" if replay.shortened else ""
    ordered = f"; {replay.backwards:,} were before the one they follow, and were put in order"
    changed += ordered if replay.backwards else ""
    others = plural(replay.others, "packet")
    left_out = f"; {others} left out that are no UDP, or later fragments of it" if replay.others else ""
    if replay.unfollowed:
        why = ", ".join(map(printable, replay.unfollowed))
        left_out += f"; {plural(sum(replay.unfollowed.values()), 'packet')} could not be followed ({why})"
    left_out += "; the file ends within a packet, so more may have come" if replay.cut_bytes else ""
    return f"replayed: {said}, {rate:,} a second on average{changed}{left_out}"


def due_figure(case: FeedCase, name: str) -> str:
    """`12.3 µs`; `≥ 4 ms` where messages that were never sent decide it; `-` where it is unknown."""
    ns = case.at(name)
    return f"≥ {nanoseconds(ns)}" if case.is_bound(ns) else nanoseconds(ns)


def due_row(case: FeedCase) -> list[str]:
    """How many messages were due, the figures of DUE, and how much of its CPU the receiver had."""
    if not case.n:
        return ["void", *[""] * (len(DUE) + 1)]
    return [plain(case.n), *(due_figure(case, key) for key, _ in DUE), percent(case.receiver_cpu_percent)]


def stage_rows(case: FeedCase) -> list[tuple[str, ...]]:
    """Of each stage: its name, its own median and P99, and its part of the time at each percentile of DUE."""
    bars = [case.bars_ns.get(key) or {} for key, _ in DUE]
    rows = []
    for stage in FEED_STAGES:
        figures = [case.stage(stage, "50"), case.stage(stage, "99"), *(bar.get(stage) for bar in bars)]
        rows.append((stage, *map(nanoseconds, figures)))
    return rows


def feed_limits_of(feed: Feed | None) -> list[Limited]:
    """The worst case of `feed`."""
    cases = [case for case in (feed.cases if feed else ()) if case.at("99.9") is not None]
    if not feed or not cases:
        return []
    worst = max(cases, key=lambda case: case.at("99.9") or 0.0)
    bound = "≥ " if worst.is_bound(worst.at("99.9")) else ""
    key = "due_to_book_p99_9_ns"
    row = limited(key, worst.at("99.9") or 0.0, feed.budget.limits.get(key), worst.name, bound)
    unjudged = row.word == "within" and feed.budget.verdict == "not-judged"
    return [row._replace(word="not judged") if unjudged else row]
