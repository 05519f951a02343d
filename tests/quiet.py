"""Is this machine quiet now? Some tests measure time, and only a quiet machine gives them the time that they measure.

`need_quiet()` skips the calling test where the machine is busy, with the figures that it measured. A test that asks
for this is also marked `alone`: no other worker of the same run then works beside it, which would be noise of our own.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

_RESULT = struct.Struct("=dd")


class Noise(NamedTuple):
    """What a loop that wanted all of one CPU did not get."""

    cpu: int
    lost: float  # share of the wall time in which the loop did not run, by the kernel's own account of its CPU time
    stop_ms: float  # longest time between two of its readings of the clock: a hypervisor's stops are in no account

    def __str__(self) -> str:
        return f"CPU {self.cpu} gave a loop {1 - self.lost:.0%} of the time, and stopped it for {self.stop_ms:.1f} ms"


def need_quiet(
    cpus: Collection[int] | None = None, seconds: float = 0.2, most_lost: float = 0.05, most_stop_ms: float = 5.0
) -> None:
    """Skip the calling test, with the measured reason, where these CPUs (default: all allowed ones) are not quiet."""
    loud = [one for one in listen(cpus, seconds) if one.lost > most_lost or one.stop_ms > most_stop_ms]
    if loud:
        pytest.skip(f"the machine is not quiet: {'; '.join(map(str, loud))} (in {seconds:g} s)")


def listen(cpus: Collection[int] | None = None, seconds: float = 0.2) -> list[Noise]:
    """Spin on each of these CPUs at once, for so long, and tell what each loop did not get."""
    chosen = sorted(os.sched_getaffinity(0) if cpus is None else cpus)
    readers = [_start_loop(cpu, seconds) for cpu in chosen]
    return [_result(cpu, pid, reader) for cpu, (pid, reader) in zip(chosen, readers, strict=True)]


def _start_loop(cpu: int, seconds: float) -> tuple[int, int]:
    """A child that spins on `cpu`; its pid, and the pipe on which it writes its result."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.sched_setaffinity(0, {cpu})
            os.write(writer, _RESULT.pack(*_spin(seconds)))
        finally:
            os._exit(0)
    os.close(writer)
    return pid, reader


def _spin(seconds: float) -> tuple[float, float]:
    """The lost share, and the longest stop in ms."""
    began, ran, longest = time.monotonic(), time.process_time(), 0.0
    before = began
    while before - began < seconds:
        now = time.monotonic()
        longest = max(longest, now - before)
        before = now
    used = time.process_time() - ran
    return max(0.0, 1 - used / (before - began)), longest * 1000


def _result(cpu: int, pid: int, reader: int) -> Noise:
    with open(reader, "rb") as file:
        said = file.read()
    os.waitpid(pid, 0)
    if len(said) != _RESULT.size:
        raise AssertionError(f"the loop on CPU {cpu} did not report: may this process use that CPU?")
    return Noise(cpu, *_RESULT.unpack(said))


@contextmanager
def turn(folder: Path, alone: bool) -> Iterator[None]:
    """Hold this worker's turn: beside others, or (`alone`) while no other worker of the run has one.

    Both wait at a gate first, and whoever waits for a turn alone keeps the gate shut: otherwise the others, who come
    and go all the time, would keep it waiting for ever.
    """
    with open(folder / "turns", "w") as turns, open(folder / "gate", "w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(turns, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(turns, fcntl.LOCK_UN)  # closing is not enough where a forked child holds the same file
