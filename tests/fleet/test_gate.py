"""`fleet gate`: go, no-go and unknown at their limits; hosts are the unit, and nobody who is silent helps."""

import random
from typing import Any

import pytest

from tests.fleet.made import NOW, asked, preflight, session
from tunectl.compare.chance import share_interval
from tunectl.compare.ranks import chance_of, factor_of
from tunectl.errors import TunectlError
from tunectl.fleet.gate import Canary, gate_body
from tunectl.fleet.records import Asked, Session
from tunectl.shapes import replaced

_TEMPLATE = asked("x", preflight("x"))


def host(name: str, verdict: str = "go", longest: float = 4_000, product: str = "R1", kernel: str = "6.12.5") -> Asked:
    """A host with another figure; of a thousand hosts only what differs is made."""
    document = _TEMPLATE.document
    assert document
    assert document.figures
    assert document.hardware
    own = document._replace(
        verdict=verdict,
        reasons=() if verdict == "go" else ("it is bad",),
        host=replaced(document.host, hostname=name, kernel=kernel, boot_id=f"boot-{name}"),
        figures=replaced(document.figures, max_ns=longest),
        hardware=replaced(document.hardware, product=product),
    )
    return _TEMPLATE._replace(name=name, document=own)


def fleet(canary: list[Asked], peers: list[Asked]) -> tuple[Session, list[Asked]]:
    """A session whose rack A has the canary."""
    every = [*canary, *peers]
    racks = tuple((one.name, "A" if one in canary else "B") for one in every)
    return session(*(one.name for one in every), racks=racks), every


def gated(canary: list[Asked], peers: list[Asked], most: float = 0.01, chosen: str = "A") -> dict[str, Any]:
    made, every = fleet(canary, peers)
    hosts = frozenset(name for name, rack in made.racks if rack == chosen)
    return gate_body(made, every, NOW, Canary(chosen, hosts), most, 0.95)


def varied(of: str, n: int, factor: float = 1.0, **kwargs: Any) -> list[Asked]:
    rng = random.Random(of)
    return [host(f"{of}{number}", longest=factor * 4_000 * rng.lognormvariate(0, 0.2), **kwargs) for number in range(n)]


def test_it_takes_so_many_hosts_for_one_percent() -> None:
    """0 of 368: Clopper and Pearson's bound is 0.9974 %."""
    enough, one_fewer = (gated(varied("a", n), varied("b", 400)) for n in (368, 367))
    assert (enough["verdict"], one_fewer["verdict"]) == ("go", "unknown")
    assert one_fewer["share"]["fewest"] == 368
    assert enough["share"]["high_percent"] == pytest.approx(0.9974, abs=1e-4)
    assert (one_fewer["share"]["verdict"], {row["verdict"] for row in one_fewer["figures"]}) == ("unknown", {"go"})


def test_exactly_one_percent_cannot_be_told_from_more() -> None:
    bad = [host(f"bad{n}", "no-go") for n in range(4)]
    made = gated([*bad, *varied("a", 396)], varied("b", 400))
    assert made["share"]["verdict"] == made["verdict"] == "unknown"
    assert made["share"]["low_percent"] < 1 < made["share"]["high_percent"]
    twelve = gated([*bad, *varied("a", 8)], varied("b", 400))
    assert (twelve["share"]["verdict"], twelve["verdict"]) == ("no-go", "no-go")
    assert twelve["hosts"]["no-go"] == ["bad0", "bad1", "bad2", "bad3"]


@pytest.mark.parametrize(("verdict", "expected"), [("go", "unknown"), ("no-go", "no-go"), ("unknown", "unknown")])
def test_one_host_says_no_or_nothing(verdict: str, expected: str) -> None:
    """One NO-GO of one is a share above 1 % for certain: its lower bound is 2.5 %."""
    assert gated([host("a", verdict)], varied("b", 20))["verdict"] == expected


def test_without_peers_it_cannot_be_told() -> None:
    made = gated(varied("a", 400), [])
    assert (made["verdict"], made["share"]["verdict"], made["figures"]) == ("unknown", "go", [])
    others = gated(varied("a", 400), varied("b", 400, product="R2"))
    assert (others["verdict"], others["figures"]) == ("unknown", [])
    assert "400 hosts of the canary: not measured, or no peers of the same hardware" in others["notes"]
    some = gated([*varied("a", 396), *varied("c", 4, product="R2")], varied("b", 400))
    assert (some["verdict"], some["figures"][0]["hosts"]) == ("go", 396)
    more = gated([*varied("a", 395), *varied("c", 5, product="R2")], varied("b", 400))
    assert (more["verdict"], {row["verdict"] for row in more["figures"]}) == ("unknown", {"go"})


def test_all_missing_are_visible_and_not_go() -> None:
    made = gated([asked(f"a{n}") for n in range(400)], varied("b", 20))
    assert (made["verdict"], made["share"]["hosts"], made["share"]["not_known"]) == ("unknown", 400, 400)
    assert (made["share"]["low_percent"], made["share"]["high_percent"]) == (0, 100)
    assert (len(made["hosts"]["unknown"]), made["peers"]["go"]) == (400, 20)


def test_a_silent_host_counts_against_the_canary() -> None:
    """Four silent ones may all be NO-GO: of 400 that is as 4 NO-GO, and the rest does not make up for it."""
    made = gated([*varied("a", 396), *(asked(f"s{n}") for n in range(4))], varied("b", 400))
    assert (made["share"]["verdict"], made["share"]["no_go"], made["share"]["not_known"]) == ("unknown", 0, 4)
    waiting = gated([*varied("a", 396), *(host(f"w{n}", "pending-reboot") for n in range(4))], varied("b", 400))
    assert waiting["verdict"] == "pending-reboot"
    few = gated([*varied("a", 799), host("w", "pending-reboot")], varied("b", 400))
    assert few["verdict"] == "pending-reboot", "also where as many NO-GO would be permitted"


def test_figures_that_are_worse_are_a_no_go() -> None:
    made = gated(varied("a", 400, 1.8), varied("b", 400))
    rows = {row["measure"]: row for row in made["figures"]}
    assert (made["verdict"], made["share"]["verdict"], rows["max_ns"]["verdict"]) == ("no-go", "go", "no-go")
    assert 1.7 < rows["max_ns"]["ratio"]["low"] < 1.8 < rows["max_ns"]["ratio"]["high"] < 1.9
    assert {row["verdict"] for name, row in rows.items() if name != "max_ns"} == {"go"}
    assert gated(varied("a", 400, 1.2), varied("b", 400))["verdict"] == "go"  # for certain, and nobody would notice


def test_other_hardware_is_not_what_changed() -> None:
    """The canary is mostly of the slower kind: host by host of each kind nothing differs."""
    slow, fast = varied("s", 380, 3.0, product="R2"), varied("f", 20)
    made = gated([*slow, *fast], [*varied("b", 400), *varied("c", 20, 3.0, product="R2")])
    assert (made["verdict"], made["figures"][0]["verdict"]) == ("go", "go")


def test_who_does_not_say_the_fact_may_have_it() -> None:
    made, every = fleet(varied("a", 400, kernel="6.12.9"), [*varied("b", 400), asked("gone")])
    by_kernel = gate_body(made, every, NOW, Canary("kernel=6.12.9", fact="kernel", value="6.12.9"), 0.01, 0.95)
    assert (by_kernel["share"]["hosts"], by_kernel["share"]["not_known"], by_kernel["verdict"]) == (401, 1, "unknown")
    assert "1 host left no document of now, and may have the change" in by_kernel["notes"]
    with pytest.raises(TunectlError, match="no host of morning is of the canary Z"):
        gated(varied("a", 2), varied("b", 2), chosen="Z")


@pytest.mark.parametrize("hosts", [(9, 9), (5, 60), (40, 400)])
def test_alike_hosts_are_called_different_no_more_often_than_the_level(hosts: tuple[int, int]) -> None:
    rng = random.Random(7)
    sides = [[[rng.lognormvariate(0, 0.4) for _ in range(n)] for n in hosts] for _ in range(300)]
    found = [chance_of([(peers, changed)]) <= 0.05 for changed, peers in sides]
    assert sum(found) <= 24  # of 300 at 5 %: 15 expected, 24 in one of a hundred
    covered = [factor_of([(peers, changed)], 0.95) for changed, peers in sides]
    assert sum(not one.low <= 1 <= one.high for one in covered) <= 24


def test_strata_are_compared_each_within_itself() -> None:
    peers, changed = [1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 4.0, 6.0, 8.0, 10.0]
    far = [([100 * value for value in peers], [100 * value for value in changed]), (peers, changed)]
    assert factor_of(far, 0.95).value == pytest.approx(2)
    assert chance_of([(peers, [6.0, 7.0, 8.0, 9.0, 10.0])]) == 2 / 252
    assert chance_of([([1.0] * 400, [1.0] * 40)]) == 1
    assert factor_of([([1.0], [3.0])], 0.95)[1:] == (0, float("inf"))


def test_the_bounds_of_a_share() -> None:
    """Against the closed forms that there are, and Clopper and Pearson's own table (1934): 10 of 30."""
    assert share_interval(0, 0, 50, 0.95).high == pytest.approx(1 - 0.025 ** (1 / 50))
    every, some = share_interval(50, 50, 50, 0.95), share_interval(10, 10, 30, 0.95)
    assert [every.low, every.high] == pytest.approx([0.025 ** (1 / 50), 1])
    assert [some.low, some.high] == pytest.approx([0.1729, 0.5281], abs=1e-4)
    either = share_interval(2, 5, 30, 0.95)
    assert (either.low, either.high) == (share_interval(2, 2, 30, 0.95).low, share_interval(5, 5, 30, 0.95).high)
