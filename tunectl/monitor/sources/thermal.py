"""Temperatures and what cools. /sys/class/thermal; no zone that asks a CPU.

Source: Documentation/driver-api/thermal/sysfs-api.rst. An ACPI zone's temperature is a method of the firmware, which
may enter SMM and so stop every CPU: on a running host it is asked only every ten seconds.
"""

from collections.abc import Iterator

from tunectl.host.plausible import TEMPERATURE, Range, problem
from tunectl.host.thermal import THERMAL, lowest_trip, quiet_zones, slowing_coolers, states_of
from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.open_files import Numbers
from tunectl.monitor.watched_host import Source, WatchedHost

_NAME = "thermal"
_FIRMWARE = frozenset({"acpitz"})
_FIRMWARE_S = 10.0
_LISTED_S = 60.0  # zones and devices come and go with drivers


class _Kept:
    """The zones and cooling devices there are."""

    def __init__(self, host: WatchedHost) -> None:
        root = host.root
        self.listed_at = host.taken_at
        self.zones = quiet_zones(root)
        self.trips = {name: _trip(host, name, kind) for name, kind in self.zones.items()}
        self.cooling = slowing_coolers(root)
        self.states = {name: states_of(root, name) for name in self.cooling}
        files = {name: f"{THERMAL}/{name}/temp" for name in self.zones}
        self.numbers = Numbers(root, files | {name: f"{THERMAL}/{name}/cur_state" for name in self.cooling})
        self.slow = {name for name, kind in self.zones.items() if kind in _FIRMWARE and root.live}
        self.next_slow = 0.0

    def refresh(self, now: float) -> None:
        """Reads them, the firmware's only when it is time."""
        if now >= self.next_slow:
            self.next_slow = now + _FIRMWARE_S
            self.numbers.refresh()
        else:
            self.numbers.refresh([name for name in (*self.zones, *self.cooling) if name not in self.slow])

    def sample(self, name: str, quantity: str, kind: str, allowed: Range) -> Sample:
        """What one of them holds."""
        value = self.numbers.value[name]
        wrong = self.numbers.problem.get(name, "") if value is None else problem(value, allowed)
        if wrong:
            return Sample(quantity, name, None, _NAME, Freshness.NO_DATA, wrong, kind=kind)
        return Sample(quantity, name, value, _NAME, kind=kind)


def _trip(host: WatchedHost, zone: str, kind: str) -> Sample:
    if trip := lowest_trip(host.root, f"{THERMAL}/{zone}"):
        return Sample("trip_mc", zone, trip, _NAME, kind=kind)
    reason = f"{zone} has no trip that slows the CPUs or stops the host"
    return Sample("trip_mc", zone, None, _NAME, Freshness.ABSENT, reason, kind=kind)


def read(host: WatchedHost) -> Iterator[Sample]:
    """temperature_mc and trip_mc of zones, cooling_state of what cools by slowing CPUs."""
    kept = host.keep(_NAME, lambda: _Kept(host))
    if host.changed or host.taken_at - kept.listed_at > _LISTED_S:
        kept = host.keep(_NAME, lambda: _Kept(host), anew=True)
    kept.refresh(host.taken_at)
    for name, kind in kept.zones.items():
        yield kept.sample(name, "temperature_mc", kind, TEMPERATURE)
        yield kept.trips[name]
    for name, kind in kept.cooling.items():
        yield kept.sample(name, "cooling_state", kind, kept.states[name])
    if not kept.zones:
        why = "no thermal zone can be read without interrupting a CPU"
        yield Sample("temperature_mc", "host", None, _NAME, Freshness.ABSENT, why)
    if not kept.cooling:
        why = "no cooling device that would slow the CPUs"
        yield Sample("cooling_state", "host", None, _NAME, Freshness.ABSENT, why)


SOURCE = Source(
    _NAME,
    ("/sys/class/thermal/thermal_zoneN/temp", "/sys/class/thermal/cooling_deviceN/cur_state"),
    "nobody: zones that read an MSR on a CPU (x86_pkg_temp, TCPU) are left out, as hwmon's coretemp is",
    "at once; the firmware's zones are at most ten seconds old",
    read,
)
