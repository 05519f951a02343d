"""One fault of QEMU's that the lab knows and can prove, so that a test which met it is played again.

The kernel replaces an instruction by way of a breakpoint whenever a tracepoint or a static key is switched. QEMU drops
its translation of the old code before the new byte is written; a CPU that translates the place between the two keeps
what it read. It may then run a breakpoint that memory no longer holds, which the kernel takes for one just removed: it
steps back, and the CPU meets it again, for ever. Where the kernel is about to write the place once more, it panics.
"""

import re
import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from .shell import LabError
from .vm import Vm

SAMPLES = 20
PAUSE_S = 0.05
MOSTLY = 0.9  # of the samples: a stuck CPU still takes its timer's interrupt
INT3 = 0xCC
# IDT: 16 bytes a vector; the handler's address lies in bytes 0-1, 6-7 and 8-11 of vector 3.
GATE = 3 * 16
GATE_ADDRESS = (11, 10, 9, 8, 7, 6, 1, 0)

Monitor = Callable[[str, int], str]
"""Asks QEMU's monitor a command, as that CPU sees the machine."""


class Cpu(NamedTuple):
    """Where a CPU is."""

    place: int
    halts: bool
    idt: int


def fault(vm: Vm) -> str:
    """What proves that the emulator failed, and not the guest; "" where nothing does."""
    if panicked(vm.console()):
        return "the kernel panicked over a breakpoint that it had taken away"
    if not vm.alive():
        return ""
    try:
        with vm.look() as qmp:
            return stuck(qmp.monitor)
    except (LabError, OSError):
        return ""


def panicked(console: str) -> bool:
    """Whether the kernel met a breakpoint in its own code that nobody had set."""
    return re.search(r"\bint3: 0000 \[#", console) is not None


def stuck(ask: Monitor) -> str:
    """The CPU that does nothing but run into a breakpoint which memory does not hold; "" where there is none."""
    samples = []
    for _ in range(SAMPLES):
        samples.append(_cpus(ask("info registers -a", 0)))
        time.sleep(PAUSE_S)
    handler = _handler(ask, samples[-1][0])
    if not any(one.place == handler for sample in samples for one in sample.values()):
        return ""
    for cpu in samples[-1]:
        places = Counter(sample[cpu].place for sample in samples if not sample[cpu].halts)
        place = max(places.keys() - {handler}, key=lambda one: places[one], default=0)
        # A breakpoint leaves the CPU behind it, or at it again.
        code = _memory(ask, cpu, place - 1, 6)
        if places[place] + places[handler] >= MOSTLY * SAMPLES and code and INT3 not in code[:2]:
            return f"CPU {cpu} runs a breakpoint at {place:x}, where memory holds {code[1:].hex(' ')}"
    return ""


def _handler(ask: Monitor, first: Cpu) -> int:
    """Where a breakpoint leads: the kernel has one IDT for all CPUs."""
    gate = _memory(ask, 0, first.idt + GATE, 12)
    return int.from_bytes(bytes(gate[index] for index in GATE_ADDRESS), "big") if gate else -1


def _cpus(text: str) -> dict[int, Cpu]:
    """The CPUs of `info registers -a`."""
    found = {}
    for block in re.split(r"^CPU#", text, flags=re.MULTILINE)[1:]:
        place = re.search(r"\bRIP=([0-9a-f]+)", block)
        halts = re.search(r"\bHLT=(\d)", block)
        idt = re.search(r"\bIDT= *([0-9a-f]+)", block)
        if place and halts and idt:
            found[int(block.split()[0])] = Cpu(int(place[1], 16), halts[1] == "1", int(idt[1], 16))
    return found


def _memory(ask: Monitor, cpu: int, address: int, size: int) -> bytes:
    """Bytes of the guest's memory at a virtual address; empty where that CPU cannot see them now."""
    words = re.findall(r"\b0x([0-9a-f]{2})\b", ask(f"x/{size}bx {address:#x}", cpu))
    return bytes(int(word, 16) for word in words) if len(words) == size else b""
