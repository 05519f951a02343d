"""A frequency counts only where it is a measurement: every way in which the file shows something else is told apart."""

from pathlib import Path

import pytest

from tests.monitor.watched import CPU, Watched, of, watch
from tunectl.monitor.model import Freshness, Sample

HOUSEKEEPING = [cpu for cpu in range(32) if cpu not in (2, 18)]


@pytest.fixture
def xeon(lent_xeon: Path) -> Watched:
    """Governor performance, every housekeeping CPU of package 0 measured at 3.6 GHz."""
    host = Watched(lent_xeon, frozenset({2, 18}))
    for cpu in range(32):
        host.write(f"{CPU}/cpufreq/policy{cpu}/scaling_governor", "performance")
    return host


def tick(host: Watched, cpus: list[int], khz: object = None, ticks: int = 250) -> dict[str, Sample]:
    """A second in which these CPUs ticked, and what was then seen of all."""
    for cpu in cpus:
        host.count("LOC", cpu, ticks)
        if khz is not None:
            host.write(f"{CPU}/cpufreq/policy{cpu}/scaling_cur_freq", khz)
    snapshot = host.look()
    return of(snapshot, "frequency_khz") | of(snapshot, "sentinel_khz")


@pytest.mark.slow
def test_a_ticking_cpus_number_is_a_measurement_and_speaks_for_its_package(xeon: Watched) -> None:
    xeon.look()
    seen = tick(xeon, [0, 1], 3599871)
    assert (seen["cpu0"].value, seen["cpu0"].freshness) == (3599871, Freshness.FRESH)
    assert (seen["package0"].value, seen["package0"].freshness) == (3599871, Freshness.FRESH)
    assert seen["package0"].cpus == {2, 18}
    seen = tick(xeon, [0, 1], 1199954)
    assert (seen["package0"].value, seen["package0"].freshness) == (1199954, Freshness.FRESH)


def test_a_cpu_that_does_not_tick_is_stale_and_not_even_read(xeon: Watched) -> None:
    assert {one.freshness for one in of(xeon.look(), "frequency_khz").values()} == {Freshness.STALE}
    seen = tick(xeon, [0], 3599871)
    assert (seen["cpu3"].freshness, seen["cpu3"].value) == (Freshness.STALE, None)
    assert (seen["package1"].freshness, seen["package1"].value) == (Freshness.STALE, None)
    assert tick(xeon, [0], 3599871, ticks=20)["cpu0"].freshness is Freshness.STALE


@pytest.mark.parametrize(
    ("khz", "freshness"),
    [
        (0, Freshness.NO_DATA),
        (800000, Freshness.STALE),  # scaling_min_freq
        (4400000, Freshness.STALE),  # scaling_max_freq
        (2600000, Freshness.STALE),  # whole MHz
        (2600123, Freshness.FRESH),
    ],
)
def test_a_fallback_is_no_measurement(xeon: Watched, khz: int, freshness: Freshness) -> None:
    xeon.look()
    assert tick(xeon, [0], khz)["cpu0"].freshness is freshness


def test_a_number_that_never_changes_was_not_measured(xeon: Watched) -> None:
    xeon.look()
    healths = [tick(xeon, [0], 2600123)["cpu0"].freshness for _ in range(4)]
    assert healths == [Freshness.FRESH, Freshness.FRESH, Freshness.STALE, Freshness.STALE]
    assert tick(xeon, [0], 2600124)["cpu0"].freshness is Freshness.FRESH


def test_a_slow_cpu_that_may_be_slow_proves_nothing_and_a_busy_one_does(xeon: Watched) -> None:
    for cpu in HOUSEKEEPING:
        xeon.write(f"{CPU}/cpufreq/policy{cpu}/scaling_governor", "powersave")
    stat = (xeon.root / "proc/stat").read_text()
    xeon.look()
    seen = tick(xeon, [0], 1199954)
    assert (seen["cpu0"].freshness, seen["package0"].freshness) == (Freshness.FRESH, Freshness.STALE)
    (xeon.root / "proc/stat").write_text(stat.replace("cpu0 9 0 4 900", "cpu0 99 0 4 910"))
    assert tick(xeon, [0], 1199955)["package0"].freshness is Freshness.FRESH
    assert tick(xeon, [1], 3599871)["package0"].value == 3599871  # however idle: it was that fast


@pytest.mark.parametrize(
    ("ticks", "khz", "freshness"),
    [(50, 3599871, Freshness.FRESH), (49, 3599871, Freshness.STALE), (250, "<unknown>", Freshness.NO_DATA)],
)
def test_fifty_ticks_a_second_are_enough_for_a_measurement(
    xeon: Watched, ticks: int, khz: object, freshness: Freshness
) -> None:
    xeon.look()
    assert tick(xeon, [0], khz, ticks)["cpu0"].freshness is freshness
    xeon.remove(f"{CPU}/cpufreq/policy0/scaling_cur_freq")
    assert tick(xeon, [0])["cpu0"].freshness is Freshness.NO_DATA


@pytest.mark.parametrize(("busy", "freshness"), [(80, Freshness.FRESH), (79, Freshness.STALE)])
def test_a_cpu_that_is_busy_four_fifths_of_the_time_is_not_slow_by_its_own_will(
    xeon: Watched, busy: int, freshness: Freshness
) -> None:
    for cpu in HOUSEKEEPING:
        xeon.write(f"{CPU}/cpufreq/policy{cpu}/scaling_governor", "powersave")
    stat = (xeon.root / "proc/stat").read_text()
    xeon.look()
    (xeon.root / "proc/stat").write_text(stat.replace("cpu0 9 0 4 900", f"cpu0 {9 + busy} 0 4 {1000 - busy}"))
    assert tick(xeon, [0], 1199955)["package0"].freshness is freshness


@pytest.mark.parametrize(("khz", "freshness"), [(3240009, Freshness.FRESH), (3240008, Freshness.STALE)])
def test_a_measurement_of_exactly_the_least_ratio_is_no_slow_package(
    tmp_path: Path, khz: int, freshness: Freshness
) -> None:
    host = watch(tmp_path, "xeon2s", {2, 18}, "[thermal]\nbase_frequency_khz = 3600010\nmin_ratio = 0.9\n")
    for cpu in HOUSEKEEPING:
        host.write(f"{CPU}/cpufreq/policy{cpu}/scaling_governor", "powersave")
    host.look()
    assert tick(host, [0], khz)["package0"].freshness is freshness


def test_a_policy_shared_with_an_isolated_cpu_is_not_read(xeon: Watched) -> None:
    xeon.write(f"{CPU}/cpufreq/policy0/affected_cpus", "0 2")
    xeon.look()
    seen = tick(xeon, [0], 3599871)["cpu0"]
    assert (seen.freshness, seen.value) == (Freshness.STALE, None)


def test_a_cpu_without_a_tick_is_not_read_though_the_host_file_does_not_name_it(lent_xeon: Path) -> None:
    host = Watched(lent_xeon, frozenset({2, 18}))
    host.write(f"{CPU}/nohz_full", "2,3,18,19")
    host = Watched(host.root, frozenset({2, 18}))
    host.look()
    seen = tick(host, [3, 4], 3599871)
    assert (seen["cpu3"].freshness, seen["cpu3"].value) == (Freshness.STALE, None)
    assert seen["cpu4"].freshness is Freshness.FRESH


def test_a_core_of_another_kind_does_not_speak_for_the_isolated_ones(tmp_path: Path) -> None:
    """Turbo is off: an efficient core at its base is no sign that the fast ones are slow, and a fast one is."""
    host = watch(tmp_path, "hybrid", {2, 3})
    for cpu in range(16):
        host.write(f"{CPU}/cpufreq/policy{cpu}/scaling_governor", "performance")
    host.look()
    assert tick(host, [9], 2499871)["package0"].value is None
    fast = tick(host, [0, 9], 3399871)["package0"]
    assert (fast.value, fast.freshness) == (3399871, Freshness.FRESH)


def test_efficient_cores_speak_for_efficient_ones(tmp_path: Path) -> None:
    host = watch(tmp_path, "hybrid", {10, 11})
    for cpu in range(16):
        host.write(f"{CPU}/cpufreq/policy{cpu}/scaling_governor", "performance")
    host.look()
    tick(host, [0], 3399871)
    slow = tick(host, [9], 1199954)["package0"]
    assert (slow.value, slow.freshness) == (1199954, Freshness.FRESH)


def test_a_machine_without_cpufreq_has_no_sentinel(tmp_path: Path) -> None:
    snapshot = watch(tmp_path, "vm2", {1}).look()
    assert of(snapshot, "frequency_khz") == {}
    assert {one.freshness for one in of(snapshot, "sentinel_khz").values()} == {Freshness.ABSENT}


def test_an_offline_cpu_is_left_out(xeon: Watched) -> None:
    xeon.look()
    xeon.write(f"{CPU}/online", "1-31")
    assert "cpu0" not in tick(xeon, [1], 3599871)
