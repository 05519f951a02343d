"""Heat: what counts it, what it is held against, what cools and how that ends. No isolated CPU is disturbed.

Nothing is opened that makes another CPU answer: no MSR, no coretemp, no x86_pkg_temp. The throttle counters of isolated
CPUs the kernel keeps in memory.
Source: drivers/thermal/intel/therm_throt.c, Documentation/driver-api/thermal/sysfs-api.rst.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tunectl.command import write
from tunectl.fix import NOTHING, Fix, in_turn, to_decide, to_type
from tunectl.host.plausible import COOLING, TEMPERATURE, TRIP, Range, plausible
from tunectl.host.sysroot import Sysroot

_CPU = "sys/devices/system/cpu"
THERMAL = "sys/class/thermal"
# These zones read an MSR on a CPU of their own choice (x86_pkg_temp_thermal.c, processor_thermal_device.c).
DISTURBING_ZONES = frozenset({"x86_pkg_temp", "TCPU", "TCPU_PCI", "B0D4"})
# A trip of these kinds stops the host, or warns of it; an active one starts a fan, a passive one what is bound to it.
_STOPPING_TRIPS = frozenset({"hot", "critical"})
# Cooling devices that slow CPUs or keep them idle; the others are fans, radios and displays.
SLOWING_COOLERS = ("Processor", "intel_powerclamp", "cpufreq-", "cpuidle-", "thermal-cpufreq-", "thermal-idle-")
# Of these, those that force idle time. Whoever writes their cur_state starts them; no CPU need be hot for it.
_IDLE_INJECTORS = ("intel_powerclamp", "cpuidle-", "thermal-idle-")
# Where CPUs are too hot.
ADVICE = to_decide("look for a failed fan, dust, a power cap or a hot aisle; check the BMC's event log")


def injects_idle(kind: str) -> bool:
    """Does a cooling device of this type force idle time, and leave the clock alone?"""
    return kind.startswith(_IDLE_INJECTORS)


def cooling_advice(devices: Mapping[str, str], *, hot: bool | None = None) -> Fix:
    """What ends the work of cooling devices, name -> type: heat is looked for only where heat must be the cause.

    `hot`: is a zone at a trip that slows the CPUs? None where that is not known.
    Source: Documentation/admin-guide/thermal/intel_powerclamp.rst.
    """
    by_hand = [name for name, kind in devices.items() if hot is False or injects_idle(kind)]
    files = [f"/{THERMAL}/{name}/cur_state" for name in by_hand]
    again = "where it starts again, see who asks for it: thermald, a script, a thermal zone whose trip was lowered"
    written = to_type(write("0", *files), again)
    heat = NOTHING if devices and len(by_hand) == len(devices) else ADVICE
    return in_turn(written if by_hand else NOTHING, heat)


# How often each CPU saw its core, or its package, throttled since boot: ("core", 4) -> 7.
Throttles = Mapping[tuple[str, int], int]
_TRIP_TYPE = r"trip_point_[0-9]+_type"
_SLOWS = ("passive", True)


class Capping(NamedTuple):
    """A cooling device that holds clocks down now; `package` is None where it does not say whose."""

    name: str
    kind: str
    state: int
    package: int | None
    hot: bool | None  # None: not known


def _number(root: Sysroot, path: str) -> int | None:
    text = root.get(path).strip()
    return int(text) if re.fullmatch(r"-?[0-9]+", text) else None


def read_throttles(root: Sysroot, cpus: Iterable[int]) -> Throttles:
    """What these CPUs count now; empty where none does. No CPU is asked: the kernel keeps these in memory."""
    keys = [(whose, cpu) for cpu in cpus for whose in ("core", "package")]
    return {key: count for key in keys if (count := _number(root, throttle_path(key[1], key[0]))) is not None}


def throttle_path(cpu: int, whose: str) -> str:
    """The count of a CPU's core, or of its package."""
    return f"{_CPU}/cpu{cpu}/thermal_throttle/{whose}_throttle_count"


def quiet_zones(root: Sysroot) -> dict[str, str]:
    """{name: type} of the zones whose temperature no CPU is asked for."""
    return {name: kind for name, kind in _of_class(root, "thermal_zone").items() if kind not in DISTURBING_ZONES}


def slowing_coolers(root: Sysroot) -> dict[str, str]:
    """{name: type} of the cooling devices that slow CPUs or keep them idle."""
    kinds = _of_class(root, "cooling_device")
    return {name: kind for name, kind in kinds.items() if kind.startswith(SLOWING_COOLERS)}


def _of_class(root: Sysroot, prefix: str) -> dict[str, str]:
    names = sorted(name for name in root.listdir(THERMAL) if name.startswith(prefix))
    return {name: root.get(f"{THERMAL}/{name}/type").strip() for name in names}


def states_of(root: Sysroot, cooler: str) -> Range:
    """What the state of a cooling device can be: never above its own max_state, where it says one."""
    return COOLING.up_to(_number(root, f"{THERMAL}/{cooler}/max_state"))


def lowest_trip(root: Sysroot, zone: str) -> int | None:
    """The lowest temperature, in thousandths of a degree, at which a zone slows the CPUs or stops the host.

    None where there is none: a passive trip slows the CPUs only by a cooling device of theirs that is bound to it, and
    of a zone that is disabled the kernel heeds no trip (Documentation/driver-api/thermal/sysfs-api.rst).
    """
    if root.get(f"{zone}/mode").strip() == "disabled":
        return None
    files = root.listdir(zone)
    kinds = {name[:-5]: root.get(f"{zone}/{name}").strip() for name in files if re.fullmatch(_TRIP_TYPE, name)}
    devices = [name for name in files if re.fullmatch(r"cdev[0-9]+", name)]
    bound = [name for name in devices if root.get(f"{zone}/{name}/type").strip().startswith(SLOWING_COOLERS)]
    slowing = {f"trip_point_{_number(root, f'{zone}/{name}_trip_point')}" for name in bound}
    effective = [name for name, kind in kinds.items() if kind in _STOPPING_TRIPS or (kind, name in slowing) == _SLOWS]
    temps = (plausible(_number(root, f"{zone}/{name}_temp"), TRIP) for name in effective)
    return min((temp for temp in temps if temp is not None), default=None)


def read_capping(root: Sysroot) -> tuple[Capping, ...]:
    """The cooling devices that hold the clock of CPUs down now. Never raises.

    ACPI's (`Processor`) acts on every CPU of its own CPU's package (drivers/acpi/processor_thermal.c,
    cpufreq_set_cur_state).
    """
    kinds = {name: kind for name, kind in slowing_coolers(root).items() if not injects_idle(kind)}
    states = {name: plausible(_number(root, f"{THERMAL}/{name}/cur_state"), states_of(root, name)) for name in kinds}
    at_work = {name: state for name, state in states.items() if state and state > 0}
    zones = [f"{THERMAL}/{name}" for name in quiet_zones(root)] if at_work else []
    hot = is_hot((plausible(_number(root, f"{zone}/temp"), TEMPERATURE), lowest_trip(root, zone)) for zone in zones)
    capping = []
    for name, state in at_work.items():
        cpu = root.readlink(f"{THERMAL}/{name}/device/physical_node").rpartition("/")[2]
        capping.append(Capping(name, kinds[name], state, package_of(root, cpu.removeprefix("cpu")), hot))
    return tuple(capping)


def is_hot(zones: Iterable[tuple[float | None, float | None]]) -> bool | None:
    """Is a zone, its temperature and its trip, at a trip that slows the CPUs? None where no zone has both."""
    known = [(temperature, trip) for temperature, trip in zones if temperature is not None and trip is not None]
    return any(temperature >= trip for temperature, trip in known) if known else None


def package_of(root: Sysroot, cpu: str) -> int | None:
    """The package of a CPU, by its number; None where that is not known."""
    return _number(root, f"{_CPU}/cpu{cpu}/topology/physical_package_id") if cpu.isdecimal() else None
