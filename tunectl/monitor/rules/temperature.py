"""Hot before it is slow: a zone at its trip, a device that cools by slowing CPUs. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tunectl.monitor.model import Condition, Verdict
from tunectl.monitor.rules.history import History, number
from tunectl.monitor.rules.say import COOL, celsius

_HYSTERESIS_MC = 3000


def judge_zones(history: History) -> Iterator[Condition]:
    """TemperatureHigh: a zone at or above the lowest trip that slows CPUs."""
    trips = history.get("trip_mc")
    for subject, sample in history.get("temperature_mc").items():
        trip_sample = trips.get(subject)
        trip = number(trip_sample) if trip_sample is not None else None
        if sample.health == "absent" or (trip_sample is not None and trip_sample.health == "absent"):
            continue  # nothing to hold it against: such a zone is shown and not judged
        temp = number(sample)
        if temp is None or trip is None:
            why = sample.reason or "no trip is known"
            yield Condition("TemperatureHigh", subject, Verdict.UNKNOWN, source=sample.source, summary=why)
            continue
        verdict = Verdict.BAD if temp >= trip else Verdict.BETWEEN if temp > trip - _HYSTERESIS_MC else Verdict.GOOD
        name = f"{subject} ({sample.reason})" if sample.reason else subject
        summary = f"{name} is at {celsius(temp)}, its trip that slows the CPUs at {celsius(trip)}"
        yield Condition("TemperatureHigh", subject, verdict, temp, trip, sample.source, summary, COOL, sample.cpus)


def judge_cooling(history: History) -> Iterator[Condition]:
    """CoolingActive: a cooling device that slows CPUs, or keeps them idle, is at work."""
    for subject, sample in history.get("cooling_state").items():
        if sample.health == "absent":
            continue
        state = number(sample)
        if state is None:
            yield Condition("CoolingActive", subject, Verdict.UNKNOWN, source=sample.source, summary=sample.reason)
            continue
        verdict = Verdict.BAD if state > 0 else Verdict.GOOD
        name = f"{subject} ({sample.reason})" if sample.reason else subject
        summary = f"{name} is at state {state:g}: it slows CPUs, or keeps them idle, to cool the host"
        yield Condition("CoolingActive", subject, verdict, state, 0, sample.source, summary, COOL, sample.cpus)
