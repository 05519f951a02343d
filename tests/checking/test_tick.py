"""The tick, judged by counts: from two readings around a spinner, or from the probe's own."""

from typing import Any

import pytest

from tests.probe.samples import cpu_result, typed_result
from tunectl.checking.tick import Spun, counted, judge_probe, settle, with_longer_look
from tunectl.checking.window import Counters, Window
from tunectl.host.interrupts import parse_interrupts
from tunectl.host.timers import parse_timer_list
from tunectl.model import Finding, Outcome


def counters(at: float, *ticks: int) -> Counters:
    """What CPUs 2 and 3 have taken so far."""
    row = " ".join(str(n) for n in ticks)
    return Counters(at, parse_interrupts(f"     CPU2 CPU3\nLOC: {row} Local timer interrupts\n"), {}, {}, "tsc")


def test_each_cpu_has_a_verdict_of_its_own() -> None:
    """A POSIX CPU timer on one of two CPUs blames that one."""
    before, after = counters(10.0, 500, 500), counters(13.0, 500 + 3 * 190, 503)
    spun = {2: Spun(2.9), 3: Spun(2.9, "thread rx of unit feed.service")}
    two, three = counted(Window(before, after), spun)
    bad, good = settle(two, ["engine (pid 7) has a POSIX CPU timer"]), settle(three)
    assert (two.cpu, two.ticks, bad.outcome, bad.observed) == (2, 570, Outcome.DRIFTED, 190.0)
    assert (three.cpu, three.ticks, good.outcome) == (3, 3, Outcome.COMPLIANT)


def test_where_nothing_spun_it_says_for_how_long() -> None:
    (count,) = counted(Window(counters(0.0, 0, 0), counters(2.0, 0, 0)), {2: Spun(0.1)})
    assert settle(count).outcome == Outcome.UNREADABLE
    assert settle(count).fix  # what blocks a GO has a step


def probed(cpu: int, ticks: int, stolen_s: float = 0.0, **changes: Any) -> dict[str, Any]:
    irq = {"LOC": ticks, "42": 900}
    values = {"duration_ns": 5_000_000_000, "stolen_ns": int(stolen_s * 1e9), "counters": {"irq": irq}}
    return cpu_result(cpu, **{**values, **changes})


def test_the_probe_is_such_a_spinner() -> None:
    """Its own counters, from its first turn to its last; a CPU without nohz_full is not judged."""
    document = typed_result(probed(1, 5000), probed(2, 950), probed(3, 6), probed(4, 0, stolen_s=4.9))
    found = {one.instance: one for one in judge_probe(document, frozenset({2, 3, 4}))}
    assert {cpu: one.outcome.value for cpu, one in found.items()} == {
        "2": "drifted",
        "3": "compliant",
        "4": "unreadable",
    }
    assert found["2"].observed == 190.0


def test_an_arm_probe_counts_its_own_timer() -> None:
    row = probed(2, 0, duration_ns=10**9, counters={"irq": {"11": 250}})
    document = typed_result(row, irq_descriptions={"11": "GICv3  30 Level     arch_timer"})
    assert judge_probe(document, frozenset({2}))[0].outcome == Outcome.DRIFTED


def test_a_probe_without_counters_proves_nothing() -> None:
    row = probed(2, 0, duration_ns=10**9, counters=None)
    assert judge_probe(typed_result(row), frozenset({2}))[0].outcome == Outcome.UNREADABLE
    hidden = ["/proc/interrupts could not be read: interrupts were not counted"]
    none_came = row | {"counters": {"irq": {}}}
    assert judge_probe(typed_result(none_came, warnings=hidden), frozenset({2}))[0].outcome == Outcome.UNREADABLE
    assert judge_probe(typed_result(none_came), frozenset({2}))[0].outcome == Outcome.COMPLIANT


def test_a_longer_look_answers_what_was_open_and_hides_no_drift() -> None:
    def one(cpu: str, outcome: Outcome) -> Finding:
        return Finding("check.tick_off", cpu, outcome)

    short = [one("2", Outcome.UNREADABLE), one("3", Outcome.DRIFTED), one("4", Outcome.COMPLIANT)]
    other = Finding("check.ipis", "2", Outcome.UNREADABLE)
    longer = [one("2", Outcome.COMPLIANT), one("3", Outcome.COMPLIANT), one("4", Outcome.DRIFTED)]
    outcomes = [found.outcome for found in with_longer_look([*short, other], longer)]
    assert outcomes == [Outcome.COMPLIANT, Outcome.DRIFTED, Outcome.DRIFTED, Outcome.UNREADABLE]
    assert with_longer_look(short, [one("4", Outcome.UNREADABLE)]) == short


@pytest.mark.parametrize(
    ("short", "longer", "wanted"),
    [
        (("compliant", None), ("waived", None), "compliant"),  # the longer look told nothing
        (("waived", None), ("compliant", None), "compliant"),
        (("waived", None), ("waived", 190.0), "the second"),
        (("compliant", None), ("waived", 190.0), "the second"),
        (("waived", 190.0), ("compliant", None), "the first"),
        (("waived", None), ("unreadable", None), "the first"),
    ],
)
def test_a_waiver_hides_neither_what_was_seen_nor_what_was_proved(
    short: tuple[str, float | None], longer: tuple[str, float | None], wanted: str
) -> None:
    """A waiver makes of a drift and of what is unknown the same outcome."""
    first, second = (Finding("check.tick_off", "2", Outcome(outcome), seen) for outcome, seen in (short, longer))
    (found,) = with_longer_look([first], [second])
    assert found is {"the first": first, "the second": second}.get(wanted, found)
    assert wanted.startswith("the ") or found.outcome == wanted


LIST = """Timer List Version: v0.10
cpu: 1
 clock 0:
active timers:
 #0: <00000000a>, tick_sched_timer, S:01
 # expires at 100-100 nsecs [in 3999999 to 3999999 nsecs]
cpu: 2
 clock 0:
active timers:
 #0: <00000000b>, perf_swevent_hrtimer, S:01
 # expires at 100-100 nsecs [in 1000000 to 1000000 nsecs]
 #1: <00000000c>, hrtimer_wakeup, S:01, whoever/12
 # expires at 100-100 nsecs [in 9000000000 to 9000050000 nsecs]
Tick Device: mode:     1
"""


def test_the_list_of_timers_says_whose_they_are() -> None:
    armed = parse_timer_list(LIST)
    assert [(one.cpu, one.function, one.in_ns) for one in armed] == [
        (1, "tick_sched_timer", 3999999),
        (2, "perf_swevent_hrtimer", 1000000),
        (2, "hrtimer_wakeup", 9000000000),
    ]
