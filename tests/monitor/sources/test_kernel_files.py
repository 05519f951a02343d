"""Sources that read kernel files: limits, throttle counters, zones, interrupts, events, and the audit of all."""

import shutil
from pathlib import Path

import pytest

from tests.hosts.builder import bind_cooler
from tests.monitor.watched import CPU, Watched, of, watch
from tunectl.host.devices import DeviceEvent
from tunectl.monitor.model import Freshness, Snapshot, Value
from tunectl.monitor.sources import SOURCES, take_snapshot
from tunectl.monitor.watched_host import Source

PACKAGE0 = frozenset({*range(8), *range(16, 24)})
THERMAL = "sys/class/thermal"


def values(snapshot: Snapshot, quantity: str) -> dict[str, Value]:
    """{subject: value} of one quantity."""
    return {sample.subject: sample.value for sample in snapshot.of(quantity)}


@pytest.fixture
def lab4(tmp_path: Path) -> Watched:
    return watch(tmp_path, "lab4", {2, 3})


@pytest.fixture
def xeon(lent_xeon: Path) -> Watched:
    return Watched(lent_xeon, frozenset({2, 18}))


# ---- bios_limit, scaling_max_freq and base: of the isolated CPUs, never guessed, and the base does not sink with them.


def test_the_firmwares_limit_shows_at_once(lab4: Watched) -> None:
    snapshot = lab4.look()
    assert values(snapshot, "bios_limit_khz") == {"cpu2": 3500000, "cpu3": 3500000}
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


def test_an_unknown_base_is_no_data_and_the_host_file_knows_better(tmp_path: Path) -> None:
    host = watch(tmp_path, "lab4", {2, 3})
    for number in range(4):
        host.remove(f"{CPU}/cpufreq/policy{number}/scaling_available_frequencies")
    cpuinfo = host.root / "proc/cpuinfo"
    cpuinfo.write_text(cpuinfo.read_text().replace(" @ 3.50GHz", ""))
    base = of(host.look(), "base_khz")["cpu2"]
    assert (base.freshness, base.value) == (Freshness.NO_DATA, None)
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


PSTATE = f"{CPU}/intel_pstate"
NAMED = ("sys/devices/cpu_core", "sys/devices/cpu_atom")


@pytest.mark.parametrize("unnamed", [(), NAMED], ids=["named", "by their highest frequency"])
def test_a_base_is_none_of_another_kind_of_core(tmp_path: Path, unnamed: tuple[str, ...]) -> None:
    """The slow cores keep house: what they are asked says nothing of the fast ones, which are isolated."""
    host = watch(tmp_path, "hybrid", set(range(8)))
    for directory in unnamed:
        shutil.rmtree(host.root / directory)
    snapshot = host.look()
    assert of(snapshot, "base_khz")["cpu2"].freshness is Freshness.NO_DATA
    highest = of(snapshot, "highest_khz")
    assert {(one.value, one.freshness) for one in highest.values()} == {(5100000, Freshness.FRESH)}
    host.write(f"{PSTATE}/no_turbo", 1)
    assert {one.freshness for one in of(host.look(), "highest_khz").values()} == {Freshness.STALE}


@pytest.mark.parametrize("unnamed", [(), NAMED], ids=["named", "by their highest frequency"])
def test_a_base_is_of_the_same_kind_of_core(tmp_path: Path, unnamed: tuple[str, ...]) -> None:
    host = watch(tmp_path, "hybrid", {2, 3, 10})
    for directory in unnamed:
        shutil.rmtree(host.root / directory)
    snapshot = host.look()
    assert values(snapshot, "base_khz") == {"cpu2": 3400000, "cpu3": 3400000, "cpu10": 2500000}
    assert of(snapshot, "highest_khz") == {}


def test_a_share_of_the_highest_frequency_holds_every_cpu_down(xeon: Watched) -> None:
    """No CPU's own limits show max_perf_pct; intel_pstate rounds 30 % of 4.4 GHz up to a P-state."""
    assert of(xeon.look(), "max_perf_khz") == {}
    xeon.write(f"{PSTATE}/max_perf_pct", 30)
    snapshot = xeon.look()
    assert values(snapshot, "max_perf_khz") == {"cpu2": 1400000, "cpu18": 1400000}
    assert {one.value for one in of(snapshot, "max_khz").values()} == {4400000}
    xeon.write(f"{PSTATE}/max_perf_pct", 100)
    assert of(xeon.look(), "max_perf_khz") == {}


def test_a_share_counts_only_where_intel_pstate_is_at_work(xeon: Watched) -> None:
    xeon.write(f"{PSTATE}/max_perf_pct", 30)
    xeon.write(f"{PSTATE}/status", "off")
    assert of(xeon.look(), "max_perf_khz") == {}


@pytest.mark.parametrize(
    ("highest", "percent", "freshness"),
    [(4400000, 50, Freshness.FRESH), (3500000, 80, Freshness.STALE), (3500000, 90, Freshness.FRESH)],
)
def test_a_share_of_what_is_not_shown_while_turbo_is_off(
    xeon: Watched, highest: int, percent: int, freshness: Freshness
) -> None:
    """Some kernels show the base as the highest then, and mean a share of the turbo's: it is that much, or more."""
    for cpu in (2, 18):
        xeon.write(f"{CPU}/cpufreq/policy{cpu}/cpuinfo_max_freq", highest)
    xeon.write(f"{PSTATE}/no_turbo", 1)
    xeon.write(f"{PSTATE}/max_perf_pct", percent)
    assert {one.freshness for one in of(xeon.look(), "max_perf_khz").values()} == {freshness}


def test_a_virtual_machine_has_none(tmp_path: Path) -> None:
    snapshot = watch(tmp_path, "vm2", {1}).look()
    for quantity in ("bios_limit_khz", "max_khz"):
        assert {name: one.freshness for name, one in of(snapshot, quantity).items()} == {"host": Freshness.ABSENT}


def test_an_offline_cpu_is_not_judged(lab4: Watched) -> None:
    lab4.look()
    lab4.write(f"{CPU}/online", "0-2")
    assert list(of(lab4.look(), "base_khz")) == ["cpu2"]


# ---- Throttle counters: once a core, once a package; gone, unreadable and absent are told apart.


def test_siblings_and_packages_count_an_event_once(xeon: Watched) -> None:
    snapshot = xeon.look()
    assert len(of(snapshot, "core_throttles")) == 32
    assert of(snapshot, "package_throttles")["cpu19"].cpus == PACKAGE0
    xeon.write(f"{CPU}/cpu3/thermal_throttle/core_throttle_count", 4)
    xeon.write(f"{CPU}/cpu19/thermal_throttle/core_throttle_count", 5)
    for cpu in PACKAGE0:
        xeon.write(f"{CPU}/cpu{cpu}/thermal_throttle/package_throttle_count", 2)
    snapshot = xeon.look()
    core, package = of(snapshot, "core_throttles"), of(snapshot, "package_throttles")
    assert (core["cpu3"].value, core["cpu19"].value, core["cpu2"].value) == (4, 5, 0)
    assert {(core[cpu].whole, core[cpu].cpus) for cpu in ("cpu3", "cpu19")} == {("core3", frozenset({3, 19}))}
    assert (package["cpu19"].value, package["cpu19"].whole, package["cpu8"].value) == (2, "package0", 0)
    assert {one.freshness for one in (*core.values(), *package.values())} == {Freshness.FRESH}


def test_a_counter_that_cannot_be_read_any_more_is_no_data(xeon: Watched) -> None:
    xeon.look()
    for cpu in (3, 19):
        xeon.write(f"{CPU}/cpu{cpu}/thermal_throttle/core_throttle_count", "rubbish")
    xeon.remove(f"{CPU}/cpu4/thermal_throttle/core_throttle_count")
    xeon.remove(f"{CPU}/cpu20/thermal_throttle/core_throttle_count")
    core = of(xeon.look(), "core_throttles")
    assert (core["cpu3"].freshness, core["cpu3"].value) == (Freshness.NO_DATA, None)
    assert core["cpu4"].freshness is Freshness.NO_DATA
    assert core["cpu2"].freshness is Freshness.FRESH
    xeon.write(f"{CPU}/cpu4/thermal_throttle/core_throttle_count", 1)
    assert of(xeon.look(), "core_throttles")["cpu4"].value == 1


def test_an_unplugged_cpu_leaves_its_sibling_to_count(xeon: Watched) -> None:
    xeon.look()
    shutil.rmtree(xeon.root / f"{CPU}/cpu19/thermal_throttle")
    xeon.write(f"{CPU}/online", "0-18,20-31")
    xeon.write(f"{CPU}/cpu3/thermal_throttle/core_throttle_count", 1)
    core = of(xeon.look(), "core_throttles")
    assert core["cpu3"].value == 1
    assert "cpu19" not in core


def test_a_host_without_counters_says_so_once(tmp_path: Path) -> None:
    snapshot = watch(tmp_path, "epyc", {2, 18}).look()
    assert of(snapshot, "core_throttles") == {}
    only = of(snapshot, "package_throttles")["host"]
    assert (only.freshness, only.value) == (Freshness.ABSENT, None)


# ---- Zones and cooling devices: no zone that asks a CPU, only what slows the CPUs, and what fails is no data.


def with_coolers(host: Watched) -> Watched:
    """A trip, a fan and a CPU that cools by being slow."""
    host.write(f"{THERMAL}/thermal_zone0/trip_point_0_type", "passive")
    host.write(f"{THERMAL}/thermal_zone0/trip_point_0_temp", 90000)
    for number, kind in enumerate(("Processor", "Fan")):
        (host.root / f"{THERMAL}/cooling_device{number}").mkdir()
        host.write(f"{THERMAL}/cooling_device{number}/type", kind)
        host.write(f"{THERMAL}/cooling_device{number}/cur_state", 0)
        host.write(f"{THERMAL}/cooling_device{number}/max_state", 10)
    bind_cooler(host.root, 0, 0)
    return host


def test_a_zone_its_trip_and_what_slows_the_cpus(lab4: Watched) -> None:
    host = with_coolers(lab4)
    host.look()
    host.write(f"{THERMAL}/thermal_zone0/temp", 95000)
    host.write(f"{THERMAL}/cooling_device0/cur_state", 3)
    snapshot = host.look()
    assert of(snapshot, "temperature_mc")["thermal_zone0"].value == 95000
    assert of(snapshot, "temperature_mc")["thermal_zone0"].kind == "acpitz"
    assert of(snapshot, "trip_mc")["thermal_zone0"].value == 90000
    assert {name: one.value for name, one in of(snapshot, "cooling_state").items()} == {"cooling_device0": 3}


@pytest.mark.parametrize(
    ("kind", "cooler", "mode", "trip"),
    [
        ("passive", "Fan", "enabled", None),
        ("passive", "Processor", "disabled", None),
        ("passive", "cpufreq-cpu2", "enabled", 90000),
        ("passive", "intel_powerclamp", "enabled", 90000),
        ("active", "Processor", "enabled", None),
        ("critical", "Fan", "enabled", 90000),
        ("hot", "Fan", "enabled", 90000),
    ],
)
def test_a_trip_counts_for_what_it_does(lab4: Watched, kind: str, cooler: str, mode: str, trip: int | None) -> None:
    """A passive one drives what is bound to it, and of a zone that is disabled the kernel heeds none."""
    host = with_coolers(lab4)
    host.write(f"{THERMAL}/thermal_zone0/trip_point_0_type", kind)
    host.write(f"{THERMAL}/thermal_zone0/mode", mode)
    host.write(f"{THERMAL}/cooling_device0/type", cooler)
    assert [sample.value for sample in of(host.look(), "trip_mc").values()] == [trip]


def test_a_passive_trip_to_which_another_zones_cooler_is_bound_slows_nobody(lab4: Watched) -> None:
    host = with_coolers(lab4)
    host.write(f"{THERMAL}/thermal_zone0/cdev0_trip_point", 3)
    assert of(host.look(), "trip_mc")["thermal_zone0"].freshness is Freshness.ABSENT


COOLER, ZONE, POLICY = f"{THERMAL}/cooling_device0", f"{THERMAL}/thermal_zone0", f"{CPU}/cpufreq/policy2"


@pytest.mark.parametrize(
    ("path", "quantity", "number", "freshness"),
    [
        *((f"{ZONE}/temp", "temperature_mc", n, "no-data") for n in (-274000, -273000, 0, 127000, 255000, 2147483647)),
        *((f"{ZONE}/trip_point_0_temp", "trip_mc", n, "absent") for n in (-274000, 0, 255000, 2147483647)),
        *((f"{POLICY}/scaling_max_freq", "max_khz", n, "no-data") for n in (0, 3500, 4294967295)),
        *((f"{POLICY}/bios_limit", "bios_limit_khz", n, "no-data") for n in (0, 3500, 4294967295)),
        *((f"{COOLER}/cur_state", "cooling_state", n, "no-data") for n in (11, -2)),  # never above its own largest
        *((f"{COOLER}/cur_state", "cooling_state", n, "fresh") for n in (10, -1)),
    ],
)
def test_a_number_that_cannot_be_is_no_data(
    lab4: Watched, path: str, quantity: str, number: int, freshness: str
) -> None:
    with_coolers(lab4).write(path, number)
    found = of(lab4.look(), quantity)
    sample = found.pop("cpu2", None) or found.popitem()[1]
    assert (sample.freshness, sample.value) == (freshness, number if freshness == "fresh" else None)
    assert {other.freshness for other in found.values()} <= {Freshness.FRESH}


@pytest.mark.parametrize("shown", [0, 101, "?"])
def test_a_share_that_cannot_be_is_no_data(xeon: Watched, shown: object) -> None:
    xeon.write(f"{PSTATE}/max_perf_pct", shown)
    shares = of(xeon.look(), "max_perf_khz").values()
    assert [(share.value, share.freshness) for share in shares] == [(None, Freshness.NO_DATA)]


def test_an_unreadable_zone_is_no_data_and_a_vanished_device_too(lab4: Watched) -> None:
    host = with_coolers(lab4)
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


def test_a_zone_of_the_firmware_is_asked_every_ten_seconds_only(lab4: Watched) -> None:
    host = with_coolers(lab4)
    host.watched_host.root.live = True  # a recorded zone may be read at any time
    host.look()
    host.write(f"{THERMAL}/thermal_zone0/temp", 95000)
    host.write(f"{THERMAL}/cooling_device0/cur_state", 3)
    snapshot = host.look(9.9)
    assert of(snapshot, "temperature_mc")["thermal_zone0"].value != 95000
    assert of(snapshot, "cooling_state")["cooling_device0"].value == 3
    assert of(host.look(0.2), "temperature_mc")["thermal_zone0"].value == 95000


# ---- Interrupts: the isolated CPUs' counts, the devices that came to one, and no verdict where the table is gone.


def test_counts_by_kind_and_device(tmp_path: Path) -> None:
    host = watch(tmp_path, "xeon2s", {2, 18})
    snapshot = host.look()
    assert set(of(snapshot, "timer_ticks")) == {"cpu2", "cpu18"}
    assert len(of(snapshot, "thermal_interrupts")) == 32
    assert "irq61.cpu18" not in of(snapshot, "interrupts")
    for label, cpu in (("LOC", 2), ("CAL", 18), ("RES", 2), ("TRM", 9), ("61", 18)):
        host.count(label, cpu, 7)
    later = host.look()
    for quantity, cpu in (("timer_ticks", 2), ("function_calls", 18), ("reschedules", 2), ("thermal_interrupts", 9)):
        before, after = (of(seen, quantity)[f"cpu{cpu}"].value for seen in (snapshot, later))
        assert isinstance(before, int)
        assert after == before + 7
    irq = of(later, "interrupts")["irq61.cpu18"]
    assert (irq.value, irq.kind, irq.whole, sorted(irq.cpus)) == (7, "ens2f0-1", "irq61", [18])


def test_a_table_that_cannot_be_read_is_no_data_for_every_count(lab4: Watched) -> None:
    lab4.look()
    lab4.remove("proc/interrupts")
    snapshot = lab4.look()
    for quantity in ("interrupts", "timer_ticks", "function_calls", "reschedules", "thermal_interrupts"):
        assert {name: one.freshness for name, one in of(snapshot, quantity).items()} == {"host": Freshness.NO_DATA}
    assert of(snapshot, "own_interruptions")["host"].freshness is Freshness.NO_DATA


def test_an_offline_cpu_has_no_column(tmp_path: Path) -> None:
    host = watch(tmp_path, "sparse", {8, 9})
    assert set(of(host.look(), "timer_ticks")) == {"cpu8", "cpu9"}
    table = host.root / "proc/interrupts"
    lines = table.read_bytes().split(b"\n")
    table.write_bytes(b"\n".join(line[: 5 + 33] + line[5 + 44 :] if b"CPU" in line else line for line in lines))
    host.write(f"{CPU}/online", "2-3,8")
    assert set(of(host.look(), "timer_ticks")) == {"cpu8"}


# ---- What came and went, announced or not.


def test_an_event_counts_in_one_look(lab4: Watched) -> None:
    assert of(lab4.look(), "device") == {}
    lab4.watched_host.announce(DeviceEvent("add", "net", "eth1", "/devices/eth1"))
    lab4.watched_host.announce(DeviceEvent("add", "queues", "rx-0", "/devices/eth1/queues/rx-0"))
    lab4.watched_host.announce(DeviceEvent("remove", "net", "eth1", "/devices/eth1"))
    found = of(lab4.look(), "device")
    assert {name: one.value for name, one in found.items()} == {"net/eth1": "remove", "queues/rx-0": "add"}
    assert found["net/eth1"].path == "/devices/eth1"
    assert of(lab4.look(), "device") == {}


def test_a_cpu_that_goes_off_is_seen_without_udev_and_an_isolated_one_stays_named(lab4: Watched) -> None:
    lab4.look()
    lab4.write(f"{CPU}/online", "0,2")
    found = of(lab4.look(), "device")
    assert {name: one.value for name, one in found.items()} == {"cpu/cpu1": "offline", "cpu/cpu3": "offline"}
    assert found["cpu/cpu3"].cpus == {3}
    assert list(of(lab4.look(), "device")) == ["cpu/cpu3"]
    lab4.write(f"{CPU}/online", "0-3")
    assert values(lab4.look(), "device") == {"cpu/cpu1": "online", "cpu/cpu3": "online"}
    assert of(lab4.look(), "device") == {}


def test_a_mask_that_is_gone_or_rubbish_changes_nothing(lab4: Watched) -> None:
    lab4.look()
    lab4.write(f"{CPU}/online", "0-x")
    assert of(lab4.look(), "device") == {}
    lab4.remove(f"{CPU}/online")
    assert of(lab4.look(), "device") == {}


def test_a_storm_of_events_is_bounded(lab4: Watched) -> None:
    for number in range(5000):
        lab4.watched_host.announce(DeviceEvent("change", "net", f"eth{number}", ""))
    assert len(of(lab4.look(), "device")) == 1000


# ---- The monitor's own disturbance: what comes during a snapshot, less what comes at any time.


Rise = tuple[str, int, int]


def look_while(host: Watched, *rises: Rise, between_s: float = 10, look_s: float = 0.005) -> Snapshot:
    """A snapshot during which these rows rise: row, CPU, by how much."""

    def disturb(_: object) -> tuple[()]:
        for row, cpu, more in rises:
            host.count(row, cpu, more)
        host.clock += look_s
        return ()

    host.clock += between_s
    midst = Source("midst", (), "", "", disturb)
    return take_snapshot(host.watched_host, (*SOURCES[:-1], midst, SOURCES[-1]))


@pytest.mark.parametrize(
    ("always", "rises", "between_s", "look_s", "own"),
    [
        (0, [], 10, 0.005, (0, 0)),
        (0, [("CAL", 2, 1), ("RES", 2, 1)], 10, 0.005, (2, 0)),
        (10_000_000, [("LOC", 3, 1)], 10, 0.005, (0, 0)),  # it comes all the time
        (0, [("LOC", 2, 8)], 0.1, 0.9, (0, 0)),  # a starved monitor looks all the time
        (0, [("LOC", 2, 8)], 0.9, 0.1, (8, 0)),
    ],
)
def test_what_comes_only_during_a_look_is_its_own(
    lab4: Watched, always: int, rises: list[Rise], between_s: float, look_s: float, own: tuple[int, int]
) -> None:
    lab4.look()
    lab4.count("LOC", 3, always)
    found = of(look_while(lab4, *rises, between_s=between_s, look_s=look_s), "own_interruptions")
    assert (found["cpu2"].value, found["cpu3"].value) == own
    assert {sample.freshness for sample in found.values()} == {Freshness.FRESH}


def test_the_first_look_cannot_tell_and_lays_nothing_at_its_own_door(lab4: Watched) -> None:
    assert of(look_while(lab4, ("CAL", 2, 1)), "own_interruptions")["cpu2"].value == 0


def test_looks_between_audits_are_stale(lab4: Watched) -> None:
    lab4.look()
    lab4.watched_host.table.cost_s = 1.0
    lab4.watched_host.keep("audit", dict).next_at = lab4.clock + 100  # type: ignore[attr-defined]
    assert {one.freshness for one in of(lab4.look(), "own_interruptions").values()} == {Freshness.STALE}
