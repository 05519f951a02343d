"""Idle states: how long an isolated CPU may take to come back."""

from tunectl.host.guest import read_cpuidle_driver
from tunectl.knobs.codecs import NATURAL, RESUME_LATENCY
from tunectl.knobs.drivers.exitlatency import IdleStates, LatencyHold
from tunectl.knobs.drivers.pseudofile import PseudoFile
from tunectl.knobs.row import Absence, Knob, View
from tunectl.model import Match, Severity

_HARMLESS = Absence(harmless="without cpuidle a CPU that waits halts or polls, and enters no deeper state")


def _without_governor(view: View) -> str:
    """A governor reads the limit when it chooses among a driver's states; the default idle loop does not."""
    if read_cpuidle_driver(view.root):
        return ""
    return "no cpuidle driver is in charge: a CPU that waits halts, and no governor asks for the limit"


KNOBS = (
    Knob(
        "cpuidle.max_latency_us",
        IdleStates(),
        NATURAL,
        Severity.SLOWER,
        match=Match.AT_MOST,
        why="A CPU that sleeps deeply takes its exit latency to answer: tens to hundreds of microseconds. Every state "
        "slower than the limit is disabled on the isolated CPUs.",
        source="Documentation/admin-guide/pm/cpuidle.rst",
        risk="more power when idle; less turbo headroom for the other cores",
        absence=_HARMLESS,
    ),
    Knob(
        "cpuidle.resume_latency_us",
        PseudoFile(
            "sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us", cpus="isolated", idle=_without_governor
        ),
        RESUME_LATENCY,
        Severity.SLOWER,
        match=Match.AT_MOST,
        why="The cpuidle governor's own limit for one CPU; it holds for states that appear later, too.",
        source="Documentation/ABI/testing/sysfs-devices-power; drivers/cpuidle/governor.c",
        risk="more power when idle",
        absence=_HARMLESS,
        boots_with="no constraint",
    ),
    Knob(
        "cpuidle.dma_latency_us",
        LatencyHold(),
        RESUME_LATENCY,
        Severity.SLOWER,
        match=Match.AT_MOST,
        why="A limit for all CPUs, held by a service: housekeeping CPUs, where interrupts of the NIC are served, come "
        "back at once, too. Isolated CPUs have limits of their own. A site's choice: no profile sets it.",
        source="Documentation/admin-guide/pm/cpuidle.rst; kernel/power/qos.c",
        risk="much more power when idle, and less turbo headroom; every idle CPU is woken once when it changes",
    ),
)
