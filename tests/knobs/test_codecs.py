"""Kernel text <-> value."""

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunectl.cpulist import Isolcpus
from tunectl.errors import UsageError
from tunectl.host.sysroot import Sysroot
from tunectl.knobs import KNOBS
from tunectl.knobs.codecs import CHOICE, CPULIST, CPUMASK, INVERTED, ISOLCPUS, RESUME_LATENCY, SWITCH, satisfies
from tunectl.knobs.drivers.pseudofile import read_value
from tunectl.model import Match, Scope, State

SCOPE = Scope(frozenset(range(4)), frozenset(range(4)), frozenset({2, 3}), 4)


def test_a_choice_is_the_bracketed_word() -> None:
    assert CHOICE.decode("always madvise [never]\n") == "never"
    assert CHOICE.decode("performance\n") == "performance"
    for nothing in ("", "\n", "always [] never"):
        with pytest.raises(ValueError, match="no word is chosen"):
            CHOICE.decode(nothing)


def test_a_mask_with_leading_zeros_is_the_same_set() -> None:
    assert CPUMASK.decode("00000000,0000000f\n") == CPUMASK.decode("f") == frozenset({0, 1, 2, 3})
    assert CPUMASK.encode(frozenset({0, 33})) == "2,00000001"


def test_no_turbo_is_the_inverse_of_boost() -> None:
    assert INVERTED.decode("1") is False
    assert INVERTED.encode(True) == "0"
    assert SWITCH.encode(True) == "1"


def test_resume_latency_zero_is_no_constraint_and_na_is_none_at_all() -> None:
    assert RESUME_LATENCY.decode("0\n") == math.inf
    assert RESUME_LATENCY.decode("n/a\n") == 0
    assert RESUME_LATENCY.encode(0) == "n/a"
    assert RESUME_LATENCY.show(math.inf) == "no constraint"


def test_words_stand_for_this_hosts_sets() -> None:
    assert CPULIST.want("housekeeping", SCOPE) == frozenset({0, 1})
    assert CPULIST.want("2-N", SCOPE) == frozenset({2, 3})
    assert ISOLCPUS.want("isolated", SCOPE) == Isolcpus(frozenset({"managed_irq", "domain"}), frozenset({2, 3}))


@pytest.mark.parametrize("value", [5, True, "3-1", "9", "x"])
def test_a_bad_cpu_set_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        CPULIST.want(value, SCOPE)


def test_isolcpus_without_domain_does_not_satisfy() -> None:
    desired = ISOLCPUS.want("isolated", SCOPE)
    assert satisfies(Match.COVERS, ISOLCPUS.decode("domain,managed_irq,2-3"), desired)
    assert not satisfies(Match.COVERS, ISOLCPUS.decode("managed_irq,2-3"), desired)
    assert not satisfies(Match.COVERS, ISOLCPUS.decode("managed_irq,domain,3"), desired)
    assert satisfies(Match.COVERS, ISOLCPUS.decode("managed_irq,domain,1-3"), desired)


def test_an_empty_set_is_within_nothing() -> None:
    assert not satisfies(Match.WITHIN, frozenset(), frozenset({0}))
    assert satisfies(Match.WITHIN, frozenset({0}), frozenset({0, 1}))
    assert not satisfies(Match.WITHIN, frozenset({0, 2}), frozenset({0, 1}))


@given(st.frozensets(st.integers(0, 2000), min_size=1))
def test_sets_survive_the_kernels_text(cpus: frozenset[int]) -> None:
    assert CPULIST.decode(CPULIST.encode(cpus)) == cpus
    assert CPUMASK.decode(CPUMASK.encode(cpus)) == cpus


LONG = ["9" * 5000, "-" + "9" * 5000, "9" * 400, "f" * 5000, "0-" + "9" * 5000, "x" * 5116, f"a [{'x' * 5000}]"]
ODD = ["", "\n", "9" * 20, "9" * 21, "[", "[]", "1_0", "nan", "inf", "1e400", "0x" + "f" * 400, "N", "all", "0-N:1/0"]
HOSTILE = (
    st.text(max_size=40)
    | st.sampled_from([*LONG, *ODD, ",".join("9" * 900)])
    | st.binary(max_size=40).map(lambda data: data.decode("utf-8", "backslashreplace"))
)


@given(HOSTILE)
def test_whatever_a_file_holds_is_a_value_or_refused_in_a_short_line(text: str) -> None:
    """Of every codec of the table: what it takes can be shown and written, and what it refuses is one of two errors."""
    for name, knob in KNOBS.items():
        found = read_value(Shown(text), "x", knob.codec)
        assert found.state in (State.READ, State.UNREADABLE), name
        assert len(found.reason) < 500, name
        if found.state is State.READ:
            shown = str(knob.codec.show(found.value))
            assert len(shown) < (500 if isinstance(found.value, str) else 12_000), name
            knob.codec.encode(found.value)


@given(st.none() | st.booleans() | st.integers() | st.floats() | HOSTILE)
def test_whatever_a_host_file_asks_for_is_a_value_or_refused(value: object) -> None:
    for knob in KNOBS.values():
        with suppress(ValueError, UsageError):
            knob.codec.show(knob.codec.want(value, SCOPE))


class Shown(Sysroot):
    """A host all of whose attributes hold one text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def read_value(self, path: str) -> str:
        """The text."""
        return self.text


@pytest.mark.parametrize("name", list(KNOBS))
def test_every_row_says_why_and_from_where(name: str) -> None:
    knob = KNOBS[name]
    assert len(knob.why) > 30
    assert knob.source
    assert all(path.startswith(("/", "ethtool netlink: ")) or path.endswith("=") for path in knob.driver.describe())
    assert set(knob.after) <= set(KNOBS)
