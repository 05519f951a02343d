"""A finding as a sentence: the target's name, what stands there, what should, and why. And the way back. Pure."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from tunectl.model import Finding, Match, Outcome, Scalar
from tunectl.shapes import LIMITS, Feed, Jitter, JudgedTarget, KernelClock, Looser, Stops

_OF_FEED = {"due_to_book_p99_9_ns": "due to book P99.9"}
# The figures of a run, in short.
MEASURES = {name: limit.short for name, limit in LIMITS.items()} | {"loop_ns": "loop turn"}
_BOUNDS: Mapping[str, str] = {Match.AT_MOST: "at most ", Match.AT_LEAST: "at least "}


def value_of(value: Scalar) -> str:
    """A value for a sentence: what is not there is `not set`, a switch is on or off."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return "not set" if value is None else "empty" if value == "" else str(value)


def plain(value: float | None, digits: int = 3) -> str:
    """`1,234`, `12.3`, `0.042`: three digits; an exponent only below 0.0001 and from 1e15 on."""
    if value is None or not math.isfinite(value):
        return "-"
    if value and not 1e-4 <= abs(value) < 1e15:
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(value) >= 10**digits - 0.5 else f"{value:,.{digits}g}"


def nanoseconds(value: float | None, digits: int = 3) -> str:
    """A duration in the unit that suits it: `812 ns`, `12.3 µs`, `-4.56 ms`, `3,600 s`."""
    if value is None or not math.isfinite(value):
        return "-"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(value) >= size * 0.9995:  # so that 999.96 µs is 1 ms, not 1000 µs
            return f"{plain(value / size, digits)} {unit}"
    return f"{plain(value, digits)} ns"


def seconds_of(seconds: float) -> str:
    """The same of a time in seconds: `2 s`, `10 ms`, `0 s`."""
    return nanoseconds(seconds * 1e9) if seconds else "0 s"


def percent(value: float | None, digits: int = 3) -> str:
    """`12.3 %`: three digits, but as many as it takes to say of less than 100 % that it is: `99.99 %`."""
    if value is None or not 99.95 <= value < 100:
        return f"{plain(value, digits)} %"
    return f"{value:.{max(digits - 2, math.ceil(-math.log10(100 - value) - 1e-6))}f} %"


def ppm(value: float, digits: int = 3) -> str:
    """A share: `8,590 ppm`, from one percent on `71.9 %`."""
    return percent(value / 1e4, digits) if value >= 9999.5 else f"{plain(value, digits)} ppm"


def times(ratio: float) -> str:
    """`12.5 times`: a multiple, as every page has it."""
    return f"{plain(ratio)} times"


def by_chance(score: float) -> str:
    """`beyond 3.5: 1 of 2,000 by chance`: of values that are normally distributed, so many deviations off."""
    return f"beyond {score:g}: 1 of {float(f'{1 / math.erfc(score / math.sqrt(2)):.1g}'):,.0f} by chance"


def ghz(khz: float) -> str:
    """1200000 -> 1.2 GHz"""
    return f"{round(khz / 1e6, 2):g} GHz"


# How a quantity is written, by the unit that its name ends with.
_UNITS: Mapping[str, Callable[[float, int], str]] = {
    "ns": nanoseconds,
    "khz": lambda khz, _: ghz(khz),
    "s": lambda rate, digits: f"{plain(rate, digits)}/s",
    "ppm": ppm,
    "percent": percent,
}


def written(quantity: str, value: float | None, digits: int = 3) -> str:
    """A figure with its unit, alike everywhere: `max_ns`, `interruptions_per_s`, `stolen_ppm`; `-` for None."""
    return "-" if value is None else _UNITS.get(quantity.rpartition("_")[2], plain)(value, digits)


def beside_limit(quantity: str, value: float, limit: float) -> tuple[str, str]:
    """A figure and its limit, each in the unit that suits it: with more digits where three show no difference."""
    pairs = [(written(quantity, value, digits), written(quantity, limit, digits)) for digits in range(3, 16)]
    return next((pair for pair in pairs if pair[0] != pair[1] or value == limit), pairs[-1])


def plural(count: int, word: str) -> str:
    """`1 target`, `4,096 targets`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def few(names: Iterable[object], most: int = 3, between: str = ", ") -> str:
    """`a, b, c and 12 more`: as many names as a sentence holds."""
    listed = list(map(str, names))
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return between.join(listed[:most]) + more


def awaits(back_at: str, overdue: bool, tried: str) -> str:
    """When a change that nobody has confirmed goes back, or how far the boot that is tried has come."""
    if back_at:
        return f"due to go back since {back_at}" if overdue else f"back at {back_at}"
    booted = {"booted": "this boot tries it, and has not proved itself yet", "proved": "this boot has proved itself"}
    return booted.get(tried, "the next boot alone tries it")


def wanted(value: str, match: str) -> str:
    """`at most 5`; the value alone where it is no bound."""
    return _BOUNDS.get(match, "") + value


def limit_name(key: str) -> str:
    """What a key of [budget] limits, as the bars of a page call it: `longest interruption`; an unknown key itself."""
    return LIMITS[key].label if key in LIMITS else _OF_FEED.get(key, key)


def looser_limits(looser: Sequence[Looser]) -> str:
    """Each limit that permits more than the profile's, with both figures."""
    both = [(limit_name(one.key), *beside_limit(one.key, one.limit, one.profile_limit)) for one in looser]
    each = ", ".join(f"{name} {limit} (profile {profiles})" for name, limit, profiles in both)
    return f"judged by looser limits than profile {looser[0].profile} has: {each}"


def kernels_own(clock: KernelClock) -> str:
    """What adjtimex(2) says."""
    errors = sorted({clock.estimated_error_ns, clock.max_error_ns})  # both are 16 s where nobody steers it
    within = f"wrong by {', by '.join(map(nanoseconds, errors))} at most"
    steered = f"offset {nanoseconds(clock.offset_ns)}, frequency {clock.frequency_ppm:+.3f} ppm"
    state = "synchronised" if clock.synchronised else "unsynchronised"
    return f"{state}, {steered}, {within}, TAI offset {clock.tai_s} s"


def stood_still(stops: Stops, seconds: float) -> str:
    """That all CPUs stopped at once, for how long and how often in a run of so many seconds, and what can do so."""
    rate = f", {stops.count / seconds:.2g}/s" if stops.count and seconds > 0 else ""
    return f"all probed CPUs stood still together, {nanoseconds(stops.max_ns)} the longest{rate}: {stops.explanation}"


def standing(finding: Finding | JudgedTarget) -> str:
    """`is 5, should be at most 2`; "" where the finding has neither value, or nothing that could have one.

    A wish for nothing (what an earlier host file asked for) is `should not be there`; a value that is compared with
    none is only told.
    """
    observed, desired = finding.observed, finding.desired
    unread = finding.outcome is Outcome.UNREADABLE and observed is None
    if finding.outcome is Outcome.UNSUPPORTED:  # the reason says what is not there
        return ""
    if observed is None and desired is None:
        return "could not be read" if unread else ""
    stands = "could not be read" if unread else f"is {value_of(observed)}"
    if desired is not None:
        return f"{stands}, should be {wanted(value_of(desired), finding.match)}"
    is_set = not finding.knob.startswith(("check.", "thermal."))  # by `apply`, and not what a check or a sensor saw
    return f"{stands}, should not be there" if finding.outcome is Outcome.DRIFTED and is_set else stands


def sentence(name: str, stands: str, reason: str) -> str:
    """`mm.swappiness is 60, should be 0: the reason`; `stands` and the reason may be empty."""
    return name + (f" {stands}" if stands else "") + (f": {reason}" if reason else "")


PROBE, UNDER_LOAD, FEED = "probe", "probe under load", "feed"  # what preflight measures, as its reasons begin


class Broken(NamedTuple):
    """A limit that was broken: what was measured, the limit's key ("" where a document does not say), a sentence."""

    what: str
    limit: str
    sentence: str

    @property
    def reason(self) -> str:
        """The same as a reason of preflight's."""
        return f"{self.what}: {self.sentence}"


def broken_limits(probe: Jitter | None, loaded: Jitter | None, feed: Feed | None) -> Iterator[Broken]:
    """Each limit that was broken, as often as it was."""
    runs: dict[str, Jitter | Feed | None] = {PROBE: probe, UNDER_LOAD: loaded, FEED: feed}
    for what, budget in ((what, run.budget) for what, run in runs.items() if run):
        for text, limit in beside(budget.broken, budget.broken_limits):
            yield Broken(what, limit, text)


def beside(texts: Sequence[str], keys: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each text with its key in the list beside it; "" where a document has none, as one of an earlier version."""
    return zip_longest(texts, keys[: len(texts)], fillvalue="")


def natural(name: str) -> tuple[tuple[str, int], ...]:
    """The order people expect: tx-2 before tx-10."""
    parts = re.findall(r"([^0-9]*)([0-9]{0,18})", name)
    return tuple((text, int(number or -1)) for text, number in parts)
