"""The headline: the verdict in words, and on what terms it was reached."""

from __future__ import annotations

import pytest

from tests.probe.samples import typed_result
from tunectl.hostfile.budget import Looser
from tunectl.model import Waiver
from tunectl.preflight.headline import Waivers, count_waivers, headline

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


def test_it_says_how_many_waivers_stand_and_which_expires_next() -> None:
    one, more = waiver("2027-01-01"), [waiver("2027-05-05"), waiver("2026-12-24", "mm.ksm", None)]
    for verdict, means in (
        ("go", "this host is ready to trade"),
        ("no-go", "do not trade on this host"),
        ("pending-reboot", "configured, but not in force before a reboot"),
        ("unknown", "could not find out enough to say"),
    ):
        assert headline(verdict, (), Waivers()) == f"{means}; no waiver stands"
    assert headline("go", (), count_waivers([one], TODAY)).endswith(
        "; 1 waiver stands, until 2027-01-01 (irq.affinity[33])"
    )
    expired = waiver("2026-01-01")
    assert headline("no-go", (), count_waivers([one, *more, expired], TODAY)) == (
        "do not trade on this host; 3 waivers stand, the next expires on 2026-12-24 (mm.ksm), 1 expired"
    )


def test_it_says_beside_which_load_it_was_measured() -> None:
    names = ["memory", "timers"]
    loaded = typed_result(load={"names": names, "ran": True})
    assert headline("go", (), Waivers(), loaded) == (
        "this host is ready to trade; measured quiet and under load (memory, timers); no waiver stands"
    )
    loaded = typed_result(load={"names": names, "ran": False, "reason": "stress-ng has ended"})
    assert headline("unknown", (), Waivers(), loaded) == "could not find out enough to say; no waiver stands"


@pytest.mark.parametrize(
    ("fed", "said"),
    [
        ("within", "; feed kept its limit"),
        ("broken", "; feed broke its limit"),
        ("not-judged", "; feed was not judged"),
        ("", ""),
    ],
)
def test_it_says_what_became_of_the_feed_where_that_was_asked_for(fed: str, said: str) -> None:
    assert headline("no-go", (), Waivers(), fed=fed) == f"do not trade on this host{said}; no waiver stands"


def test_it_names_each_looser_limit_with_both_figures() -> None:
    loose = (Looser("max_ns", 1e9, 50000, "low-latency"), Looser("stolen_ppm", 100.5, 100, "low-latency"))
    assert headline("unknown", loose, Waivers()) == (
        "could not find out enough to say; judged by looser limits than profile low-latency has: "
        "max_ns 1000000000 (profile 50000), stolen_ppm 100.5 (profile 100); no waiver stands"
    )
