"""check.tick_off: the tick under a spinner, where nohz_full is in force."""

import shutil
from pathlib import Path

import pytest

from tests.checking.fake_kernel import Process, Row
from tests.checks.conftest import Judge
from tunectl.model import Outcome, Trading

CHECK = "test_tick.py"
SPINNING = frozenset({2, 3})


def ticks(per_s: dict[int, float]) -> list[Row]:
    return [Row("LOC", "Local timer interrupts", per_s)]


def test_a_tick_that_stays_is_found(lab4: Path, judge: Judge) -> None:
    found = judge(lab4, {2, 3}, CHECK, rows=ticks({0: 250.0, 2: 250.0}), busy_cpus=SPINNING)
    hit = found["check.tick_off[2]"]
    assert hit.outcome == Outcome.DRIFTED
    assert "fair server" not in hit.reason + str(hit.fix)  # this kernel has none
    assert hit.observed == 250.0
    assert found["check.tick_off[3]"].outcome == Outcome.COMPLIANT


@pytest.mark.parametrize(("runtime", "said"), [("50000000", True), ("0", False), (None, None)])
def test_the_fair_server_is_named_where_it_may_bring_the_tick(
    xeon: Path, judge: Judge, runtime: str | None, said: bool | None
) -> None:
    """By what this kernel has, not by its version."""
    server = xeon / "sys/kernel/debug/sched/fair_server"
    (server / "cpu2/runtime").write_text(f"{runtime}\n") if runtime else shutil.rmtree(xeon / "sys/kernel/debug")
    hit = judge(xeon, {2, 3}, CHECK, rows=ticks({2: 250.0}), busy_cpus=SPINNING)["check.tick_off[2]"]
    assert hit.outcome == Outcome.DRIFTED
    assert ("fair server" in hit.reason) is (said is not False)
    assert ("; then: echo 0 | sudo tee /sys/kernel/debug/sched/fair_server/cpu2/runtime" in str(hit.fix)) is (
        said is True
    )
    assert ("see as root whether a fair server serves there" in str(hit.fix)) is (said is None)


def test_a_boot_whose_tick_never_stops_is_the_cause(lab4: Path, judge: Judge) -> None:
    line = (lab4 / "proc/cmdline").read_text().rstrip()
    for word, is_cause in {"nohz=off": True, "nohz=off nohz=on": False}.items():
        (lab4 / "proc/cmdline").write_text(f"{line} {word}\n")
        found = judge(lab4, {2, 3}, CHECK, rows=ticks({2: 250.0}), busy_cpus=SPINNING)
        hit = found["check.tick_off[2]"]
        assert hit.outcome == Outcome.DRIFTED
        assert ("this boot had nohz=off" in hit.reason) is is_cause
        assert str(hit.fix).startswith("take nohz=off out of the kernel command line") is is_cause
        assert found["check.tick_off[3]"].outcome == Outcome.COMPLIANT


def test_the_second_thread_is_named(lab4: Path, judge: Judge) -> None:
    other = Process(720, "backup", cpu=2, allowed="2", busy=0.4)
    found = judge(lab4, {2}, CHECK, rows=ticks({2: 1000.0}), processes=[other], busy_cpus=SPINNING)
    assert "backup (pid 720)" in found["check.tick_off[2]"].reason


def test_an_arm_timer_counts_as_the_tick(lab4: Path, judge: Judge) -> None:
    timer = Row("11", "GICv3  30 Level     arch_timer", {2: 250.0})
    found = judge(lab4, {2, 3}, CHECK, rows=[timer], busy_cpus=SPINNING)
    assert found["check.tick_off[2]"].outcome == Outcome.DRIFTED
    assert found["check.tick_off[3]"].outcome == Outcome.COMPLIANT


def test_a_stopped_tick_is_silent(lab4: Path, judge: Judge) -> None:
    found = judge(lab4, {2, 3}, CHECK, rows=ticks({0: 250.0, 2: 1.0, 3: 1.0}), busy_cpus=SPINNING)
    assert {finding.outcome for finding in found.values()} == {Outcome.COMPLIANT}


def test_an_idle_cpu_proves_nothing(lab4: Path, judge: Judge) -> None:
    found = judge(lab4, {2}, CHECK, rows=ticks({0: 250.0}))
    assert found["check.tick_off[2]"].outcome == Outcome.UNREADABLE


def test_without_nohz_full_there_is_nothing_to_check(lab4: Path, judge: Judge) -> None:
    (lab4 / "sys/devices/system/cpu/nohz_full").write_text("                (null)\n")
    found = judge(lab4, {2, 3}, CHECK)
    assert {finding.outcome for finding in found.values()} == {Outcome.UNSUPPORTED}


ENGINE = Trading("engine", "", "engine", "", 2, "other", 0, False, ())


def test_a_declared_thread_is_the_spinner(lab4: Path, judge: Judge) -> None:
    """Its own ticks are judged, it is not blamed for being there, and who spun is said."""
    spinner = Process(700, "engine", cpu=2, allowed="2", busy=1.0)
    spinning = {"trading": [ENGINE], "processes": [spinner], "busy_cpus": SPINNING}
    (found,) = judge(lab4, {2}, CHECK, rows=ticks({0: 250.0, 2: 1.0}), **spinning).values()
    assert found.outcome == Outcome.COMPLIANT
    assert "engine (tid 700, declared as engine)" in found.reason
    (found,) = judge(lab4, {2}, CHECK, rows=ticks({0: 250.0, 2: 250.0}), **spinning).values()
    assert found.outcome == Outcome.DRIFTED
    assert "shared the CPU" not in found.reason


def test_a_declared_thread_that_mostly_sleeps_proves_nothing(lab4: Path, judge: Judge) -> None:
    """And nothing of ours goes there, which is said with what would."""
    sleeper = Process(700, "engine", cpu=2, allowed="2", busy=0.01, visits_per_s=100)
    rows = ticks({0: 250.0, 2: 1.0})
    (found,) = judge(lab4, {2}, CHECK, trading=[ENGINE], rows=rows, processes=[sleeper]).values()
    assert found.outcome == Outcome.UNREADABLE
    assert "--intrude" in str(found.fix)
