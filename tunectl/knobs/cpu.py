"""CPUs switched on and off."""

from __future__ import annotations

from tunectl.knobs.codecs import SWITCH
from tunectl.knobs.drivers.pseudofile import PseudoFile
from tunectl.knobs.row import Knob
from tunectl.model import Lifetime

KNOBS = (
    Knob(
        "cpu.online",
        PseudoFile("sys/devices/system/cpu/cpu{cpu}/online", cpus="isolated, also offline"),
        SWITCH,
        Lifetime.RUNTIME,
        why="A thread cannot be pinned to a CPU that is off; and one that was off comes back with its idle states, its "
        "governor and its share of the interrupts as the kernel sets them.",
        source="Documentation/core-api/cpu_hotplug.rst",
        after=("smt.control",),
    ),
)
