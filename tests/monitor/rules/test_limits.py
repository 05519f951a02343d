"""Every numeric limit of a rule, from both sides: at the limit, and the nearest value beside it."""

from collections.abc import Sequence

import pytest

from tests.monitor.rules.test_changes import cap
from tests.monitor.series import ISOLATED, PACKAGE0, Watch, base, healths, limits, sample, snapshots
from tunectl.monitor.model import Freshness, Health, Sample
from tunectl.monitor.rules import RULES, Rule
from tunectl.monitor.rules.history import History, Limits

GOOD, BETWEEN, BAD, UNKNOWN = Health.GOOD, Health.BETWEEN, Health.BAD, Health.UNKNOWN
PLACE = sample("package_throttles", "package0", 0, "throttle", cpus=PACKAGE0)


def judged(rule: str, rows: Sequence[Sequence[Sample]], subject: str, promised: Limits | None = None) -> Health | None:
    """What a rule says of one subject in the last snapshot; None where it does not mention it."""
    return healths(rule, rows, promised)[-1].get(subject)


# ---- FrequencyDrop: below base * min_ratio it is a drop, from there on 2 % of the base frequency are the hysteresis

LEAST, ENOUGH = 3_150_000, 3_220_000  # 0.9 and 0.92 of 3.5 GHz


@pytest.mark.parametrize("quantity", ["bios_limit_khz", "max_khz", "max_perf_khz", "core_khz"])
@pytest.mark.parametrize(
    ("khz", "health"), [(LEAST - 1, BAD), (LEAST, BETWEEN), (ENOUGH - 1, BETWEEN), (ENOUGH + 1, GOOD)]
)
def test_a_frequency_at_the_least_ratio_is_no_drop(quantity: str, khz: int, health: Health) -> None:
    row = [*base(), *limits(khz, quantity=quantity), PLACE]
    assert judged("FrequencyDrop", [row], "package0") is health


@pytest.mark.parametrize(("khz", "health"), [(LEAST - 1, BAD), (LEAST, BETWEEN)])
def test_a_packages_sentinel_is_held_against_the_same_ratio_twice(khz: int, health: Health) -> None:
    row = [*base(), sample("sentinel_khz", "package0", khz, "frequency", cpus=ISOLATED)]
    assert judged("FrequencyDrop", [row, row], "package0") is health
    at_limit = [*base(), sample("sentinel_khz", "package0", LEAST, "frequency", cpus=ISOLATED)]
    assert judged("FrequencyDrop", [at_limit, row], "package0") is not BAD  # it was not low before


def test_the_base_frequency_itself_is_enough_however_high_the_ratio() -> None:
    promised = Limits(min_ratio=1.0, isolated=ISOLATED)
    for khz, health in ((3_499_999, BAD), (3_500_000, GOOD)):
        assert judged("FrequencyDrop", [[*base(), *limits(khz), PLACE]], "package0", promised) is health


@pytest.mark.parametrize(("khz", "is_drift"), [(LEAST - 1, False), (LEAST, True)])
def test_only_a_firmware_limit_below_the_least_ratio_excuses_a_lowered_cap(khz: int, is_drift: bool) -> None:
    row = [*base(), *limits(khz), cap(khz)]
    assert judged("KnobDrift", [row, row], "cpufreq.max_khz") is (BAD if is_drift else BETWEEN)


# ---- counters: one more is an event, none is none


@pytest.mark.parametrize(("rise", "health"), [(0, GOOD), (1, BAD)])
@pytest.mark.parametrize("quantity", ["package_throttles", "core_throttles", "thermal_interrupts"])
def test_one_throttling_is_enough(quantity: str, rise: int, health: Health) -> None:
    subject = {"package_throttles": "package0", "core_throttles": "core2", "thermal_interrupts": "cpu2"}[quantity]
    rows = [[sample(quantity, subject, 900 + more, cpus={2})] for more in (0, rise)]
    where = "package0" if quantity == "package_throttles" else "host"
    assert judged("ThermalThrottle", rows, where) is health


@pytest.mark.parametrize(("rise", "health"), [(0, GOOD), (1, BAD)])
def test_one_delivery_is_enough(rise: int, health: Health) -> None:
    before = sample("interrupts", "irq42", 900, cpus={3})
    assert judged("InterruptOnIsolatedCpu", [[before], [before._replace(value=900 + rise)]], "irq42") is health


# ---- TemperatureHigh: at the trip it is hot; it is well again 3 C below


@pytest.mark.parametrize(
    ("temp", "health"), [(95_001, BAD), (95_000, BAD), (94_999, BETWEEN), (92_001, BETWEEN), (92_000, GOOD)]
)
def test_a_zone_is_hot_at_its_trip_and_well_three_degrees_below(temp: int, health: Health) -> None:
    row = [sample("temperature_mc", "thermal_zone0", temp, "thermal"), sample("trip_mc", "thermal_zone0", 95_000)]
    assert judged("TemperatureHigh", [row], "thermal_zone0") is health


@pytest.mark.parametrize(("state", "health"), [(-1, GOOD), (0, GOOD), (1, BAD)])
def test_the_first_state_of_a_cooler_is_work(state: int, health: Health) -> None:
    row = [sample("cooling_state", "cooling_device0", state, "thermal")]
    assert judged("CoolingActive", [row], "cooling_device0") is health


# ---- LatencySla: what is promised may be used up


def window(closed: float, worst: float, still: float, which: str) -> list[Sample]:
    """One subject's windows: the other promise is kept."""
    found = [
        sample("latency_max_ns", "application", closed if which == "max" else 1, "latency"),
        sample("latency_p99_9_ns", "application", closed if which == "p99_9" else 1, "latency"),
        sample(f"latency_worst_{which}_ns", "application", worst, "latency"),
    ]
    return [*found, sample("latency_open_max_ns", "application", still, "latency")]


@pytest.mark.parametrize("which", ["max", "p99_9"])
@pytest.mark.parametrize(
    ("closed", "worst", "health"), [(100, 100, GOOD), (100, 101, BETWEEN), (101, 101, BAD), (100.5, 100.5, BAD)]
)
def test_a_window_may_use_up_what_is_promised(which: str, closed: float, worst: float, health: Health) -> None:
    promised = Limits(**{f"{which}_ns": 100.0})  # type: ignore[arg-type]
    assert judged("LatencySla", [window(closed, worst, 1, which)], "application", promised) is health


@pytest.mark.parametrize(("still", "health"), [(100, GOOD), (101, BAD)])
def test_the_open_window_is_held_against_the_longest_alone(still: float, health: Health) -> None:
    row = window(50, 50, still, "max")
    assert judged("LatencySla", [row], "application", Limits(max_ns=100)) is health
    assert judged("LatencySla", [row], "application", Limits(p99_9_ns=100)) is GOOD


# ---- MonitorDisturbs: half of all interruptions


@pytest.mark.parametrize(
    ("own", "total", "health"), [(0, 0, GOOD), (1, 3, GOOD), (2, 4, BAD), (2, 5, GOOD), (1, 1, BAD)]
)
def test_half_of_all_interruptions_are_the_monitors_own(own: int, total: int, health: Health) -> None:
    rows = [
        [sample("own_interruptions", "cpu2", own, "audit"), sample("function_calls", "cpu2", 900 + more)]
        for more in (0, total)
    ]
    assert judged("MonitorDisturbs", rows, "monitor") is health


# ---- how many snapshots: an alert fires with the N-th bad snapshot and is over with the last of the good ones

ROWS = {
    "FrequencyDrop": ([*base(), *limits(LEAST - 1), PLACE], [*base(), *limits(3_500_000), PLACE]),
    "TemperatureHigh": tuple(
        [sample("temperature_mc", "z", temp, "thermal"), sample("trip_mc", "z", 95_000, "thermal")]
        for temp in (95_000, 92_000)
    ),
    "CoolingActive": tuple([sample("cooling_state", "c", state, "thermal")] for state in (1, 0)),
    "FrequencyUnknown": ([], [*base(), *limits(3_500_000)]),
    "SourceLost": tuple(
        [sample("cooling_state", "c", 0, "thermal", freshness=freshness)]
        for freshness in (Freshness.NO_DATA, Freshness.FRESH)
    ),
}
SERIES = [rule for rule in RULES if rule.name in ROWS]


@pytest.mark.parametrize("rule", SERIES, ids=lambda rule: rule.name)
def test_an_alert_fires_with_the_last_bad_look_it_needs_and_not_before(rule: Rule) -> None:
    bad, good = ROWS[rule.name]
    watch, needed = Watch(), rule.bad[0]

    def transitions(row: Sequence[Sample], times: int) -> list[tuple[float, str]]:
        return [(at, sign[0]) for at, sign, alert in watch.see(*[row] * times) if alert.rule == rule.name]

    assert transitions(good, 1) == []
    assert transitions(bad, needed) == [(float(needed), "+")]
    assert transitions(good, rule.good - 1) == []
    assert transitions(good, 1) == [(float(needed + rule.good), "-")]


def test_bad_looks_count_within_the_last_m_and_no_further_back() -> None:
    (rule,) = [rule for rule in RULES if rule.name == "TemperatureHigh"]
    assert rule.bad == (2, 3)
    bad, good = ROWS["TemperatureHigh"]
    assert Watch().names(bad, good, bad) == [(2.0, "+TemperatureHigh[z]")]
    assert Watch().names(bad, good, good, bad) == []


# ---- how far back a counter is compared


@pytest.mark.parametrize(("dark", "rise"), [(14, 5), (15, None)])
def test_a_rise_is_told_as_long_as_the_last_reading_is_remembered(dark: int, rise: int | None) -> None:
    history, last = History(), sample("core_throttles", "core0", 9)
    gone = last._replace(freshness=Freshness.NO_DATA, value=None)
    for seen in snapshots([[last], *[[gone]] * dark, [last._replace(value=14)]]):
        history.add(seen)
    assert history.rise(history.get("core_throttles")["core0"]) == rise
