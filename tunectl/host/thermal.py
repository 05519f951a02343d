"""Reads the thermal state of the host without disturbing an isolated CPU.

Nothing is opened that makes another CPU answer: no MSR, no coretemp, no x86_pkg_temp, no cpuinfo_cur_freq, and
base_frequency, nominal_freq and scaling_cur_freq of housekeeping CPUs only. What is read of isolated CPUs (throttle
counters, limits, lists of frequencies) the kernel keeps in memory.
Source: drivers/thermal/intel/therm_throt.c, drivers/cpufreq/cpufreq.c, Documentation/driver-api/thermal/sysfs-api.rst.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tunectl.command import write
from tunectl.fix import NOTHING, Fix, in_turn, to_decide, to_type
from tunectl.host.cpus import read_cpus
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.interrupts import parse_interrupts
from tunectl.host.plausible import COOLING, FREQUENCY, TEMPERATURE, TRIP, plausible
from tunectl.host.sysroot import Sysroot
from tunectl.model import Scope

_CPU = "sys/devices/system/cpu"
THERMAL = "sys/class/thermal"
# These zones read an MSR on a CPU of their own choice (x86_pkg_temp_thermal.c, processor_thermal_device.c).
_DISTURBING_ZONES = frozenset({"x86_pkg_temp", "TCPU", "TCPU_PCI", "B0D4"})
# A trip of these kinds stops the host, or warns of it; an active one starts a fan, a passive one what is bound to it.
_STOPPING_TRIPS = frozenset({"hot", "critical"})
# Cooling devices that slow CPUs or keep them idle; the others are fans, radios and displays.
SLOWING_COOLERS = ("Processor", "intel_powerclamp", "cpufreq-", "cpuidle-", "thermal-cpufreq-", "thermal-idle-")
# Of these, those that force idle time. Whoever writes their cur_state starts them; no CPU need be hot for it.
_IDLE_INJECTORS = ("intel_powerclamp", "cpuidle-", "thermal-idle-")
# Where CPUs are too hot.
ADVICE = to_decide("look for a failed fan, dust, a power cap or a hot aisle; check the BMC's event log")


class Place(NamedTuple):
    """Where a CPU sits; `core` is the lowest of the CPUs on its physical core, for core numbers repeat."""

    package: int
    core: int


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


class Limits(NamedTuple):
    """The highest frequency the firmware and the kernel now permit a CPU, in kHz; None where there is no such file."""

    bios_khz: int | None
    max_khz: int | None


class Base(NamedTuple):
    """A CPU's base frequency and the file it was taken from."""

    khz: int
    source: str


class Zone(NamedTuple):
    """A thermal zone; `trip_mc` is its lowest trip that slows the CPUs. Thousandths of a degree Celsius."""

    kind: str
    temp_mc: int | None
    trip_mc: int | None


class Cooling(NamedTuple):
    """A cooling device; state 0 is no cooling."""

    kind: str
    state: int
    max_state: int


class Capping(NamedTuple):
    """A cooling device that holds clocks down now; `package` is None where it does not say whose."""

    name: str
    kind: str
    state: int
    package: int | None
    hot: bool | None  # None: not known


@dataclass(frozen=True)
class ThermalSample:
    """The thermal state at one moment. An empty mapping means that this host has no such thing."""

    places: Mapping[int, Place] = field(default_factory=dict)
    throttles: Throttles = field(default_factory=dict)
    thermal_interrupts: Mapping[int, int] = field(default_factory=dict)  # TRM by CPU
    limits: Mapping[int, Limits] = field(default_factory=dict)  # of the isolated CPUs
    base: Mapping[int, Base] = field(default_factory=dict)  # of the isolated CPUs
    housekeeping_khz: Mapping[int, int] = field(default_factory=dict)
    zones: Mapping[str, Zone] = field(default_factory=dict)
    cooling: Mapping[str, Cooling] = field(default_factory=dict)


def read_thermal(root: Sysroot, scope: Scope) -> ThermalSample:
    """The thermal state now. What is absent or cannot be read is left out; TunectlError where there is no CPU at all.

    Without isolated CPUs every CPU is judged.
    """
    # The base frequency is asked of a CPU that may be interrupted: `quiet` names those that may not.
    cpus = {cpu.cpu: cpu for cpu in read_cpus(root, read_scope_facts(root), (), scope.isolated) if cpu.online}
    judged = sorted(scope.isolated & cpus.keys()) or sorted(cpus)
    housekeeping = sorted(scope.housekeeping & cpus.keys())
    limits = {cpu: limit for cpu in judged if (limit := _limits(root, cpu)) != Limits(None, None)}
    current = {cpu: _number(root, f"{_CPU}/cpu{cpu}/cpufreq/scaling_cur_freq") for cpu in housekeeping}
    return ThermalSample(
        places={number: Place(cpu.package or 0, min(cpu.smt_siblings)) for number, cpu in cpus.items()},
        throttles=read_throttles(root, cpus),
        thermal_interrupts=_thermal_interrupts(root),
        limits=limits,
        base={cpu: Base(khz, cpus[cpu].base_source) for cpu in judged if (khz := cpus[cpu].base_khz)},
        housekeeping_khz={cpu: khz for cpu, khz in current.items() if khz},  # 0 means no data (5.3 to 5.18)
        zones=_zones(root),
        cooling=_cooling(root),
    )


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


def limit_path(cpu: int, file: str) -> str:
    """bios_limit or scaling_max_freq of a CPU."""
    return f"{_CPU}/cpu{cpu}/cpufreq/{file}"


def _limits(root: Sysroot, cpu: int) -> Limits:
    files = ("bios_limit", "scaling_max_freq")
    return Limits(*(plausible(_number(root, limit_path(cpu, file)), FREQUENCY) for file in files))


def _thermal_interrupts(root: Sysroot) -> dict[int, int]:
    interrupts = parse_interrupts(root.get_text("proc/interrupts"), rows=("TRM",))
    row = interrupts.rows.get("TRM")
    return dict(zip(interrupts.cpus, row.counts, strict=False)) if row else {}


def quiet_zones(root: Sysroot) -> dict[str, str]:
    """{name: type} of the zones whose temperature no CPU is asked for."""
    names = sorted(name for name in root.listdir(THERMAL) if name.startswith("thermal_zone"))
    kinds = {name: root.get(f"{THERMAL}/{name}/type").strip() for name in names}
    return {name: kind for name, kind in kinds.items() if kind not in _DISTURBING_ZONES}


def _zones(root: Sysroot) -> dict[str, Zone]:
    return {
        name: Zone(
            kind,
            plausible(_number(root, f"{THERMAL}/{name}/temp"), TEMPERATURE),
            lowest_trip(root, f"{THERMAL}/{name}"),
        )
        for name, kind in quiet_zones(root).items()
    }


def lowest_trip(root: Sysroot, zone: str) -> int | None:
    """The lowest temperature, in thousandths of a degree, at which a zone slows the CPUs or stops the host.

    None where there is none: a passive trip slows the CPUs only by a cooling device of theirs that is bound to it, and
    of a zone that is disabled the kernel heeds no trip (Documentation/driver-api/thermal/sysfs-api.rst).
    """
    if root.get(f"{zone}/mode").strip() == "disabled":
        return None
    files = root.listdir(zone)
    kinds = {name[:-5]: root.get(f"{zone}/{name}").strip() for name in files if re.fullmatch(_TRIP_TYPE, name)}
    slowing = {f"trip_point_{trip}" for trip in _bound_trips(root, zone, files)}
    effective = [name for name, kind in kinds.items() if kind in _STOPPING_TRIPS or (kind, name in slowing) == _SLOWS]
    temps = (plausible(_number(root, f"{zone}/{name}_temp"), TRIP) for name in effective)
    return min((temp for temp in temps if temp is not None), default=None)


_TRIP_TYPE = r"trip_point_[0-9]+_type"
_SLOWS = ("passive", True)


def _bound_trips(root: Sysroot, zone: str, files: Iterable[str]) -> set[int | None]:
    """The trips to which a cooling device that slows CPUs is bound."""
    devices = [name for name in files if re.fullmatch(r"cdev[0-9]+", name)]
    slowing = [name for name in devices if root.get(f"{zone}/{name}/type").strip().startswith(SLOWING_COOLERS)]
    return {_number(root, f"{zone}/{name}_trip_point") for name in slowing}


def read_capping(root: Sysroot) -> tuple[Capping, ...]:
    """The cooling devices that hold the clock of CPUs down now. Never raises.

    ACPI's (`Processor`) acts on every CPU of its own CPU's package (drivers/acpi/processor_thermal.c,
    cpufreq_set_cur_state).
    """
    at_work = {name: cooling for name, cooling in _cooling(root).items() if cooling.state > 0}
    capping = {name: cooling for name, cooling in at_work.items() if cooling.kind.startswith(SLOWING_COOLERS)}
    capping = {name: cooling for name, cooling in capping.items() if not injects_idle(cooling.kind)}
    if not capping:
        return ()
    hot = is_hot(_zones(root).values())
    return tuple(
        Capping(name, cooling.kind, cooling.state, _package(root, name), hot) for name, cooling in capping.items()
    )


def is_hot(zones: Iterable[Zone]) -> bool | None:
    """Is a zone at a trip that slows the CPUs? None where no zone has both a temperature and such a trip."""
    known = [(zone.temp_mc, zone.trip_mc) for zone in zones if zone.temp_mc is not None and zone.trip_mc]
    return any(temp >= trip for temp, trip in known) if known else None


def _package(root: Sysroot, name: str) -> int | None:
    cpu = root.readlink(f"{THERMAL}/{name}/device/physical_node").rpartition("/")[2]
    return package_of(root, cpu.removeprefix("cpu"))


def package_of(root: Sysroot, cpu: str) -> int | None:
    """The package of a CPU, by its number; None where that is not known."""
    return _number(root, f"{_CPU}/cpu{cpu}/topology/physical_package_id") if cpu.isdecimal() else None


def _cooling(root: Sysroot) -> dict[str, Cooling]:
    found = {}
    for name in sorted(root.listdir(THERMAL)):
        if name.startswith("cooling_device"):
            state, most = (_number(root, f"{THERMAL}/{name}/{which}_state") for which in ("cur", "max"))
            if state is not None and most and COOLING.holds(state) and state <= most:
                found[name] = Cooling(root.get(f"{THERMAL}/{name}/type").strip(), state, most)
    return found
