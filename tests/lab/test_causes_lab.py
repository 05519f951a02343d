"""What interrupts a CPU is named by `probe jitter --attribute`, on a kernel of Debian: tests/bench/bench_causes.py."""

from pathlib import Path

import pytest

from tests.bench import bench_causes as bench

from .lab import PREFIX, Lab

PROGRAM = "/root/causes"


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bench.build(tmp_path_factory.mktemp("causes"))


@pytest.mark.long
@pytest.mark.parametrize("row", bench.ROWS, ids=[row.way for row in bench.ROWS])
def test_what_interrupts_is_named(installed: Lab, program: Path, row: bench.Row) -> None:
    installed.put(program, PROGRAM)
    installed.run(f"chmod +x {PROGRAM}; dmesg -n 1")  # a trace of all CPUs takes the serial port seconds
    score = bench.injected(
        lambda command: installed.run(command, check=False).out, PROGRAM, f"{PREFIX}/bin/tunectl", 2, row
    )
    print(f"{row.way}: {score}")
    assert score.is_right, str(score)
