"""Judges a probe's result by its limits. Pure.

What was not measured never helps: an interrupted run, a run without a CPU or without length can break a limit, but
cannot keep within it; and a percentile that is only known to within an error (events were lost) is taken at its worst.

**How long a run has to be.** A limit is judged once the run was long enough for ten independent observations of what
breaks it: at the limit itself ten are expected, and a host at twice its limit then shows it in 99 runs of 100 (of a
Poisson variable with mean 20, eleven or more). What has to be observed is an interruption. The fewest break a share of
the time where each is as long as max_ns allows, so it is max_ns that says how rare they may be:

- interruptions_per_s = r: 10 / r seconds.
- stolen_ppm = s: interruptions of max_ns come s / max_ns times a second.
- p99_9_ns = w: the share of arrivals that wait longer than w is (max_ns - w) times their rate, and may be 1/1000.
- smis_per_s = r, of the host: 10 / r seconds; of none at all (0) as of a maximum. Where nobody counts it is no limit.
- max_ns: a maximum needs no number of observations; it holds for the time that was measured. That has to be twice as
  long as max_ns itself: a run that is shorter has no room for an interruption that is longer.

None is judged by less than a second, the period of what the kernel does once a second (RT throttling, the fair server,
the remote tick). A limit that max_ns implies needs no more than that.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from tunectl.errors import UsageError
from tunectl.probe.jitter_warnings import AS_GOOD_AS, CONSERVED_PPM, LEAST_S
from tunectl.shapes import FIGURES, LIMITS, OF_HOST, Budget, Cpu, Jitter
from tunectl.wording import beside_limit, nanoseconds, seconds_of

OBSERVATIONS = 10
USUAL_S = 5.0  # how long a run is where its limits need no longer one
MOST_S = 60.0  # longer runs have to be asked for
LONGEST_S = 86_400  # and no run is longer


def _value(result: Jitter, cpu: Cpu, name: str) -> float:
    """A percentile is known to within an error where events were lost: at its worst."""
    value = result.figure(cpu, name) or 0.0
    return min(value * (1 + cpu.percentile_error_ppm / 1e6), cpu.max_ns) if name == "p99_9_ns" else value


def _of_number(limit: float, _: float) -> float:
    return OBSERVATIONS / limit if limit else 0.0


# How long a run it takes to judge by a limit, and by max_ns beside it; of any other, as of a number.
_NEEDS_S: Mapping[str, Callable[[float, float], float]] = {
    "max_ns": lambda limit, _: 2 * limit / 1e9,
    "p99_9_ns": lambda limit, max_ns: OBSERVATIONS * max(max_ns - limit, 0.0) / (1e-3 * 1e9),
    "stolen_ppm": lambda limit, max_ns: OBSERVATIONS * max_ns / (limit * 1000),
}


def check_limits(limits: Mapping[str, float], keys: Sequence[str], where: str) -> None:
    """UsageError for a limit that is none of these keys, or no number above zero."""
    for name, limit in limits.items():
        if name not in keys:
            raise UsageError(f"{where}: unknown limit {name}", f"known are {', '.join(keys)}")
        is_none = name in OF_HOST and limit == 0
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not (limit > 0 or is_none):
            raise UsageError(f"{where}: {name} = {limit!r} is no number above zero")


def needed_s(limits: Mapping[str, float]) -> dict[str, float]:
    """For each limit how many seconds a run needs to be judged by it; infinite where no max_ns bounds an interruption.

    UsageError for an unknown limit or one that is no number above zero.
    """
    check_limits(limits, tuple(LIMITS), "budget")
    max_ns = limits.get("max_ns", math.inf)
    return {name: max(_NEEDS_S.get(name, _of_number)(limit, max_ns), LEAST_S) for name, limit in limits.items()}


def suggested_s(limits: Mapping[str, float]) -> float:
    """How long to measure in order to judge by these limits, in whole seconds: at least 5, at most a minute."""
    longest = max(needed_s(limits).values(), default=0.0)
    return max(float(math.ceil(min(longest, MOST_S))), USUAL_S)


def judge(result: Jitter, limits: Mapping[str, float]) -> Budget:
    """The budget of a result.

    `limits` has the keys of the host file's [budget], each for every CPU by itself; a value equal to its limit
    is within. verdict: "broken" with a sentence for each CPU and limit in `broken`; "within"; or "not-judged",
    `reason` saying why: a CPU whose figures are not its own, or not the host's (`unfit`), breaks no limit and keeps
    none. `not_judged` has a sentence for each limit that the run was too short for.
    UsageError for an unknown limit or one that is no number above zero.
    """
    uncounted = [name for name in OF_HOST if result.worst(name) is None]
    limits = {name: limit for name, limit in limits.items() if name not in uncounted}
    needed = needed_s(limits)
    pairs = [(f"CPU {cpu.cpu}: ", cpu, name) for cpu in result.cpus for name in FIGURES if not cpu.unfit]
    pairs += [("", cpu, name) for cpu in result.cpus[:1] for name in OF_HOST]
    over: list[str] = []
    broken = []
    for whose, cpu, name in pairs:
        # Where a gap chose when it ended, rates and shares are not the host's.
        if name in limits and (name == "max_ns" or result.ended_by != "until"):
            value, limit = _value(result, cpu, name), limits[name]
            if not value <= limit:
                over.append(name)
                stands, allowed = beside_limit(name, value, limit)
                broken.append(f"{whose}{LIMITS[name].what} {stands}, allowed {allowed} ({name})")
    short = [*_hidden(result, limits), *_too_short(result, needed)]
    # Why what was kept says nothing about a CPU of one's own: once, since two CPUs may have the same.
    not_alone = [text for cpu in result.cpus for text in cpu.unfit] + [cpu.shared for cpu in result.cpus if cpu.shared]
    reason = _why_not_judged(result, limits) or "; ".join([*dict.fromkeys(not_alone), *short])
    verdict = "broken" if broken else "not-judged" if reason else "within"
    return Budget(dict(limits), verdict, broken, over, short, "" if broken else reason)


def _hidden(result: Jitter, limits: Mapping[str, float]) -> list[str]:
    """A sentence for each limit that gaps below the threshold could break unseen.

    max_ns and p99_9_ns by gaps that are longer than themselves; a number and a sum by any that the probe could count.
    """
    threshold, default = result.threshold_ns, result.default_threshold_ns
    counted = default and threshold > default
    gaps = [(name, limits[name]) for name in FIGURES if name in limits]
    hidden = [name for name, limit in gaps if (threshold > limit if name.endswith("_ns") else counted)]
    return [f"{name}: gaps below the threshold of {nanoseconds(threshold)} were not counted" for name in hidden]


def _too_short(result: Jitter, needed: Mapping[str, float]) -> list[str]:
    """A sentence for each limit that needs a longer run than the CPU had that was measured for the shortest time."""
    measured = min(map(result.seconds, result.cpus), default=0.0)
    short = []
    for name, seconds in needed.items():
        needs = f"this limit needs {seconds_of(seconds)} (--duration {math.ceil(min(seconds, LONGEST_S))})"
        if seconds > LONGEST_S:
            needs = "no run of a day is long enough" + ("" if "max_ns" in needed else " without a limit max_ns")
        if measured < seconds * AS_GOOD_AS:
            short.append(f"{name}: measured for {seconds_of(measured)}, and {needs}")
    return short


def _why_not_judged(result: Jitter, limits: Mapping[str, float]) -> str:
    if not result.not_measured and not (result.cpus and result.duration_s):
        return "nothing was measured"
    if not all(cpu.loops for cpu in result.cpus):
        return "a CPU was never measured"
    if left := result.left_out or result.load_problem:
        return left
    if not limits:
        return "no limit is set"
    if result.ended_by == "until":
        return "a gap ended the run (--until): how often such gaps come, and what they add up to, is not known"
    if result.interrupted:
        return "the run was interrupted, so rare interruptions had less chance to show"
    lost = [cpu.cpu for cpu in result.cpus if abs(cpu.conservation_ppm or 0.0) > CONSERVED_PPM]
    if lost:
        return f"turns and gaps of CPU {lost[0]} do not add up to the run, so its figures are not to be trusted"
    return ""
