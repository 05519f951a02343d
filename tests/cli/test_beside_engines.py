"""Everything that looks at a host, beside running engines, watched by the kernel's own trace. A plain host, no lab.

Needs root, tracefs and two CPUs. `TUNECTL_ENGINE_MINUTES` is how long (default ten, the long set's), shared between the
two scheduling classes. On CPUs that the kernel isolates the engines' run delay is judged as well; elsewhere anybody may
run beside them, and it is printed only.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tunectl.host.cpusets import read_scope_facts
from tunectl.host.sysroot import Sysroot

pytestmark = pytest.mark.long

MINUTES = float(os.environ.get("TUNECTL_ENGINE_MINUTES", "10"))
TUNECTL = Path(sys.executable).with_name("tunectl")
PAIRS = 10
COMMANDS = (
    ("verify",),
    ("check", "--window", "1"),
    ("preflight", "--duration", "1", "--window", "1"),
    ("monitor", "--once"),
)
# Spins until it is killed, or its time is over: one under SCHED_FIFO must not outlive a test that was ended.
_ENGINE = """
import os, sys, time
cpu, priority, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
os.sched_setaffinity(0, {cpu})
if priority:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
open("/proc/self/comm", "w").write(sys.argv[4])
print(flush=True)
end = time.monotonic() + seconds
while time.monotonic() < end:
    pass
"""


class Engine(NamedTuple):
    """One declared thread."""

    name: str
    cpu: int
    process: subprocess.Popen[str]

    def waited_s(self) -> float:
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[1]) / 1e9


@contextmanager
def engines(cpus: Sequence[int], priority: int) -> Iterator[list[Engine]]:
    """One on each of these CPUs."""
    started: list[Engine] = []
    try:
        for number, cpu in enumerate(cpus):
            argv = [sys.executable, "-c", _ENGINE, str(cpu), str(priority), str(MINUTES * 60 + 300), f"engine{number}"]
            child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            started.append(Engine(f"engine{number}", cpu, child))
            assert child.stdout
            if not child.stdout.readline():
                pytest.skip("SCHED_FIFO is not allowed here")
        yield started
    finally:
        for one in started:
            one.process.kill()
            one.process.wait()


class Trace:
    """An instance of the kernel's trace that sees our processes alone, and all that they start."""

    def __init__(self, place: Path) -> None:
        self.place = place
        # An empty list would mean that everything is traced: it begins with a process that has ended.
        with subprocess.Popen(["true"]) as ended:
            pass
        (place / "set_event_pid").write_text(f"{ended.pid}\n")
        (place / "options/event-fork").write_text("1")
        for event in ("sched_switch", "sched_waking"):
            (place / f"events/sched/{event}/enable").write_text("1")

    def join(self) -> None:
        """To be called in a process before its program: it and its children are ours from now on."""
        # Without O_TRUNC, which would forget the others; and no seek, which the file does not know.
        file = os.open(self.place / "set_event_pid", os.O_WRONLY | os.O_APPEND)
        os.write(file, f"{os.getpid()}\n".encode())
        os.close(file)

    def ours_on(self, cpu: int) -> list[str]:
        """Each time that one of ours came to this CPU, or was woken for it."""
        text = (self.place / "trace").read_text(errors="replace")
        return [line for line in text.splitlines() if _is_ours_on(line, cpu)]

    def alive(self) -> list[str]:
        """The processes that are still ours."""
        pids = (self.place / "set_event_pid").read_text().split()
        return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def _is_ours_on(line: str, cpu: int) -> bool:
    # A switch is traced where one of ours comes or goes, a waking where one of ours wakes or is woken.
    if "sched_switch:" in line:
        return f"[{cpu:03}]" in line
    return "sched_waking:" in line and f"target_cpu={cpu:03}" in line and "comm=tunectl" in line


@pytest.fixture
def trace(tmp_path: Path) -> Iterator[Trace]:
    if os.geteuid():
        pytest.skip("tracing needs root")
    place = tmp_path / "tracing"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tracefs", "none", str(place)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no tracefs: {mounted.stderr.strip()}")
    instance = place / "instances" / f"test-{os.getpid()}"
    try:
        instance.mkdir()
        yield Trace(instance)
    finally:
        with suppress(OSError):
            instance.rmdir()
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def cpus() -> list[int]:
    """The engines' CPUs: two, where that leaves a housekeeping CPU."""
    online = sorted(read_scope_facts(Sysroot()).online)
    if len(online) < 2:
        pytest.skip("one CPU")
    quiet = sorted(read_scope_facts(Sysroot()).quiet) or online[1:]
    return quiet[-2:] if len(online) > 2 else quiet[-1:]


def write_host_file(path: Path, running: Sequence[Engine], policy: str, priority: int) -> None:
    threads = "".join(
        f'[[threads]]\nname = "{one.name}"\ncommand = "{one.name}"\ncpu = {one.cpu}\npolicy = "{policy}"\n'
        f"priority = {priority}\nlocked_memory = false\n"
        for one in running
    )
    isolated = ",".join(str(one.cpu) for one in running)
    path.write_text(f'profile = "low-latency"\nisolated = "{isolated}"\nallow_split_siblings = true\n{threads}')


def run(trace: Trace, host: Path, words: Sequence[str], housekeeping: frozenset[int]) -> dict[str, Any]:
    """One command, started where an isolated host starts its programs."""

    def enter() -> None:
        os.sched_setaffinity(0, housekeeping)
        trace.join()

    argv = [str(TUNECTL), "--host", str(host), "--state", str(host.parent / "state"), *words, "--format", "json"]
    done = subprocess.run(argv, capture_output=True, text=True, preexec_fn=enter, timeout=300, check=False)
    assert done.stdout, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def judge(words: Sequence[str], document: dict[str, Any], running: Sequence[Engine]) -> None:
    """No false finding, and no verdict that was not earned."""
    names = [one.name for one in running]
    if words[0] == "preflight":
        assert document["verdict"] in ("unknown", "no-go")
        assert document["probe"] is None
        assert [one["cpu"] for one in document["beside"]] == [one.cpu for one in running]
        assert all(one["percentiles"] == "not measured" for one in document["beside"])
        assert any("--intrude" in reason for reason in document["reasons"])
    found = document["check"]["findings"] if words[0] == "preflight" else document.get("findings", [])
    assert [one for one in found if one["outcome"] == "unreadable" and not one["reason"]] == []
    for one in found:
        if one["knob"] in ("check.tick_off", "check.movable_threads", "check.trading_thread"):
            blamed = one["outcome"] == "drifted" and any(name in one["reason"] for name in names)
            assert not blamed or one["knob"] == "check.tick_off", one
            assert "tunectl" not in one["reason"], one


@pytest.mark.parametrize(("policy", "priority"), [("other", 0), ("fifo", 50)])
def test_nothing_of_ours_comes_near_a_running_engine(
    tmp_path: Path, trace: Trace, cpus: list[int], policy: str, priority: int
) -> None:
    facts = read_scope_facts(Sysroot())
    housekeeping, host = facts.online - set(cpus), tmp_path / "host.toml"
    delays: dict[str, list[float]] = {"with": [], "without": []}
    deadline = time.monotonic() + MINUTES * 60 / 2
    with engines(cpus, priority) as running:
        write_host_file(host, running, policy, priority)
        while time.monotonic() < deadline or not delays["with"]:
            before, started = [one.waited_s() for one in running], time.monotonic()
            for words in COMMANDS:
                judge(words, run(trace, host, words, housekeeping), running)
            took_s = time.monotonic() - started
            between = [one.waited_s() for one in running]
            time.sleep(took_s)
            after = [one.waited_s() for one in running]
            delays["with"].append(max(now - then for then, now in zip(before, between, strict=True)))
            delays["without"].append(max(now - then for then, now in zip(between, after, strict=True)))
            for cpu in cpus:
                assert trace.ours_on(cpu) == []
            (trace.place / "trace").write_text("")
        assert all(one.process.poll() is None for one in running)
    assert trace.alive() == []
    print(f"{policy}: the engines' longest waits, by window: {delays}")
    if facts.kernel_isolated >= set(cpus) and len(delays["with"]) >= PAIRS:
        assert max(delays["with"]) <= max(delays["without"])
