"""The resident sentinel: a line a period, a low duty cycle, and no life of its own."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.schemas import fits
from tunectl.probe.explain import explained

from .conftest import SHORT_S, Probe
from .running import until_ended, until_pinned

pytestmark = pytest.mark.pins


def lines_of(text: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in text.splitlines()]
    for line in found:
        fits("probe.sentinel", line)
    return found


def test_each_line_tells_the_clock_and_the_gaps(probe: Probe, cpu: int) -> None:
    done = probe("sentinel", "--cpu", cpu, "--period", 0.2, "--lines", 3, "--duty", 10)
    assert (done.returncode, done.stderr) == (0, "")
    lines = lines_of(done.stdout)
    assert len(lines) == 3
    for line in lines:
        assert line["cpu"] == cpu
        assert 1e5 < line["core_khz"] < 1e7
        assert line["spin_ns"] >= 0.9 * 0.2e9 * 0.10
        assert sum(count for _, count in line["gap_ns"]) == line["gaps"]
        # a bucket of the histogram is told by the mean of its gaps, and is at most 1/128 wide
        longest = max((length for length, _ in line["gap_ns"]), default=0)
        assert longest <= line["max_ns"] <= longest * (1 + 1 / 128)


def test_its_clock_is_the_one_jitter_measures(probe: Probe, cpu: int) -> None:
    for _ in range(5):  # turbo comes and goes
        jitter = explained(json.loads(probe("jitter", "--intrude", "--cpus", cpu, "--duration", SHORT_S).stdout))
        (line,) = lines_of(probe("sentinel", "--cpu", cpu, "--period", 0.1, "--duty", 20, "--lines", 1).stdout)
        both = [khz for khz in jitter["cpus"][0]["core_khz"].values() if khz]
        like = pytest.approx(sum(both) / len(both), rel=0.25)
        if line["core_khz"] == like:
            break
    assert line["core_khz"] == like
    assert line["counter_khz"] == pytest.approx(jitter["clock"]["hz"] / 1e3, rel=1e-3)


@pytest.mark.slow
def test_it_is_idle_nearly_all_of_the_time(program: Path, cpu: int) -> None:
    used_s: list[float] = []
    while len(used_s) < 6 and min(used_s, default=1) >= 0.15:  # what a hypervisor takes may count as its time, too
        child = subprocess.Popen([program, "sentinel", "--cpu", str(cpu), "--lines", "2"], stdout=subprocess.DEVNULL)
        usage = os.wait4(child.pid, 0)[2]
        child.returncode = 0
        used_s.append(usage.ru_utime + usage.ru_stime)
    # two periods of a second at 2 %, the calibration, and ten clock measurements a second
    assert min(used_s) < 0.15


def test_sigterm_ends_it_well(program: Path, cpu: int) -> None:
    child = subprocess.Popen([program, "sentinel", "--cpu", str(cpu), "--period", "0.1"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline()
    child.send_signal(signal.SIGTERM)
    assert child.wait(60) == 0
    child.stdout.close()


@pytest.mark.usefixtures("hangups")
def test_it_ends_with_its_parent(program: Path, cpu: int) -> None:
    script = '"$@" >/dev/null 2>&1 & echo $!; sleep 60'
    argv = ["sh", "-c", script, "sh", str(program), "sentinel", "--cpu", str(cpu)]
    parent = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    until_pinned(pid, cpu)
    assert not until_ended(pid, 0.1)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert until_ended(pid)


@pytest.mark.slow
def test_it_ends_when_nobody_reads_any_more(program: Path, cpu: int) -> None:
    child = subprocess.Popen([program, "sentinel", "--cpu", str(cpu), "--period", "0.1"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline()
    child.stdout.close()
    assert child.wait(60) == 1


def test_a_slow_reader_loses_lines_and_stops_nothing(program: Path, cpu: int) -> None:
    found = [lost_beside_a_slow_reader(program, cpu, 0.7)]
    while found[-1] < 3 and len(found) < 4:  # a busy machine may have begun no line so soon
        found.append(lost_beside_a_slow_reader(program, cpu, 0.7 * 3 ** len(found)))
    assert found[-1] >= 3, found


def lost_beside_a_slow_reader(program: Path, cpu: int, seconds: float) -> int:
    """Lines lost, by the first that comes, while nobody reads for so long."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write_end, b"\n" * 4096)
    argv = [str(program), "sentinel", "--cpu", str(cpu), "--period", "0.1"]
    child = subprocess.Popen(argv, stdout=write_end)
    os.close(write_end)
    time.sleep(seconds)
    with os.fdopen(read_end, "rb") as stream:
        line = next(line for line in stream if line != b"\n")
        child.terminate()
        assert child.wait(60) == 0
        stream.read()
    return int(lines_of(line.decode())[0]["lines_lost"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name the CPU"),
        (["--cpu", "60000"], "CPU 60000 is not online"),
        (["--cpu", "-1"], "--cpu -1"),
        (["--cpu", "0-1"], "--cpu 0-1"),
        (["--cpu", "0", "--period", "0"], "--period 0"),
        (["--cpu", "0", "--period", "nan"], "--period nan"),
        (["--cpu", "0", "--period", "11"], "--period 11"),
        (["--cpu", "0", "--duty", "0"], "--duty 0"),
        (["--cpu", "0", "--duty", "101"], "--duty 101"),
        (["--cpu", "0", "--lines", "0"], "--lines 0"),
        (["--cpu", "0", "--cpus", "0"], "--cpus is no option"),
        (["--cpu", "0", "--duration", "1"], "--duration is no option"),
    ],
)
def test_wrong_requests_are_refused(probe: Probe, arguments: list[str], said: str) -> None:
    done = probe("sentinel", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
