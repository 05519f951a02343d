"""The pure judges and the readings below them."""

import os
import threading
from pathlib import Path

import psutil
import pytest

from tests.checking.fake_kernel import KTHREAD, FakeKernel, Process
from tests.hosts.builder import build_named
from tests.trees import write
from tunectl.checking.window import Counters, Window, device_name, housekeeping_siblings, some
from tunectl.host.interrupts import parse_interrupts
from tunectl.host.procs import (
    hidden_threads,
    parse_allowed,
    parse_schedstat,
    parse_stat,
    read_pids,
    read_thread,
    read_threads,
)
from tunectl.host.sysroot import Sysroot


@pytest.mark.parametrize(
    ("description", "name"),
    [
        ("PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0", "virtio1-req.0"),
        ("PCI-MSI 524288-edge      nvme0q0, nvme0q1", "nvme0q0, nvme0q1"),
        ("IR-IO-APIC    9-fasteoi   acpi", "acpi"),
        ("GICv3  78 Level     eth0", "eth0"),
        ("IO-APIC   2-edge      timer", "timer"),
        ("XT-PIC  cascade", "XT-PIC  cascade"),
        ("PCI-MSI 7-edge      name of several words", "name of several words"),
        ("", ""),
    ],
)
def test_device_name(description: str, name: str) -> None:
    assert device_name(description) == name


def test_some() -> None:
    assert some(["a", "b"]) == "a; b"
    assert some(str(n) for n in range(7)) == "0; 1; 2; 3; 4 and 2 more"


def test_housekeeping_siblings() -> None:
    assert housekeeping_siblings(frozenset({2, 18}), frozenset({2})) == {18}
    assert housekeeping_siblings(frozenset({2, 18}), frozenset({2, 18})) == frozenset()
    assert housekeeping_siblings(frozenset({4, 20}), frozenset({2})) == frozenset()


def _counters(at: float, text: str, idle: dict[int, float] | None = None) -> Counters:
    return Counters(at, parse_interrupts(text), idle or {}, {}, "tsc")


def test_a_cpu_that_came_or_went_does_not_mix_up_the_columns() -> None:
    before = _counters(0.0, "     CPU0 CPU1 CPU2\n 30: 5 6 7 PCI 1-edge eth0\nLOC: 1 1 1 Local timer interrupts\n")
    after = _counters(2.0, "     CPU0 CPU2\n 30: 5 9 PCI 1-edge eth0\nLOC: 1 21 Local timer interrupts\n")
    window = Window(before, after)
    assert not window.still
    assert window.interrupts_on(2) == {"30": 2, "LOC": 20}
    assert window.interrupts_on(1) == {}
    assert window.timer_interrupts(2) == 20
    assert window.timer_interrupts(1) is None


def test_parse_stat_takes_any_name_and_refuses_what_is_none() -> None:
    rest = " ".join(
        ["S 1 0 0 0 -1 2097216 0 0 0 0 7 2", *["0"] * 22, "17 5 50 1"]
    )  # from field 38 on: a signal, the CPU, priority, policy
    thread = parse_stat(f"42 (a) b (c) {rest}", 40)
    assert thread
    assert (thread.pid, thread.tid, thread.comm, thread.cpu) == (40, 42, "a) b (c", 5)
    assert (thread.policy, thread.rt_priority) == (1, 50)
    assert thread.kernel
    assert thread.movable
    assert parse_stat("", 1) is None
    assert parse_stat("42 (x) S 1", 1) is None


def test_schedstat_and_affinity_may_be_absent() -> None:
    assert parse_schedstat("2000000000 5 7\n") == (2.0, 5e-9, 7)
    assert parse_schedstat("") == (0.0, 0.0, 0)
    assert parse_allowed("Name:\tx\nCpus_allowed_list:\t0-1,3\n") == frozenset({0, 1, 3})
    assert parse_allowed("Name:\tx\n") is None


@pytest.mark.parametrize("groups", [0, 300, 65_536])
def test_the_cpus_of_a_thread_are_known_whatever_groups_it_is_in(tmp_path: Path, groups: int) -> None:
    names = " ".join(str(1_000_000_000 + number) for number in range(groups))
    place = "proc/77/task/77"
    write(tmp_path, f"{place}/stat", f"77 (engine) S {' '.join(['0'] * 40)}\n")
    status = f"Name:\tengine\nGroups:\t{names} \nCpus_allowed_list:\t3\nnonvoluntary_ctxt_switches:\t5\n"
    write(tmp_path, f"{place}/status", status)
    thread = read_thread(Sysroot(str(tmp_path)), 77, 77, affinity=True)
    assert thread
    assert (thread.allowed, thread.preempted) == (frozenset({3}), 5)


def test_this_thread_is_where_the_kernel_says() -> None:
    """The running kernel's own answers: where this thread runs, and where it may."""
    thread = read_thread(Sysroot(), os.getpid(), threading.get_native_id(), affinity=True)
    assert thread
    assert thread.state == "R"
    assert thread.allowed == frozenset(os.sched_getaffinity(0))
    assert thread.cpu in thread.allowed
    assert not thread.kernel
    assert thread.movable
    assert thread.run_s > 0


@pytest.mark.skipif(bool(hidden_threads(Sysroot())), reason="not every thread can be seen here")
def test_threads_of_the_running_host_without_our_own() -> None:
    threads = read_threads(Sysroot())
    assert os.getpid() not in {pid for pid, _ in threads}
    kthreadd = threads[2, 2]
    assert kthreadd.comm == "kthreadd"
    assert kthreadd.kernel
    bound = [thread for thread in threads.values() if thread.kernel and thread.comm.startswith("ksoftirqd/")]
    assert bound
    assert not any(thread.movable for thread in bound)
    assert all(thread.comm == f"ksoftirqd/{thread.cpu}" for thread in bound)


def test_psutil_looks_at_the_recorded_host_and_is_given_back(tmp_path: Path) -> None:
    host = build_named(tmp_path / "host", "lab4")
    before = psutil.PROCFS_PATH
    with FakeKernel(host, range(4), processes=[Process(777, "worker", 3, "3", flags=KTHREAD)]):
        root = Sysroot(str(host))
        assert 777 in read_pids(root)
        assert read_threads(root)[777, 777].cpu == 3
    assert before == psutil.PROCFS_PATH
    assert read_pids(Sysroot(str(tmp_path))) == []
