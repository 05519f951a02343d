"""The raw pages of a trace buffer, made up as the kernel lays them out (include/linux/ring_buffer.h)."""

import random
import struct
import time

import pytest

from tunectl.probe.causes import Cause, Interruption, Kind, Lost, State, Switch, Work, join
from tunectl.probe.tracepages import Kernel, events, events_lost, function_at

COMMON = """format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

"""
PAGE = """\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
"""
# As Linux 6.18 has them, but for the masks of prev_state, which stand there in full.
FORMATS = {
    "irq_vectors/local_timer_entry": f"name: local_timer_entry\nID: 165\n{COMMON}"
    "\tfield:int vector;\toffset:8;\tsize:4;\tsigned:1;\n\n"
    'print fmt: "vector=%d", REC->vector\n',
    "irq/irq_handler_entry": f"name: irq_handler_entry\nID: 225\n{COMMON}"
    "\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n\n"
    'print fmt: "irq=%d name=%s", REC->irq, __get_str(name)\n',
    "irq/softirq_entry": f"name: softirq_entry\nID: 223\n{COMMON}"
    "\tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n\n"
    'print fmt: "vec=%u [action=%s]", REC->vec, __print_symbolic(REC->vec, { 0, "HI" }, { 1, "TIMER" })\n',
    "sched/sched_switch": f"name: sched_switch\nID: 372\n{COMMON}"
    "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
    "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
    "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
    "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
    "\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
    "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"
    "\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\n"
    'print fmt: "prev_state=%s%s", __print_flags(REC->prev_state & 0xff, "|", { 0x00000001, "S" }, '
    '{ 0x00000002, "D" }, { 0x00000004, "T" }, { 0x00000008, "t" }) : "R", REC->prev_state & 0x100 ? "+" : ""\n',
    "tlb/tlb_flush": f"name: tlb_flush\nID: 188\n{COMMON}"
    "\tfield:int reason;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:unsigned long pages;\toffset:16;\tsize:8;\tsigned:0;\n\n"
    'print fmt: "reason:%s", __print_symbolic(REC->reason, { 0, "flush on task switch" }, { 1, "remote shootdown" })\n',
    "nmi/nmi_handler": f"name: nmi_handler\nID: 170\n{COMMON}"
    "\tfield:void * handler;\toffset:8;\tsize:8;\tsigned:0;\n"
    "\tfield:s64 delta_ns;\toffset:16;\tsize:8;\tsigned:1;\n\n"
    'print fmt: "%ps()", REC->handler\n',
    "workqueue/workqueue_execute_start": f"name: workqueue_execute_start\nID: 335\n{COMMON}"
    "\tfield:void * work;\toffset:8;\tsize:8;\tsigned:0;\n"
    "\tfield:void * function;\toffset:16;\tsize:8;\tsigned:0;\n\n"
    'print fmt: "work struct %p: function %ps", REC->work, REC->function\n',
}
SYMBOLS = "ffffffff81000000 T _text\nffffffff81234567 t vmstat_update\nffffffffc0001000 t poke\t[mod]\n"
KERNEL = Kernel(PAGE, FORMATS, SYMBOLS)
OWN = 700


def body(number: int, fields: bytes, pid: int = OWN) -> bytes:
    return struct.pack("<HBBi", number, 0, 0, pid) + fields


def record(delta: int, event: bytes) -> bytes:
    padded = event + bytes(-len(event) % 4)
    if len(padded) <= 28 * 4:
        return struct.pack("<I", delta << 5 | len(padded) // 4) + padded
    return struct.pack("<II", delta << 5, len(padded) + 4) + padded


def page(stamp: int, *records: bytes, flags: int = 0) -> bytes:
    data = b"".join(records)
    return struct.pack("<QQ", stamp, len(data) | flags) + data


def timer(pid: int = OWN) -> bytes:
    return body(165, struct.pack("<i", 236), pid)


def switch(left: int, right: int, state: int = 0, name: bytes = b"worker", before: bytes = b"x") -> bytes:
    return body(372, struct.pack("<16siiq16sii", before, left, 120, state, name, right, 120))


TIMER = Interruption(Cause(Kind.TIMER, "local timer"))
LONG = b"a-name-that-is-very-long-" * 5


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (timer(), TIMER),
        (
            body(225, struct.pack("<iHH", 36, 16, 13) + b"virtio1-req.0\0"),
            Interruption(Cause(Kind.IRQ, "irq 36 virtio1-req.0")),
        ),
        (
            body(225, struct.pack("<iHH", 36, 16, 126) + LONG + b"\0"),
            Interruption(Cause(Kind.IRQ, f"irq 36 {LONG.decode()}")),
        ),
        (body(225, struct.pack("<iHH", 36, 900, 13)), Interruption(Cause(Kind.IRQ, "irq 36"))),
        (body(223, struct.pack("<I", 1)), Interruption(Cause(Kind.SOFTIRQ, "softirq TIMER"))),
        (body(223, struct.pack("<I", 77)), Interruption(Cause(Kind.SOFTIRQ, "softirq 77"))),
        (switch(OWN, 9, 0x100), Switch(OWN, State.READY, 9, Cause(Kind.THREAD, "thread worker"))),
        (switch(OWN, 9, 0x4), Switch(OWN, State.STOPPED, 9, Cause(Kind.THREAD, "thread worker"))),
        (switch(OWN, 9, 0x8), Switch(OWN, State.STOPPED, 9, Cause(Kind.THREAD, "thread worker"))),
        (switch(OWN, 9, 0x2), Switch(OWN, State.ASLEEP, 9, Cause(Kind.THREAD, "thread worker"))),
        (
            switch(OWN, 9, name=b"\xff ==> [1]\0rest"),
            Switch(OWN, State.READY, 9, Cause(Kind.THREAD, "thread \\xff ==> [1]")),
        ),
        (body(188, struct.pack("<iiq", 1, 0, 3)), Interruption(Cause(Kind.IPI, "TLB shootdown"))),
        (body(188, struct.pack("<iiq", 0, 0, 3)), None),  # interrupts nobody
        (body(170, struct.pack("<Qq", 0xFFFFFFFFC0001000, 5)), Interruption(Cause(Kind.NMI, "NMI poke"))),
        (body(335, struct.pack("<QQ", 1, 0xFFFFFFFF81234567)), Work(Cause(Kind.WORK, "work vmstat_update"))),
        (body(335, struct.pack("<QQ", 1, 0xFFFFFFFF81234568)), Work(Cause(Kind.WORK, "work 0xffffffff81234568"))),
        (body(999, bytes(12)), None),  # of a kind that nobody asked for
    ],
)
def test_each_kind_of_event_says_what_it_is(event: bytes, said: object) -> None:
    assert list(events([page(10**15, record(7, event), record(5, timer()))], KERNEL)) == [
        *([(10**15 + 7, said)] if said else []),
        (10**15 + 12, TIMER),
    ]


def test_time_goes_on_by_deltas_extensions_and_stamps() -> None:
    top = 3 << 59
    extended = struct.pack("<II", 5 << 5 | 30, 2)  # 2 * 2^27 + 5 later
    stamp = struct.pack("<II", 9 << 5 | 31, 1 << 20)  # the moment itself, without its uppermost bits
    taken_back = struct.pack("<II", 4 << 5 | 29, 12) + bytes(8)
    empty = struct.pack("<I", 29)
    made = page(
        top + 1000,
        record(1, timer()),
        extended,
        record(0, timer()),
        taken_back,
        stamp,
        record(3, timer()),
        empty,
        bytes(400),
    )
    assert [ticks for ticks, _ in events([made], KERNEL)] == [
        top + 1001,
        top + 1001 + (2 << 27) + 5,
        top + (1 << 47) + 9 + 3,
    ]


def test_a_page_says_that_events_before_it_were_lost_and_who_runs() -> None:
    made = [
        page(100, record(0, timer())),
        page(500, record(2, timer(41)), record(3, timer(41)), flags=1 << 31 | 1 << 30),
    ]
    assert list(events(made, KERNEL)) == [(100, TIMER), (502, Lost(41)), (502, TIMER), (505, TIMER)]


def test_any_bytes_are_survived() -> None:
    draw = random.Random(5)
    whole = page(
        10**15, *[record(7, one) for one in (timer(), switch(OWN, 9), body(225, struct.pack("<iHH", 3, 16, 4)))] * 9
    )
    for _ in range(2000):
        mangled = bytearray(whole[: draw.randrange(len(whole) + 1)])
        for _ in range(draw.randrange(6)):
            if mangled:
                mangled[draw.randrange(len(mangled))] = draw.randrange(256)
        list(events([bytes(mangled)], KERNEL))
    assert list(events([whole], Kernel("", dict.fromkeys(FORMATS, ""), ""))) == []


def test_what_was_lost_is_counted() -> None:
    stats = "entries: 3161\noverrun: 4\ncommit overrun: 1\nbytes: 9\ndropped events: 30\nread events: 7\n"
    assert events_lost(stats) == 35
    assert events_lost(stats, with_unread=True) == 3196
    assert events_lost("") == 0


def test_functions_have_names() -> None:
    assert function_at(SYMBOLS, 0xFFFFFFFF81000000) == "_text"
    assert function_at(SYMBOLS.rstrip(), 0xFFFFFFFFC0001000) == "poke"
    assert function_at("", 0x10) == "0x10"


def million() -> tuple[list[bytes], list[list[int]]]:
    """A million events: a timer, a softirq, a switch to one of thirty threads, and back; and their 200,000 gaps."""
    pages, gaps, records, begin, at = [], [], [], 10**15, 10**15
    softirq, back = body(223, struct.pack("<I", 1)), switch(9, OWN)
    others = [switch(OWN, 10 + n, name=b"kworker/%d" % n) for n in range(30)]
    for n in range(200_000):
        made = (30_000, timer()), (900, softirq), (800, others[n % 30]), (4_000, timer(9)), (5_000, back)
        gaps.append([at + 29_000, at + 30_000 + 900 + 800 + 4_000 + 5_300])
        records += [record(delta, event) for delta, event in made]
        at += 40_700
        if n % 20 == 19:
            pages.append(page(begin, *records))
            records, begin = [], at
    return pages, gaps


@pytest.mark.long
def test_a_million_events_are_attributed_within_five_seconds() -> None:
    pages, gaps = million()
    started = time.process_time()
    joined = join(gaps, events(pages, KERNEL), OWN, 1e9)
    took = time.process_time() - started
    assert (joined.events, joined.apart, len(joined.of_gap)) == (1_000_000, 0, 200_000)
    assert {cause.first.kind for cause in joined.causes} == {Kind.THREAD}
    assert took < 5
