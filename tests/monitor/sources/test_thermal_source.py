"""Zones and cooling devices: no zone that asks a CPU, only what slows the CPUs, and what fails is no data."""

from __future__ import annotations

from pathlib import Path

from tests.monitor.watched import Watched, of, watch
from tunectl.monitor.model import Freshness

THERMAL = "sys/class/thermal"


def with_coolers(host: Watched) -> Watched:
    """A trip, a fan and a CPU that cools by being slow."""
    host.write(f"{THERMAL}/thermal_zone0/trip_point_0_type", "passive")
    host.write(f"{THERMAL}/thermal_zone0/trip_point_0_temp", 90000)
    for number, kind in enumerate(("Processor", "Fan")):
        (host.root / f"{THERMAL}/cooling_device{number}").mkdir()
        host.write(f"{THERMAL}/cooling_device{number}/type", kind)
        host.write(f"{THERMAL}/cooling_device{number}/cur_state", 0)
        host.write(f"{THERMAL}/cooling_device{number}/max_state", 10)
    return host


def test_a_zone_its_trip_and_what_slows_the_cpus(tmp_path: Path) -> None:
    host = with_coolers(watch(tmp_path, "lab4", {2, 3}))
    host.look()
    host.write(f"{THERMAL}/thermal_zone0/temp", 95000)
    host.write(f"{THERMAL}/cooling_device0/cur_state", 3)
    snapshot = host.look()
    assert of(snapshot, "temperature_mc")["thermal_zone0"].value == 95000
    assert of(snapshot, "temperature_mc")["thermal_zone0"].kind == "acpitz"
    assert of(snapshot, "trip_mc")["thermal_zone0"].value == 90000
    assert {name: one.value for name, one in of(snapshot, "cooling_state").items()} == {"cooling_device0": 3}


def test_an_unreadable_zone_is_no_data_and_a_vanished_device_too(tmp_path: Path) -> None:
    host = with_coolers(watch(tmp_path, "lab4", {2, 3}))
    host.look()
    host.write(f"{THERMAL}/thermal_zone0/temp", "?")
    host.remove(f"{THERMAL}/cooling_device0/cur_state")
    snapshot = host.look()
    assert of(snapshot, "temperature_mc")["thermal_zone0"].freshness is Freshness.NO_DATA
    assert of(snapshot, "cooling_state")["cooling_device0"].freshness is Freshness.NO_DATA


def test_zones_that_ask_a_cpu_are_left_out(tmp_path: Path) -> None:
    snapshot = watch(tmp_path, "xeon2s", {2, 18}).look()
    assert {name: one.freshness for name, one in of(snapshot, "temperature_mc").items()} == {"host": Freshness.ABSENT}


def test_a_zone_that_comes_later_is_found(tmp_path: Path) -> None:
    host = watch(tmp_path, "vm2", {1})
    assert list(of(host.look(), "temperature_mc")) == ["host"]
    (host.root / f"{THERMAL}/thermal_zone0").mkdir(parents=True)
    host.write(f"{THERMAL}/thermal_zone0/type", "pch_cannonlake")
    host.write(f"{THERMAL}/thermal_zone0/temp", 41000)
    assert of(host.look(61), "temperature_mc")["thermal_zone0"].value == 41000


def test_a_zone_of_the_firmware_is_asked_every_ten_seconds_only(tmp_path: Path) -> None:
    host = with_coolers(watch(tmp_path, "lab4", {2, 3}))
    host.watched_host.root.live = True  # a recorded zone may be read at any time
    host.look()
    host.write(f"{THERMAL}/thermal_zone0/temp", 95000)
    host.write(f"{THERMAL}/cooling_device0/cur_state", 3)
    snapshot = host.look(9.9)
    assert of(snapshot, "temperature_mc")["thermal_zone0"].value != 95000
    assert of(snapshot, "cooling_state")["cooling_device0"].value == 3
    assert of(host.look(0.2), "temperature_mc")["thermal_zone0"].value == 95000
