"""A run beside somebody else's threads: it leaves them their CPU, says so, and nothing of it stays behind."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.places import IS_ROOT, needs_mounts, unprivileged
from tests.conftest import TUNECTL
from tunectl.host.procs import hidden_threads
from tunectl.host.sysroot import Sysroot
from tunectl.probe.explain import explained

from .running import (
    ENDED_BY_TEST_S,
    numbered,
    threads,
    until_child,
    until_ended,
    until_measuring,
    until_named,
    until_pinned,
)

Jitter = Callable[..., dict[str, Any]]
pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU"),
    pytest.mark.skipif(bool(hidden_threads(Sysroot())), reason="not every thread can be seen here: the probe refuses"),
]

# The product keeps to the first CPU where a test isolates the last one.
CPU = max(os.sched_getaffinity(0))
LEAVES_S = 0.010
_PF_KTHREAD = 0x00200000  # include/linux/sched.h
_AT_MOST_S = 30  # an engine under SCHED_FIFO must end by itself, whatever becomes of the test


@pytest.fixture(autouse=True)
def _nobody_else() -> None:
    """The CPU is left to whoever is pinned to it and runs: somebody else would be named instead of the engine."""
    for tid in (int(task.name) for process in numbered("/proc") for task in numbered(process / "task")):
        with suppress(OSError):
            state, *fields = Path(f"/proc/{tid}/stat").read_text().rpartition(")")[2].split()
            is_kernels = bool(int(fields[5]) & _PF_KTHREAD)
            if state == "R" and not is_kernels and allowed(tid) == str(CPU):
                pytest.skip(f"thread {tid} is pinned to CPU {CPU}, and runs")


# Pinned, asleep until a line comes, then spinning; under SCHED_FIFO first where that is asked for.
_ENGINE = f"""
import os, sys, time
cpu, priority = map(int, sys.argv[1:3])
if cpu >= 0:
    os.sched_setaffinity(0, {{cpu}})
if priority:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
open("/proc/self/comm", "w").write(sys.argv[3])
print(flush=True)
sys.stdin.readline()
end = time.monotonic() + {_AT_MOST_S}
while time.monotonic() < end:
    pass
"""


def _until_asleep(pid: int) -> None:
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
        time.sleep(0.005)


@contextmanager
def engine(
    cpu: int = CPU, priority: int = 0, name: str = "engine", prefix: Sequence[str] = ()
) -> Iterator[subprocess.Popen[str]]:
    """A process that sleeps on its CPU until it is woken; ended when the test is."""
    argv = [*prefix, sys.executable, "-c", _ENGINE, str(cpu), str(priority), name]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        if not child.stdout.readline():
            pytest.skip("SCHED_FIFO is not allowed here")
        _until_asleep(child.pid)
        try:
            yield child
        finally:
            child.kill()


@pytest.fixture
def polite(probe: Callable[..., subprocess.CompletedProcess[str]]) -> Jitter:
    """Runs `tunectl-probe jitter` without --intrude, and returns its document."""

    def run(*arguments: object) -> dict[str, Any]:
        done = probe("jitter", *arguments)
        assert (done.returncode, done.stderr) == (0, "")
        return explained(json.loads(done.stdout))

    return run


def wake(child: subprocess.Popen[str]) -> None:
    assert child.stdin
    child.stdin.write("\n")
    child.stdin.flush()


def allowed(tid: int) -> str:
    with suppress(OSError):
        status = Path(f"/proc/{tid}/status").read_text()
        return status.partition("Cpus_allowed_list:\t")[2].partition("\n")[0]
    return "gone"


def until_left(tids: Sequence[int], engine: subprocess.Popen[str], guards: Sequence[int]) -> float:
    """Seconds from the engine's waking until none of these threads may run on its CPU.

    Whoever watches is ahead of what else this machine has to do, the guards before this thread: what they would wait
    for a CPU is no property of theirs.
    """
    own = threading.get_native_id()
    try:
        for tid, priority in ((own, 1), *((tid, 2) for tid in guards)):
            os.sched_setscheduler(tid, os.SCHED_FIFO, os.sched_param(priority))
        started = time.monotonic()
        wake(engine)
        while str(CPU) in map(allowed, tids) and time.monotonic() < started + 5:
            pass
        return time.monotonic() - started
    except PermissionError:
        pytest.skip("SCHED_FIFO is not allowed here")
    finally:
        os.sched_setscheduler(own, os.SCHED_OTHER, os.sched_param(0))


@contextmanager
def probing(program: Path, *words: object, prefix: Sequence[str] = ()) -> Iterator[subprocess.Popen[str]]:
    argv = [*prefix, str(program), "jitter", "--cpus", str(CPU), *map(str, words)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def left(document: dict[str, Any]) -> list[str]:
    return [one["reason"] for one in document["not_measured"]]


def test_a_thread_that_runs_keeps_its_cpu(polite: Jitter) -> None:
    with engine() as one:
        wake(one)
        document = polite("--cpus", CPU, "--duration", 5)
    assert document["cpus"] == []
    assert left(document) == [f"engine (tid {one.pid}) runs on CPU {CPU}"]
    assert any("was not measured: engine" in text and "--intrude" in text for text in document["warnings"])


@pytest.mark.slow
@pytest.mark.parametrize("prefix", [(), unprivileged], ids=["", "nobody"])
def test_one_that_has_the_name_of_the_probe_keeps_its_cpu_too(
    polite: Jitter, prefix: tuple[str, ...] | Callable[[], list[str]]
) -> None:
    with engine(name="tunectl-probe", prefix=prefix() if callable(prefix) else prefix) as one:
        wake(one)
        document = polite("--cpus", CPU, "--duration", 5)
    assert left(document) == [f"tunectl-probe (tid {one.pid}) runs on CPU {CPU}"]


@pytest.mark.slow
def test_the_probe_of_a_user_has_its_cpu_and_that_of_root_is_not_in_the_way(polite: Jitter, program: Path) -> None:
    """Who started this one, and root, know what they do."""
    words = ("--intrude", "--duration", str(ENDED_BY_TEST_S))
    with probing(program, *words) as own:
        assert until_measuring(own.pid)
        assert left(polite("--cpus", CPU, "--duration", 0.1)) == []
    if not IS_ROOT or subprocess.run([*unprivileged(), program, "--version"], capture_output=True).returncode:
        pytest.skip("needs root, and another user who may start the program")
    with probing(program, *words, prefix=unprivileged()) as others:
        (worker, *_) = until_measuring(others.pid)
        assert left(polite("--cpus", CPU, "--duration", 5)) == [f"tunectl-probe (tid {worker.tid}) runs on CPU {CPU}"]


@pytest.mark.slow
def test_one_that_sleeps_there_is_not_in_the_way_nor_one_that_may_run_elsewhere(polite: Jitter) -> None:
    with engine(), engine(cpu=-1) as floating:
        wake(floating)
        document = polite("--cpus", CPU, "--duration", 0.3)
    assert (left(document), [one["cpu"] for one in document["cpus"]]) == ([], [CPU])


def _time_to_leave(program: Path) -> tuple[float, dict[str, Any]] | str:
    """From an engine's waking until the spinner may not run there any more.

    Or what the program wrote, where it ended before the engine woke: others of this machine took the CPU first.
    """
    with engine() as one, probing(program, "--duration", ENDED_BY_TEST_S) as probe:
        if not (busy := until_measuring(probe.pid)):
            return probe.communicate(timeout=60)[0]
        worker = busy[0]
        guards = [each.tid for each in threads(probe.pid) if each.tid != worker.tid]
        return until_left([worker.tid], one, guards), explained(json.loads(probe.communicate(timeout=60)[0]))


@pytest.mark.slow
def test_an_engine_that_wakes_has_its_cpu_within_ten_milliseconds(program: Path) -> None:
    """A hypervisor may take the CPU of whoever watches, unseen: a guard that is too slow would be so every time."""
    tries: list[float | str] = []
    for _ in range(8):
        if isinstance(found := _time_to_leave(program), str):
            tries.append(found)
            continue
        took_s, document = found
        assert document["cpus"] == []
        assert "engine" in left(document)[0]
        assert not document["interrupted"]
        tries.append(took_s)
        if took_s < LEAVES_S:
            return
    raise AssertionError(f"the spinner left after {tries} s")


WAKE = ("wake", "--cpus", f"{CPU},{CPU}", "--case", "channel:minimal:1")


def _time_to_give_up(program: Path) -> tuple[float, subprocess.CompletedProcess[str]] | str:
    """From an engine's waking until neither end of `wake` may run there any more.

    Or what the program said, where it ended before the engine woke: others of this machine took the CPU first.
    """
    argv = [str(program), *WAKE, "--messages", str(ENDED_BY_TEST_S * 1000)]
    with engine() as one, subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            ends = [each.tid for each in until_named(child.pid, "wake-sender", "wake-receiver")]
        except AssertionError as error:
            return f"{error}: {child.communicate(timeout=60)}"
        time.sleep(0.1)  # so that it measures; were it earlier, its guard would be younger
        guards = [each.tid for each in threads(child.pid) if each.tid not in ends]
        took_s = until_left(ends, one, guards)
        out, err = child.communicate(timeout=60)
        return took_s, subprocess.CompletedProcess([str(one.pid)], child.returncode, out, err)


@pytest.mark.slow
def test_an_engine_that_wakes_beside_wake_has_its_cpu_within_ten_milliseconds(program: Path) -> None:
    tries: list[float | str] = []
    for _ in range(8):
        if isinstance(found := _time_to_give_up(program), str):
            tries.append(found)
            continue
        took_s, done = found
        said = f"engine (tid {done.args[0]}) runs on CPU {CPU}, which was left to it: nothing was measured"
        assert (done.returncode, done.stdout, done.stderr) == (1, "", f"tunectl-probe: {said}\n")
        tries.append(took_s)
        if took_s < LEAVES_S:
            return
    raise AssertionError(f"they left after (s): {tries}")


@pytest.mark.slow
def test_wake_stays_with_intrude_and_beside_who_sleeps_or_may_run_elsewhere(program: Path) -> None:
    def measured(*words: str) -> int:
        argv = [str(program), *WAKE, "--messages", "30", *words]
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
        return int(json.loads(done.stdout)["cells"][0]["arrived"])

    with engine(), engine(cpu=-1) as floating:
        wake(floating)
        assert measured() == 30
    with engine() as one:
        wake(one)
        assert measured("--intrude") == 30


@pytest.mark.slow
def test_a_probe_whose_only_cpu_was_taken_is_one_line_and_no_document(program: Path, tmp_path: Path) -> None:
    words = ["probe", "jitter", "--cpus", str(CPU), "--duration", str(ENDED_BY_TEST_S), "--format", "json"]
    argv = [str(TUNECTL), *words, "--host", str(tmp_path / "none.toml"), "--output", str(tmp_path / "result.json")]
    (tmp_path / "none.toml").write_text(f'profile = "low-latency"\nisolated = "{CPU}"\nallow_split_siblings = true\n')
    environment = {**os.environ, "TUNECTL_PROBE": str(program)}
    with engine() as one:
        with subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as child:
            assert until_measuring(until_child(child.pid))
            wake(one)
            out, err = child.communicate(timeout=60)
        assert (child.returncode, out) == (1, "")
        said = f"nothing was measured: CPU {CPU}: engine (tid {one.pid}) runs on CPU {CPU}"
        assert [line for line in err.splitlines() if said in line] == err.splitlines()
    assert not (tmp_path / "result.json").exists()


@pytest.mark.slow
def test_with_intrude_it_stays(jitter: Jitter) -> None:
    with engine() as one:
        wake(one)
        document = jitter("--cpus", CPU, "--duration", 0.5)
    assert document["not_measured"] == []
    assert document["cpus"][0]["stolen_ns"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--intrude", "--fifo", "1")], ids=["left alone", "intruding"])
def test_one_under_fifo_is_no_trap(program: Path, words: tuple[str, ...]) -> None:
    """The spinner that waits behind it is moved away: it ends, and nothing of it stays."""
    with engine(priority=50) as one:
        wake(one)
        with probing(program, "--duration", 1, *words) as probe:
            _ends_behind(probe, one)


def _ends_behind(probe: subprocess.Popen[str], one: subprocess.Popen[str]) -> None:
    out = probe.communicate(timeout=_AT_MOST_S - 1)[0]
    assert one.poll() is None
    assert f"engine (tid {one.pid}, SCHED_FIFO 50)" in left(json.loads(out))[0]
    assert not Path(f"/proc/{probe.pid}").exists()


@pytest.mark.slow
def test_one_under_fifo_is_no_trap_either_while_memory_is_locked(program: Path) -> None:
    """The spinner loses its CPU within mlock(2), and with it the lock of the memory map: nobody may wait for that.

    So much memory that it takes some milliseconds: the engine wakes in most runs before that is over.
    """
    words = ("--duration", 1, "--intrude", "--fifo", 1, "--events", 5_000_000)
    with engine(priority=50) as one, probing(program, *words) as probe:
        status = Path(f"/proc/{probe.pid}/status")
        deadline = time.monotonic() + 10
        while "VmLck:\t       0 kB" in status.read_text() and time.monotonic() < deadline:
            pass
        wake(one)
        _ends_behind(probe, one)


def _orphan(program: Path, prefix: str, *words: str) -> int:
    """The process id of a probe whose shell was killed."""
    command = f"{prefix} {program} jitter --cpus {CPU} --duration {ENDED_BY_TEST_S} {' '.join(words)} >/dev/null & wait"
    with subprocess.Popen(["sh", "-c", command]) as shell:
        pid = until_child(shell.pid)
        assert until_measuring(pid)
        shell.kill()
    return pid


@pytest.mark.slow
@pytest.mark.usefixtures("hangups")
def test_it_ends_with_its_parent(program: Path) -> None:
    assert until_ended(_orphan(program, ""), ENDED_BY_TEST_S / 2)


@pytest.mark.slow
@pytest.mark.usefixtures("hangups")
def test_it_ends_with_its_parent_where_an_engine_holds_its_cpu(program: Path) -> None:
    with engine(priority=50) as one:
        pid = _orphan_behind(program, one)
        assert until_ended(pid, ENDED_BY_TEST_S / 2)
        assert one.poll() is None


def _orphan_behind(program: Path, one: subprocess.Popen[str]) -> int:
    command = f"{program} jitter --cpus {CPU} --duration 60 --intrude >/dev/null & wait"
    with subprocess.Popen(["sh", "-c", command]) as shell:
        pid = until_child(shell.pid)
        assert until_measuring(pid)
        wake(one)
        time.sleep(0.2)  # so that the spinner waits; were it not so, the end would only be easier
        shell.kill()
    return pid


@pytest.mark.slow
def test_under_nohup_it_goes_on(program: Path) -> None:
    pid = _orphan(program, "trap '' HUP; exec", "--intrude")  # whoever else wants the CPU is not what this is about
    assert until_ended(pid, 0.5) is False or pid < 0
    os.kill(pid, signal.SIGKILL)


def test_a_parent_that_has_ended_before_is_noticed(program: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    done = subprocess.run(
        [program, "jitter", "--cpus", str(CPU)],
        env={"TUNECTL_PROBE_PARENT": str(ended.pid)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (1, "tunectl-probe: whoever started it has ended\n")


@pytest.mark.slow
def test_in_a_partition_only_the_workers_are_inside(program: Path, tmp_path: Path) -> None:
    """What enters is a process of its own, whose threads are the workers; all others stay on the other CPUs."""
    procs = tmp_path / "cgroup.procs"
    procs.touch()
    with procs.open("wb", buffering=0) as group:
        argv = [
            str(program),
            "jitter",
            "--intrude",
            "--cpus",
            str(CPU),
            "--duration",
            str(ENDED_BY_TEST_S),
            "--group",
            str(group.fileno()),
        ]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, pass_fds=[group.fileno()]) as child:
            inside = until_child(child.pid)
            until_pinned(inside, CPU)
            assert until_measuring(inside, has_main=False)
            workers, own = threads(inside), threads(child.pid)
            child.terminate()
            document = explained(json.loads(child.communicate(timeout=60)[0]))
    assert procs.read_bytes() == b"0"
    assert [one.allowed for one in workers] == [frozenset({CPU})]
    assert own
    assert all(CPU not in one.allowed for one in own)
    assert document["cpus"][0]["loops"] > 1000
    assert not Path(f"/proc/{inside}").exists()


# --- where threads are hidden, nobody can say whose a CPU is


NAMESPACE = ("unshare", "-m", "-p", "-f", "--mount-proc")
PAIR = f"{min(os.sched_getaffinity(0))},{CPU}"
RUNS = {
    "jitter": ("--cpus", CPU, "--duration", 0.05),
    "wake": ("--cpus", PAIR, "--messages", 100),
    "feed": ("--cpus", PAIR, "--duration", 0.05),
    "hedge": ("--cpus", f"{PAIR},{CPU}", "--duration", 0.05),
    "contention": ("--cpus", PAIR, "--duration", 0.05),
}


@needs_mounts
@pytest.mark.parametrize("command", RUNS)
def test_where_threads_are_hidden_nothing_is_measured(
    probe: Callable[..., subprocess.CompletedProcess[str]], command: str
) -> None:
    done = probe(command, *RUNS[command], prefix=NAMESPACE)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        "tunectl-probe: not every thread of this host can be seen here (hidepid= of /proc, or a"
    )
    assert done.stderr.endswith("run it as root on the host itself, or say --intrude\n")


@needs_mounts
def test_with_intrude_it_measures_without_seeing_whom_it_disturbs(
    probe: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = probe("jitter", "--intrude", *RUNS["jitter"], prefix=NAMESPACE)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@needs_mounts
def test_the_selftest_asks_before_it_takes_a_cpu() -> None:
    argv = [*NAMESPACE, sys.executable, str(TUNECTL), "probe", "selftest", "--cpu", str(CPU)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stdout
    assert "whose the CPUs are is not known" in done.stderr
