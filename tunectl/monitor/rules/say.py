"""The words of the rules: numbers and CPUs as people read them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from tunectl.cpulist import format_cpulist

COOL = "look for a failed fan, dust, a power cap or a hot aisle; check the BMC's event log"


def ghz(khz: float) -> str:
    """1200000 -> 1.2 GHz"""
    return f"{round(khz / 1e6, 2):g} GHz"


def celsius(millidegrees: float) -> str:
    """95000 -> 95 C"""
    return f"{millidegrees / 1000:g} C"


def on(cpus: Iterable[int]) -> str:
    """{2, 3} -> CPUs 2-3"""
    cpus = frozenset(cpus)
    return f"{'CPU' if len(cpus) == 1 else 'CPUs'} {format_cpulist(cpus)}"


@lru_cache(maxsize=16384)
def cpu_of(subject: str) -> int | None:
    """cpu12 -> 12, core12 -> 12 (its lowest sibling); None for anything else."""
    for prefix in ("cpu", "core"):
        digits = subject.removeprefix(prefix)
        if digits != subject and digits.isascii() and digits.isdigit():
            return int(digits)
    return None
