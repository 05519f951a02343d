"""KnobDrift, ManagerStarted, DeviceChanged, CpuOffline, SourceLost."""

from collections.abc import Sequence

import pytest

from tests.monitor.series import BASE_KHZ, Watch, base, healths, limits, sample
from tunectl.command import argv
from tunectl.fix import to_type
from tunectl.model import Finding, Match, Outcome, Scalar
from tunectl.monitor.model import Freshness, Health, Sample, Severity
from tunectl.tuners.conflicts import Objection

FIX = to_type(argv("tunectl", "apply", "--yes"))
_STOP = to_type(argv("systemctl", "disable", "tlp"))
TLP = Objection("tlp runs and overwrites a.b; fix: none", _STOP, "active", "inactive")


def finding(target: str, outcome: Outcome, observed: Scalar = "powersave") -> Finding:
    name, _, instance = target.rstrip("]").partition("[")
    return Finding(name, instance, outcome, observed, "performance", "it costs latency", FIX)


def knob(target: str, outcome: str, observed: Scalar = "powersave") -> Sample:
    return judged(finding(target, Outcome(outcome), observed))


def judged(finding: Finding) -> Sample:
    freshness = Freshness.NO_DATA if finding.outcome is Outcome.UNREADABLE else Freshness.FRESH
    return sample("knob", finding.target, str(finding.outcome), "drift", freshness=freshness, seen=finding)


def governor(cpu: int, outcome: str) -> Sample:
    return knob(f"cpufreq.governor[{cpu}]", outcome)


def manager(value: str, against: Objection | None = None) -> Sample:
    return sample("manager", "irqbalance", value, "managers", seen=against)


def device(subject: str, action: str, path: str = "/devices/pci0000:00/0000:00:1f.6") -> Sample:
    return sample("device", subject, action, "events", path=path)


def test_a_drift_is_named_with_both_values_and_over_when_it_is_repaired() -> None:
    good, bad = [governor(3, "compliant")], [governor(3, "drifted")]
    transitions = Watch().see(good, bad, bad, good)
    assert [(at, name) for at, name, _ in transitions] == [
        (1.0, "+KnobDrift[cpufreq.governor]"),
        (3.0, "-KnobDrift[cpufreq.governor]"),
    ]
    alert = transitions[0][2]
    assert (alert.observed, alert.expected, alert.fix) == ("powersave", "performance", "tunectl apply --yes")


def test_a_bound_is_called_one() -> None:
    bound = finding("cpufreq.min_khz[0]", Outcome.DRIFTED, 800000)._replace(desired=2000000, match=Match.AT_LEAST)
    ((_, _, alert),) = Watch().see([judged(bound)])
    assert alert.expected == "at least 2000000"


def cap(observed: int, outcome: str = "drifted") -> Sample:
    return knob("cpufreq.max_khz[0]", outcome, observed)


WELL = [*base(), *limits(BASE_KHZ), cap(BASE_KHZ, "compliant")]
THROTTLED = [*base(), *limits(1_200_000), cap(1_200_000)]
BETWEEN = [*base(), *limits(BASE_KHZ), cap(1_200_000)]  # the limits were read before, the knob after; or it is late


@pytest.mark.parametrize(
    "rows",
    [
        (WELL, THROTTLED, THROTTLED, BETWEEN, BETWEEN, WELL, WELL),
        (WELL, BETWEEN, THROTTLED, THROTTLED, BETWEEN, WELL, WELL, WELL),
    ],
)
def test_what_the_kernel_lowers_with_the_firmwares_limit_is_no_second_alert(rows: Sequence[list[Sample]]) -> None:
    names = [name for _, name in Watch().names(*rows)]
    assert names == ["+FrequencyDrop[host]", "-FrequencyDrop[host]"]


def test_a_cap_that_somebody_lowers_is_told_a_look_later_and_at_once_where_the_firmware_has_no_limit() -> None:
    well, capped = cap(BASE_KHZ, "compliant"), cap(1_200_000)
    with_limit = [*base(), *limits(BASE_KHZ)]
    for others, at in ((with_limit, 2.0), (base(), 1.0)):
        rows = [[*others, well], [*others, capped], [*others, capped], [*others, well]]
        assert Watch().names(*rows) == [(at, "+KnobDrift[cpufreq.max_khz]"), (3.0, "-KnobDrift[cpufreq.max_khz]")]


def test_a_cap_that_somebody_lowers_is_drift_whatever_the_firmware_allows() -> None:
    for firmware in (BASE_KHZ, 2_400_000):
        row = [*base(), *limits(firmware), cap(1_200_000)]
        assert "+KnobDrift[cpufreq.max_khz]" in [name for _, name in Watch().names(row, row)]


def test_what_nobody_changed_is_no_drift() -> None:
    for outcome in ("compliant", "waived", "unsupported", "refused", "pending-reboot"):
        assert healths("KnobDrift", [[governor(3, outcome)]]) == [{"cpufreq.governor": Health.GOOD}]


def test_an_unreadable_target_resolves_nothing_and_blocks_nothing() -> None:
    dark = governor(9, "unreadable")
    watch = Watch()
    assert watch.names([governor(3, "drifted"), dark]) == [(0.0, "+KnobDrift[cpufreq.governor]")]
    # The target that drifted can be read no more: nobody knows.
    assert watch.names([governor(3, "unreadable"), dark], [governor(3, "unreadable"), governor(4, "compliant")]) == []
    assert [name for _, name in watch.names([governor(3, "compliant"), dark])] == ["-KnobDrift[cpufreq.governor]"]


def test_values_and_reasons_are_told_as_they_are_whatever_words_they_hold() -> None:
    odd = Finding("boot.nohz_full", "", Outcome.DRIFTED, "2, desired 3: x", "4: y; fix: z", "a; fix: b")
    (transition,) = Watch().see([judged(odd)])
    assert (transition[2].observed, transition[2].expected, transition[2].fix) == (
        "2, desired 3: x",
        "4: y; fix: z",
        "sudo tunectl apply",
    )
    assert transition[2].summary == "boot.nohz_full is 2, desired 3: x, should be 4: y; fix: z: a; fix: b"


def test_a_manager_that_would_overwrite_our_keys_is_named() -> None:
    off, on = manager("inactive"), manager("contested", TLP)
    transitions = Watch().see([off], [on], [off])
    assert [(at, name) for at, name, _ in transitions] == [
        (1.0, "+ManagerStarted[irqbalance]"),
        (2.0, "-ManagerStarted[irqbalance]"),
    ]
    assert (transitions[0][2].summary, transitions[0][2].fix) == (TLP.reason, str(TLP.fix))


def test_a_manager_with_other_keys_is_no_trouble() -> None:
    harmless = manager("active")
    assert Watch().names([harmless]) == []
    unknown = sample("manager", "tuned", None, "managers", freshness=Freshness.NO_DATA)
    assert healths("ManagerStarted", [[unknown]]) == [{"tuned": Health.UNKNOWN}]


def test_a_nic_that_is_plugged_in_is_one_alert_that_ends_by_itself() -> None:
    rows = [[], [device("net/eth1", "add")], *[[]] * 12]
    transitions = Watch().see(*rows)
    assert [(at, name) for at, name, alert in transitions if alert.rule == "DeviceChanged"] == [
        (1.0, "+DeviceChanged[net/eth1]"),
        (11.0, "-DeviceChanged[net/eth1]"),
    ]


def test_a_containers_interface_and_a_zone_are_no_change() -> None:
    rows = [[device("net/veth1", "add", "/devices/virtual/net/veth1"), device("thermal/thermal_zone7", "add")]]
    assert Watch().names(*rows) == []


def test_a_cpu_that_goes_offline_stays_an_alert_until_it_is_back() -> None:
    ticks = sample("timer_ticks", "cpu3", 9, "interrupts")
    rows = [[ticks], [device("cpu/cpu3", "offline")], *[[]] * 100]
    watch = Watch()
    assert watch.names(*rows) == [(1.0, "+CpuOffline[cpu3]")]
    assert [name for _, name in watch.names([device("cpu/cpu3", "online")])] == ["-CpuOffline[cpu3]"]
    assert watch.names([device("cpu/cpu3", "online")], [ticks]) == []


def test_a_cpu_that_ticks_again_is_back_even_if_nobody_said_so() -> None:
    ticks = sample("timer_ticks", "cpu3", 9, "interrupts")
    assert [name for _, name in Watch().names([device("cpu/cpu3", "offline")], [ticks])] == [
        "+CpuOffline[cpu3]",
        "-CpuOffline[cpu3]",
    ]


def test_a_source_without_data_is_told_once_and_a_stale_one_is_not() -> None:
    dark = sample("temperature_mc", "thermal_zone0", None, "thermal", freshness=Freshness.NO_DATA, reason="EIO")
    rows = [[dark]] * 5
    transitions = [transition for transition in Watch().see(*rows) if transition[2].rule == "SourceLost"]
    assert [(at, name, alert.severity) for at, name, alert in transitions] == [
        (4.0, "+SourceLost[thermal]", Severity.WARNING)
    ]
    half = [dark, sample("temperature_mc", "thermal_zone1", 40_000, "thermal")]
    assert set(healths("SourceLost", [half])[0].values()) == {Health.GOOD}
    stale = sample("core_khz", "cpu2", 3_500_000, "clock", freshness=Freshness.STALE)
    assert healths("SourceLost", [[stale]]) == [{"clock": Health.GOOD}]


PARTS = {
    "temperature_mc": "thermal",
    "cooling_state": "thermal",
    "bios_limit_khz": "limits",
    "max_khz": "limits",
    "core_throttles": "throttle",
    "package_throttles": "throttle",
}


@pytest.mark.parametrize("quantity", PARTS)
def test_a_part_that_could_be_read_and_cannot_any_more_is_lost_until_it_can_again(quantity: str) -> None:
    source = PARTS[quantity]

    def row(freshness: Freshness, value: int | None) -> list[Sample]:
        dying = sample(quantity, "cpu3", value, source, freshness=freshness, reason="EIO", cpus={3})
        return [dying, sample(quantity, "cpu2", 3, source, cpus={2}), sample("trip_mc", "cpu3", 95_000, source)]

    well, dark = row(Freshness.FRESH, 3), row(Freshness.NO_DATA, None)
    lost = [
        (at, name)
        for at, name, alert in Watch().see(well, *[dark] * 40, well, well, well)
        if alert.rule == "SourceLost"
    ]
    assert lost == [(5.0, f"+SourceLost[{source}]"), (43.0, f"-SourceLost[{source}]")]
    assert {health[source] for health in healths("SourceLost", [dark] * 5)} == {Health.GOOD}  # it never could be read


def test_a_zone_that_nobody_judges_may_fall_silent() -> None:
    """A radio that is switched off has no temperature."""
    cooler = sample("cooling_state", "c", 0, "thermal")
    silent = sample("temperature_mc", "z", None, "thermal", freshness=Freshness.NO_DATA)
    rows = [[sample("temperature_mc", "z", 41_000, "thermal"), cooler], *[[silent, cooler]] * 9]
    assert [name for _, name in Watch().names(*rows)] == []
    assert {health["thermal"] for health in healths("SourceLost", rows)} == {Health.GOOD}


@pytest.mark.parametrize(
    ("quantity", "kept", "source"),
    [("temperature_mc", "trip_mc", "thermal"), ("max_khz", "base_khz", "limits"), ("max_khz", "highest_khz", "limits")],
)
def test_what_is_read_once_and_kept_is_no_sign_of_life(quantity: str, kept: str, source: str) -> None:
    known = sample(kept, "cpu2", 90_000, source)
    dark = [known, sample(quantity, "cpu2", None, source, freshness=Freshness.NO_DATA)]
    assert healths("SourceLost", [dark]) == [{source: Health.BAD}]
    absent = [known, sample(quantity, "host", None, source, freshness=Freshness.ABSENT)]
    assert healths("SourceLost", [absent]) == [{source: Health.GOOD}]


def test_a_source_that_broke_off_is_lost_whatever_it_said_before() -> None:
    rows = [[knob("a.b", "compliant"), sample("source", "drift", None, "drift", freshness=Freshness.NO_DATA)]]
    assert healths("SourceLost", rows) == [{"drift": Health.BAD}]
