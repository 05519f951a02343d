"""Simultaneous multithreading: reported, and changed only where the host file spells it out."""

from __future__ import annotations

from tunectl.knobs.codecs import mapped
from tunectl.knobs.drivers.pseudofile import PseudoFile
from tunectl.knobs.row import Knob
from tunectl.model import Lifetime

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
        why="Two threads of one core share its execution units and its first caches: a busy sibling is felt.",
        source="Documentation/ABI/testing/sysfs-devices-system-cpu (smt/control)",
        risk="off takes the sibling CPUs offline: lists that name them no longer fit the host",
    ),
)
