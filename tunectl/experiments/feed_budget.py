"""Judges a result of `feed` by its limits, [budget.feed] of the host file. Pure.

What was not measured never helps: a case without a result, and one with too few messages for its percentile, keeps
within no limit. A lower bound can break a limit, and cannot keep within it. Nor does a case that failed before its
last message. Where the counters of the two CPUs differ no time is to be trusted, and nothing is broken or within.
"""

from collections.abc import Mapping

from tunectl.probe.budget import check_limits
from tunectl.shapes import FEWEST_P99_9, Budget, Feed, FeedCase
from tunectl.wording import beside_limit, nanoseconds

KEYS = ("due_to_book_p99_9_ns",)
WHERE = "[budget.feed] due_to_book_p99_9_ns"
_WHAT = "99.9 % of messages are in the book"


def judge_feed(result: Feed, limits: Mapping[str, float]) -> Budget:
    """The budget of a result: `limits` has the keys of [budget.feed], each for every case by itself.

    A value equal to its limit is within. verdict: "broken" with a sentence for each case in `broken`; "within"; or
    "not-judged", and `reason` says why. UsageError for an unknown limit or one that is no number above zero.
    """
    check_limits(limits, KEYS, "budget.feed")
    unfit = _are_counters_apart(result)
    found = [_judged(case, limit) for limit in limits.values() for case in result.cases if not unfit]
    broken, unknown = ([said[which] for said in found if said[which]] for which in (0, 1))
    reason = _why_not_judged(result, limits) or "; ".join(unknown)
    verdict = "broken" if broken else "not-judged" if reason else "within"
    return Budget(dict(limits), verdict, broken, [KEYS[0]] * len(broken), unknown, "" if broken else reason)


def _why_not_judged(result: Feed, limits: Mapping[str, float]) -> str:
    if not limits:
        return f"no limit is set ({WHERE})"
    if not result.cases:
        return "nothing was measured"
    if _are_counters_apart(result):
        return "the counters of the two CPUs differ, so its times are not to be trusted"
    if result.interrupted:
        return "the run was interrupted, so rare delays had less chance to show"
    return ""


def _are_counters_apart(result: Feed) -> bool:
    least, most = result.clock.offset_least_ns, result.clock.offset_most_ns
    return least is not None and most is not None and not least <= 0 <= most


def _judged(case: FeedCase, limit: float) -> tuple[str, str]:
    """How a case broke the limit, or why it could not be held to it; both "" where it is within."""
    value = case.at("99.9")
    if case.reason:
        return "", f"{case.name}: {'void: ' if case.is_void else ''}{case.reason}"
    if case.n < FEWEST_P99_9:
        return "", f"{case.name}: {case.n:,} messages, and P99.9 needs {FEWEST_P99_9:,}"
    if value is None and case.lost:
        return f"{case.name}: more than 0.1 % of the messages were lost ({case.lost:,} of {case.n:,})", ""
    if value is None:
        return "", f"{case.name}: P99.9 is not known"
    if value > limit:
        bound = "at least " if case.is_bound(value) else ""
        stands, allowed = beside_limit(KEYS[0], value, limit)
        figures = f"{bound}{stands} after they were due, allowed {allowed}"
        return f"{case.name}: {_WHAT} {figures} ({KEYS[0]})", ""
    if case.failed:
        return "", f"{case.name}: {case.failed}"
    if case.is_bound(value):
        return "", f"{case.name}: P99.9 is {nanoseconds(value)} or more: messages were never sent"
    return "", ""
