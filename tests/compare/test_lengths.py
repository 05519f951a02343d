"""Every question to Lengths against the plain sum it stands for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunectl.probe.lengths import Lengths

groups = st.lists(st.tuples(st.integers(1, 60).map(float), st.integers(1, 5)), max_size=20)
moments = st.floats(0, 70)


@given(groups, moments)
def test_tails(found: list[tuple[float, int]], ns: float) -> None:
    lengths, every = Lengths(found), [length for length, count in found for _ in range(count)]
    assert lengths.count == len(every)
    assert lengths.longest == max(every, default=0)
    assert lengths.longer(ns) == sum(length > ns for length in every)
    assert lengths.waited(ns) == pytest.approx(sum(max(length - ns, 0) for length in every), abs=1e-6)
    assert lengths.waited_squares(ns) == pytest.approx(sum(max(length - ns, 0) ** 2 for length in every), abs=1e-4)


@given(groups.filter(bool), st.data())
def test_nth_longest(found: list[tuple[float, int]], data: st.DataObject) -> None:
    lengths = Lengths(found)
    every = sorted((length for length, count in found for _ in range(count)), reverse=True)
    rank = data.draw(st.integers(1, len(every)))
    assert lengths.nth_longest(rank) == every[rank - 1]
    assert lengths.nth_longest(len(every) + 5) == every[-1]


@given(groups, st.floats(0, 2000))
def test_the_wait_that_a_budget_buys(found: list[tuple[float, int]], budget: float) -> None:
    lengths = Lengths(found)
    wait = lengths.wait_exceeded(budget)
    assert 0 <= wait <= lengths.longest
    assert lengths.waited(wait) == pytest.approx(min(budget, lengths.waited(0)), abs=1e-6)
    assert wait == 0 or lengths.waited(0) > budget
