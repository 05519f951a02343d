"""Outliers: found among peers, never among the alike, and they cannot hide themselves or each other."""

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fleet.made import asked, preflight
from tunectl.fleet.peers import FEWEST, SCORE, Outlier, groups_of, outliers
from tunectl.fleet.records import Summary

sane = st.floats(0, 1e18)


def found(values: list[float], floor: float = 100.0, ratio: float = 1.5) -> Mapping[str, Outlier]:
    return outliers({str(place): value for place, value in enumerate(values)}, floor, ratio)[1]


def test_one_slow_host() -> None:
    odd = found([4000, 4100, 3900, 4050, 3950, 31000])
    assert list(odd) == ["5"]
    assert odd["5"].ratio == pytest.approx(7.7, abs=0.1)
    assert odd["5"].score > SCORE


def test_a_fast_one_is_odd_too_and_says_so() -> None:
    assert found([4000, 4100, 3900, 4050, 3950, 500])["5"].score < -SCORE


def test_outliers_do_not_hide_each_other() -> None:
    """With a mean and a standard deviation, four of ten a hundred times as slow would all be usual."""
    assert list(found([4000, 4100, 3900, 4050, 3950, 4010, *[400_000.0] * 4])) == ["6", "7", "8", "9"]


def test_hosts_that_are_all_alike() -> None:
    assert not found([4000.0] * 9)
    assert not found([4000.0] * 9 + [4100.0])  # alike to the nanosecond is chance; 2 % more is no news
    assert list(found([4000.0] * 9 + [8000.0])) == ["9"]


def test_what_spreads_widely_is_usual() -> None:
    rng = random.Random(1)
    lognormal = [4000 * rng.lognormvariate(0, 1) for _ in range(200)]
    assert len(found(lognormal)) <= 2
    assert list(found([*lognormal, 4_000_000.0])) == ["200"]


def test_a_few_per_mille_of_normal_hosts_are_called_odd() -> None:
    """What docs/fleet.md promises: about 1 of 2,000 figures, a few more where the group is small."""
    rng = random.Random(2)
    for hosts, share in ((200, 0.002), (10, 0.05)):
        odd = sum(len(found([4000 * rng.lognormvariate(0, 0.3) for _ in range(hosts)])) for _ in range(20000 // hosts))
        assert odd / 20000 < share


def test_below_the_floor_all_is_equally_good() -> None:
    assert not found([0, 0, 0, 0, 0, 0, 99.0])
    assert list(found([0, 0, 0, 0, 0, 0, 1000.0])) == ["6"]


def test_too_few() -> None:
    usual, odd = outliers({str(n): 10.0**n for n in range(FEWEST - 1)}, 1.0, 1.5)
    assert (usual, odd) == (None, {})


@given(st.lists(sane, min_size=FEWEST, max_size=60), st.floats(1e-3, 1e6), st.floats(1.01, 10))
def test_any_values(values: list[float], floor: float, ratio: float) -> None:
    usual, odd = outliers({str(place): value for place, value in enumerate(values)}, floor, ratio)
    assert usual
    assert usual.low <= usual.median <= usual.high
    assert len(odd) <= len(values) / 2  # half of them are within the deviation that is their median
    for name, value in enumerate(values):
        inside = usual.low <= max(value, floor) <= usual.high
        assert inside == (str(name) not in odd)
    for one in odd.values():
        assert (one.score > 0) == (one.ratio > 1)
        assert abs(one.score) >= SCORE * 0.999
        assert not 1 / ratio < one.ratio < ratio


@given(st.lists(st.floats(200, 1e9), min_size=FEWEST, max_size=40), st.floats(1, 1000))
def test_the_unit_does_not_matter(values: list[float], factor: float) -> None:
    usual, odd = outliers(dict(enumerate(values)), 100.0, 1.5)  # type: ignore[arg-type]
    scaled, same = outliers({n: v * factor for n, v in enumerate(values)}, 100.0 * factor, 1.5)  # type: ignore[misc]
    assert usual
    assert scaled
    assert scaled.median == pytest.approx(usual.median * factor)
    beyond = (name for name, one in odd.items() if abs(one.score) > SCORE * 1.001)
    assert {name for name in beyond if not 1 / 1.501 < odd[name].ratio < 1.501} <= set(same)


def card(version: str) -> dict[str, str]:
    return {"nic": "eth0", "driver": "ice", "version": version}


def summary(name: str, microcode: str = "0x2c", smis: int | None = 0, **firmware: object) -> Summary:
    """What is kept of a host that measured, with this firmware."""
    made = preflight(name, firmware={"kernel_config": "aa", "cards": [card("4.2")], **firmware})
    made["host"]["microcode"] = microcode
    made["probe"]["smis"] = {"count": smis, "reason": "" if smis is not None else "only Intel's CPUs count them"}
    document = asked(name, made).document
    assert document
    return document


def test_who_was_left_out_of_an_update_is_told_though_its_figures_are_usual() -> None:
    hosts = {f"tx-{n}": summary(f"tx-{n}") for n in range(1, 6)}
    hosts["tx-6"] = summary("tx-6", "0x2b", kernel_config="bb", cards=[card("4.1")])
    hosts["tx-7"] = summary("tx-7", "", kernel_config="", cards=[])  # an older tunectl, which does not say
    ((group,), odd) = groups_of(hosts)
    assert odd == []
    assert group.notes == [
        "tx-6: the microcode is 0x2b; 5 of 6 peers: 0x2c",
        "tx-6: the kernel's configuration is bb; 5 of 6 peers: aa",
        "tx-6: the firmware of network cards is 'ice 4.1'; 5 of 6 peers: 'ice 4.2'",
    ]


def test_a_host_with_smis_is_odd_among_hosts_without() -> None:
    hosts = {f"tx-{n}": summary(f"tx-{n}") for n in range(1, 6)} | {"tx-6": summary("tx-6", smis=600)}
    (row,) = groups_of(hosts)[1]
    assert (row.host, row.measure, row.worse) == ("tx-6", "smis_per_s", True)
    amd = {f"tx-{n}": summary(f"tx-{n}", smis=None) for n in range(1, 7)}
    assert groups_of(amd)[1] == []


def test_hosts_are_compared_with_the_whole_fleet_or_by_firmware_or_kernel() -> None:
    hosts = {f"tx-{n}": summary(f"tx-{n}") for n in range(1, 6)} | {"tx-6": summary("tx-6", "0x2b", smis=600)}
    hosts["tx-7"] = summary("tx-7")._replace(hardware=None)
    assert [(group.alike, len(group.hosts)) for group in groups_of(hosts)[0]] == [("", 6), ("", 1)]
    ((fleet,), odd) = groups_of(hosts, "fleet")
    assert (fleet.alike, fleet.hardware, len(fleet.compared)) == ("the whole fleet", None, 7)
    assert [row.host for row in odd] == ["tx-6"]
    by_firmware, odd = groups_of(hosts, "firmware")
    assert [(group.alike, len(group.hosts)) for group in by_firmware] == [
        ("BIOS not said, microcode 0x2c", 6),
        ("BIOS not said, microcode 0x2b", 1),
    ]
    assert odd == []
    assert [group.alike for group in groups_of(hosts, "kernel")[0]] == ["kernel 6.12.5"]
