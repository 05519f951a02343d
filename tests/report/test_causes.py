"""The pages of the probe that say why, when, and whether the account adds up; and the self-test's."""

from typing import Any

import pytest

from tests.probe.samples import cpu_result, typed_result
from tunectl.report.causes import MOST_ROWS, Group, grouped


def row(kind: str, name: str, count: int = 1, total_ns: int = 1000) -> dict[str, Any]:
    return {"cause": name, "kind": kind, "name": name, "count": count, "total_ns": total_ns, "max_ns": total_ns}


def of(*rows: dict[str, Any]) -> list[Group]:
    return grouped(typed_result(*(cpu_result(causes=[one]) for one in rows)))


def test_what_led_is_one_row_over_all_cpus_and_threads_of_a_cpu_are_one_name() -> None:
    timer = row("timer", "local timer")
    assert [(one.cause, one.count) for one in of(timer, timer, row("irq", "irq 1 a/2"))] == [
        ("local timer", 2),
        ("irq 1 a/2", 1),
        ("all gaps", 3),
    ]
    made = of(*(row("thread", f"thread {name}") for name in ("kworker/3:1", "kworker/u8:2-ev", "ksoftirqd/3", "a/b")))
    assert [(one.cause, one.count) for one in made[:2]] == [("thread kworker", 2), ("thread a/b", 1)]
    assert grouped(typed_result(cpu_result(causes=[]), cpu_result())) == []


@pytest.mark.parametrize("names", [1, 18, 19, 20, 21, 60, 3000])
def test_twenty_rows_hold_all_of_it(names: int) -> None:
    kinds = ("irq", "thread", "work", "softirq", "unknown")
    rows = [row(kinds[n % 5], f"{kinds[n % 5]} n{n}x", n + 1, 1000 + 7 * n) for n in range(names)]
    *shown, whole = of(*rows)
    assert len(shown) == names if names < MOST_ROWS else 15 <= len(shown) < MOST_ROWS
    assert whole.count == sum(one.count for one in shown) == sum(one["count"] for one in rows)
    assert whole.total_ns == sum(one.total_ns for one in shown) == sum(one["total_ns"] for one in rows)
    assert round(sum(one.percent for one in shown), 6) == whole.percent == 100
    others = [one.cause for one in shown if " other " in one.cause]
    assert bool(others) is (names >= MOST_ROWS)
    assert all(int(one.split()[0]) > 1 for one in others)
