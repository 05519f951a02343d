"""All checks of one host together: what they advise is one thing, and following it leaves nothing to advise."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.checking.fake_kernel import Process
from tests.checks.conftest import Judge
from tests.checks.test_threads_check import SYSTEM, cpuset, of_unit
from tests.checks.test_trading_check import BOOK, FEED, FILES, ORDERBOOK, RX, quiet
from tests.trees import write
from tunectl.model import Finding, Trading

pytestmark = pytest.mark.slow
DECLARED = (FEED, BOOK)


def advised(findings: Iterable[Finding]) -> dict[str, set[str]]:
    """{thread: what is to be typed of its CPUs, and of its scheduling}."""
    told = defaultdict(set)
    for command in (command for finding in findings for command in finding.fix.commands):
        for step in command.steps:
            if {"taskset", "chrt"} & set(step.words):
                told[step.words[-1] + step.words[1]].add(" ".join(step.words))
    return told


def everything(
    judge: Judge, host: Path, *processes: Process, declared: tuple[Trading, ...] = DECLARED
) -> list[Finding]:
    checks = ("test_threads.py", "test_trading.py", "test_trading_window.py", "test_cores.py")
    isolated = {2, 3, *(trading.cpu for trading in declared)}
    return [
        finding
        for check in checks
        for finding in judge(host, isolated, check, trading=declared, processes=processes).values()
    ]


@pytest.mark.parametrize(
    ("astray", "told"),
    [
        (replace(RX, cpu=3, allowed="3"), {"700taskset": {"sudo taskset -cp 2 700"}}),
        (replace(RX, cpu=3, allowed="0-3"), {"700taskset": {"sudo taskset -cp 2 700"}}),
        (replace(RX, cpu=1, allowed="0-1"), {"700taskset": {"sudo taskset -cp 2 700"}}),
        (
            replace(RX, cpu=3, allowed="3", rt_priority=98),
            {"700taskset": {"sudo taskset -cp 2 700"}, "700chrt": {"sudo chrt -f -p 50 700"}},
        ),
        (replace(RX, policy=0, rt_priority=0), {"700chrt": {"sudo chrt -f -p 50 700"}}),
    ],
    ids=["on another's CPU", "anywhere", "starves housekeeping", "of another priority too", "ordinary"],
)
def test_a_declared_thread_is_sent_home_by_every_check(
    lab4: Path, judge: Judge, astray: Process, told: dict[str, set[str]]
) -> None:
    assert advised(everything(judge, quiet(lab4), astray, ORDERBOOK)) == told


def test_on_one_core_who_was_declared_stays(xeon: Path, judge: Judge) -> None:
    """The one that nobody declared goes; of two declared ones, a declaration changes."""
    beside = replace(ORDERBOOK, cpu=18, allowed="18", busy=1.0)
    findings = everything(judge, xeon, RX, beside, declared=(FEED, BOOK._replace(cpu=18)))
    assert advised(findings) == {}
    assert [finding.target for finding in findings if finding.knob == "check.spinners_apart" and finding.fix]
    guest = replace(beside, comm="backtest", policy=1, rt_priority=1)
    told = advised(everything(judge, xeon, RX, guest, declared=(FEED, BOOK._replace(cpu=18, command="other"))))
    assert told == {"701taskset": {"sudo taskset -cp 0-1,4-17,19-31 701"}, "701chrt": {"sudo chrt -o -p 0 701"}}


def test_a_group_that_a_declared_thread_lives_in_keeps_its_cpu(lab4: Path, judge: Judge) -> None:
    """Its other threads go: first the group's CPUs, for in a cpuset taskset(1) moves nothing out."""
    path = "system.slice/feed.service"
    cpuset(lab4, path, "2-3")
    write(lab4, f"{SYSTEM}/feed.service.d/cpus.conf", "[Service]\nAllowedCPUs=2-3\n")
    engine = replace(RX, files={**FILES, **of_unit(path)})
    helper = Process(720, "logger", cpu=3, allowed="2-3", visits_per_s=40, files=of_unit(path))
    findings = everything(judge, quiet(lab4), engine, helper, declared=(FEED,))
    fix = next(str(finding.fix) for finding in findings if finding.target == "check.movable_threads[3]")
    assert fix.startswith("sudo systemctl set-property --runtime feed.service AllowedCPUs=0-2; ")
    assert "; sudo taskset -cp 0-1 720;" in fix
    assert advised(findings) == {"720taskset": {"sudo taskset -cp 0-1 720"}}


@pytest.mark.parametrize(
    ("where", "asked", "lasts"),
    [(SYSTEM, "0 2", True), (SYSTEM, "0-1", False), ("run/systemd/transient", "2", False)],
    ids=["by its unit", "by another hand", "until it stops"],
)
def test_who_is_pinned_by_its_unit_is_kept_off_at_its_next_start(
    lab4: Path, judge: Judge, where: str, asked: str, lasts: bool
) -> None:
    write(lab4, f"{where}/backtest.service", f"[Service]\nExecStart=/opt/backtest\nCPUAffinity={asked}\n")
    pinned = Process(720, "backtest", cpu=2, allowed="2", files=of_unit("system.slice/backtest.service"))
    finding = judge(lab4, {2, 3}, "test_threads.py", processes=[pinned])["check.movable_threads[2]"]
    assert finding.fix.commands[0].steps[0].words[-2] == "0-1"
    assert ("/backtest.service:3" in str(finding.fix)) is lasts
