"""bios_limit, scaling_max_freq and base: of the isolated CPUs, never guessed, and the base does not sink with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.monitor.watched import CPU, Watched, of, watch
from tunectl.monitor.model import Freshness


@pytest.fixture
def lab4(tmp_path: Path) -> Watched:
    return watch(tmp_path, "lab4", {2, 3})


def test_the_firmwares_limit_shows_at_once(lab4: Watched) -> None:
    snapshot = lab4.look()
    assert {name: one.value for name, one in of(snapshot, "bios_limit_khz").items()} == {
        "cpu2": 3500000,
        "cpu3": 3500000,
    }
    assert of(snapshot, "base_khz")["cpu2"].value == 3500000
    assert of(snapshot, "base_khz")["cpu2"].reason == "scaling_available_frequencies"
    lab4.write(f"{CPU}/cpufreq/policy2/bios_limit", 1200000)
    snapshot = lab4.look()
    assert of(snapshot, "bios_limit_khz")["cpu2"].value == 1200000
    assert of(snapshot, "bios_limit_khz")["cpu3"].value == 3500000
    assert of(snapshot, "max_khz")["cpu2"].value == 3500000


def test_a_limit_that_vanishes_or_is_zero_is_no_data(lab4: Watched) -> None:
    lab4.look()
    lab4.remove(f"{CPU}/cpufreq/policy2/bios_limit")
    lab4.write(f"{CPU}/cpufreq/policy3/bios_limit", 0)
    found = of(lab4.look(), "bios_limit_khz")
    assert {one.freshness for one in found.values()} == {Freshness.NO_DATA}
    assert "No such file" in found["cpu2"].reason
    assert "holds 0" in found["cpu3"].reason


def test_an_unknown_base_is_no_data_and_the_host_file_knows_better(tmp_path: Path) -> None:
    host = watch(tmp_path, "lab4", {2, 3})
    for number in range(4):
        host.remove(f"{CPU}/cpufreq/policy{number}/scaling_available_frequencies")
    cpuinfo = host.root / "proc/cpuinfo"
    cpuinfo.write_text(cpuinfo.read_text().replace(" @ 3.50GHz", ""))
    base = of(host.look(), "base_khz")["cpu2"]
    assert (base.freshness, base.value) == (Freshness.NO_DATA, None)
    assert "base_frequency_khz" in base.reason
    told = watch(tmp_path / "told", "lab4", {2, 3}, "[thermal]\nbase_frequency_khz = 3000000\n")
    base = of(told.look(), "base_khz")["cpu2"]
    assert (base.value, base.reason) == (3000000, "the host file")


def test_the_base_is_kept_when_the_firmware_lowers_it(tmp_path: Path) -> None:
    host = watch(tmp_path, "xeon2s", {2, 18})
    assert of(host.look(), "base_khz")["cpu2"].value == 3500000
    for cpu in range(32):
        host.write(f"{CPU}/cpufreq/policy{cpu}/base_frequency", 1200000)
    host.write(f"{CPU}/online", "0-30")
    assert of(host.look(), "base_khz")["cpu2"].value == 3500000


def test_a_virtual_machine_has_none(tmp_path: Path) -> None:
    snapshot = watch(tmp_path, "vm2", {1}).look()
    for quantity in ("bios_limit_khz", "max_khz"):
        assert {name: one.freshness for name, one in of(snapshot, quantity).items()} == {"host": Freshness.ABSENT}


def test_an_offline_cpu_is_not_judged(tmp_path: Path) -> None:
    host = watch(tmp_path, "lab4", {2, 3})
    host.look()
    host.write(f"{CPU}/online", "0-2")
    assert list(of(host.look(), "base_khz")) == ["cpu2"]
