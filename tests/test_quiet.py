"""The tests' own ear for noise: it hears a loop beside it, and a turn alone is alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.quiet import listen, need_quiet, turn

TURN = """
import pathlib, sys, time
from tests.quiet import turn
folder, alone, marks = pathlib.Path(sys.argv[1]), sys.argv[2] == "alone", pathlib.Path(sys.argv[3])
for _ in range(20):
    with turn(folder, alone):
        others = list(marks.iterdir())
        mark = marks / f"{sys.argv[2]}-{sys.argv[4]}"
        mark.touch()
        time.sleep(0.003)
        assert not (alone and others), others
        assert not any(one.name.startswith("alone") for one in marks.iterdir() if one != mark), others
        mark.unlink()
"""


def test_a_loop_on_the_same_cpu_is_heard() -> None:
    cpu = min(os.sched_getaffinity(0))
    loop = subprocess.Popen(["taskset", "-c", str(cpu), sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(0.2)
        (found,) = listen([cpu], 0.2)
        with pytest.raises(pytest.skip.Exception, match=f"the machine is not quiet: CPU {cpu} gave a loop"):
            need_quiet([cpu])
    finally:
        loop.send_signal(signal.SIGKILL)
        loop.wait()
    assert found.lost > 0.2, found
    assert found.stop_ms > 0


def test_a_turn_alone_is_alone_and_comes(tmp_path: Path) -> None:
    """Two workers that come and go, and two that want to be alone: each gets its twenty turns, none beside another."""
    (tmp_path / "marks").mkdir()
    words = [sys.executable, "-c", TURN, str(tmp_path)]
    kinds = ["beside", "beside", "alone", "alone"]
    running = [subprocess.Popen([*words, kind, str(tmp_path / "marks"), str(at)]) for at, kind in enumerate(kinds)]
    assert [one.wait(timeout=60) for one in running] == [0, 0, 0, 0]


def test_a_turn_ends_although_a_child_lives_on(tmp_path: Path) -> None:
    with turn(tmp_path, alone=True):
        pid = os.fork()
        if pid == 0:
            time.sleep(30)
            os._exit(0)
    try:
        with turn(tmp_path, alone=True):
            pass
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
