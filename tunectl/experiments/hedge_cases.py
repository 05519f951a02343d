"""Which cases `hedge` measures: each load, without second copies and with each delay. Pure."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from tunectl.errors import UsageError
from tunectl.experiments.case_by_case import chosen
from tunectl.experiments.hedge_request import MOST_REQUESTS, HedgeRequest
from tunectl.shapes import HedgeCase, typed

NONE = "none"
STALLS = (NONE, "a", "both", "common")
LEAST_LOAD, MOST_LOAD, MOST_DELAY_NS = 0.001, 2.0, 1_000_000_000
_LONGEST_LIST = 16
_PERCENTILE = re.compile(r"p([0-9]{2}(?:\.[0-9]{1,2})?)", re.ASCII)
_NS = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)


class Planned(NamedTuple):
    """A case, and why it cannot be measured; "" where it can."""

    load: float
    delay: str  # none, ns from due, or p95
    stall: str
    service_ns: int
    cancel: bool
    budget: float  # second copies for each request; 1: no limit
    shed_at: int  # a queue that long refuses; 0: none does
    seed: int
    reason: str = ""

    @property
    def cell(self) -> dict[str, Any]:
        """As the cell of a raw document in which nothing was counted."""
        return self._asdict()

    @property
    def title(self) -> str:
        """As the progress and all pages have it."""
        return typed({**self.cell, "n": 0, "histogram": []}, HedgeCase).name

    def words(self) -> list[str]:
        """The program's arguments that say which case it is."""
        asked = self._asdict()
        names = {"load": "load", "delay": "delay", "stall": "stall", "service_ns": "service-ns", "seed": "seed"}
        names |= {"budget": "budget", "shed_at": "shed"}
        words = [word for name, option in names.items() for word in (f"--{option}", str(asked[name]))]
        return words if self.cancel else [*words, "--no-cancel"]


def plan(request: HedgeRequest) -> list[Planned]:
    """The cases of a request: for each stall and load the one without second copies first. UsageError for no case."""
    request.check()
    loads = _loads(request)
    stalls = chosen("--stall", request.stall, STALLS)
    delays = [NONE, *(word for word in _delays(request.delay) if word != NONE)]
    budget = 1.0 if request.budget is None else request.budget
    policy = (request.service_ns, request.cancel, budget, request.shed or 0, request.seed)
    return [Planned(load, delay, stall, *policy) for stall in stalls for load in loads for delay in delays]


def _loads(request: HedgeRequest) -> list[float]:
    words = request.load.split(",")
    try:
        found = list(dict.fromkeys(map(float, words)))
    except ValueError:
        found = []
    if not found or not all(LEAST_LOAD <= load <= MOST_LOAD for load in found):  # nan is in no range
        expected = f"numbers from {LEAST_LOAD:g} to {MOST_LOAD:g}, like 0.1,0.5"
        raise UsageError(f"--load {request.load}: expected {expected}")
    _refuse_long("--load", request.load, found)
    for load in found:
        count = request.requests(load)
        if not 1 <= count <= MOST_REQUESTS:
            what = f"--load {load:g} for --duration {request.duration_s:g} at --service-ns {request.service_ns}"
            raise UsageError(f"{what}: that is {count:,} requests", f"from 1 to {MOST_REQUESTS:,} in a case")
    return found


def _delays(text: str) -> list[str]:
    found = list(dict.fromkeys(text.split(",")))
    for word in found:
        if word != NONE and not _is_percentile(word) and not _is_ns(word):
            expected = f"expected none, p50 to p99.9, or ns up to {MOST_DELAY_NS}, like 0,p95"
            raise UsageError(f"--delay {text}: {expected}")
    _refuse_long("--delay", text, found)
    return found


def _refuse_long(option: str, text: str, found: list[Any]) -> None:
    if len(found) > _LONGEST_LIST:
        raise UsageError(f"{option} {text}: at most {_LONGEST_LIST} of them")


def _is_ns(word: str) -> bool:
    return bool(_NS.fullmatch(word)) and int(word) <= MOST_DELAY_NS


def _is_percentile(word: str) -> bool:
    return 0 < natural_share(word) <= 0.5


def natural_share(delay: str) -> float:
    """Of the requests, the share that is late by a delay that follows a percentile: 0.05 for p95.

    nan for any other delay: it is known once it was measured.
    """
    found = _PERCENTILE.fullmatch(delay)
    percent = float(found[1]) if found else math.nan
    return round(1 - percent / 100, 6) if 50 <= percent <= 99.9 else math.nan
