"""Heat: a core or a package was throttled, a zone is at its trip, a device cools by slowing CPUs. Pure.

Counters that only rise are the first signal of throttling: they rise in the thermal interrupt, and the times beside
them are written when the event ends (drivers/thermal/intel/therm_throt.c). A thermal interrupt (TRM) also comes at the
end of an event, so it decides only where there is no counter.
"""

from collections.abc import Iterator

from tunectl.cpulist import named_cpus
from tunectl.fix import Fix
from tunectl.host.thermal import ADVICE, cooling_advice, injects_idle, is_hot
from tunectl.monitor.model import Condition, Freshness, Health, Sample
from tunectl.monitor.rules.clocks import is_low
from tunectl.monitor.rules.history import History, number, unknown
from tunectl.monitor.rules.subjects import celsius, cpu_of, members, packages

NAME = "ThermalThrottle"
_TRM = "thermal_interrupts"
_WORDS = {
    "package_throttles": "the package was throttled",
    "core_throttles": "cores were throttled",
    _TRM: "thermal interrupts came",
}


class Heat:
    """What rose in one package since the last snapshot."""

    def __init__(self) -> None:
        self.has_counter = False
        self.unknown = ""
        self.is_dark = False  # one that is sure to rise could not be read now
        self.rises: dict[str, dict[str, int]] = {}  # by quantity, then by what the counter is of; 0: it did not rise
        self.cpus: set[int] = set()
        self.sources: dict[str, None] = {}  # in order

    def add(self, sample: Sample, rise: int | None) -> None:
        """One CPU's counter and its rise; None where it is unknown."""
        self.is_dark |= sample.quantity != _TRM and sample.freshness is not Freshness.FRESH
        if rise is None:
            self.unknown = self.unknown or sample.reason or "counted for the first time"
            return
        of_whole = self.rises.setdefault(sample.quantity, {})
        whole = sample.whole or sample.subject
        # The CPUs of a core, or of a package, count the same events, and need not count all.
        of_whole[whole] = max(of_whole.get(whole, 0), rise)
        if rise:
            self.cpus |= members(sample)
            self.sources[sample.source] = None

    @property
    def known(self) -> bool:
        """Was a counter read, now and before?"""
        return bool(self.rises)

    @property
    def can_tell(self) -> bool:
        """Was every counter read that rises with throttling? Firmware may keep thermal interrupts to itself."""
        return self.known and self.has_counter and not self.is_dark

    @property
    def counts(self) -> dict[str, int]:
        """By quantity, of those that rose."""
        return {quantity: sum(of_whole.values()) for quantity, of_whole in self.rises.items() if any(of_whole.values())}

    @property
    def count(self) -> int:
        """How often it was throttled."""
        decisive = {name: n for name, n in self.counts.items() if name != _TRM or not self.has_counter}
        return max(decisive.values(), default=0)

    @property
    def said(self) -> str:
        """the package was throttled 3 times, cores were throttled 2 times"""
        return ", ".join(f"{_WORDS[name]} {n} time{'s' * (n != 1)}" for name, n in self.counts.items())


def rises(history: History) -> dict[str, Heat]:
    """What rose, by package. A host without any such counter has none."""
    place = history.once(packages)
    found: dict[str, Heat] = {}
    for quantity in _WORDS:
        for subject, sample in history.get(quantity).items():
            if sample.freshness == "absent":
                continue
            whole = sample.whole or subject
            package = whole if whole.startswith("package") else place.of(cpu_of(whole))
            heat = found.get(package) or found.setdefault(package, Heat())
            heat.has_counter |= quantity != _TRM
            heat.add(sample, history.rise(sample))
    return found


def throttled(history: History) -> dict[str, int]:
    """By core and package how often it was throttled since the last snapshot; one of which that is unknown has none."""
    heats = history.once(rises).values()
    risen = (of_whole for heat in heats for quantity, of_whole in heat.rises.items() if quantity != _TRM)
    return {whole: count for of_whole in risen for whole, count in of_whole.items()}


def judge_throttling(history: History) -> Iterator[Condition]:
    """ThermalThrottle: one condition a package."""
    for subject, heat in history.once(rises).items():
        source = ", ".join(heat.sources) or "throttle"
        if heat.count:
            summary = f"{subject}: {heat.said}"
            if heat.cpus:
                summary += f" ({named_cpus(heat.cpus)})"
            yield Condition(NAME, subject, Health.BAD, heat.count, 0, source, summary, ADVICE, frozenset(heat.cpus))
        elif not heat.known or heat.is_dark:
            yield Condition(NAME, subject, Health.UNKNOWN, source=source, summary=heat.unknown)
        else:
            # A package the firmware holds down is throttled no more, and is not well either.
            health = Health.BETWEEN if is_low(history, subject) else Health.GOOD
            yield Condition(NAME, subject, health, 0, 0, source)


_HYSTERESIS_MC = 3000


def judge_zones(history: History) -> Iterator[Condition]:
    """TemperatureHigh: a zone at or above the lowest trip that slows CPUs."""
    trips = history.get("trip_mc")
    for subject, sample in history.get("temperature_mc").items():
        if "absent" in (sample.freshness, trips.get(subject, sample).freshness):
            continue  # nothing to hold it against: such a zone is shown and not judged
        temp, trip = number(sample), number(trips.get(subject))
        if temp is None or trip is None:
            yield unknown("TemperatureHigh", sample, "" if temp is None else f"{subject} has no trip that is known")
            continue
        health = Health.BAD if temp >= trip else Health.BETWEEN if temp > trip - _HYSTERESIS_MC else Health.GOOD
        name = f"{subject} ({sample.kind})" if sample.kind else subject
        summary = f"{name} is at {celsius(temp)}, its trip that slows the CPUs at {celsius(trip)}"
        yield Condition("TemperatureHigh", subject, health, temp, trip, sample.source, summary, ADVICE, sample.cpus)


def mended(fix: Fix, history: History) -> Fix:
    """What mends a clock: where cooling devices force idle time now, no fan is to blame. Other advice stays."""
    forcing = {
        subject: sample.kind
        for subject, sample in history.get("cooling_state").items()
        if injects_idle(sample.kind) and (number(sample) or 0) > 0
    }
    return cooling_advice(forcing) if forcing and fix == ADVICE else fix


def _is_hot(history: History) -> bool | None:
    trips = history.get("trip_mc")
    zones = history.get("temperature_mc").items()
    return is_hot((number(sample), number(trips[subject])) for subject, sample in zones if subject in trips)


def judge_cooling(history: History) -> Iterator[Condition]:
    """CoolingActive: a cooling device that slows CPUs, or keeps them idle, is at work."""
    for subject, sample in history.get("cooling_state").items():
        if sample.freshness == "absent":
            continue
        state = number(sample)
        if state is None:
            yield unknown("CoolingActive", sample)
            continue
        health = Health.BAD if state > 0 else Health.GOOD
        name = f"{subject} ({sample.kind})" if sample.kind else subject
        does = "it keeps CPUs idle by force, hot or not" if injects_idle(sample.kind) else "it slows CPUs to cool them"
        summary = f"{name} is at state {state:g}: {does}"
        fix = cooling_advice({subject: sample.kind}, hot=history.once(_is_hot))
        yield Condition("CoolingActive", subject, health, state, 0, sample.source, summary, fix, sample.cpus)
