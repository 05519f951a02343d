"""A GO is repeated only where nothing else in its document contradicts it: each condition alone."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.fleet.made import good, preflight
from tests.probe.samples import cpu_result
from tunectl.knobs import KNOBS
from tunectl.knobs.drivers.pseudofile import is_spared
from tunectl.probe.doubt import SPARED, doubt_of_go
from tunectl.shapes import FIGURES as GAPS
from tunectl.shapes import Preflight, typed

Change = Callable[[dict[str, Any]], Any]


def doubt(change: Change) -> str:
    document = preflight()
    change(document)
    return doubt_of_go(typed(document, Preflight))


def budget(**changes: Any) -> Change:
    return lambda document: document["probe"]["budget"].update(changes)


def section(name: str, *findings: dict[str, Any], **changes: Any) -> Change:
    return lambda document: document[name].update({"findings": [*document[name]["findings"], *findings], **changes})


def limit(key: str, value: float | None) -> Change:
    return lambda document: budget(limits=document["probe"]["budget"]["limits"] | {key: value})(document)


def probe(**changes: Any) -> Change:
    return lambda document: document["probe"].update(changes)


def smis(count: int, seconds: float = 30.0) -> Change:
    """Of the whole preflight; 0: it does not say for how long."""
    return lambda document: document.update(smis={"count": count, "seconds": seconds})


def cpu(**changes: Any) -> Change:
    return lambda document: document["probe"]["cpus"][0].update(changes)


def cpu_sets(**changes: Any) -> Change:
    return lambda document: document["cpu_sets"].update(changes)


def both(*changes: Change) -> Change:
    return lambda document: [change(document) for change in changes]


def loaded(asked: tuple[str, ...] = ("memory",), *, ran: bool = True, **changes: Any) -> Change:
    """The same run once more, beside a load."""

    def change(document: dict[str, Any]) -> None:
        load = {"names": ["memory"], "ran": ran, "reason": "" if ran else "it ended"}
        document.update(load=list(asked), loaded={**copy.deepcopy(document["probe"]), "load": load, **changes})

    return change


def fed(p99_9: float | None = 5.0, *, cpus: tuple[int, ...] = (15,), limit: float = 5.0, **changes: Any) -> Change:
    """A run of feed that says that it kept within its limit."""
    asked = {"transport": "tcp", "format": "json", "symbols": 1, "rate": 10_000, "burst": 1, "waiting": "poll0"}
    spread = dict.fromkeys(("min", "mean", "50", "90", "99", "99.9", "99.99", "max"), p99_9)
    cell = {**asked, "tls": "off", "alloc": 0, "n": 20_000, "histogram": [], "cpus": cpus, "due_to_book_ns": spread}
    budget = {"limits": {"due_to_book_p99_9_ns": limit}, "verdict": "within"}

    def change(document: dict[str, Any]) -> None:
        run = {"cells": [cell], "budget": budget, "host": document["host"], "at": document["at"], **changes}
        document.update(is_feed_asked=True, feed=run)

    return change


def strict(document: dict[str, Any]) -> None:
    document["strict"] = True


FIGURES = {"max_ns": 4_000, "p99_9_ns": 2_000, "interruptions_per_s": 5, "stolen_ppm": 100}  # with WORSE
WORSE = cpu(
    arrival_ns={"99.9": 2_000}, stolen_ppm=100.0, stolen_ns=1_000_000
)  # than made.preflight(), whose gaps cannot reach so far
DARK = good("thermal.zone[0]") | {"outcome": "unreadable"}
SPARED_ONE = good("uncore.min_khz") | {"outcome": "unreadable"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda document: document.update(probe=None), "measured nothing"),
        (lambda document: document["probe"].update(interrupted=True), "prove nothing: 'the run was interrupted"),
        *((limit(key, None), f"its probe was held to no limit of {key}") for key in GAPS),
        (lambda document: document["probe"].pop("budget"), f"its probe was held to no limit of {', '.join(GAPS)}"),
        (budget(limits={"max_ns": 50_000}), "no limit of p99_9_ns, interruptions_per_s, stolen_ppm"),
        (both(limit("smis_per_s", 0), smis(1)), "had more SMIs than its limit permits (1)"),
        (both(limit("smis_per_s", 0), smis(5, 0.0)), "had more SMIs than its limit permits (5)"),
        (both(limit("smis_per_s", 0), probe(smis={"count": 1})), "its probe break a limit: SMIs come at 0."),
        (limit("max_ns", 3_999), "its probe break a limit: CPU 15: the longest interruption is 4 µs"),
        (both(WORSE, limit("p99_9_ns", 1_999)), "its probe break a limit: CPU 15: 99.9 % of arrivals wait"),
        (limit("interruptions_per_s", 4.99), "its probe break a limit: CPU 15: interruptions come at 5/s"),
        (both(WORSE, limit("stolen_ppm", 99.9)), "its probe break a limit: CPU 15: the time stolen is 100 ppm"),
        (limit("max_ns", -1), "its probe cannot be judged again: 'budget: max_ns = -1"),
        (limit("any_ns", 1), "its probe cannot be judged again: 'budget: unknown limit any_ns"),
        (cpu(max_ns=50_001), "its probe break a limit: CPU 15: the longest interruption is 50.001 µs"),
        (cpu(duration_ns=500_000_000, interruptions=1), "its probe prove nothing: 'max_ns: measured for 500 ms"),
        (cpu(loops=0), "its probe prove nothing: 'a CPU was never measured"),
        (cpu(conservation_ppm=5_000.0), "its probe prove nothing: 'turns and gaps of CPU 15 do not add up"),
        (lambda document: document["probe"]["cpus"][0].pop("loops"), "a CPU was never measured"),
        (lambda document: document["probe"]["cpus"][0]["arrival_ns"].pop("99.9"), "it lacks the 99.9 of arrival_ns"),
        (probe(not_measured=[{"cpu": 14, "reason": "an engine spins"}]), "CPU 14 was left out of its probe"),
        (lambda document: document.update(beside=[{"cpu": 14}]), "CPU 14 was left out of its probe"),
        (cpu_sets(isolated="14-15"), "its probe did not measure CPU 14, isolated as it says"),
        (cpu_sets(isolated="14"), "its probe did not measure CPU 14, isolated as it says"),
        (probe(cpus=[cpu_result(14), cpu_result(15)]), "its probe measured CPU 14, not isolated as it says"),
        (cpu_sets(isolated=""), "does not say which CPU is isolated and online"),
        (cpu_sets(isolated="15-"), "does not say which CPU is isolated and online"),
        (cpu_sets(online="0-14"), "does not say which CPU is isolated and online"),
        (lambda document: document.pop("cpu_sets"), "does not say which CPU is isolated and online"),
        (probe(host={"boot_id": "another"}), "its probe ran on another boot: another, not boot-tx-01"),
        (lambda document: document["probe"].pop("host"), "does not say on which boot its probe ran"),
        (lambda document: document["host"].update(boot_id=""), "does not say on which boot its probe ran"),
        (probe(at="2020-01-01T00:00:00Z"), "its probe ran at another time: 2020-01-01T00:00:00Z"),
        (probe(at="2026-11-21T08:24:54Z"), "its probe ran at another time"),  # 311 s before, and it took 10
        (probe(at="2026-11-21T08:35:06Z"), "its probe ran at another time"),
        (probe(at="this morning"), "does not say when its probe ran"),
        (lambda document: document["probe"].pop("at"), "does not say when its probe ran"),
        (budget(verdict="not-judged", reason="a CPU was never measured"), "not judged: 'a CPU was never measured'"),
        (budget(verdict=""), "its probe was not judged: no reason is given"),
        (lambda document: document.update(reasons=["fan failed"]), "gives a reason against it: 'fan failed'"),
        (lambda document: document.update(verify=None), "judged none of its settings"),
        (lambda document: document.update(check=None), "judged none of its checks"),
        (section("verify", findings=[]), "judged none of its settings"),
        (section("check", findings=[]), "judged none of its checks"),
        (section("verify", verdict="drifted"), "its verify says drifted"),
        (section("verify", verdict="unreadable"), "its verify says unreadable"),
        (section("verify", verdict=""), "its verify says nothing"),
        (section("check", verdict="drifted"), "its check says drifted"),
        (section("check", verdict="pending-reboot"), "its check says pending-reboot"),
        (section("verify", good("mm.ksm") | {"outcome": "drifted"}), "mm.ksm in it is drifted"),
        (section("verify", good("boot.tsc") | {"outcome": "pending-reboot"}), "boot.tsc in it is pending-reboot"),
        (section("verify", good("irq.affinity[7]") | {"outcome": "refused"}), "irq.affinity[7] in it is refused"),
        (section("thermal", good("thermal.throttled[3]") | {"outcome": "drifted"}), "thermal.throttled[3] in it is"),
        (section("verify", good("mm.ksm") | {"outcome": "unreadable"}), "mm.ksm in it is unreadable"),
        (section("check", good("check.tick") | {"outcome": "unreadable"}), "check.tick in it is unreadable"),
        (section("verify", good("mm.ksm") | {"outcome": "waived"}), "mm.ksm in it is waived, and no waiver stands"),
        (both(section("thermal", DARK), strict), "thermal.zone[0] in it is unreadable"),
        (lambda document: document.pop("thermal"), "its thermal says nothing"),
        (section("thermal", verdict="throttled"), "its thermal says throttled"),
        (section("thermal", verdict="drifted"), "its thermal says drifted"),
        (both(section("verify", SPARED_ONE), strict), "uncore.min_khz in it is"),
        (lambda document: document.update(load=["memory"]), "was not measured under load, as it was asked to (memory)"),
        (cpu(arrival_ns={"99.9": 4_002}), "CPU 15 contradict each other: the 99.9 of arrival_ns is above max_ns"),
        (cpu(histogram=[[4_002, 4_003, 50]]), "CPU 15 contradict each other: its histogram has a gap above max_ns"),
        (cpu(stolen_ns=1_000_000_000), "CPU 15 contradict each other: stolen_ppm is not stolen_ns over duration_ns"),
        (budget(broken=["late"]), "its probe broke a limit: late"),
        (loaded(ran=False), "was not measured under load: 'the load did not run: it ended'"),
        (loaded(("memory", "timers")), "was measured beside another load than it was asked to"),
        (loaded(cpus=[cpu_result(15, max_ns=50_001)]), "under load the figures of its probe break a limit: CPU 15"),
        (loaded(interrupted=True), "under load the figures of its probe prove nothing: 'the run was interrupted"),
        (lambda document: document.update(is_feed_asked=True), "did not measure feed, as it was asked to"),
        (fed(5.1), "the figures of feed broke a limit: 'tcp json, 1 symbol, poll0: 99.9 % of messages"),
        (fed(None), "the figures of feed was not judged: 'tcp json, 1 symbol, poll0: P99.9 is not known"),
        (fed(budget={}), "feed was not judged: no reason is given"),
        (fed(budget={"verdict": "broken", "broken": ["late"]}), "feed broke a limit: late"),
        (fed(interrupted=True), "the figures of feed was not judged: 'the run was interrupted"),
        (fed(cpus=(14, 15)), "feed ran on CPU 14, not isolated as it says"),
        (fed(limit=0.0), "feed cannot be judged again: 'budget.feed: due_to_book_p99_9_ns = 0.0 is no number"),
        (fed(host={"boot_id": "other"}), "in feed its probe ran on another boot"),
        (fed(at="2026-11-20T08:29:50Z"), "in feed its probe ran at another time"),
    ],
)
def test_what_contradicts_a_go(change: Change, said: str) -> None:
    assert said in doubt(change)


@pytest.mark.parametrize(
    "change",
    [
        lambda document: None,
        lambda document: document.update(thermal={"verdict": "unknown", "findings": [], "evidence": {}}),
        both(limit("smis_per_s", 0.1), smis(3)),
        both(limit("smis_per_s", 0), smis(0)),
        *(both(WORSE, limit(key, found)) for key, found in FIGURES.items()),  # a value equal to its limit is within
        probe(not_measured=[]),
        cpu_sets(isolated="15-16"),  # CPU 16 is offline, and verify says whether it may be
        probe(at="2026-11-21T08:29:50Z"),
        probe(at="2026-11-21T08:24:55Z"),  # the 10 s that it took, and 5 minutes
        probe(at="2026-11-21T08:35:05Z"),  # the clock was set back meanwhile
        section("check", verdict="unreadable"),  # nothing but the engine's own threads was to be judged
        section("check", good("check.trading_alone") | {"outcome": "unreadable"}, verdict="unreadable"),
        section("thermal", DARK),
        both(
            section("verify", good("mm.ksm") | {"outcome": "waived"}),
            lambda document: document.update(waivers={"standing": 1, "expired": 0, "next": None}),
        ),
        section("verify", good("irq.affinity[7]") | {"outcome": "refused", "harmful": False}),
        section("verify", SPARED_ONE),  # reading it would interrupt a CPU
        section("verify", good("net.rx_usecs[eth0]") | {"outcome": "unsupported"}),
        loaded(),
        fed(),
        fed(4.9),
        both(loaded(), probe(at="2026-11-21T08:24:45Z")),  # it ran first, and the other took 10 s, too
    ],
)
def test_what_stands_beside_a_go(change: Change) -> None:
    assert doubt(change) == ""


def test_what_is_left_unread_on_purpose_is_what_the_table_of_knobs_spares() -> None:
    assert {name for name, knob in KNOBS.items() if is_spared(knob.driver)} == SPARED
