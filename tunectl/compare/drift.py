"""Is a step between two sets of runs more than a drift of their host? Pure.

The permutation test takes runs for exchangeable. Runs that are blocks in time are not, where a host's rate wanders: the
side that was measured later then differs for that reason alone. So each drift that could lie behind the runs is held
against them: a level that wanders and forgets itself over a time constant (Ornstein & Uhlenbeck 1930), from one so
short that runs are independent to one that outlasts all of them. Two things speak against such a drift, and neither
depends on the other: that runs of one side do not resemble their neighbours as it would make them (its likelihood,
Harville 1974), and that the step is too large for it (Student's test by generalised least squares). Their sum, in the
manner of Fisher, follows a chi-squared distribution of three degrees. The drift that is least contradicted decides.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import fmean

from tunectl.compare.chance import student_chance
from tunectl.shapes import Jitter

_FINER = 2.0  # from one time constant that is tried to the next
_SHORTEST, _LONGEST = 0.25, 30.0  # of them, in the shortest pause and in the time of all runs
_NOTHING = 1e-12  # of all squares: what rounding leaves of none
_CARRIES = 0.5  # of a step: a trend within the sides that goes on for as long as lies between them explains the rest


@dataclass(frozen=True)
class Course:
    """All runs of two sides in the order of time: the place of each in [*before, *after], and what lies between them.

    `apart` is in seconds, or in runs where the times are not known; infinite between runs of two hosts, as each drifts
    by itself.
    """

    places: tuple[int, ...]
    apart: tuple[float, ...]
    is_timed: bool = False

    @property
    def side_s(self) -> float:
        """Half of the time that all runs took, on one host."""
        return math.fsum(filter(math.isfinite, self.apart)) / 2


def course_of(before: Sequence[Jitter], after: Sequence[Jitter]) -> Course:
    """When each run was measured. Runs at times that cannot be, as two at once on one host, count as equally apart."""
    runs = [*before, *after]
    untimed = Course(tuple(range(len(runs))), (1.0,) * (len(runs) - 1))
    try:
        moments = [datetime.fromisoformat(run.at).timestamp() for run in runs]
    except (ValueError, OverflowError):
        return untimed
    hosts = [run.host.hostname for run in runs]
    places = sorted(range(len(runs)), key=lambda place: (hosts[place], moments[place]))
    apart = []
    for earlier, later in pairwise(places):
        seconds = moments[later] - moments[earlier] if hosts[earlier] == hosts[later] else math.inf
        if seconds <= 0 or seconds <= runs[earlier].duration_s - 1:  # whole seconds
            return untimed
        apart.append(seconds)
    return Course(tuple(places), tuple(apart), is_timed=True)


def untimed_course(before: int, after: int) -> Course:
    """So many runs a side, one after the other, equally apart."""
    return Course(tuple(range(before + after)), (1.0,) * (before + after - 1))


@dataclass(frozen=True)
class Drift:
    """What the runs say: the chance of such a step were there only a drift, and of runs so alike were there none."""

    of_step: float
    of_independence: float


def judge_drift(before: Sequence[float], after: Sequence[float], course: Course) -> Drift:
    """Of what each run had; ratios count, so a run that had nothing has half of the least that any had."""
    values = [*before, *after]
    if max(values) == min(values):
        return Drift(1.0, 1.0)
    nothing = min(value for value in values if value > 0) / 2
    levels = [math.log(values[place] or nothing) for place in course.places]
    is_after = [float(place >= len(before)) for place in course.places]
    tried = [_against(levels, is_after, course.apart, constant) for constant in _constants(course.apart)]
    best = max(likelihood for likelihood, _ in tried)
    least = min(best - likelihood - math.log(max(chance, _NOTHING)) for likelihood, chance in tried)
    of_step = 1.0 if _is_carried(levels, is_after, course.apart) else _chi_squared_3(2 * least)
    return Drift(of_step, math.erfc(math.sqrt(best - tried[0][0])))


def _constants(apart: Sequence[float]) -> list[float]:
    """The time constants to try; the first is that of independent runs."""
    finite = [seconds for seconds in apart if math.isfinite(seconds)]
    constants, last = [0.0], sum(finite) * _LONGEST
    constant = min(finite) * _SHORTEST
    while constant < last:
        constants.append(constant)
        constant *= _FINER
    return constants


def _against(
    levels: Sequence[float], is_after: Sequence[float], apart: Sequence[float], constant: float
) -> tuple[float, float]:
    """(log likelihood of how the runs of a side differ, chance of the step) under a drift of this time constant.

    Each run less what the one before it lets expect is independent of all others: then least squares are ordinary.
    """
    kept = [math.exp(-seconds / constant) if constant else 0.0 for seconds in apart]
    spread = [1.0, *(math.sqrt(1 - share * share) for share in kept)]

    def whitened(course: Sequence[float]) -> list[float]:
        expected = [0.0, *(share * value for share, value in zip(kept, course, strict=False))]
        return [(value - known) / by for value, known, by in zip(course, expected, spread, strict=True)]

    own, level, step = whitened(levels), whitened([1.0] * len(levels)), whitened(is_after)
    squares, crossed, steps = _dot(level, level), _dot(level, step), _dot(step, step)
    determinant = squares * steps - crossed * crossed
    size = (squares * _dot(step, own) - crossed * _dot(level, own)) / determinant
    base = (_dot(level, own) - size * crossed) / squares
    left = [value - base * at_level - size * at_step for value, at_level, at_step in zip(own, level, step, strict=True)]
    freedom = len(levels) - 2
    rest = max(_dot(left, left), _NOTHING * _dot(own, own))
    deviates = size / math.sqrt(rest / freedom * squares / determinant)
    likelihood = -math.fsum(map(math.log, spread)) - math.log(determinant) / 2 - freedom / 2 * math.log(rest)
    return likelihood, student_chance(deviates, freedom)


def _dot(first: Sequence[float], second: Sequence[float]) -> float:
    return math.fsum(map(float.__mul__, first, second))


def _is_carried(levels: Sequence[float], is_after: Sequence[float], apart: Sequence[float]) -> bool:
    """Would the trend within the sides, going on from the middle of one to that of the other, come to half the step?"""
    moments = [math.fsum(apart[:place]) for place in range(len(levels))]
    if not math.isfinite(moments[-1]):
        return False
    sides = [[place for place, later in enumerate(is_after) if later == side] for side in (0.0, 1.0)]
    middles = [fmean(moments[place] for place in side) for side in sides]
    means = [fmean(levels[place] for place in side) for side in sides]
    within = [
        (moments[place] - middle, levels[place] - mean)
        for side, middle, mean in zip(sides, middles, means, strict=True)
        for place in side
    ]
    slope = math.fsum(at * level for at, level in within) / math.fsum(at * at for at, _ in within)
    step = means[1] - means[0]
    return step != 0 and slope * (middles[1] - middles[0]) / step >= _CARRIES


def _chi_squared_3(value: float) -> float:
    """The chance of more."""
    return math.erfc(math.sqrt(value / 2)) + math.sqrt(2 * value / math.pi) * math.exp(-value / 2)
