"""How far a counter rose: it wraps at the kernel's own width, and a fall from anywhere else is a new beginning."""

import pytest

from tunectl.host.counters import INTERRUPTS, THROTTLES, rise, rises
from tunectl.host.interrupts import arrivals, parse_interrupts


@pytest.mark.parametrize(
    ("then", "now", "bits", "expected"),
    [
        (5, 5, INTERRUPTS, 0),
        (5, 8, INTERRUPTS, 3),
        (4294967290, 3, INTERRUPTS, 9),
        (4294967295, 0, INTERRUPTS, 1),
        (4294967290, 3, THROTTLES, None),
        (2**64 - 1, 1, THROTTLES, 2),
        (5000, 0, INTERRUPTS, None),
        (2_000_000_000, 7, INTERRUPTS, None),
        (2**40, 3, INTERRUPTS, None),
    ],
)
def test_a_wrap_is_told_from_a_new_beginning(then: int, now: int, bits: int, expected: int | None) -> None:
    assert rise(then, now, bits) == expected


def test_only_members_of_both_looks_have_a_difference() -> None:
    assert rises({"a": 1, "gone": 9, "anew": 7}, {"a": 4, "came": 9, "anew": 2}) == {"a": 3}


def test_arrivals_are_of_each_cpu_and_row() -> None:
    before = parse_interrupts(" CPU0 CPU2\n 5: 4294967290 1 x\n 6: 100 3 y\nERR: 7\n")
    after = parse_interrupts(" CPU0 CPU1 CPU2\n 5: 3 900 1 x\n 6: 2 900 5 y\n 7: 0 900 4 new\nERR: 9\n")
    assert [arrivals(before, after, cpu) for cpu in (0, 1, 2)] == [{"5": 9, "6": 2}, {}, {"6": 2, "7": 4}]
