"""The limits that a probe is judged by: the profile's, each replaced by the host file's where that has one. Pure."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from tunectl.errors import UsageError
from tunectl.hostfile.shape import CEILINGS, Budget, FeedBudget
from tunectl.probe.budget import LONGEST_S, OBSERVATIONS
from tunectl.shapes import OF_HOST, Looser


class Measure(NamedTuple):
    """What a limit is compared with: the one of a profile that tunectl ships."""

    limit: float
    profile: str  # its name


def check_limit(key: str, value: float, where: str) -> None:
    """UsageError, naming `where`, for a figure that no run can break, or that none can keep."""
    is_none = key in OF_HOST and value == 0
    if not (is_none or 0 < value < CEILINGS[key]):  # NaN, too: nothing is ever above it
        most, least = f"{CEILINGS[key]:.10g}", "zero or a number" if key in OF_HOST else "a number"
        raise UsageError(
            f"{where}: {value:.10g} is no limit", f"no run reaches {most}: say {least} above zero and below it"
        )
    if not is_none and key.endswith("_per_s") and value * LONGEST_S < OBSERVATIONS:
        hint = f"no run of a day judges it: {OBSERVATIONS} a day or more"
        raise UsageError(f"{where}: {value:.10g} is no limit", hint)


def merged(own: Budget, shipped: Mapping[str, float], origin: str) -> dict[str, float]:
    """Every limit by its key, in the order of [budget]. UsageError, naming `origin` and the key, for no limit."""
    written = _written(own, KEYS, f"{origin}: budget")
    both = {**shipped, **written}
    return {key: both[key] for key in KEYS if key in both}


def of_feed(own: FeedBudget, origin: str) -> dict[str, float]:
    """Every limit of [budget.feed]. UsageError, naming `origin` and the key, for no limit."""
    return _written(own, FEED_KEYS, f"{origin}: budget.feed")


def _written(own: Budget | FeedBudget, keys: Iterable[str], where: str) -> dict[str, float]:
    written = {key: value for key in keys if (value := getattr(own, key)) is not None}
    for key, value in written.items():
        check_limit(key, value, f"{where}.{key}")
    return written


def looser(limits: Mapping[str, float], measures: Mapping[str, Measure]) -> tuple[Looser, ...]:
    """Which limits permit more than the profile's."""
    return tuple(
        Looser(key, value, *measures[key])
        for key, value in limits.items()
        if key in measures and value > measures[key].limit
    )


KEYS = tuple(field.name for field in msgspec.structs.fields(Budget) if field.name in CEILINGS)
FEED_KEYS = tuple(field.name for field in msgspec.structs.fields(FeedBudget))
