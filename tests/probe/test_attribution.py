"""The cause of every gap: on this machine's own kernel where tracefs can be had, in a mount namespace of its own."""

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

import pytest

from tests.schemas import fits
from tunectl.probe.explain import explained

from .conftest import GAPS_S, SHORT_S
from .running import ENDED_BY_TEST_S, PATIENCE_S, until_child, until_measuring
from .test_jitter import ns

pytestmark = [pytest.mark.pins, pytest.mark.usefixtures("installed")]

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


# What a user types: the program that measures leaves tracing to Python.
MAIN = "from tunectl.cli.start import main; main()"
PROBE = (sys.executable, "-c", MAIN, "--format", "json", "probe", "jitter", "--intrude")
ATTRIBUTED = (*PROBE, "--attribute")


def attributed(*arguments: object, setup: str = MOUNT, prefix: tuple[str, ...] = ()) -> dict[str, Any]:
    argv = within(setup, *prefix, *ATTRIBUTED, *map(str, arguments))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    document = explained(json.loads(done.stdout))
    fits("probe.jitter", document)
    return document


def started(cpu: int, duration_s: float) -> subprocess.Popen[str]:
    """A run whose process is tunectl itself: exec keeps the process id."""
    argv = within(MOUNT, *ATTRIBUTED, "--cpus", str(cpu), "--duration", str(duration_s))
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def wait_for_instance(pid: int) -> str:
    deadline = time.monotonic() + PATIENCE_S
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
        "open('/proc/self/comm', 'w').write(f'odd [1] {os.getpid()}')\n"
        f"os.sched_setaffinity(0, {{{cpu}}})\n"
        "while True:\n"
        "    until = time.monotonic() + 0.002\n"
        "    while time.monotonic() < until: pass\n"
        "    time.sleep(0.01)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code])
    yield f"thread odd [1] {child.pid}"
    child.kill()
    child.wait()


@pytest.mark.usefixtures("tracing")
@pytest.mark.slow
def test_every_gap_has_a_cause_and_the_table_adds_up(cpu: int, neighbour: str) -> None:
    for _ in range(10):  # on a busy CPU the neighbour may get no time, or share every gap with many others
        document = attributed("--cpus", cpu, "--duration", 0.6)
        table = checked_table(document)
        if any(neighbour in cause for cause in table) and are_ticks_named(document, table):
            break
    assert any(neighbour in cause for cause in table)
    assert are_ticks_named(document, table)


def checked_table(document: dict[str, Any]) -> dict[str, Any]:
    """The causes by name, once they agree with the gaps and with the kernel's counters."""
    assert document["attribution"]["method"] == "trace"
    assert "sched/sched_switch" in document["attribution"]["events"]
    (one,) = document["cpus"]
    table = {row["cause"]: row for row in one["causes"]}
    assert len(table) == len(one["causes"])
    assert sum(row["count"] for row in table.values()) == one["interruptions"]
    assert sum(row["total_ns"] for row in table.values()) == one["stolen_ns"]
    assert max(row["max_ns"] for row in table.values()) == one["max_ns"]
    labels = document["labels"]
    for cause, row in table.items():
        lengths = [ns(document, end - start) for start, end, why in one["events"] if labels[why] == cause]
        assert cause.startswith("not known: beyond") or len(lengths) == row["count"]
    return table


def are_ticks_named(document: dict[str, Any], table: dict[str, Any]) -> bool:
    """The trace names the ticks that the kernel counted while the probe had the CPU, as far as it can be told.

    One that gives the CPU to a thread is a part of that thread's gap.
    """
    (one,) = document["cpus"]
    ticks = one["counters"]["irq"].get("LOC", 0) * (1 - one["stolen_ppm"] / 1e6)
    ticks -= one["counters"]["context_switches"]["involuntary"]
    named = sum(row["count"] for cause, row in table.items() if "local timer" in cause)
    return bool(ticks <= 30 or one["trace"]["events_lost"] or named > ticks / 2)


@pytest.mark.slow
@pytest.mark.usefixtures("tracing")
def test_a_thread_is_named_only_where_it_ran(cpu: int, neighbour: str) -> None:
    cpus = os.sched_getaffinity(0) - {cpu}
    if not cpus:
        pytest.skip("one CPU only")
    document = attributed("--cpus", min(cpus), "--duration", GAPS_S)
    assert not any(neighbour in row["cause"] for row in document["cpus"][0]["causes"])


@pytest.mark.slow
@pytest.mark.usefixtures("tracing")
def test_the_cost_of_an_event_is_measured(cpu: int) -> None:
    costs: list[float | None] = []
    while len(costs) < 10:  # a busy machine can hide so small a difference
        cost = attributed("--cpus", cpu, "--duration", SHORT_S)["attribution"]["event_cost_ns"]
        costs.append(cost)
        if cost is not None and 0 < cost < 100_000:
            return
    raise AssertionError(costs)


@pytest.mark.usefixtures("tracing")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.slow
def test_the_instance_is_gone_after_a_signal(cpu: int, number: signal.Signals) -> None:
    child = started(cpu, ENDED_BY_TEST_S)
    name = wait_for_instance(child.pid)
    assert until_measuring(until_child(child.pid))
    child.send_signal(number)
    document = explained(json.loads(child.communicate(timeout=60)[0]))
    assert document["interrupted"] is True
    (measured,) = document["cpus"]  # on a busy machine the signal may come before the first gap
    assert sum(row["count"] for row in measured["causes"]) == measured["interruptions"]
    assert name not in instances()


@pytest.mark.usefixtures("tracing")
@pytest.mark.parametrize(
    "command",
    [
        ("show",),
        ("knobs",),
        ("verify",),  # without a host file, which is an error
        ("compare", "nothing.json", "nothing.json"),
        ("--root", "/nowhere", "snapshot"),
        ("probe", "jitter", "--intrude", "--cpus", "0", "--duration", str(SHORT_S)),  # which traces nothing itself
    ],
)
@pytest.mark.slow
def test_what_a_killed_probe_leaves_the_next_command_removes(cpu: int, command: tuple[str, ...]) -> None:
    for _ in range(20):  # the command of another test may be the next one
        child = started(cpu, ENDED_BY_TEST_S)
        name = wait_for_instance(child.pid)
        child.kill()
        child.communicate(timeout=60)
        if is_left := name in instances():
            break
    assert is_left
    alive = started(cpu, ENDED_BY_TEST_S)
    own = wait_for_instance(alive.pid)
    argv = within(MOUNT, sys.executable, "-c", MAIN, *command)
    subprocess.run(argv, capture_output=True, timeout=120, check=False)  # whether it does what it should, or fails
    left = instances()
    alive.terminate()
    alive.communicate(timeout=60)
    assert name not in left
    assert own in left
    assert own not in instances()


@pytest.mark.usefixtures("tracing")
def test_without_tracefs_the_counters_have_to_do_and_it_says_so(cpu: int) -> None:
    document = attributed("--cpus", cpu, "--duration", SHORT_S, setup=UNMOUNT)
    assert document["attribution"]["method"] == "counters"
    assert "not mounted" in document["attribution"]["reason"]
    assert "causes" not in document["cpus"][0]
    assert document["labels"] == [""]
    assert all(cause == 0 for _, _, cause in document["cpus"][0]["events"])
    assert any("only the kernel's counters" in text for text in document["warnings"])


@pytest.mark.usefixtures("tracing")
def test_where_the_trace_has_other_numbers_of_threads_nothing_is_named_by_it(cpu: int) -> None:
    """In a PID namespace: the probe's own thread would be somebody else's."""
    namespace = ("unshare", "-p", "-f", "-m", "sh", "-c", 'mount -t proc none /proc; exec "$@"', "sh")
    document = attributed("--cpus", cpu, "--duration", SHORT_S, prefix=namespace)
    assert (document["attribution"]["method"], "causes" in document["cpus"][0]) == ("counters", False)


@pytest.mark.usefixtures("tracing")
def test_without_permission_it_says_so(program: Path, cpu: int, tmp_path: Path) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv here")
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and str(folder).startswith("/tmp/pytest"):
            folder.chmod(0o755)
    copy = shutil.copy(program, tmp_path)
    drop = (
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--inh-caps=-all",
        "env",
        f"TUNECTL_PROBE={copy}",
    )
    if subprocess.run([*drop, sys.executable, "-c", "import tunectl"], capture_output=True, check=False).returncode:
        pytest.skip("this tree is not for everybody to read")
    document = attributed("--cpus", cpu, "--duration", SHORT_S, prefix=drop)
    assert document["attribution"]["method"] == "counters"
    assert "Permission denied" in document["attribution"]["reason"]


# A marker in the probe's own trace: what a Tracer that is told of a gap writes.
MARKED = r"""
import os
from tunectl.host.sysroot import Sysroot
from tunectl.host.tracefs import TraceInstance
from tunectl.probe.tracing import Tracer
cpu, root, at = max(os.sched_getaffinity(0)), Sysroot(), "sys/kernel/tracing/instances"
with Tracer(root) as tracer:
    assert tracer.answer(f"ready {os.getpid()} {cpu}:{os.getpid()}") == "fault\n"
    while tracer.answer("fault 5") == "fault\n":
        pass
    assert tracer.answer(f"until {cpu} 123 456 tsc") == ""
    tracer.answer("done")
    (name,) = [one for one in root.listdir(at) if one.startswith(f"tunectl-{os.getpid()}-")]
    print(TraceInstance(root, f"{at}/{name}").text())
"""


@pytest.mark.usefixtures("tracing")
def test_the_probes_own_trace_is_marked(cpu: int) -> None:
    done = subprocess.run(within(MOUNT, sys.executable, "-c", MARKED), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"tracing_mark_write: tunectl: CPU {cpu} was away from 123 to 456 (x86-tsc): --until" in done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("tracing", "neighbour")
def test_the_gap_that_ends_a_run_has_its_events(cpu: int) -> None:
    """The neighbour takes the CPU for 2 ms, or another thread does; what a hypervisor takes has no events."""
    argv = within(MOUNT, *ATTRIBUTED, "--cpus", str(cpu), "--duration", str(ENDED_BY_TEST_S), "--until", "1000000")
    for _ in range(20):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stderr) == (3, "")
        gap = json.loads(done.stdout)["until"]["gap"]
        who = gap["cause"].partition(" + ")[0]
        # It may have had it when the run began; some kernels leave a switch out of their trace.
        if {f"{who} has the CPU", "the probe has the CPU again"} <= {what for _, what in gap["events"]}:
            break
    moments = [at for at, _ in [*gap["before"], *gap["events"]]]
    assert moments == sorted(moments)
    assert 0 <= gap["events"][0][0] <= gap["events"][-1][0] <= gap["length_ns"]
    assert f"{who} has the CPU" in [what for _, what in gap["events"]]
    assert "the probe has the CPU again" in [what for _, what in gap["events"]]


def test_causes_that_nobody_asked_for_are_not_looked_for(program: Path, cpu: int) -> None:
    argv = [str(program), "jitter", "--intrude", "--cpus", str(cpu), "--duration", str(SHORT_S)]
    document = explained(json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout))
    assert (document["attribution"], document["labels"]) == (None, [""])
    assert "causes" not in document["cpus"][0]
