"""Who may be where, and who keeps whom from a CPU: each condition on both sides. On values alone."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from tests.checking.fake_kernel import BOUND, KTHREAD
from tests.checking.test_window_rules import RX, TX, between, thread, trader
from tunectl.checking.kthreads import Placement, Server, Servers, knob_of, moved_away, needless, outranked
from tunectl.checking.placing import misplaced
from tunectl.checking.residue import hidden_probes, residue
from tunectl.checking.traders import (
    Defaults,
    cpus_for,
    declared_scheduling,
    local_nodes,
    neighbours,
    paired,
    pollers,
    starved,
    strangers,
    to_tell_apart,
)
from tunectl.checking.window import Trespass
from tunectl.cpulist import CpuSet
from tunectl.host.cpus import NumaNode
from tunectl.host.interrupts import Irq
from tunectl.host.openfiles import Polled
from tunectl.host.procs import Thread
from tunectl.host.scheduling import Scheduling
from tunectl.host.tracefs import Trace, Tracing


def cpus(*numbers: int) -> CpuSet:
    return frozenset(numbers)


# ---- kernel threads

PLACED = Placement(
    cpus(2, 3), cpus(0, 1, 2, 3), cpus(), cpus(), [cpus(0, 1, 2, 3)], cpus(0, 1), {33: cpus(0), 34: cpus(2)}
)
KEPT = {"kept": cpus(2, 3)}
OF_NODES = {"kept_from_nodes": cpus(2, 3)}
EVERYWHERE, WIDE = cpus(0, 1, 2, 3), cpus(1, 2)


@pytest.mark.parametrize(
    ("comm", "more", "placed", "is_needless"),
    [
        ("rcu_sched", {"allowed": cpus(2)}, {}, True),
        ("rcu_sched", {"allowed": cpus(2, 9)}, {}, True),  # 9 is not there
        ("rcu_sched", {"allowed": cpus(3)}, {}, False),
        ("rcu_sched", {"allowed": WIDE}, {}, False),
        ("rcu_sched", {"allowed": WIDE}, KEPT, True),
        ("rcu_sched", {"allowed": WIDE}, OF_NODES, False),
        ("rcu_sched", {"allowed": None}, KEPT, False),
        ("rcu_sched", {"allowed": cpus(2), "flags": BOUND}, KEPT, False),
        ("kworker/u8:1", {"allowed": EVERYWHERE}, KEPT, False),
        ("kworker/u8:1", {"allowed": EVERYWHERE}, {"workqueues": EVERYWHERE}, True),
        ("kworker/2:1", {"allowed": cpus(2)}, KEPT, False),
        ("irq/33-eth0", {"allowed": cpus(2)}, {}, True),
        ("irq/33-eth0", {"allowed": EVERYWHERE}, {}, True),
        ("irq/34-eth0", {"allowed": cpus(2)}, KEPT, False),  # its interrupt comes there
        ("irq/35-eth0", {"allowed": cpus(2)}, KEPT, False),  # nobody knows of its interrupt
        ("kswapd0", {"allowed": EVERYWHERE, "cpu": 2}, {}, False),
        ("kswapd0", {"allowed": EVERYWHERE, "cpu": 2}, KEPT, True),
        ("kswapd0", {"allowed": EVERYWHERE, "cpu": 1}, KEPT, False),
        ("kswapd0", {"allowed": EVERYWHERE, "cpu": 1}, OF_NODES, True),
        ("kswapd0", {"allowed": WIDE, "cpu": 1}, KEPT, True),  # not as the kernel has it
        ("kswapd0", {"allowed": cpus(2), "cpu": 2}, {}, True),
    ],
)
def test_a_kernel_thread_that_need_not_be_there(
    comm: str, more: dict[str, Any], placed: Mapping[str, Any], is_needless: bool
) -> None:
    one = thread(**{"comm": comm, "flags": KTHREAD, **more})
    assert needless(one, 2, PLACED._replace(**placed)) is is_needless


@pytest.mark.parametrize(
    ("comm", "flags", "knob"),
    [
        ("rcu_sched", KTHREAD, "kthread.affinity"),
        ("kswapd0", KTHREAD, "kthread.node_affinity"),
        ("kworker/u8:1", KTHREAD, ""),
        ("irq/33-eth0", KTHREAD, ""),
        ("feed", 0, ""),
    ],
)
def test_the_knob_that_moves_a_kernel_thread(comm: str, flags: int, knob: str) -> None:
    assert knob_of(thread(comm=comm, flags=flags)) == knob


# ---- declared threads


def names(found: Mapping[str, tuple[Thread, ...]]) -> dict[str, list[int]]:
    return {name: [one.tid for one in threads] for name, threads in found.items()}


A, B, C = (RX._replace(name=name, cpu=cpu) for name, cpu in (("a", 2), ("b", 3), ("c", 4)))


@pytest.mark.parametrize(
    ("threads", "shared"),
    [
        ([thread(1, 2), thread(2, 3), thread(3, 4)], {"a": [1], "b": [2], "c": [3]}),
        ([thread(1, 4), thread(2, 3), thread(3, 2)], {"a": [3], "b": [2], "c": [1]}),
        ([thread(1, 2), thread(2, 3)], {"a": [1], "b": [2], "c": []}),
        ([thread(1, 0), thread(2, 3)], {"a": [1], "b": [2], "c": []}),
        ([thread(1, 0), thread(2, 1)], {"a": [1], "b": [2], "c": []}),
        ([thread(1, 2), thread(2, 2), thread(3, 3)], {"a": [1, 2], "b": [3], "c": []}),
        ([thread(1, 2), thread(2, 3), thread(3, 0), thread(4, 1)], {"a": [1], "b": [2], "c": [3, 4]}),
        ([], {"a": [], "b": [], "c": []}),
    ],
)
def test_threads_of_one_name_go_to_who_declares_their_cpu(threads: list[Thread], shared: dict[str, list[int]]) -> None:
    found = tuple(threads)
    assert names(paired([A, B, C], {"a": found, "b": found, "c": found})) == shared


def test_one_declaration_keeps_all_that_it_fits() -> None:
    found = (thread(1, 2), thread(2, 3))
    assert names(paired([A, TX._replace(thread="tx")], {"a": found, "tx": (thread(3),)})) == {"a": [1, 2], "tx": [3]}


@pytest.mark.parametrize(
    ("declared", "threads", "units", "says"),
    [
        (
            {"unit": "", "command": "x"},
            [{"pid": 1}, {"pid": 2}],
            {1: "a.service", 2: "b.service"},
            'unit = "a.service" (tid 1)',
        ),
        (
            {"unit": "", "command": "x", "thread": ""},
            [{"pid": 1}, {"pid": 2}],
            {1: "a.service"},
            'thread = "t1" (tid 1)',
        ),
        (
            {"unit": "", "command": "x"},
            [{"pid": 1}, {"pid": 2}],
            {1: "a.service", 2: "a.service"},
            "tid 2 another name",
        ),
        ({"thread": ""}, [{"pid": 1}, {"pid": 2}], {1: "a.service", 2: "b.service"}, 'thread = "t1" (tid 1)'),
        ({"thread": ""}, [{"comm": "y"}, {"comm": "y"}], {}, "tid 2 another name"),
        ({}, [{"allowed": cpus(0)}, {}], {}, "tid 1 another name"),
        ({}, [{}, {"allowed": cpus(0)}], {}, "tid 2 another name"),
        ({}, [{"allowed": cpus(0)}, {"allowed": cpus(1)}], {}, "tid 2 another name"),
    ],
)
def test_how_two_threads_are_told_apart(
    declared: dict[str, Any], threads: list[dict[str, Any]], units: dict[int, str], says: str
) -> None:
    fits = [thread(number, **more) for number, more in enumerate(threads, start=1)]
    assert says in str(to_tell_apart(RX._replace(**declared), fits, units, {}))


@pytest.mark.parametrize(
    ("more", "fixes"),
    [
        ({}, []),
        ({"allowed": cpus(2, 3)}, ["sudo taskset -cp 2 7"]),
        ({"allowed": None}, ["sudo taskset -cp 2 7"]),
        ({"rt_priority": 49}, ["sudo chrt -f -p 50 7"]),
        ({"policy": 2}, ["sudo chrt -f -p 50 7"]),
        ({"allowed": cpus(3), "policy": 0, "rt_priority": 0}, ["sudo taskset -cp 2 7", "sudo chrt -f -p 50 7"]),
    ],
)
def test_what_is_not_as_declared(more: dict[str, Any], fixes: list[str]) -> None:
    found = misplaced(RX, thread(**{"policy": 1, "rt_priority": 50, **more}))
    assert [str(fix) for _, fix in found] == fixes
    assert declared_scheduling(RX) == Scheduling("fifo", 50)


def test_a_stranger_is_not_declared_for_this_cpu() -> None:
    here, other = thread(1), thread(2)
    found = [Trespass(run, pinned=True) for run in between((here, here), (other, other)).runs]
    traders = [trader(here), trader(other, declared=TX)]  # declared for CPUs 2 and 3
    assert [one.run.thread.tid for one in strangers(found, traders, 2)] == [2]
    assert [one.run.thread.tid for one in strangers(found, traders, 3)] == [1]


def test_neighbours_are_the_others_on_the_core() -> None:
    every = [trader(), trader(declared=TX), trader(declared=TX._replace(name="no", cpu=9))]
    assert neighbours(every[0], every, cpus(2, 3)) == ["tx on CPU 3"]
    assert neighbours(every[0], every, cpus(2, 18)) == []


def node(number: int, of: CpuSet, memory: int | None, *distances: int) -> NumaNode:
    return NumaNode(number, of, memory, distances)


@pytest.mark.parametrize(
    ("memory", "local"),
    [((1, 1, 1), {1}), ((1, 0, 1), {2}), ((0, 0, 1), {2}), ((0, 0, 0), {1}), ((1, None, 1), {2}), ((1, 0, 0), {0})],
)
def test_the_local_node_is_the_nearest_with_memory(memory: tuple[int | None, ...], local: set[int]) -> None:
    nodes = [
        node(0, cpus(0, 1), memory[0], 10, 30, 40),
        node(1, cpus(2, 3), memory[1], 30, 10, 20),
        node(2, cpus(4), memory[2], 40, 20, 10),
    ]
    assert local_nodes(nodes, cpus(2)) == local
    assert local_nodes(nodes, cpus()) == frozenset()


# ---- what feeds them


def irq(number: int, effective: CpuSet, *, affinity: CpuSet | None = None, settable: bool | None = True) -> Irq:
    return Irq(number, "eth0", "", effective if affinity is None else affinity, effective, settable)


def server(number: int, on: CpuSet, priority: int = 50, comm: str = "") -> Server:
    return Server(thread(number, comm=comm or f"irq/{number}-eth0", flags=KTHREAD, policy=1, rt_priority=priority), on)


@pytest.mark.parametrize(
    ("of", "line", "is_there"),
    [
        (cpus(2), irq(33, cpus(0)), True),
        (cpus(0), irq(33, cpus(2)), True),  # it will be, with the next interrupt
        (cpus(0), irq(33, cpus(2), settable=None), True),
        (cpus(0), irq(33, cpus(2), settable=False), False),
        (cpus(2), irq(33, cpus(2), settable=False), True),
        (cpus(0), irq(33, cpus(0)), False),
        (cpus(2), irq(34, cpus(2)), False),
    ],
)
def test_the_thread_of_an_interrupt_is_or_will_be_on_a_cpu(of: CpuSet, line: Irq, is_there: bool) -> None:
    one, own = server(33, of), server(2, cpus(2), 0, "ksoftirqd/2")
    every = Servers((one,), (own, server(3, cpus(3), 0, "ksoftirqd/3")), True)
    assert every.of(2, [line]) == ([one] if is_there else [])
    assert every.on(2, [line]) == ([one, own] if is_there else [])
    hides = line.irq == 33
    assert Servers((server(33, cpus()),)).hidden([line]) == ([server(33, cpus())] if hides else [])
    assert every.hidden([line]) == []


def test_who_is_outranked_has_no_higher_rank() -> None:
    every = [server(number, cpus(2), number) for number in (49, 50, 51)]
    assert outranked(every, Scheduling("fifo", 50)) == every[:2]


@pytest.mark.parametrize(
    ("on", "line", "fixes"),
    [
        (cpus(2), irq(33, cpus(2)), ["echo 0-1 | sudo tee /proc/irq/33/smp_affinity_list", "taskset -cp 0-1 33"]),
        (cpus(2), irq(33, cpus(0)), ["taskset -cp 0-1 33"]),
        (cpus(0), irq(33, cpus(2)), ["echo 0-1 | sudo tee /proc/irq/33/smp_affinity_list"]),
        (cpus(2), irq(33, cpus(2), settable=False), ["taskset -cp 0-1 33"]),
        (cpus(2), irq(33, cpus(), affinity=cpus(2)), ["tee /proc/irq/33/smp_affinity_list", "taskset -cp 0-1 33"]),
        (cpus(2), irq(34, cpus(2)), []),
    ],
)
def test_what_moves_a_server_away(on: CpuSet, line: Irq, fixes: list[str]) -> None:
    said = str(moved_away([server(33, on)], [line], 2, "0-1"))
    assert [word in said for word in fixes] == [True] * len(fixes)
    assert said.count("sudo") == len(fixes)


NIC = SimpleNamespace(name="eth0", irqs=(33, 34, 99))


@pytest.mark.parametrize(
    ("lines", "servers", "found"),
    [
        ([irq(33, cpus(2))], (), ["interrupt 33 of eth0"]),
        ([irq(33, cpus(0))], (), []),
        ([irq(35, cpus(2))], (), []),  # of another card
        ([irq(33, cpus(2))], (server(33, cpus(2), 50),), ["irq/33-eth0 (pid 33, fifo 50) of eth0"]),
        ([irq(33, cpus(2))], (server(33, cpus(2), 51),), []),
    ],
)
def test_what_a_real_time_thread_starves(lines: list[Irq], servers: tuple[Server, ...], found: list[str]) -> None:
    known = {one.irq: one for one in lines}
    assert starved(trader(thread()), [], [NIC], known, Servers(servers)) == found  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("more", "fed_by", "is_starved"),
    [
        ({"cpu": 2, "allowed": cpus(0, 2)}, ("tx",), True),
        ({"cpu": 0, "allowed": cpus(2)}, ("tx",), True),
        ({"cpu": 0, "allowed": cpus(0, 2)}, ("tx",), False),
        ({"cpu": 2, "allowed": cpus(2)}, (), False),
    ],
)
def test_the_thread_that_feeds_it_on_its_cpu(more: dict[str, Any], fed_by: tuple[str, ...], is_starved: bool) -> None:
    own, feeder = trader(declared=RX._replace(fed_by=fed_by)), trader(thread(9, **more), declared=TX)
    assert starved(own, [own, feeder], [], {}, Servers()) == (["tx (tid 9)"] if is_starved else [])


# ---- busy polling


@pytest.mark.parametrize(
    ("one", "defaults", "is_polled"),
    [
        (Polled(False, 50), Defaults(0, 0), True),
        (Polled(False, 0), Defaults(0, 50), False),
        (Polled(True, 0), Defaults(0, 50), True),
        (Polled(True, 0), Defaults(50, 0), False),
        (Polled(True, 64), Defaults(0, 0), True),
    ],
)
def test_what_is_really_polled(one: Polled, defaults: Defaults, is_polled: bool) -> None:
    assert pollers([one], defaults) == ([one] if is_polled else [])


def test_threads_are_on_no_more_cpus_than_there_are() -> None:
    wide, two, both = cpus(2, 3, 4), cpus(2), cpus(2, 3)
    assert [cpus_for([thread(n, allowed=wide) for n in range(count)]) for count in (0, 1, 3, 5)] == [0, 1, 3, 3]
    pairs: list[list[CpuSet | None]] = [[two, two], [two, both], [two, None]]
    assert [cpus_for([thread(n, allowed=one) for n, one in enumerate(pair)]) for pair in pairs] == [1, 2, 2]


# ---- what was left on

NOTHING_ON = Tracing("t", (Trace("", "t", "nop", ()),), (), False, False, ())


@pytest.mark.parametrize(
    ("found", "fixes"),
    [
        (NOTHING_ON, []),
        (NOTHING_ON._replace(traces=(Trace("", "t", "", ()),)), []),
        (NOTHING_ON._replace(traces=(Trace("", "t", "function", ()),)), ["echo nop | sudo tee /t/current_tracer"]),
        (NOTHING_ON._replace(traces=(Trace("", "t", "nop", ("a:b",)),)), ["echo | sudo tee /t/set_event"]),
        (NOTHING_ON._replace(traces=(Trace("i", "t/i", "function", ("a:b",)),)), ["sudo rmdir /t/i"]),
        (NOTHING_ON._replace(traces=(Trace("i", "t/i", "nop", ()),)), []),
        (NOTHING_ON._replace(traces=(Trace("used", "t/used", "function", ("a:b",)),)), []),
        (NOTHING_ON._replace(probes=(("kprobe_events", "k:p"),)), []),
        (NOTHING_ON._replace(profiled=True), ["echo 0 | sudo tee /t/function_profile_enabled"]),
        (NOTHING_ON._replace(stack=True), ["sudo sysctl kernel.stack_tracer_enabled=0"]),
    ],
)
def test_what_somebody_left_on(found: Tracing, fixes: list[str]) -> None:
    assert [str(one.fix) for one in residue(found, {"used": "perf"})] == fixes


def test_probes_that_are_on_are_taken_out_of_their_file() -> None:
    probes = (("kprobe_events", "k:on"), ("kprobe_events", "k:off"), ("uprobe_events", "u:on"))
    on = NOTHING_ON._replace(traces=(Trace("", "t", "nop", ("k:on", "u:on")),), probes=probes, armed=("do_x",))
    assert [one.what for one in residue(on, {})][-2:] == [
        "probes of kprobe_events: k:on",
        "probes of uprobe_events: u:on",
    ]
    assert hidden_probes(on) == ()
    assert hidden_probes(on._replace(traces=NOTHING_ON.traces)) == ("do_x",)
