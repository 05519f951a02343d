"""Throttle counters: once a core, once a package; gone, unreadable and absent are told apart."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.monitor.watched import CPU, Watched, of, watch
from tunectl.monitor.model import Health

PACKAGE0 = frozenset({*range(8), *range(16, 24)})


@pytest.fixture
def xeon(tmp_path: Path) -> Watched:
    return watch(tmp_path, "xeon2s", {2, 18})


def test_siblings_and_packages_count_an_event_once(xeon: Watched) -> None:
    look = xeon.look()
    assert len(of(look, "core_throttles")) == 16
    assert of(look, "package_throttles")["package0"].cpus == PACKAGE0
    xeon.write(f"{CPU}/cpu3/thermal_throttle/core_throttle_count", 4)
    xeon.write(f"{CPU}/cpu19/thermal_throttle/core_throttle_count", 5)
    for cpu in PACKAGE0:
        xeon.write(f"{CPU}/cpu{cpu}/thermal_throttle/package_throttle_count", 2)
    look = xeon.look()
    core, package = of(look, "core_throttles"), of(look, "package_throttles")
    assert (core["core3"].value, sorted(core["core3"].cpus), core["core2"].value) == (5, [3, 19], 0)
    assert (package["package0"].value, package["package1"].value) == (2, 0)
    assert {one.health for one in (*core.values(), *package.values())} == {Health.FRESH}


def test_a_counter_that_cannot_be_read_any_more_is_no_data(xeon: Watched) -> None:
    xeon.look()
    for cpu in (3, 19):
        xeon.write(f"{CPU}/cpu{cpu}/thermal_throttle/core_throttle_count", "rubbish")
    xeon.remove(f"{CPU}/cpu4/thermal_throttle/core_throttle_count")
    xeon.remove(f"{CPU}/cpu20/thermal_throttle/core_throttle_count")
    core = of(xeon.look(), "core_throttles")
    assert (core["core3"].health, core["core3"].value) == (Health.NO_DATA, None)
    assert "rubbish" in core["core3"].reason
    assert core["core4"].health is Health.NO_DATA
    assert "gone" in core["core4"].reason
    assert core["core2"].health is Health.FRESH
    xeon.write(f"{CPU}/cpu4/thermal_throttle/core_throttle_count", 1)
    assert of(xeon.look(), "core_throttles")["core4"].value == 1


def test_an_unplugged_cpu_leaves_its_sibling_to_count(xeon: Watched) -> None:
    xeon.look()
    shutil.rmtree(xeon.root / f"{CPU}/cpu19/thermal_throttle")
    xeon.write(f"{CPU}/online", "0-18,20-31")
    xeon.write(f"{CPU}/cpu3/thermal_throttle/core_throttle_count", 1)
    assert of(xeon.look(), "core_throttles")["core3"].value == 1


def test_a_host_without_counters_says_so_once(tmp_path: Path) -> None:
    look = watch(tmp_path, "epyc", {2, 18}).look()
    assert of(look, "core_throttles") == {}
    only = of(look, "package_throttles")["host"]
    assert (only.health, only.value) == (Health.ABSENT, None)
