"""CPUs switched on and off, and simultaneous multithreading: reported, changed only where the host file says so."""

from __future__ import annotations

from tunectl.knobs.codecs import SWITCH, mapped
from tunectl.knobs.drivers.pseudofile import PseudoFile
from tunectl.knobs.row import Absence, Knob
from tunectl.model import Lifetime, Severity

# Off for good, by the firmware or the command line, or because there is none, is off all the same.
_CONTROL = mapped(
    "smt",
    {"on": "on", "off": "off", "forceoff": "off", "notsupported": "off", "notimplemented": "off"},
    {"on": "on", "off": "off"},
)

KNOBS = (
    Knob(
        "smt.control",
        PseudoFile("sys/devices/system/cpu/smt/control"),
        _CONTROL,
        Lifetime.RUNTIME,
        Severity.SLOWER,
        why="Two threads of one core share its execution units and first caches: a busy sibling slows the other.",
        source="Documentation/ABI/testing/sysfs-devices-system-cpu (smt/control)",
        risk="off takes the sibling CPUs offline: lists that name them no longer fit the host",
    ),
    Knob(
        "cpu.online",
        PseudoFile("sys/devices/system/cpu/cpu{cpu}/online", cpus="isolated, also offline"),
        SWITCH,
        Lifetime.RUNTIME,
        Severity.STALL,
        why="A thread cannot be pinned to a CPU that is off; and one that was off comes back with its idle states, its "
        "governor and its share of the interrupts as the kernel sets them.",
        source="Documentation/core-api/cpu_hotplug.rst",
        after=("smt.control",),
        absence=Absence(with_cpu=True),
        boots_with="on",
    ),
)
