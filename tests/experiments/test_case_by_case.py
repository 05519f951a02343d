"""What is said before each case: which one it is, and how long all the rest takes."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tunectl.experiments.ends import CaseRun, Placed
from tunectl.experiments.feed import FeedRequest, plan
from tunectl.experiments.feed_cells import RawCase
from tunectl.experiments.frame import CaseError, Takes, require_online
from tunectl.experiments.hedge import HedgeRequest
from tunectl.host.sysroot import Sysroot
from tunectl.work import Work

from .test_feed_native import measured


def said_of(takes: Takes, after_s: float = 0.0, **asked: Any) -> list[tuple[str, float]]:
    said: list[Work] = []

    def measure(case: RawCase) -> dict[str, Any]:
        return {"interrupted": False, "at": "", "duration_s": 1.0, "cells": [case.cell]}

    request, placed = FeedRequest(**asked), Placed((2, 3))
    CaseRun("feed", request, placed, plan(request, placed), lambda _: takes, said.append).measure(measure, after_s)
    return [(work.now, round(work.left_s or 0.0, 6)) for work in said]


def test_what_is_left_is_of_all_cases_that_can_be_measured_and_of_what_comes_behind_them() -> None:
    assert said_of(Takes(0.2, 10), 10.2, symbols="1,4", transport="tcp,udp") == [
        ("tcp ws-json, 1 symbol, poll0: case 1 of 4", 30.6),
        ("tcp ws-json, 4 symbols, poll0: case 2 of 4", 20.4),
    ]


@pytest.mark.parametrize(("warm_up", "said"), [(0.99, ""), (1.0, ", the first 1 s to warm up")])
def test_a_long_warm_up_is_named(warm_up: float, said: str) -> None:
    assert said_of(Takes(warm_up, 0)) == [(f"tcp ws-json, 1 symbol, poll0: case 1 of 1{said}", warm_up)]


@pytest.mark.pins
@pytest.mark.parametrize(("rate", "burst"), [(1000, 1), (1000, 7), (999, 1), (40_000, 32), (200_000, 1)])
def test_the_program_warms_up_as_long_as_is_said(program: Path, pair: str, rate: int, burst: int) -> None:
    if len(set(pair.split(","))) < 2:
        pytest.skip("feed spins on two CPUs, and here is one")
    (case,) = plan(FeedRequest(rate=rate, burst=burst, duration_s=0.3), Placed((2, 3)))
    cell = measured(program, pair, rate=rate, burst=burst, duration=0.3)
    assert round(case.warm_up_s * rate) == cell["warm_ups"]


@pytest.mark.slow
@pytest.mark.parametrize(("load", "service_ns", "duration"), [(0.1, 3000, 10), (0.5, 3000, 0.01), (0.001, 10**6, 1)])
def test_so_it_does_for_hedge(program: Path, load: float, service_ns: int, duration: float) -> None:
    request = HedgeRequest(service_ns=service_ns, duration_s=duration)
    asked = ("--load", str(load), "--service-ns", str(service_ns), "--duration", str(duration))
    done = subprocess.run([program, "hedge", "--simulate", *asked], capture_output=True, check=True, timeout=60)
    (cell,) = json.loads(done.stdout)["cells"]
    assert request.warm_up_s(load) == pytest.approx(cell["warm_ups"] * service_ns / (2 * load) / 1e9)


@pytest.mark.parametrize(
    ("listed", "cpus", "said"),
    [
        ("0-3\n", {2, 3}, ""),
        ("0-2\n", {2, 3}, "CPU 3: not online any more"),
        ("0\n", {2, 3}, "CPUs 2-3: not online any more"),
        (None, {2, 3}, ""),
        ("0-2\n", set(), ""),
    ],
)
def test_a_case_needs_its_cpus(tmp_path: Path, listed: str | None, cpus: set[int], said: str) -> None:
    if listed is not None:
        path = tmp_path / "sys/devices/system/cpu/online"
        path.parent.mkdir(parents=True)
        path.write_text(listed)
    found = ""
    try:
        require_online(Sysroot(str(tmp_path)), frozenset(cpus), "not online any more")
    except CaseError as error:
        found = error.message
    assert found == said
