"""Every reading of a frequency, compared with the base frequency, by package. Pure.

What scaling_cur_freq shows of a CPU without a tick is no measurement (arch/x86/kernel/cpu/aperfmperf.c discards samples
older than 20 ms): a source says so by the sample's health, and nothing here judges a sample that is not fresh.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tunectl.fix import APPLY, Fix, in_turn, to_decide
from tunectl.host.thermal import ADVICE
from tunectl.monitor.model import NO_BASE, Freshness, Health, Sample
from tunectl.monitor.rules.history import History, number
from tunectl.monitor.rules.subjects import cpu_of, packages
from tunectl.wording import ghz, percent

Bases = dict[int, tuple[float, str]]  # kHz, and where that comes from
_NOT_KNOWN = (0.0, "")
_HYSTERESIS = 0.02  # of the base frequency, above the least
_HIGHEST = "cpuinfo_max_freq"
# Of a CPU's highest frequency, with turbo: the base of what is built for speed is above it. A low-power part's may be
# below, and stands as a limit only where turbo is off.
_HALF = 0.5
_FIRM = to_decide(f"the firmware holds it down: {ADVICE}")
_SOFT = in_turn(to_decide("see who lowered it (thermald, a cooling device, a profile)"), APPLY)


class Kind(NamedTuple):
    """One kind of evidence; the first that is low gives an alert its numbers, its source and its advice."""

    quantity: str
    said: str  # of the CPUs, before the frequency
    fix: Fix
    is_noisy: bool = False  # one reading may be a fallback (docs/kernel-facts.md, "Frequency"): two in a row count


# By how directly they name the cause. A limit of the firmware also lowers scaling_max_freq (cpufreq's frequency QoS),
# and both slow the clock.
KINDS = (
    Kind("bios_limit_khz", "the firmware permits {cpus} no more than", _FIRM),
    Kind("max_khz", "scaling_max_freq permits {cpus} no more than", _SOFT),
    Kind("max_perf_khz", "max_perf_pct of intel_pstate permits {cpus} no more than", _SOFT),
    Kind("core_khz", "by the core's own clock {cpus} ran at", ADVICE),
    Kind("sentinel_khz", "the CPUs that tick beside {cpus} ran at no more than", ADVICE, is_noisy=True),
)


_MEASURED = tuple(kind for kind in KINDS if kind.quantity in ("core_khz", "sentinel_khz"))
_LIMITS = tuple(kind for kind in KINDS if kind not in _MEASURED)


class Fact(NamedTuple):
    """One reading against its base frequency, or against its highest where the base is unknown and does not matter.

    What is not known of the two is 0, and `why` says why.
    """

    kind: Kind
    subject: str
    cpu: int | None  # None: of the whole package
    khz: float
    base_khz: float
    sample: Sample
    origin: str  # where the base frequency comes from; _HIGHEST: it is the highest instead
    health: Health
    why: str = ""

    def said(self, whose: str) -> str:
        """1.2 GHz, 34.3 % of its base frequency of 3.5 GHz (base_frequency)"""
        which = "highest" if self.origin == _HIGHEST else "base"
        share = percent(100 * self.khz / self.base_khz)
        return f"{ghz(self.khz)}, {share} of {whose} {which} frequency of {ghz(self.base_khz)} ({self.origin})"


class Package:
    """What was read of the CPUs of one package."""

    def __init__(self) -> None:
        self.low: list[Fact] = []
        self.between: list[Fact] = []
        self.high: list[Fact] = []
        self.unknown: dict[int | None, str] = {}  # why a CPU, or the package (None), could not be judged
        self.doubtful: dict[int | None, str] = {}  # of these, what is held down by a limit, and nobody knows how far

    def add(self, fact: Fact) -> None:
        """One more reading of it."""
        if fact.health is Health.UNKNOWN:
            self.unknown[fact.cpu] = fact.why
            if fact.kind in _LIMITS and isinstance(fact.sample.value, int):
                limit = ghz(fact.sample.value)
                self.doubtful[fact.cpu] = f"cpu{fact.cpu} may run at no more than {limit}, and {fact.why}"
        else:
            {Health.BAD: self.low, Health.BETWEEN: self.between, Health.GOOD: self.high}[fact.health].append(fact)

    def joined(self, other: Package) -> Package:
        """Both together, as one that is neither."""
        both = Package()
        both.low, both.between, both.high = self.low + other.low, self.between + other.between, self.high + other.high
        both.unknown = {**self.unknown, **other.unknown}
        both.doubtful = {**self.doubtful, **other.doubtful}
        return both

    @property
    def can_tell(self) -> bool:
        """Would a slow CPU show? A permitted maximum proves nothing while it is high."""
        lists = (self.low, self.between, self.high)
        return any(fact.kind.quantity not in ("max_khz", "max_perf_khz") for facts in lists for fact in facts)

    @property
    def doubts(self) -> list[str]:
        """What nobody knows of the limits of CPUs that are not low for certain."""
        low = {fact.cpu for fact in self.low}
        return [why for cpu, why in self.doubtful.items() if cpu not in low]

    @property
    def lone_cpu(self) -> int | None:
        """The one CPU that is low, where the same kind of reading shows another that is not."""
        cpus = {fact.cpu for fact in self.low}
        if len(cpus) != 1:
            return None
        kinds = {fact.kind for fact in self.low}
        return cpus.pop() if any(fact.kind in kinds for fact in (*self.high, *self.between)) else None


def survey(history: History) -> dict[str, Package]:
    """Every reading there is, by package; a package nothing was read of has none."""
    place = history.once(packages)
    # Hundreds of limits, which hardly ever change; a few measurements, which always do.
    limits = history.while_same(("base_khz", "highest_khz", *(kind.quantity for kind in _LIMITS)), _limits, place)
    found = _sorted(history, _MEASURED)
    for name, package in limits.items():
        other = found.get(name)
        found[name] = package if other is None else package.joined(other)
    return found


def _limits(history: History) -> dict[str, Package]:
    return _sorted(history, _LIMITS)


def _sorted(history: History, kinds: tuple[Kind, ...]) -> dict[str, Package]:
    place = history.once(packages)
    found: dict[str, Package] = {}
    for fact in facts(history, kinds):
        name = fact.subject if fact.subject.startswith("package") else place.of(fact.cpu)
        (found.get(name) or found.setdefault(name, Package())).add(fact)
    return found


def is_low(history: History, subject: str) -> bool:
    """Is the package's frequency low, or only just not?"""
    package = history.once(survey).get(subject)
    return package is not None and bool(package.low or package.between)


def facts(history: History, kinds: tuple[Kind, ...] = KINDS) -> Iterator[Fact]:
    """Every reading of these kinds, judged."""
    bases = history.while_same(("base_khz",), _bases)
    for kind in kinds:
        for subject, sample in history.get(kind.quantity).items():
            if sample.freshness != "absent":
                cpu, khz = cpu_of(subject), number(sample) or 0.0
                base_khz, origin = _base_of(history, bases, cpu, khz, sample)
                fact = Fact(kind, subject, cpu, khz, base_khz, sample, origin, Health.UNKNOWN)
                yield _judged(history, fact)


def _base_of(history: History, bases: Bases, cpu: int | None, khz: float, sample: Sample) -> tuple[float, str]:
    if history.limits.base_khz:
        return history.limits.base_khz, "the host file"
    if cpu is not None:
        return bases.get(cpu) or _highest(history, sample.subject, khz)
    # A package's: of efficient and fast cores together, the lower says no more than it knows.
    mine = [bases[cpu] for cpu in sample.cpus if cpu in bases]
    return min(mine or bases.values(), default=_NOT_KNOWN)


def _highest(history: History, subject: str, khz: float) -> tuple[float, str]:
    """What to hold a reading against where the base is unknown: near the highest frequency it is above any base.

    Below half of it the CPU is held down whatever its base is, but where turbo is off. Between, nobody knows.
    """
    sample = history.get("highest_khz").get(subject)
    if sample is None or not isinstance(sample.value, int):
        return _NOT_KNOWN
    is_low = sample.freshness is Freshness.FRESH and khz < sample.value * _HALF
    return (sample.value, _HIGHEST) if is_low or khz >= sample.value * history.limits.min_ratio else _NOT_KNOWN


def _judged(history: History, fact: Fact) -> Fact:
    if not fact.khz:
        return fact._replace(why=fact.sample.reason or f"{fact.kind.quantity} has no fresh value")
    if not fact.base_khz:
        return fact._replace(why=NO_BASE)
    ratio, least = fact.khz / fact.base_khz, history.limits.min_ratio
    before = (number(history.earlier(fact.kind.quantity, fact.subject)) if fact.kind.is_noisy else None) or 0.0
    if ratio < least and (not fact.kind.is_noisy or 0 < before / fact.base_khz < least):
        return fact._replace(health=Health.BAD)
    is_between = ratio < least + _HYSTERESIS and ratio < 1
    return fact._replace(health=Health.BETWEEN if is_between else Health.GOOD)


def _bases(history: History) -> Bases:
    found: Bases = {}
    for subject, sample in history.get("base_khz").items():
        cpu, khz = cpu_of(subject), number(sample)
        if cpu is not None and khz:
            found[cpu] = (khz, sample.reason or sample.source)
    return found
