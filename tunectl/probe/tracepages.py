"""The raw pages of a CPU's trace buffer, and what the events in them say. Pure: bytes in, values out; any are survived.

A page begins with a stamp and its length; each event has 27 bits of time since the one before, and longer times have
records of their own. Where a field of an event is, and what its numbers mean, the kernel says in text.
Source: include/linux/ring_buffer.h (enum ring_buffer_type), kernel/trace/ring_buffer.c (ring_buffer_read_page),
events/header_page and events/*/*/format.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from tunectl.probe.causes import Cause, Event, Happening, Interruption, Kind, Lost, State, Switch, Work

_LENGTH = (1 << 27) - 1  # of the word behind a page's stamp
_MISSED = 1 << 31
_DATA_MOST, _EXTENDED, _STAMP = 28, 30, 31  # type_len; 29 is padding
_TOP = 0x1F << 59  # bits of a stamp that its record has no room for
_FIELD = re.compile(r"field:[^;]*?\s(\w+)(?:\[\d*\])?;\s*offset:(\d+);\s*size:(\d+);")
_NUMBER = re.compile(r"^ID: (\d+)$", re.MULTILINE)
_SYMBOL = re.compile(r'\{ (0x[0-9a-f]+|\d+), "([^"]*)" \}')
_COUNTER = re.compile(r"^([a-z ]+): (\d+)$", re.MULTILINE)

# Events that need no details to be named. Entries only: where an interruption ends, the probe's own stamp tells, and
# each event more is time taken from the CPU.
_PLAIN = {
    "irq_vectors/local_timer_entry": Cause(Kind.TIMER, "local timer"),
    "irq_vectors/reschedule_entry": Cause(Kind.IPI, "reschedule IPI"),
    "irq_vectors/call_function_entry": Cause(Kind.IPI, "function call IPI"),
    "irq_vectors/call_function_single_entry": Cause(Kind.IPI, "function call IPI"),
    "irq_vectors/irq_work_entry": Cause(Kind.IPI, "irq_work"),
    "irq_vectors/thermal_apic_entry": Cause(Kind.IRQ, "thermal interrupt"),
    "irq_vectors/threshold_apic_entry": Cause(Kind.IRQ, "machine check threshold interrupt"),
    "irq_vectors/deferred_error_apic_entry": Cause(Kind.IRQ, "deferred machine check interrupt"),
    "irq_vectors/error_apic_entry": Cause(Kind.IRQ, "APIC error interrupt"),
    "irq_vectors/spurious_apic_entry": Cause(Kind.IRQ, "spurious interrupt"),
    "irq_vectors/x86_platform_ipi_entry": Cause(Kind.IPI, "platform IPI"),
    "exceptions/page_fault_user": Cause(Kind.FAULT, "page fault"),
    "exceptions/page_fault_kernel": Cause(Kind.FAULT, "page fault"),
}


class Field(NamedTuple):
    """Where a field of an event is, in bytes from its begin."""

    offset: int
    size: int

    def number(self, event: bytes) -> int:
        """As an unsigned one."""
        return int.from_bytes(event[self.offset : self.offset + self.size], "little")

    def text(self, event: bytes) -> str:
        """Up to its NUL."""
        return _text(event[self.offset : self.offset + self.size])


class Format(NamedTuple):
    """A text like events/sched/sched_switch/format."""

    number: int
    fields: Mapping[str, Field]
    symbols: Mapping[int, str]  # what numbers of the printed text mean


def parse_format(text: str) -> Format | None:
    """None for any other text."""
    number = _NUMBER.search(text)
    printed = text.partition("print fmt:")[2]
    symbols = {int(value, 0): name for value, name in _SYMBOL.findall(printed)}
    return Format(int(number[1]), _fields(text), symbols) if number else None


class Layout(NamedTuple):
    """Of a page: where its length stands, and where its events begin."""

    length: Field
    data: int

    def used(self, page: bytes) -> int:
        """The bytes of it that hold anything."""
        return self.data + (self.length.number(page) & _LENGTH)


def _apart(words: memoryview, at: int, ticks: int) -> tuple[int, int]:
    """The stamp and the place behind a record that is no event."""
    head = words[at]
    if head & 31 == _EXTENDED:
        return ticks + (head >> 5) + (words[at + 1] << 27), at + 2
    if head & 31 == _STAMP:
        return (head >> 5) + (words[at + 1] << 27) | ticks & _TOP, at + 2
    if head >> 5:  # an event that was taken back
        return ticks, at + 1 + ((words[at + 1] + 3) >> 2)
    return ticks, len(words)  # the rest of the page is empty


def with_a_hole(page: bytes, layout: Layout) -> bytes:
    """The same page, which says that events before it were lost."""
    length = layout.length
    marked = (length.number(page) | _MISSED).to_bytes(length.size, "little")
    return page[: length.offset] + marked + page[length.offset + length.size :]


def parse_page(text: str) -> Layout:
    """A text like events/header_page; a 64-bit kernel's for any other."""
    fields = _fields(text)
    return Layout(fields.get("commit", Field(8, 8)), fields.get("data", Field(16, 0)).offset)


class _Reader(NamedTuple):
    """One kind of event: the bytes that say what it is, what those that came so far mean, and how others are read."""

    start: int
    stop: int  # 0: to the end of the event
    known: dict[bytes, Happening | None]
    say: Callable[[bytes], Happening | None]  # of an event from its begin on


class Kernel(NamedTuple):
    """How the running kernel writes its trace: its texts events/header_page, of each event, and /proc/kallsyms."""

    page: str
    formats: Mapping[str, str]  # system/event -> format
    symbols: str


def events(pages: Iterable[bytes], kernel: Kernel) -> Iterator[Event]:
    """What happened on a CPU, in the order of time; events of other kinds are left out."""
    layout = parse_page(kernel.page)
    readers = dict(_readers(kernel))
    for page in pages:
        with suppress(IndexError):  # one that is cut short
            yield from _of_page(page, layout, readers)


def _of_page(page: bytes, layout: Layout, readers: Mapping[int, _Reader]) -> Iterator[Event]:
    """Words of 32 bits: a header with the type and the time, then the event."""
    words = memoryview(page[: len(page) & ~3]).cast("I")
    ticks = int.from_bytes(page[:8], "little")
    at, end = layout.data >> 2, min(layout.used(page) >> 2, len(words))
    is_lost = bool(layout.length.number(page) & _MISSED)
    while at < end:
        head = words[at]
        kind = head & 31
        if kind <= _DATA_MOST:
            ticks += head >> 5
            start = at + 1 if kind else at + 2
            at += 1 + (kind or max((words[at + 1] + 3) >> 2, 1))
            if is_lost:
                is_lost = False
                yield ticks, Lost(words[start + 1])
            reader = readers.get(words[start] & 0xFFFF)
            if reader is None:
                continue
            offset = start << 2
            key = page[offset + reader.start : offset + reader.stop if reader.stop else at << 2]
            if key in reader.known:
                what = reader.known[key]
            else:
                what = reader.known[key] = reader.say(bytes(reader.start) + key)
            if what is not None:
                yield ticks, what
        else:
            ticks, at = _apart(words, at, ticks)


def events_lost(stats: str, with_unread: bool = False) -> int:
    """From a text like per_cpu/cpuN/stats: how many events found no room, were overwritten, or stayed there unread."""
    kinds = ("overrun", "commit overrun", "dropped events") + ("entries",) * with_unread
    return sum(int(count) for kind, count in _COUNTER.findall(stats) if kind in kinds)


def _fields(text: str) -> dict[str, Field]:
    return {name: Field(int(offset), int(size)) for name, offset, size in _FIELD.findall(text)}


def _readers(kernel: Kernel) -> Iterator[tuple[int, _Reader]]:
    for event, text in kernel.formats.items():
        form = parse_format(text)
        if form is None:
            continue
        if event in _PLAIN:
            yield form.number, _Reader(1, 1, {}, partial(_plain, _PLAIN[event]))
        elif event in _SAYING:
            names, say = _SAYING[event]
            known = [form.fields[name] for name in names if name in form.fields]
            if len(known) == len(names):
                stop = 0 if event == _IRQ else known[-1].offset + known[-1].size
                yield form.number, _Reader(known[0].offset, stop, {}, partial(say, form, kernel.symbols))


Say = Callable[[Format, str, bytes], Happening | None]


def _plain(cause: Cause, _: bytes) -> Happening:
    return Interruption(cause)


def _irq(form: Format, _: str, event: bytes) -> Happening:
    """Its name is behind the fields: `__data_loc`, 16 bits of length and 16 of offset."""
    place = form.fields["name"].number(event)
    name = _text(event[place & 0xFFFF : (place & 0xFFFF) + (place >> 16)])
    return Interruption(Cause(Kind.IRQ, f"irq {form.fields['irq'].number(event)} {name}".rstrip()))


def _softirq(form: Format, _: str, event: bytes) -> Happening:
    number = form.fields["vec"].number(event)
    return Interruption(Cause(Kind.SOFTIRQ, f"softirq {form.symbols.get(number, number)}"))


def _nmi(form: Format, symbols: str, event: bytes) -> Happening:
    return Interruption(Cause(Kind.NMI, f"NMI {function_at(symbols, form.fields['handler'].number(event))}"))


def _work(form: Format, symbols: str, event: bytes) -> Happening:
    return Work(Cause(Kind.WORK, f"work {function_at(symbols, form.fields['function'].number(event))}"))


def _flush(form: Format, _: str, event: bytes) -> Happening | None:
    """Flushes that come with a switch or with the thread's own calls interrupt nobody."""
    is_remote = form.symbols.get(form.fields["reason"].number(event)) == "remote shootdown"
    return Interruption(Cause(Kind.IPI, "TLB shootdown")) if is_remote else None


def _switch(form: Format, _: str, event: bytes) -> Happening:
    fields = form.fields
    left = fields["prev_state"].number(event)
    letters = {name for value, name in form.symbols.items() if len(name) == 1 and left & value}
    state = State.STOPPED if letters & set("Tt") else State.ASLEEP if letters else State.READY
    cause = Cause(Kind.THREAD, f"thread {fields['next_comm'].text(event)}")
    return Switch(fields["prev_pid"].number(event), state, fields["next_pid"].number(event), cause)


_IRQ = "irq/irq_handler_entry"
# The fields that say what it is, from the first to the last, and how.
_SAYING: Mapping[str, tuple[tuple[str, ...], Say]] = {
    _IRQ: (("irq", "name"), _irq),
    "irq/softirq_entry": (("vec",), _softirq),
    "nmi/nmi_handler": (("handler",), _nmi),
    "sched/sched_switch": (("prev_pid", "prev_state", "next_comm", "next_pid"), _switch),
    "tlb/tlb_flush": (("reason",), _flush),
    "workqueue/workqueue_execute_start": (("function",), _work),
}
# The events to ask for; a kernel has only some of them.
WANTED = (*_PLAIN, *_SAYING)


def function_at(symbols: str, address: int) -> str:
    """The function that begins there, by a text like /proc/kallsyms; its address where that does not tell."""
    head = f"{address:016x} "
    at = 0 if symbols.startswith(head) else symbols.find("\n" + head) + 1
    if not at and not symbols.startswith(head):
        return f"{address:#x}"
    return symbols[at : (symbols.find("\n", at) + 1 or len(symbols) + 1) - 1].split()[2]


def _text(name: bytes) -> str:
    return name.partition(b"\0")[0].decode("utf-8", "backslashreplace")
