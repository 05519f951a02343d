"""The pages of the probe that say why, when, and whether the account adds up; and the self-test's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.probe.samples import cpu_result, typed_result
from tunectl.report.causes import MOST_ROWS, Group, grouped
from tunectl.report.text import render

from .documents import body, document


def page(name: str, width: int = 80, **changed: Any) -> list[str]:
    return render(document(name, **changed), width=width).splitlines()


def cells(lines: list[str], ending: str) -> list[list[str]]:
    return [line.split() for line in lines if line.endswith(ending)]


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


def test_what_the_hypervisor_took_is_beside_the_table_and_no_more_than_it_can_be() -> None:
    cpus = body("probe.jitter")["cpus"]
    cpus[0]["counters"]["steal_ns"] = 30_000_000
    text = " ".join(" ".join(page("probe.jitter", cpus=cpus)).split())
    assert "at most 13 µs of what is not the kernel or not known was the hypervisor's" in text
    assert "it kept these CPUs for 30 ms in all (steal)" in text
    assert "the hypervisor's" not in " ".join(page("probe.jitter"))


def test_what_cgroups_throttled_is_beside_the_table_and_no_more_than_is_not_known() -> None:
    cpus = body("probe.jitter")["cpus"]
    known = row("throttle", "throttled: cpu.max of its control group", 1, 3_000_000)
    cpus[0]["causes"] += [known, row("unknown", "not known", 1, 5_000_000)]

    def said(throttled_ms: int) -> str:
        return " ".join(" ".join(page("probe.jitter", cpus=cpus, throttled_ns=throttled_ms * 10**6)).split())

    assert "at most 1 ms of what is not known was throttling" in said(4)
    assert "the probe's control groups were throttled for 40 ms in all (cpu.stat)" in said(40)
    assert "at most 5 ms of what is not known" in said(40)
    assert "at most 0 ns of what is not known" in said(2)
    assert "throttled for" not in said(0)


def test_how_far_an_event_may_be_off_is_said_where_it_may_be_at_all() -> None:
    asked = {"method": "trace", "reason": "", "event_cost_ns": None, "clock": "mono_raw", "clock_error_ns": 31.5}
    said = "by its clock mono_raw, an event may have been 31.5 ns earlier or later"
    assert said in " ".join(" ".join(page("probe.jitter", attribution=asked)).split())
    exact = asked | {"clock": "x86-tsc", "clock_error_ns": 0.0}
    assert "by its clock" not in " ".join(" ".join(page("probe.jitter", attribution=exact)).split())


def test_without_a_trace_it_says_why_and_points_at_the_counters() -> None:
    asked = {"method": "counters", "reason": "tracefs is not mounted"}
    lines = page("probe.jitter", attribution=asked)
    assert "causes: tracefs is not mounted; the counters below have to do" in lines
    assert not any("longest" in line and "cause," in line for line in lines)
    assert not any(line.startswith("causes") for line in page("probe.jitter", attribution=None))


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
