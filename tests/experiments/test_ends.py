"""Which CPUs the threads of an experiment have: on values alone."""

from collections.abc import Collection
from typing import Any

import pytest

from tunectl.errors import UsageError
from tunectl.experiments.ends import CLIENT_AND_SERVERS, SENDER_AND_RECEIVER, Ends, Placed, asked_cpus, place
from tunectl.host.cpusets import CpuFacts

PAIR, THREE = SENDER_AND_RECEIVER, CLIENT_AND_SERVERS
ALL = frozenset(range(8))
APART = tuple({cpu, cpu + 4} for cpu in range(4))  # cores whose hardware threads have numbers far apart,
SIDE_BY_SIDE = tuple({cpu, cpu + 1} for cpu in range(0, 8, 2))  # and near each other


def facts(
    isolated: Collection[int] = (),
    partitioned: Collection[int] = (),
    cores: Collection[set[int]] = APART,
    online: Collection[int] = ALL,
) -> CpuFacts:
    nothing: dict[str, Any] = dict.fromkeys(CpuFacts._fields, frozenset())
    known: dict[str, Any] = {
        "online": frozenset(online),
        "present": frozenset(online),
        "siblings": {cpu: frozenset(core) for core in cores for cpu in core},
        "kernel_isolated": frozenset(isolated),
        "partitioned": frozenset(partitioned),
        "nr_cpus": 64,
    }
    return CpuFacts(**nothing | known)


@pytest.mark.parametrize(
    ("among", "host", "allowed", "chosen", "is_noted"),
    [
        (None, facts({2, 3}), ALL, (2, 3), False),
        (None, facts({2}, {5}), ALL, (2, 5), False),
        (None, facts({2}), ALL, (6, 7), True),
        (None, facts({2, 99}), ALL, (6, 7), True),  # one of them is not online
        (None, facts(), {1, 5}, (1, 5), True),  # of one core: there is no other
        (None, facts({1, 2, 6}), ALL, (1, 6), False),
        (None, facts({3}), {0, 1, 2, 4, 60}, (2, 4), True),
        (None, facts(), {3}, (3, 3), True),
        ("0,1", facts({2, 3}), ALL, (0, 1), False),
        ("1", facts({2, 3}), ALL, (1, 1), False),
        (None, facts({1, 2, 3}), ALL, (1, 2, 3), False),
        (None, facts({2, 3, 6, 7}), ALL, (3, 6, 7), False),  # two cores: A and B on different ones
        (None, facts({2, 3}), ALL, (5, 6, 7), True),
        (None, facts({1, 2, 3, 7}), ALL, (1, 2, 7), False),
        (None, facts({2, 3, 4, 5}, cores=()), ALL, (3, 4, 5), False),
        (None, facts(cores=()), ALL, (5, 6, 7), True),
        (None, facts(cores=SIDE_BY_SIDE), ALL, (3, 5, 7), True),
        (None, facts(cores=SIDE_BY_SIDE[:2], online=range(4)), ALL, (2, 1, 3), True),  # two of a core, not none
        ("1-3,6", facts(cores=()), ALL, (2, 3, 6), False),
    ],
)
def test_the_last_cpus_that_share_no_core(
    among: str | None, host: CpuFacts, allowed: Collection[int], chosen: tuple[int, ...], is_noted: bool
) -> None:
    placed = place({2: PAIR, 3: THREE}[len(chosen)], None, among, host, frozenset(allowed))
    assert (placed.ends, bool(placed.note)) == (chosen, is_noted)
    assert (placed.cpus, placed.text) == (frozenset(chosen), ",".join(map(str, chosen)))


@pytest.mark.parametrize(
    ("ends", "host", "allowed", "note"),
    [
        (PAIR, facts({3}), {0, 1, 2, 4}, "no two CPUs are isolated on this host: CPUs 2,4 were chosen among the "),
        (PAIR, facts(), {1}, "no two CPUs are isolated on this host: CPU 1 was chosen among the allowed ones"),
        (
            THREE,
            facts({1, 2}, cores=()),
            ALL,
            "no three CPUs are isolated on this host: CPUs 5-7 were chosen among the allowed ones (--cpus C,A,B names ",
        ),
    ],
)
def test_a_choice_that_nobody_asked_for_is_told(ends: Ends, host: CpuFacts, allowed: set[int], note: str) -> None:
    assert place(ends, None, None, host, frozenset(allowed)).note.startswith(note)


@pytest.mark.parametrize(
    ("ends", "asked", "allowed", "said"),
    [
        (PAIR, {"cpus": "1"}, ALL, "expected the sender's CPU and the receiver's, like 2,3"),
        (PAIR, {"cpus": "0-1"}, ALL, "like 2,3"),
        (PAIR, {"cpus": "0,1,2"}, ALL, "like 2,3"),
        (PAIR, {"cpus": "0,\u0661"}, ALL, "like 2,3"),
        (PAIR, {"cpus": "0,8"}, ALL, "CPU 8 is not online"),
        (PAIR, {"cpus": "0,99999999999999999999"}, ALL, "like 2,3"),
        (PAIR, {"among": "60"}, ALL, "none of the CPUs to choose from is online (name two with --cpus S,R)"),
        (PAIR, {"among": "x"}, ALL, "not a CPU list"),
        (THREE, {"cpus": "1,2"}, ALL, "expected the client's CPU and those of both servers, like 2,3,4"),
        (THREE, {"cpus": "1,2,3,4"}, ALL, "expected the client's CPU and those of both servers"),
        (THREE, {"cpus": "1-3"}, ALL, "expected the client's CPU"),
        (THREE, {"cpus": "1,2,9"}, ALL, "CPU 9 is not online on this host"),
        (THREE, {"among": "0,1,60"}, ALL, "here 2 can be chosen"),
        (THREE, {"cpus": "1,2,2"}, ALL, "all three threads spin, so each needs a CPU of its own"),
        (
            THREE,
            {},
            {1, 2},
            "a client and two servers spin, each on a CPU of its own: here 2 can be chosen "
            "(name three with --cpus C,A,B, or say --simulate, which needs none)",
        ),
    ],
)
def test_cpus_that_cannot_be_are_refused(
    ends: Ends, asked: dict[str, str], allowed: Collection[int], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        place(ends, asked.get("cpus"), asked.get("among"), facts(), frozenset(allowed))
    assert said in str(caught.value)


def test_the_cpus_that_were_asked_for() -> None:
    assert place(PAIR, "3,2", None, facts(), ALL) == Placed((3, 2))
    assert place(THREE, "4,2,3", None, facts(), ALL) == Placed((4, 2, 3))
    assert asked_cpus("2,3", "5") == {2, 3}
    assert asked_cpus(None, "5-6") == {5, 6}
    assert asked_cpus(None, None) == asked_cpus("x", None) == frozenset()
