"""The trace beside a run: what the native program is told, what the kernel's pages say, what a killed run leaves."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tunectl.host.sysroot import Sysroot
from tunectl.host.tracefs import sweep
from tunectl.probe.attribution import CpuTrace, Traced
from tunectl.probe.explain import explained
from tunectl.probe.tracing import Tracer

from .samples import raw_cpu, raw_run
from .test_attribution import MOUNT, tracing, within
from .test_tracepages import KERNEL, page, record, switch, timer

__all__ = ["tracing"]

AT = "sys/kernel/tracing"


@pytest.fixture
def tracefs(tmp_path: Path) -> Path:
    """A mounted tracefs, as far as a directory is one: new instances have no files in them."""
    (tmp_path / AT / "instances").mkdir(parents=True)
    (tmp_path / AT / "current_tracer").write_text("nop\n")
    process = tmp_path / "proc" / str(os.getpid())
    process.mkdir(parents=True)
    (tmp_path / "proc/self").symlink_to(process.name)
    (process / "stat").write_text(Path("/proc/self/stat").read_text())
    return tmp_path


def test_where_nothing_can_be_traced_the_probe_measures_and_the_reason_is_said(tracefs: Path) -> None:
    with Tracer(Sysroot(str(tracefs))) as tracer:
        assert tracer.answer("tunectl-probe: some words") is None
        assert tracer.answer(f"ready {os.getpid()} 1:7") == "go\n"
        assert tracer.answer("done") == ""
        assert "instance of the kernel's tracing cannot be made in /sys/kernel/tracing" in tracer.result().reason
    assert list((tracefs / AT / "instances").iterdir()) == []
    with Tracer(Sysroot(str(tracefs / "proc"))) as tracer:
        assert tracer.answer("ready 1 1:7") == "go\n"
        assert "tracefs is not mounted" in tracer.result().reason


def test_only_the_instances_of_dead_processes_are_swept(tracefs: Path) -> None:
    root = Sysroot(str(tracefs))
    start = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    mine, others = f"tunectl-{os.getpid()}-{start}", ("somebody", "tunectl-x-1", "tunectl-5")
    dead = (f"tunectl-{os.getpid()}-{int(start) - 1}", "tunectl-4194305-77")
    for name in (mine, *others, *dead):
        (tracefs / AT / "instances" / name).mkdir()
    sweep(root)
    assert {path.name for path in (tracefs / AT / "instances").iterdir()} == {mine, *others}
    sweep(Sysroot(str(tracefs / "proc")))  # no tracefs there


def test_a_document_says_the_cause_of_each_gap_once() -> None:
    raw = raw_run(raw_cpu(2, (1000, 9000), (20_000, 21_000), (30_000, 31_000)))
    pages = [page(0, record(1100, timer()), record(100, switch(700, 9, 4)), record(7000, switch(9, 700)))]
    pages.append(page(20_000, record(100, timer())))
    traced = Traced("", KERNEL, {2: CpuTrace(700, pages, 0, False)}, 4096, 80)
    document = explained(raw, traced)
    outside = "not the kernel: hypervisor, SMI or hardware"
    assert document["labels"] == ["stopped by a signal + local timer", "local timer", outside]
    (cpu,) = document["cpus"]
    assert cpu["events"] == [[1000, 9000, 0], [20_000, 21_000, 1], [30_000, 31_000, 2]]
    first = {"kind": "stop", "name": "stopped by a signal", "count": 1, "total_ns": 8000, "max_ns": 8000}
    assert cpu["causes"][0] == {"cause": "stopped by a signal + local timer", **first}
    assert cpu["trace"] == {"events": 4, "events_apart": 0, "events_lost": 0}
    assert document["attribution"]["event_cost_ns"] == 80
    assert document["warnings"] == []


def test_what_is_not_known_is_said() -> None:
    raw = raw_run(raw_cpu(2, (1000, 9000)))
    lost = explained(raw, Traced("", KERNEL, {2: CpuTrace(700, [], 5, True)}, 4096, None, "/sys/instance"))
    assert lost["labels"] == ["not known: events of the trace were lost"]
    assert "events of the trace were lost on CPU 2" in lost["warnings"][-2]
    assert "/sys/instance could not be removed" in lost["warnings"][-1]
    assert lost["attribution"]["event_cost_ns"] is None
    none = explained(raw, Traced("no reason"))
    assert none["attribution"] == {"method": "counters", "reason": "no reason"}
    assert (none["labels"], none["cpus"]) == ([""], explained(raw)["cpus"])
    assert "single interruptions have no named cause: no reason" in none["warnings"][-1]


# Records what this process does on its CPU, and prints what the kernel's own text says of it, and what the pages say.
BOTH = r"""
import json, os, re, time
from tunectl.host.sysroot import Sysroot
from tunectl.host.tracefs import OwnInstance, TracePipe, events_of
from tunectl.probe.tracepages import WANTED, Kernel, events
root, place = Sysroot(), "sys/kernel/tracing"
cpu = max(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cpu})
instance = OwnInstance(root, place)
try:
    instance.confine(frozenset({cpu}))
    instance.write("trace_clock", "x86-tsc")
    known = events_of(root, place, WANTED)
    for event in known:
        instance.write(f"events/{event}/enable", "1")
    instance.switch(True)
    for _ in range(40):
        time.sleep(0.002)
    instance.switch(False)
    text = instance.text()
    pipe, pages = TracePipe(instance, cpu), []
    while page := pipe.take():
        pages.append(page)
    pipe.close()
finally:
    instance.remove()
formats = {event: root.read_text(f"{place}/events/{event}/format") for event in known}
kernel = Kernel(root.read_text(f"{place}/events/header_page"), formats, root.read_text("proc/kallsyms"))
line = re.compile(r"^.{16}-\d+ .*?\[\d+\] \S+ +(\d+): (\w+): (.*)$", re.MULTILINE)
said = [one for one in line.findall(text) if one[1] != "tlb_flush" or "remote shootdown" in one[2]]
print(json.dumps([said, [[ticks, repr(what)] for ticks, what in events(pages, kernel)]]))
"""


@pytest.mark.usefixtures("tracing")
@pytest.mark.slow
@pytest.mark.pins
def test_the_pages_say_what_the_kernels_own_text_says() -> None:
    argv = within(MOUNT, sys.executable, "-c", BOTH)
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    text, pages = json.loads(done.stdout)
    assert len(text) > 40
    assert [int(ticks) for ticks, _, _ in text] == [ticks for ticks, _ in pages]
    for (_, event, details), (_, what) in zip(text, pages, strict=True):
        if event == "sched_switch":
            name = details.partition(" ==> next_comm=")[2].rpartition(" next_pid=")
            assert f"name={f'thread {name[0]}'!r}" in what
            assert f"next={name[2].split()[0]}," in what
        elif event == "softirq_entry":
            assert f"softirq {details.partition('action=')[2].rstrip(']')}" in what
        elif event == "workqueue_execute_start":
            assert f"work {details.split()[-1]}" in what
