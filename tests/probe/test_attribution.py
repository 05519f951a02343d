"""The cause of every gap: on this machine's own kernel where tracefs can be had, in a mount namespace of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from .conftest import GAPS_S, SHORT_S
from .running import ENDED_BY_TEST_S, until_measuring
from .test_jitter import SCHEMA, ns

pytestmark = pytest.mark.pins

INSTANCES = Path("/sys/kernel/tracing/instances")
MOUNT = "mountpoint -q /sys/kernel/tracing || mount -t tracefs nodev /sys/kernel/tracing || exit 77"
UNMOUNT = "umount /sys/kernel/tracing /sys/kernel/debug/tracing 2>/dev/null"


def within(setup: str, *argv: str) -> list[str]:
    """`argv` in a mount namespace of its own, behind `setup`; nothing is mounted for anybody else."""
    return ["unshare", "-m", "sh", "-c", f'{setup}; exec "$@"', "sh", *argv]


@pytest.fixture
def tracing() -> None:
    """Skips where this kernel, or this user, has no tracefs."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root and unshare")
    argv = within(
        MOUNT, "sh", "-c", "mkdir /sys/kernel/tracing/instances/t-$$ && rmdir /sys/kernel/tracing/instances/t-$$"
    )
    if subprocess.run(argv, capture_output=True, check=False).returncode:
        pytest.skip("no tracefs here")


def instances() -> set[str]:
    listed = subprocess.run(within(MOUNT, "ls", str(INSTANCES)), capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.split() if name.startswith("tunectl-")}


def attributed(program: Path, *arguments: object, setup: str = MOUNT, prefix: tuple[str, ...] = ()) -> dict[str, Any]:
    argv = within(setup, *prefix, str(program), "jitter", "--intrude", "--attribute", *map(str, arguments))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    document: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    return document


def started(program: Path, cpu: int, duration_s: float) -> subprocess.Popen[str]:
    """A run whose process is the probe itself: exec keeps the process id."""
    argv = within(
        MOUNT, str(program), "jitter", "--intrude", "--attribute", "--cpus", str(cpu), "--duration", str(duration_s)
    )
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def wait_for_instance(pid: int) -> str:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        mine = [name for name in instances() if name.startswith(f"tunectl-{pid}-")]
        if mine:
            return mine[0]
        time.sleep(0.1)
    raise AssertionError("no instance appeared")


@pytest.fixture
def neighbour(cpu: int) -> Iterator[str]:
    """A thread of a name nobody else has, often at work on the probed CPU."""
    code = (
        "import os, sys, time\n"
        "open('/proc/self/comm', 'w').write('odd [1] name')\n"
        f"os.sched_setaffinity(0, {{{cpu}}})\n"
        "while True:\n"
        "    until = time.monotonic() + 0.002\n"
        "    while time.monotonic() < until: pass\n"
        "    time.sleep(0.01)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code])
    yield "thread odd [1] name"
    child.kill()
    child.wait()


@pytest.mark.usefixtures("tracing")
@pytest.mark.slow
def test_every_gap_has_a_cause_and_the_table_adds_up(program: Path, cpu: int, neighbour: str) -> None:
    for _ in range(6):  # on a busy CPU the neighbour may get no time, or share every gap with many others
        document = attributed(program, "--cpus", cpu, "--duration", 0.6)
        table = checked_table(document)
        if any(neighbour in cause for cause in table):
            break
    assert any(neighbour in cause for cause in table)


def checked_table(document: dict[str, Any]) -> dict[str, Any]:
    """The causes by name, once they agree with the gaps and with the kernel's counters."""
    assert document["attribution"]["method"] == "trace"
    assert "sched/sched_switch" in document["attribution"]["events"]
    (one,) = document["cpus"]
    table = {row["cause"]: row for row in one["causes"]}
    assert len(table) == len(one["causes"])
    assert sum(row["count"] for row in table.values()) == one["interruptions"]
    assert sum(row["total_ns"] for row in table.values()) == pytest.approx(one["stolen_ns"], abs=len(table) + 1)
    assert max(row["max_ns"] for row in table.values()) == one["max_ns"]
    for cause, row in table.items():
        lengths = [ns(document, end - start) for start, end, why in one["events"] if why == cause]
        assert cause.startswith("not known: beyond") or len(lengths) == row["count"]
    # The trace names the ticks that the kernel counted while the probe had the CPU.
    ticks = one["counters"]["irq"].get("LOC", 0) * (1 - one["stolen_ppm"] / 1e6)
    if ticks > 30 and not one["trace"]["events_lost"]:
        assert sum(row["count"] for cause, row in table.items() if "local timer" in cause) > ticks / 2
    return table


@pytest.mark.usefixtures("tracing")
def test_a_thread_is_named_only_where_it_ran(program: Path, cpu: int) -> None:
    document = attributed(program, "--cpus", cpu, "--duration", GAPS_S)
    assert not any("odd [1] name" in row["cause"] for row in document["cpus"][0]["causes"])


@pytest.mark.usefixtures("tracing")
def test_the_cost_of_an_event_is_measured(program: Path, cpu: int) -> None:
    # A busy machine can hide so small a difference once: best of three.
    costs = [
        attributed(program, "--cpus", cpu, "--duration", SHORT_S)["attribution"]["event_cost_ns"] for _ in range(3)
    ]
    assert any(cost is not None and 0 < cost < 100_000 for cost in costs)


@pytest.mark.usefixtures("tracing")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.slow
def test_the_instance_is_gone_after_a_signal(program: Path, cpu: int, number: signal.Signals) -> None:
    child = started(program, cpu, ENDED_BY_TEST_S)
    name = wait_for_instance(child.pid)
    assert until_measuring(child.pid)
    child.send_signal(number)
    document = json.loads(child.communicate(timeout=60)[0])
    assert document["interrupted"] is True
    (measured,) = document["cpus"]  # on a busy machine the signal may come before the first gap
    assert sum(row["count"] for row in measured["causes"]) == measured["interruptions"]
    assert name not in instances()


@pytest.mark.usefixtures("tracing")
def test_what_a_killed_probe_leaves_the_next_one_removes(program: Path, cpu: int) -> None:
    child = started(program, cpu, ENDED_BY_TEST_S)
    name = wait_for_instance(child.pid)
    child.kill()
    child.communicate(timeout=30)
    assert name in instances()
    alive = started(program, cpu, ENDED_BY_TEST_S)
    own = wait_for_instance(alive.pid)
    # Any probe sweeps, also one that traces nothing itself; what belongs to a living one stays.
    argv = within(MOUNT, str(program), "jitter", "--intrude", "--cpus", str(cpu), "--duration", str(SHORT_S))
    subprocess.run(argv, capture_output=True, check=True)
    left = instances()
    alive.terminate()
    alive.communicate(timeout=60)
    assert name not in left
    assert own in left
    assert own not in instances()


@pytest.mark.usefixtures("tracing")
def test_without_tracefs_the_counters_have_to_do_and_it_says_so(program: Path, cpu: int) -> None:
    document = attributed(program, "--cpus", cpu, "--duration", SHORT_S, setup=UNMOUNT)
    assert document["attribution"]["method"] == "counters"
    assert "not mounted" in document["attribution"]["reason"]
    assert "causes" not in document["cpus"][0]
    assert all(cause == "" for _, _, cause in document["cpus"][0]["events"])
    assert any("only the kernel's counters" in text for text in document["warnings"])


@pytest.mark.usefixtures("tracing")
def test_without_permission_it_says_so(program: Path, cpu: int, tmp_path: Path) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv here")
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and str(folder).startswith("/tmp/pytest"):
            folder.chmod(0o755)
    copy = Path(shutil.copy(program, tmp_path))
    drop = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")
    document = attributed(copy, "--cpus", cpu, "--duration", SHORT_S, prefix=drop)
    assert document["attribution"]["method"] == "counters"
    assert "Permission denied" in document["attribution"]["reason"]


def test_causes_that_nobody_asked_for_are_not_looked_for(program: Path, cpu: int) -> None:
    argv = [str(program), "jitter", "--intrude", "--cpus", str(cpu), "--duration", str(SHORT_S)]
    document = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    assert document["attribution"] is None
    assert "causes" not in document["cpus"][0]
