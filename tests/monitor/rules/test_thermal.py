"""ThermalThrottle, TemperatureHigh, CoolingActive."""

from tests.monitor.series import PACKAGE0, Watch, healths, sample
from tunectl.host.thermal import ADVICE, cooling_advice
from tunectl.monitor.model import Freshness, Health, Sample


def package(count: int | None, freshness: Freshness = Freshness.FRESH) -> Sample:
    return sample("package_throttles", "package0", count, "throttle", freshness=freshness, reason="why", cpus=PACKAGE0)


def core(number: int, count: int | None, freshness: Freshness = Freshness.FRESH, thread: int = 0) -> Sample:
    whole, cpus, cpu = f"core{number}", {number, number + 4}, f"cpu{number + 4 * thread}"
    return sample("core_throttles", cpu, count, "throttle", freshness=freshness, reason="why", cpus=cpus, whole=whole)


def trm(*counts: int) -> list[Sample]:
    return [sample("thermal_interrupts", f"cpu{cpu}", count, "interrupts") for cpu, count in enumerate(counts)]


def zone(temp: int | None, trip: int | None = 95_000, freshness: Freshness = Freshness.FRESH) -> list[Sample]:
    found = [sample("temperature_mc", "thermal_zone0", temp, "thermal", freshness=freshness, kind="acpitz")]
    return found + ([sample("trip_mc", "thermal_zone0", trip, "thermal")] if trip else [])


def cooling(state: int) -> list[Sample]:
    return [sample("cooling_state", "cooling_device0", state, "thermal", kind="Processor")]


def test_a_rising_count_fires_once_and_is_over_three_looks_later() -> None:
    watch = Watch()
    rows = [[package(count), core(2, 5)] for count in (900, 900, 903, 910, 910, 910, 910, 910)]
    transitions = watch.see(*rows)
    assert [(at, name) for at, name, _ in transitions] == [
        (2.0, "+ThermalThrottle[package0]"),
        (6.0, "-ThermalThrottle[package0]"),
    ]
    assert transitions[0][2].observed == 3


def test_old_counts_and_counts_that_go_back_are_no_event() -> None:
    assert Watch().names([package(900)], [package(900)], [package(2)], [package(2)]) == []


def test_a_core_belongs_to_its_package() -> None:
    transitions = Watch().see([package(0), core(2, 5), core(3, 0)], [package(0), core(2, 7), core(3, 0)])
    assert [(name, alert.cpus, alert.observed) for _, name, alert in transitions] == [
        ("+ThermalThrottle[package0]", "2,6", 2)
    ]


def test_a_thread_whose_count_stays_below_its_siblings_is_told_and_one_event_counts_once() -> None:
    rows = [[package(0), core(2, 7343), core(2, count, thread=1)] for count in (432, 460, 470)]
    transitions = Watch().see(*rows)
    assert [(name, alert.cpus, alert.observed) for _, name, alert in transitions] == [
        ("+ThermalThrottle[package0]", "2,6", 28)
    ]
    both = [[core(2, count), core(2, count - 1, thread=1), core(3, 0)] for count in (5, 8)]
    assert [alert.observed for _, _, alert in Watch().see(*both)] == [3]


def test_a_cpu_that_comes_or_goes_invents_no_event() -> None:
    """Neither by the count that it brings along nor by the one that it takes away, nor where it begins again at 0."""
    alone, pair = [core(2, 5)], [core(2, 5), core(2, 9000, thread=1)]
    assert Watch().names(alone, pair, alone, pair, [core(2, 0), core(2, 9000, thread=1)]) == []
    assert Watch().names(pair, alone, [core(2, 5), core(2, 9004, thread=1)]) == []


def test_a_count_is_as_wide_as_the_kernels() -> None:
    """unsigned long: 4294967290 is no value that wraps."""
    assert Watch().names([core(2, 4294967290)], [core(2, 3)]) == []
    assert Watch().names([core(2, 2**64 - 2)], [core(2, 3)]) == [(1.0, "+ThermalThrottle[host]")]


def test_a_package_of_which_one_cpu_cannot_be_read_is_not_known_to_be_cool() -> None:
    dark = core(2, None, Freshness.NO_DATA, thread=1)
    rows = [[package(0), core(2, 5), dark]] * 2
    assert healths("ThermalThrottle", rows)[-1] == {"package0": Health.UNKNOWN}
    assert Watch().names(rows[0], [package(0), core(2, 6), dark]) == [(1.0, "+ThermalThrottle[package0]")]


def test_what_rose_while_it_could_not_be_read_is_still_seen() -> None:
    dark = package(None, Freshness.NO_DATA)
    assert Watch().names([package(5)], [dark], [dark], [package(6)]) == [(3.0, "+ThermalThrottle[package0]")]


def test_unknown_does_not_resolve() -> None:
    watch = Watch()
    assert len(watch.names([package(5)], [package(6)])) == 1
    assert watch.names(*[[package(None, Freshness.NO_DATA)]] * 20) == []
    # the count after the dark is a rise from the last that was read, or a good snapshot
    assert [name for _, name in watch.names(*[[package(6)]] * 4)] == ["-ThermalThrottle[package0]"]


def test_thermal_interrupts_decide_only_without_counters() -> None:
    assert Watch().names([*trm(0, 0)], [*trm(0, 4)]) == [(1.0, "+ThermalThrottle[host]")]
    # The end of an event interrupts, too.
    assert Watch().names([package(1), *trm(0, 0)], [package(1), *trm(0, 4)]) == []


def test_a_host_without_counters_has_no_condition() -> None:
    absent = sample("package_throttles", "host", None, "throttle", freshness=Freshness.ABSENT)
    assert healths("ThermalThrottle", [[absent]]) == [{}]


def test_a_zone_without_a_trip_or_a_reading_is_not_judged() -> None:
    assert set(healths("TemperatureHigh", [zone(99_000, None)])[0].values()) <= {Health.UNKNOWN}
    assert healths("TemperatureHigh", [zone(None, freshness=Freshness.NO_DATA)])[0] == {"thermal_zone0": Health.UNKNOWN}
    assert Watch().names(*[zone(60_000)] * 3) == []


def test_a_zone_that_has_no_trip_at_all_is_not_judged() -> None:
    absent = sample("trip_mc", "thermal_zone0", None, "thermal", freshness=Freshness.ABSENT)
    assert healths("TemperatureHigh", [[*zone(99_000, None), absent]]) == [{}]


def test_a_cool_host_that_is_cooled_was_told_to_by_hand() -> None:
    (by_hand,) = (alert for _, _, alert in Watch().see([*cooling(3), *zone(40_000)]))
    assert by_hand.fix == str(cooling_advice({"cooling_device0": "Processor"}, hot=False)) != str(ADVICE)
    (by_heat,) = (alert for _, _, alert in Watch().see([*cooling(3), *zone(95_000)]))
    assert by_heat.fix == str(ADVICE)


def test_a_cooling_device_at_work_fires_and_is_evidence_of_a_throttle() -> None:
    assert Watch().names(cooling(0), cooling(3), cooling(0), cooling(0), cooling(0)) == [
        (1.0, "+CoolingActive[cooling_device0]"),
        (4.0, "-CoolingActive[cooling_device0]"),
    ]
    rows = [[package(1), *cooling(0)], [package(2), *cooling(3)], [package(3), *cooling(3)]]
    assert Watch().names(*rows) == [(1.0, "+ThermalThrottle[package0]")]


def test_what_was_evidence_fires_when_its_cause_is_over_and_it_is_not() -> None:
    rows = [[package(1), *cooling(0)], [package(2), *cooling(3)]] + [[package(2), *cooling(3)]] * 5
    assert [name for _, name in Watch().names(*rows)] == [
        "+ThermalThrottle[package0]",
        "-ThermalThrottle[package0]",
        "+CoolingActive[cooling_device0]",
    ]


def test_forced_idle_time_is_named_as_itself_and_no_fan_is_blamed() -> None:
    def clamp(state: int) -> list[Sample]:
        return [sample("cooling_state", "cooling_device2", state, "thermal", kind="intel_powerclamp")]

    (fired,) = (one for _, _, one in Watch().see(clamp(-1), clamp(25)))
    assert fired.fix == str(cooling_advice({"cooling_device2": "intel_powerclamp"})) != str(ADVICE)
    assert Watch().names(*[clamp(-1)] * 3) == []
    (hot,) = (one for _, _, one in Watch().see(cooling(0), cooling(3)))
    assert hot.fix == str(ADVICE)
