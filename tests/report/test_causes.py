"""The pages of the probe that say why, when, and whether the account adds up; and the self-test's."""

from __future__ import annotations

from typing import Any

import pytest

from tunectl.report.text import render

from .documents import body, document


def page(name: str, width: int = 80, **changed: Any) -> list[str]:
    return render(document(name, **changed), width=width).splitlines()


def cells(lines: list[str], ending: str) -> list[list[str]]:
    return [line.split() for line in lines if line.endswith(ending)]


def test_the_table_is_over_all_cpus_the_longest_total_first() -> None:
    lines = page("probe.jitter")
    head = next(at for at, line in enumerate(lines) if line.split() == ["gaps", "total", "longest", "cause"])
    assert [line.split()[0] for line in lines[head + 1 : head + 5]] == ["5,008", "4", "5", "19"]
    assert " ".join(lines[head + 1].split()) == "5,008 7ms 1.92ms local timer + softirq TIMER + thread kworker/3:1"
    assert "tracing an event takes 81.2 ns at least" in " ".join(" ".join(lines).split())
    assert any("3 events found no room in the trace buffer" in line for line in lines)


def test_the_same_cause_on_two_cpus_is_one_row() -> None:
    cpus = body("probe.jitter")["cpus"]
    cpus[1]["causes"] = [{"cause": "local timer", "count": 2, "total_ns": 2000, "max_ns": 90000}]
    lines = page("probe.jitter", cpus=cpus)
    assert cells(lines, "  local timer") == [["7", "20µs", "90µs", "local", "timer"]]


def test_many_causes_are_cut_short_and_summed_up() -> None:
    cpus = body("probe.jitter")["cpus"][:1]
    cpus[0]["causes"] = [{"cause": f"irq {n}", "count": 1, "total_ns": 1000 + n, "max_ns": 1000} for n in range(15)]
    lines = page("probe.jitter", cpus=cpus)
    assert any("and 3 more causes, 3" in line for line in lines)
    assert not cells(lines, "  irq 0")


def test_without_a_trace_it_says_why_and_points_at_the_counters() -> None:
    asked = {"method": "counters", "reason": "tracefs is not mounted"}
    lines = page("probe.jitter", attribution=asked)
    assert "causes: tracefs is not mounted; the counters below have to do" in lines
    assert not any("longest" in line and "cause" in line for line in lines)
    assert not any(line.startswith("causes") for line in page("probe.jitter", attribution=None))


def test_periods_are_named() -> None:
    text = " ".join(" ".join(page("probe.jitter")).split())
    assert "CPU 3, every 1.000 ms: 5,000 gaps, 1.4 µs each on average: a timer tick at HZ=1000 - local timer" in text


@pytest.mark.parametrize(("ppm", "said"), [(0.2, "1 ppm"), (-1700.4, "1,700 ppm")])
def test_the_account_is_shown(ppm: float, said: str) -> None:
    cpus = body("probe.jitter")["cpus"][:1]
    cpus[0]["conservation_ppm"] = ppm
    assert f"loops and gaps add up to the run's length within {said}" in page("probe.jitter", cpus=cpus)


def test_the_core_clock_is_shown_on_request() -> None:
    made = document("probe.jitter")
    assert "core clock" not in render(made, width=80)
    verbose = type(made)(made.name, made.host, made.at, made.body, made.findings, 1)
    assert "CPU 3: core clock 3.500 GHz before, 3.499 GHz after" in render(verbose, width=80)


def test_selftest_rows_and_reasons() -> None:
    lines = page("probe.selftest")
    assert lines[0] == "CPU 3, gaps over 154 ns: not passed"
    assert lines[1] == "interruptions from 912 ns on are vouched for on this host"
    assert [" ".join(row) for row in cells(lines, "  20 us")] == ["failed 200 199 0 1 39.4µs 30.2µs 20 us"]
    assert any(line.startswith("20 us: 1 of 200 were not found") for line in lines)
    assert any(line.startswith("100 us: SCHED_FIFO is not allowed") for line in lines)
    assert page("probe.selftest", passed=True)[0] == "CPU 3, gaps over 154 ns: every known interruption was found"
    assert page("probe.selftest", vouched_ns=None)[1] == "no length is vouched for on this host"
