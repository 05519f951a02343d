"""What each rule says when it fires: a series for each way in which it does, and the alerts' own words."""

from collections.abc import Iterator, Sequence

from tests.monitor.rules import test_changes as changes
from tests.monitor.rules import test_frequency as frequency
from tests.monitor.rules import test_interrupts as interrupts
from tests.monitor.rules import test_latency as latency
from tests.monitor.rules import test_thermal as thermal
from tests.monitor.series import BASE_KHZ, Watch, base, limits, sample
from tunectl.model import Match, Outcome
from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.rules.history import Limits

Rows = Sequence[Sequence[Sample]]


def alerts() -> str:
    """A paragraph a series: each alert that fires in it, with its summary and what to do."""
    return "\n".join(_words(rows) for rows in (*_clocks(), *_heat(), *_changes(), *_cards(), *_others())) + _latency()


def _words(rows: Rows, promised: Limits | None = None) -> str:
    fired = [alert for _, sign, alert in Watch(promised).see(*rows) if sign.startswith("+")]
    told = [one for one in fired if one.rule != "FrequencyUnknown"] or fired
    return "".join(f"{one.identity}\n  {one.summary}\n  to do: {one.fix}\n" for one in told)


def _clocks() -> Iterator[Rows]:
    clock, place = frequency.clock, frequency.throttles(0)
    hot = [*base(), *limits(1_200_000), *limits(1_200_000, quantity="max_khz"), frequency.throttles(19)]
    yield [*frequency.COOL, clock(3_600_000)], [*hot, clock(1_195_000)]
    capped = [*base(), *limits(1_200_000, {2}), *limits(BASE_KHZ, {3, 4, 5}), place]
    yield [[*capped, *limits(BASE_KHZ, {2, 4, 5}, "max_khz"), *limits(1_400_000, {3}, "max_khz")]]
    alone = [*base(), *limits(BASE_KHZ, {2, 3, 4}, "max_khz"), *limits(1_200_000, {5}, "max_khz"), place]
    yield [alone] * 2
    clamps = [sample("cooling_state", f"cooling_device{n}", 5, "thermal", kind="intel_powerclamp") for n in (2, 3)]
    yield [[*base(), clock(1_200_000, 2), clock(1_200_000, 3), *clamps]]
    yield [[sample("core_throttles", "host", None, "throttle", freshness=Freshness.ABSENT)]] * 5


def _heat() -> Iterator[Rows]:
    yield [thermal.package(900), thermal.core(2, 5)], [thermal.package(903), thermal.core(2, 6)]
    yield [thermal.zone(97_000)] * 2
    yield [thermal.cooling(3)]


def _changes() -> Iterator[Rows]:
    yield [[changes.governor(cpu, "drifted") for cpu in range(64)]]
    seen = changes.finding("cpufreq.min_khz[0]", Outcome.DRIFTED, 800000)
    yield [[changes.judged(seen._replace(desired=2000000, match=Match.AT_LEAST))]]
    yield [[changes.manager("contested", changes.TLP)]]
    yield [[changes.device("net/eth1", "add")]]
    yield [[changes.device("cpu/cpu3", "offline")]]


def _others() -> Iterator[Rows]:
    yield [interrupts.irq(42, 10)], [interrupts.irq(42, 13)]
    own = interrupts.own(4)._replace(reason="CAL +4 in the 5.0 ms of this snapshot; 0.02 come by chance")
    yield [[own, interrupts.calls(100 + 4 * second)] for second in range(4)]
    yield [[sample("cooling_state", "c", None, "thermal", freshness=Freshness.NO_DATA, reason="EIO")]] * 5
    yield [[sample("latency_max_ns", "application", None, "latency", freshness=Freshness.NO_DATA)]] * 5


def _cards() -> Iterator[Rows]:
    """Each kind of count, as its source words it."""
    said = "12 in the last 10 minutes, 0.02/s, 3 of them in the last minute"
    kinds = {"pcie_errors": "0000:16:00.0", "memory_errors": "mc1", "smis": "host"}
    nics = dict.fromkeys(("carrier_changes", "nic_lost", "nic_paused", "nic_corrupt"), "eth0")
    for quantity, subject in {**kinds, **nics}.items():
        kind = "on the way to eth0" if quantity == "pcie_errors" else ""
        yield [[sample(quantity, subject, 12, "cards", reason=said, kind=kind)]]


def _latency() -> str:
    """Of one window that missed its P99.9, and of one with a longest while the kernel dropped datagrams."""
    seconds = latency.quiet(30)
    seconds[24][:10] = [150_000] * 10
    missed = _words(latency.played(seconds), latency.PROMISED)
    seconds = latency.quiet(13)
    seconds[12].append(12_000_000)
    drops = sample("latency_window_dropped", "application", 1, "latency")
    return f"\n{missed}\n" + _words([[*row, drops] for row in latency.played(seconds)], latency.PROMISED)
