"""Intel's uncore: the clock of the last-level cache and the mesh, a die at a time."""

import re

from tunectl.cpulist import CpuSet
from tunectl.knobs.codecs import KHZ
from tunectl.knobs.drivers.pseudofile import PseudoFile
from tunectl.knobs.row import Absence, Knob, View
from tunectl.model import Severity

_DIE = "sys/devices/system/cpu/intel_uncore_frequency/{name}"
_WORDS = (("hardware-max", f"{_DIE}/initial_max_freq_khz"), ("hardware-min", f"{_DIE}/initial_min_freq_khz"))
_SOURCE = "Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst"
_ABSENCE = Absence(modules=("intel_uncore_frequency", "intel_uncore_frequency_tpmi"))
_MSR_DIE = re.compile(r"package_([0-9]+)_die_[0-9]+")


def read_on(view: View, instance: str) -> CpuSet:
    """The CPUs that a reading may interrupt: an MSR is read on a CPU of its die; `uncoreNN` (TPMI) is memory, so none.

    The driver asks the CPU of the die that came online first (uncore-frequency.c, uncore_event_cpu_online):
    with CPUs switched off and on that may be any, so all of the package are named.
    """
    match = _MSR_DIE.fullmatch(instance)
    if match is None:
        return frozenset()
    path = "sys/devices/system/cpu/cpu{}/topology/physical_package_id"
    here = {cpu for cpu in view.scope.online if view.root.get(path.format(cpu)) == str(int(match[1]))}
    return frozenset(here)


def _row(name: str, severity: Severity, file: str, why: str, risk: str, after: tuple[str, ...] = ()) -> Knob:
    driver = PseudoFile(f"{_DIE}/{file}", words=_WORDS, interrupts=read_on)
    return Knob(f"uncore.{name}", driver, KHZ, severity, why, _SOURCE, risk, after=after, absence=_ABSENCE)


KNOBS = (
    _row(
        "max_khz",
        Severity.SLOWER,
        "max_freq_khz",
        "A program that lowers this cap slows every miss of a core's own caches; the core's clock does not show it.",
        "more power and heat under load",
    ),
    _row(
        "min_khz",
        Severity.SLOWER,
        "min_freq_khz",
        "The uncore's clock follows the load of the whole die: on a quiet host it is low, and each access to the "
        "last-level cache and to memory takes longer. A floor at the top holds it.",
        "tens of watts a socket, also when idle, and less turbo headroom for the cores",
        ("uncore.max_khz",),
    ),
)
