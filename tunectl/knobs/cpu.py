"""CPUs switched on and off, and simultaneous multithreading: reported, changed only where the host file says so."""

from typing import Any

from tunectl import kinds
from tunectl.fix import APPLY, in_turn, to_decide, to_type
from tunectl.knobs.codecs import SWITCH, mapped
from tunectl.knobs.drivers.pseudofile import PseudoFile
from tunectl.knobs.row import Absence, Facts, Judgement, Knob, judge_value
from tunectl.model import Outcome, Reading, Severity

# Off for good, by the firmware or the command line, or because there is none, is off all the same.
_CONTROL = mapped(
    "smt",
    {"on": "on", "off": "off", "forceoff": "off", "notsupported": "off", "notimplemented": "off"},
    {"on": "on", "off": "off"},
)

_SMT = "sys/devices/system/cpu/smt/control"


def _judge_online(knob: Knob, desired: Any, reading: Reading, _: Facts) -> Judgement:
    """With SMT off the kernel refuses (EPERM) to switch on any thread of a core but its first.

    Which one that is cannot be seen of a CPU that is off. kernel/cpu.c, cpu_bootable().
    """
    judged = judge_value(knob, desired, reading)
    if judged.outcome is not Outcome.DRIFTED or not desired or reading.facts not in ("off", "forceoff"):
        return judged
    reason = f"/{_SMT} is {reading.facts}, and with that the kernel leaves the second thread of each core off"
    others = f"take CPU {reading.instance} out of `isolated` in the host file"
    if reading.facts == "off":
        note = f"or, where SMT is to be off, {others}"
        return judged._replace(reason=reason, fix=in_turn(to_type(kinds.smt_on(), note), APPLY))
    fix = to_decide(f"boot without nosmt=force, and with SMT on in the firmware; or {others}")
    return judged._replace(reason=reason, fix=fix)


KNOBS = (
    Knob(
        "smt.control",
        PseudoFile(_SMT),
        _CONTROL,
        Severity.SLOWER,
        why="Two threads of one core share its execution units and first caches: a busy sibling slows the other.",
        source="Documentation/ABI/testing/sysfs-devices-system-cpu (smt/control)",
        risk="off takes the sibling CPUs offline: lists that name them no longer fit the host",
    ),
    Knob(
        "cpu.online",
        PseudoFile(
            "sys/devices/system/cpu/cpu{cpu}/online",
            cpus="isolated, also offline",
            facts=lambda view: view.root.get(_SMT),
        ),
        SWITCH,
        Severity.STALL,
        why="A thread cannot be pinned to a CPU that is off; and one that was off comes back with its idle states, its "
        "governor and its share of the interrupts as the kernel sets them.",
        source="Documentation/core-api/cpu_hotplug.rst",
        after=("smt.control",),
        absence=Absence(with_cpu=True),
        boots_with="on",
        judge=_judge_online,
    ),
)
