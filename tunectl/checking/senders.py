"""Who interrupts other CPUs, by the kernel's own trace: the events that fire where such an interrupt is sent.

Source: include/trace/events/ipi.h (ipi_send_cpu and ipi_send_cpumask since 6.4, ipi_raise on arm and arm64).
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from tunectl.checking.ipis import PER_S
from tunectl.cpulist import CpuSet, parse_cpumask
from tunectl.errors import UsageError
from tunectl.host.sysroot import Sysroot
from tunectl.host.tracefs import find_place
from tunectl.host.traceinstance import events_of, trace_instance

EVENTS = ("ipi/ipi_send_cpu", "ipi/ipi_send_cpumask", "ipi/ipi_raise")
_TRACED_S = 0.5
# "  rdmsr-612     [001] d..1.   123.456789: ipi_send_cpu: cpu=3 callsite=... callback=..."
_LINE = re.compile(r"\s*(?P<comm>.+)-(?P<pid>\d+)\s+(?:\([^)]*\)\s+)?\[\d+\]\s.*?\d: (?P<event>ipi_\w+): (?P<rest>.*)")
_FIELD = re.compile(r"(\w+)=(\S+)")


class Sender(NamedTuple):
    """Who sent interrupts to one CPU: the process, the code that sent them, and what the CPU had to run."""

    comm: str
    pid: int
    callsite: str
    callback: str
    times: int


def trace_senders(root: Sysroot, cpus: CpuSet) -> str:
    """The trace of half a second, of what was sent from `cpus`. OSError where tracing is not ours; "" without events.

    It disturbs: see host/traceinstance.py.
    """
    place = find_place(root)
    events = events_of(root, place, EVENTS) if place else []
    if not place or not events:
        return ""
    with trace_instance(root, place, events, cpus) as instance:
        instance.switch(True)
        time.sleep(_TRACED_S)
        instance.switch(False)
        return instance.text()


def busy_senders(text: str, cpu: int, without: int) -> list[Sender]:
    """Those of senders_to() that by themselves sent more than a quiet CPU takes."""
    return [one for one in senders_to(text, cpu, without) if one.times > PER_S * _TRACED_S]


def senders_to(text: str, cpu: int, without: int) -> list[Sender]:
    """Who sent something to a CPU, the busiest first, by a trace's text. `without` is the pid of who traced."""
    found: Counter[tuple[str, int, str, str]] = Counter()
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None or int(match["pid"]) == without:
            continue
        fields = dict(_FIELD.findall(match["rest"]))
        if cpu in _targets(fields):
            who = match["comm"].strip(), int(match["pid"])
            found[*who, _function(fields.get("callsite", "")), _function(fields.get("callback", ""))] += 1
    return [Sender(*key, times) for key, times in found.most_common()]


def _targets(fields: dict[str, str]) -> Iterable[int]:
    if fields.get("cpu", "").isdecimal():
        return (int(fields["cpu"]),)
    with suppress(UsageError):
        return parse_cpumask(fields.get("cpumask") or fields.get("target_mask") or "0")
    return ()


def _function(symbol: str) -> str:
    """`generic_exec_single` of `generic_exec_single+0x36/0x110`; "" for none, and for 0x0."""
    name = symbol.partition("+")[0]
    return "" if name.startswith("0x") else name
