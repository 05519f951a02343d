"""The headline: the verdict in words, and on what terms it was reached."""

import pytest

from tests.probe.samples import typed_result
from tunectl.model import Waiver
from tunectl.preflight.headline import count_waivers, headline, stood
from tunectl.shapes import Looser, Smis, Waivers

TODAY = "2026-11-23"


def waiver(until: str, knob: str = "irq.affinity", instance: str | None = "33") -> Waiver:
    return Waiver(knob, instance, "known", until)


@pytest.mark.parametrize(
    ("until", "standing", "expired"),
    [((), 0, 0), (("2026-11-23",), 1, 0), (("2026-11-22",), 0, 1), (("2027-01-01", "2026-11-22", "2026-12-24"), 2, 1)],
)
def test_a_waiver_stands_up_to_its_last_day(until: tuple[str, ...], standing: int, expired: int) -> None:
    found = count_waivers(map(waiver, until), TODAY)
    assert (found.standing, found.expired) == (standing, expired)
    assert (found.next.until if found.next else None) == min((day for day in until if day >= TODAY), default=None)


def test_it_names_the_waiver_that_expires_next() -> None:
    waivers = map(waiver, ("2027-05-05", "2026-01-01", "2026-12-24", "2027-01-01"))
    said = headline("go", (), count_waivers(waivers, TODAY))
    assert all(term in said for term in ("3 waivers", "2026-12-24 (irq.affinity[33])", "1 expired (irq.affinity[33])"))


@pytest.mark.parametrize("ran", [True, False])
def test_it_names_the_load_beside_which_it_was_measured(ran: bool) -> None:
    loaded = typed_result(load={"names": ["memory", "timers"], "ran": ran, "reason": "stress-ng has ended"})
    assert ("memory, timers" in headline("go", (), Waivers(), loaded)) is ran


def test_each_verdict_and_each_end_of_the_feed_is_said_otherwise() -> None:
    ends = {headline("no-go", (), Waivers(), fed=fed) for fed in ("within", "broken", "not-judged", "")}
    assert len(ends | {headline(one, (), Waivers()) for one in ("go", "pending-reboot", "unknown", "no-go")}) == 7


COUNTED, NOT_COUNTED = Smis(0, seconds=30.4), Smis(None, "only Intel's CPUs count them")


@pytest.mark.parametrize(
    ("smis", "limit", "stops", "said"),
    [
        (COUNTED, 0.0, None, ["SMIs in 30.4 s: 0 (limit 0/s)"]),
        (Smis(1200, seconds=30.4), 0.5, None, ["SMIs in 30.4 s: 1,200 (limit 0.5/s)"]),
        (COUNTED, None, None, ["SMIs in 30.4 s: 0 (no limit)"]),
        (NOT_COUNTED, None, None, []),
        (NOT_COUNTED, 0.0, None, ["SMIs are not known"]),
        (NOT_COUNTED, 0.0, {"count": None, "reason": "one CPU"}, ["SMIs are not known"]),
        (NOT_COUNTED, 0.0, {"count": 0}, []),
        (
            NOT_COUNTED,
            0.0,
            {"count": 10, "max_ns": 142_000, "explanation": "firmware (an SMI) or hardware"},
            ["all probed CPUs stood still together, 142 µs the longest, 1/s: firmware (an SMI) or hardware"],
        ),
    ],
)
def test_it_says_how_often_all_cpus_stopped(
    smis: Smis, limit: float | None, stops: dict[str, object] | None, said: list[str]
) -> None:
    """By their count, or else by what the probe saw of them; that nobody knows where a limit asks."""
    probe = typed_result(simultaneous_stops=stops)
    assert list(stood(smis, limit, probe)) == said
    assert all(term in headline("go", (), Waivers(), still=said) for term in said)


def test_it_counts_the_limits_that_are_broken_or_not_judged() -> None:
    """Each once, of whichever CPU and run."""
    keys = ["max_ns", "stolen_ppm", "max_ns"]
    broken = typed_result(budget={"verdict": "broken", "broken": [*"abc"], "broken_limits": keys})
    short = typed_result(budget={"not_judged": ["p99_9_ns: measured for 5 s, and this limit needs 9 s"]})
    said = headline("no-go", (), Waivers(), probes=[broken, short, broken, short])
    assert "; 2 limits of the probe broken; 1 limit of the probe not judged; " in said


def test_it_names_each_looser_limit_with_both_figures() -> None:
    loose = (Looser("max_ns", 1e9, 50000, "low-latency"), Looser("stolen_ppm", 100.5, 100, "low-latency"))
    figures = (
        "profile low-latency has: longest interruption 1 s (profile 50 µs), stolen time 100.5 ppm (profile 100 ppm)"
    )
    assert figures in headline("unknown", loose, Waivers())
