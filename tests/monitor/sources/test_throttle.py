"""Throttle counters: once a core, once a package; gone, unreadable and absent are told apart."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.monitor.watched import CPU, Watched, of, watch
from tunectl.monitor.model import Freshness

PACKAGE0 = frozenset({*range(8), *range(16, 24)})


@pytest.fixture
def xeon(lent_xeon: Path) -> Watched:
    return Watched(lent_xeon, frozenset({2, 18}))


def test_siblings_and_packages_count_an_event_once(xeon: Watched) -> None:
    snapshot = xeon.look()
    assert len(of(snapshot, "core_throttles")) == 16
    assert of(snapshot, "package_throttles")["package0"].cpus == PACKAGE0
    xeon.write(f"{CPU}/cpu3/thermal_throttle/core_throttle_count", 4)
    xeon.write(f"{CPU}/cpu19/thermal_throttle/core_throttle_count", 5)
    for cpu in PACKAGE0:
        xeon.write(f"{CPU}/cpu{cpu}/thermal_throttle/package_throttle_count", 2)
    snapshot = xeon.look()
    core, package = of(snapshot, "core_throttles"), of(snapshot, "package_throttles")
    assert (core["core3"].value, sorted(core["core3"].cpus), core["core2"].value) == (5, [3, 19], 0)
    assert (package["package0"].value, package["package1"].value) == (2, 0)
    assert {one.freshness for one in (*core.values(), *package.values())} == {Freshness.FRESH}


def test_a_counter_that_cannot_be_read_any_more_is_no_data(xeon: Watched) -> None:
    xeon.look()
    for cpu in (3, 19):
        xeon.write(f"{CPU}/cpu{cpu}/thermal_throttle/core_throttle_count", "rubbish")
    xeon.remove(f"{CPU}/cpu4/thermal_throttle/core_throttle_count")
    xeon.remove(f"{CPU}/cpu20/thermal_throttle/core_throttle_count")
    core = of(xeon.look(), "core_throttles")
    assert (core["core3"].freshness, core["core3"].value) == (Freshness.NO_DATA, None)
    assert "rubbish" in core["core3"].reason
    assert core["core4"].freshness is Freshness.NO_DATA
    assert "gone" in core["core4"].reason
    assert core["core2"].freshness is Freshness.FRESH
    xeon.write(f"{CPU}/cpu4/thermal_throttle/core_throttle_count", 1)
    assert of(xeon.look(), "core_throttles")["core4"].value == 1


def test_an_unplugged_cpu_leaves_its_sibling_to_count(xeon: Watched) -> None:
    xeon.look()
    shutil.rmtree(xeon.root / f"{CPU}/cpu19/thermal_throttle")
    xeon.write(f"{CPU}/online", "0-18,20-31")
    xeon.write(f"{CPU}/cpu3/thermal_throttle/core_throttle_count", 1)
    assert of(xeon.look(), "core_throttles")["core3"].value == 1


def test_a_host_without_counters_says_so_once(tmp_path: Path) -> None:
    snapshot = watch(tmp_path, "epyc", {2, 18}).look()
    assert of(snapshot, "core_throttles") == {}
    only = of(snapshot, "package_throttles")["host"]
    assert (only.freshness, only.value) == (Freshness.ABSENT, None)
