"""What was asked for is what runs: the CPU of each thread, and the threshold of a gap, on this machine's own kernel."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tunectl.probe.explain import explained

from .conftest import GAPS_S, Probe
from .running import ENDED_BY_TEST_S, Thread, threads, until_measuring, until_named
from .test_jitter import gaps_ns, skip_unless_fifo

pytestmark = [pytest.mark.slow, pytest.mark.pins]


@pytest.fixture
def running(program: Path) -> Iterator[Any]:
    """Starts the program with these arguments; it is ended after the test."""
    children: list[subprocess.Popen[str]] = []

    def start(*arguments: object) -> int:
        child = subprocess.Popen([str(program), *map(str, arguments)], stdout=subprocess.DEVNULL, text=True)
        children.append(child)
        return child.pid

    yield start
    for child in children:
        child.kill()
        child.wait()


@pytest.fixture
def two_cpus() -> list[int]:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("one CPU only")
    return cpus


def main_thread(pid: int) -> Thread:
    return next(one for one in threads(pid) if one.tid == pid)


def test_jitter_spins_on_the_asked_cpu_and_nowhere_else(running: Any, two_cpus: list[int]) -> None:
    for cpu in (two_cpus[0], two_cpus[-1]):
        pid = running("jitter", "--intrude", "--cpus", cpu, "--duration", ENDED_BY_TEST_S)
        for _ in range(20):
            (worker,) = until_measuring(pid)
            assert (worker.allowed, worker.cpu) == (frozenset({cpu}), cpu)
        assert main_thread(pid).allowed == set(two_cpus) - {cpu}
        os.kill(pid, 15)


def test_jitter_on_every_cpu_has_a_worker_on_each(running: Any, two_cpus: list[int]) -> None:
    listed = ",".join(map(str, two_cpus))
    pid = running("jitter", "--intrude", "--cpus", listed, "--duration", ENDED_BY_TEST_S)
    workers = until_measuring(pid, len(two_cpus))
    assert sorted((sorted(one.allowed), one.cpu) for one in workers) == [([cpu], cpu) for cpu in two_cpus]


def test_wake_has_both_threads_on_their_cpus_and_the_main_thread_elsewhere(running: Any, two_cpus: list[int]) -> None:
    first, last = two_cpus[0], two_cpus[-1]
    for sender, receiver in ((first, last), (last, first), (last, last)):
        argv = ("--case", "channel:block:20", "--messages", 5000)
        pid = running("wake", "--intrude", "--cpus", f"{sender},{receiver}", *argv)
        found = {one.name: one.allowed for one in until_named(pid, "wake-sender", "wake-receiver")}
        assert found == {"wake-sender": {sender}, "wake-receiver": {receiver}}
        elsewhere = set(two_cpus) - {sender, receiver}
        assert main_thread(pid).allowed == (elsewhere or {sender})  # with the sender where no other is left


def test_the_sentinel_is_on_its_cpu(running: Any, two_cpus: list[int]) -> None:
    for cpu in (two_cpus[0], two_cpus[-1]):
        pid = running("sentinel", "--cpu", cpu, "--period", 0.1, "--duty", 50)
        while main_thread(pid).ran_ns < 60_000_000:
            pass
        assert [(one.allowed, one.cpu) for one in threads(pid)] == [(frozenset({cpu}), cpu)]


def test_the_selftest_interrupts_from_another_cpu(running: Any, two_cpus: list[int]) -> None:
    cpu = two_cpus[-1]
    pid = running("jitter", "--intrude", "--cpus", cpu, "--duration", 60, "--inject", "ipi,100000,0,200000")
    (victim, *_) = until_measuring(pid)
    assert (victim.allowed, victim.cpu) == (frozenset({cpu}), cpu)
    assert main_thread(pid).allowed == set(two_cpus) - {cpu}


# Takes the CPU from a SCHED_FIFO probe for 60 to 110 % of a threshold, in steps of half a percent, again and again.
# What the other thread misses is a little more: both switches, and the interpreter's own work.
RAMP = """
import os, sys, time
cpu, threshold_ns = int(sys.argv[1]), int(sys.argv[2])
os.sched_setaffinity(0, {cpu})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
now = time.perf_counter_ns
while True:
    for share in range(120, 220):
        time.sleep(0.0005)
        until = now() + threshold_ns * share // 200
        while now() < until:
            pass
"""


@pytest.fixture
def ramp(cpu: int, probe: Probe) -> Iterator[int]:
    """Gaps of all lengths around a threshold on the CPU; the threshold, in ns."""
    skip_unless_fifo(probe, cpu)
    threshold_ns = 400_000
    child = subprocess.Popen([sys.executable, "-c", RAMP, str(cpu), str(threshold_ns)])
    yield threshold_ns
    child.kill()
    child.wait()


def test_a_gap_above_the_threshold_counts_and_one_below_does_not(probe: Probe, cpu: int, ramp: int) -> None:
    near: list[float] = []
    for _ in range(60):  # a machine that was stopped meanwhile has no such gap, nor has one that is late with the ramp
        # Under SCHED_FIFO, so that nobody else comes between: what is left of the CPU is the probe's alone.
        arguments = ("--cpus", cpu, "--duration", 2 * GAPS_S, "--threshold-ns", ramp, "--fifo", 1)
        document = explained(json.loads(probe("jitter", "--intrude", *arguments).stdout))
        assert document["threshold_ns"] == ramp
        (one,) = document["cpus"]
        near += [gap for gap in gaps_ns(document, one) if gap < 1.1 * ramp]
        assert one["interruptions"] == len(one["events"])
        if len(near) >= 40:  # one way up the ramp has some twenty of them, and as many below that are as near
            break
    assert len(near) >= 40
    assert 0.999 * ramp < min(near) < 1.03 * ramp
    assert one["stolen_ns"] >= one["interruptions"] * ramp * 0.999
