"""A package, or a single CPU, may not run at its base frequency, or was measured below it. Pure."""

from collections.abc import Iterator

from tunectl.cpulist import CpuSet, named_cpus
from tunectl.monitor.model import Condition, Health
from tunectl.monitor.rules.clocks import KINDS, Fact, Kind, Package, survey
from tunectl.monitor.rules.history import History
from tunectl.monitor.rules.thermal import mended, rises
from tunectl.wording import ghz

NAME = "FrequencyDrop"
_NOTHING = "nothing says how fast it may run"


def judge(history: History) -> Iterator[Condition]:
    """One condition a package, and one for each CPU that could be slow alone."""
    heats = history.once(rises)
    for subject, package in history.once(survey).items():
        lone = package.lone_cpu
        heat = heats.get(subject)
        evidence = heat.said if heat and heat.count else ""
        dropped = _of_package(subject, package, lone, evidence)
        for condition in (dropped, *_of_cpus(history, subject, package, lone)):
            yield condition if evidence else condition._replace(fix=mended(condition.fix, history))


def _of_package(subject: str, package: Package, lone: int | None, evidence: str) -> Condition:
    if package.low and lone is None:
        return _dropped(subject, package.low, evidence)
    if package.between or evidence:
        return Condition(NAME, subject, Health.BETWEEN, source="frequency")
    if package.high:
        fact = min(package.high, key=lambda one: one.khz / one.base_khz)
        return Condition(NAME, subject, Health.GOOD, round(fact.khz), round(fact.base_khz), _source(fact))
    why = next(filter(None, package.unknown.values()), "") or _NOTHING
    return Condition(NAME, subject, Health.UNKNOWN, source="frequency", summary=why)


def _of_cpus(history: History, subject: str, package: Package, lone: int | None) -> Iterator[Condition]:
    """A CPU that is not slow is left out: what nobody mentions is over."""
    healths: dict[int | None, Health] = dict.fromkeys(package.unknown, Health.UNKNOWN)
    healths |= dict.fromkeys((fact.cpu for fact in (*package.between, *package.low)), Health.BETWEEN)
    for cpu, health in healths.items():
        if cpu is None:
            continue
        if cpu == lone and _was_lone(history, subject, lone):
            yield _dropped(f"cpu{cpu}", package.low, "")
        else:
            why = (package.unknown[cpu] or _NOTHING) if health is Health.UNKNOWN else ""
            yield Condition(NAME, f"cpu{cpu}", health, source="frequency", summary=why)


def _was_lone(history: History, subject: str, cpu: int) -> bool:
    """Was it the only low CPU before? Firmware lowers a package CPU by CPU, and a snapshot may fall in between."""
    earlier = history.without_newest()
    package = survey(earlier).get(subject) if len(earlier) else None
    return package is not None and package.lone_cpu == cpu


def _dropped(subject: str, low: list[Fact], evidence: str) -> Condition:
    kind = next(kind for kind in KINDS if any(fact.kind == kind for fact in low))
    first = [fact for fact in low if fact.kind == kind]
    worst = min(first, key=lambda fact: fact.khz / fact.base_khz)
    mine = _cpus(first)
    who = named_cpus(mine) if mine else "its CPUs"
    also = [_also(low, other, mine) for other in KINDS if other != kind and any(fact.kind == other for fact in low)]
    also += [f"since the last snapshot {evidence}"] if evidence else []
    cpus = mine | frozenset(fact.cpu for fact in low if fact.cpu is not None)
    summary = "; ".join([f"{subject}: {kind.said.format(cpus=who)} {worst.said('their')}", *also])
    return Condition(
        NAME, subject, Health.BAD, round(worst.khz), round(worst.base_khz), _source(worst), summary, kind.fix, cpus
    )


def _cpus(facts: list[Fact]) -> CpuSet:
    """The CPUs that the readings name; of a reading of the whole package, those that it stands for."""
    return frozenset(fact.cpu for fact in facts if fact.cpu is not None) or facts[0].sample.cpus


def _also(low: list[Fact], kind: Kind, named: CpuSet) -> str:
    """What another kind of reading says; and of which CPUs, where these are not among those named already."""
    facts = [fact for fact in low if fact.kind == kind]
    cpus = _cpus(facts)
    of = f" of {named_cpus(cpus)}" if cpus - named and facts[0].cpu is not None else ""
    return f"{kind.quantity} says {ghz(min(fact.khz for fact in facts))}{of}"


def _source(fact: Fact) -> str:
    """limits: bios_limit_khz"""
    return f"{fact.sample.source}: {fact.kind.quantity}"
