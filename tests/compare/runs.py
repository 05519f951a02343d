"""Made-up runs with known gaps, and simulated ones whose truth is known."""

import copy
import math
import random
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from tests.probe.samples import cpu_result, figures_of, result
from tunectl.compare.estimate import Sample, sample
from tunectl.shapes import Jitter

GHZ = {"source": "tsc", "hz": 1e9, "granule_ns": 1.0, "drift_ppm": 0.0}
Gap = tuple[int, int]  # start and length, ns


def cpu_of(gaps: Iterable[Gap], seconds: float, cpu: int = 2, **changes: Any) -> dict[str, Any]:
    """A CPU of a jitter document with exactly these gaps; its counter ticks once a ns."""
    listed = sorted(gaps)
    lengths = [length for _, length in listed]
    values = {
        **figures_of(lengths, int(seconds * 1e9)),
        "tsc_start": 1_000,
        "events_lost": 0,
        "events": [[1_000 + start, 1_000 + start + length, 0] for start, length in listed],
    }
    return cpu_result(cpu, **{**values, **changes})


def document(*cpus: dict[str, Any], seconds: float = 10.0, **changes: Any) -> dict[str, Any]:
    """A jitter document around these CPUs."""
    return _around(*copy.deepcopy(cpus), seconds=seconds, **changes)


def _around(*cpus: dict[str, Any], seconds: float, **changes: Any) -> dict[str, Any]:
    return result(*cpus, **{"clock": GHZ, "duration_s": seconds, "threshold_ns": 100, **changes})


def sample_of(gaps: Iterable[Gap], seconds: float) -> Sample:
    """The same gaps as the statistics want them."""
    jitter = msgspec.convert(_around(cpu_of(gaps, seconds), seconds=seconds), Jitter)
    return sample(jitter, jitter.cpus, 0)


def steady(every_ns: int, length_ns: int, seconds: float) -> list[Gap]:
    """A timer: gaps of one length at equal distances."""
    return [(at, length_ns) for at in range(0, int(seconds * 1e9) - length_ns, every_ns)]


def lognormal(rng: random.Random) -> float:
    """Around 2 µs, with a tail."""
    return 2000 * math.exp(rng.gauss(0, 1))


def simulated(
    seed: int,
    seconds: float,
    per_second: float = 200.0,
    burst: int = 1,
    length: Callable[[random.Random], float] = lognormal,
) -> list[Gap]:
    """Poisson arrivals of bursts of `burst` gaps on average; the gaps of one burst are of like length."""
    rng = random.Random(seed)
    gaps: list[Gap] = []
    now = rng.expovariate(per_second / burst)
    while now < seconds:
        at, base = now, length(rng)
        for _ in range(1 if burst == 1 else 1 + int(rng.expovariate(1 / (burst - 1)))):
            ns = base * rng.uniform(0.7, 1.3) if burst > 1 else base
            gaps.append((int(at * 1e9), int(ns)))
            at += ns / 1e9 + 1e-4
        now += rng.expovariate(per_second / burst)
    return [gap for gap in gaps if sum(gap) < seconds * 1e9]
