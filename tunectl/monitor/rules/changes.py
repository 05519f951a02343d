"""What somebody changed: a knob, a service that tunes as well, a device, a CPU. Pure."""

from collections.abc import Iterator

from tunectl.command import write
from tunectl.fix import APPLY, in_turn, to_decide
from tunectl.model import Finding
from tunectl.monitor.model import CLAMPED, Condition, Freshness, Health, Sample
from tunectl.monitor.rules.history import History, number, unknown, why_unknown
from tunectl.monitor.rules.subjects import cpu_of
from tunectl.tuners.conflicts import Objection
from tunectl.wording import few, sentence, standing, value_of, wanted

# docs/interface.md, "Outcomes". What the kernel refuses, and what waits for a reboot, nobody changed.
_OUTCOMES = {
    "compliant": Health.GOOD,
    "waived": Health.GOOD,
    "unsupported": Health.GOOD,
    "drifted": Health.BAD,
    "refused": Health.GOOD,
    "pending-reboot": Health.GOOD,
    "unreadable": Health.UNKNOWN,
}
_VIRTUAL = "/devices/virtual/"  # a container's or a tunnel's interface has no interrupt
_LISTED = 4  # targets named in a summary
_CPU_EVENTS = {"offline": Health.BAD, "remove": Health.BAD, "online": Health.GOOD, "add": Health.GOOD}


def judge_knobs(history: History) -> Iterator[Condition]:
    """KnobDrift: one condition a knob, however many of its targets somebody changed at once; none where all are absent.

    `tunectl verify` calls such a knob unsupported: there is nothing that could be good, bad or unknown.
    """
    knobs: dict[str, list[Sample]] = {}
    for sample in history.get("knob").values():
        if isinstance(sample.seen, Finding) and sample.freshness is not Freshness.ABSENT:
            knobs.setdefault(sample.seen.knob, []).append(sample)
    for knob, samples in knobs.items():
        yield _knob(history, knob, samples)


def _outcome(sample: Sample) -> Health:
    return _OUTCOMES.get(str(sample.value), Health.UNKNOWN) if sample.freshness is Freshness.FRESH else Health.UNKNOWN


def _knob(history: History, knob: str, samples: list[Sample]) -> Condition:
    clamps = history.once(_clamps) if knob in CLAMPED else None
    healths = [_verdict(history, sample, clamps) for sample in samples]
    drifted = [sample for sample, health in zip(samples, healths, strict=True) if health is Health.BAD]
    if not drifted:
        dark = [sample for sample, health in zip(samples, healths, strict=True) if health is Health.UNKNOWN]
        # A target that can never be read (it would disturb) says nothing of the others; one that had drifted does.
        earlier = (before for sample in dark for before in history.all_earlier(sample.quantity, sample.subject))
        is_open = len(dark) == len(samples) or any(_outcome(sample) is Health.BAD for sample in earlier)
        health = Health.UNKNOWN if is_open else Health.BETWEEN if Health.BETWEEN in healths else Health.GOOD
        said = next((f"{sample.subject}: {sample.reason}" for sample in dark if sample.reason), "")
        why = (said or why_unknown((dark or samples)[0])) if is_open else ""
        return Condition("KnobDrift", knob, health, source=samples[0].source, summary=why)
    first = drifted[0]
    finding = _finding(first)
    names = few([sample.subject for sample in drifted], _LISTED)
    cpus = frozenset(cpu for sample in drifted for cpu in sample.cpus)
    observed, desired = value_of(finding.observed), wanted(value_of(finding.desired), finding.match)
    summary = sentence(names, standing(finding), finding.reason)
    fix = finding.fix or APPLY
    return Condition("KnobDrift", knob, Health.BAD, observed, desired, first.source, summary, fix, cpus)


def _finding(sample: Sample) -> Finding:
    assert isinstance(sample.seen, Finding)  # judge_knobs takes no other
    return sample.seen


def _verdict(history: History, sample: Sample, clamps: frozenset[int] | None) -> Health:
    """A drift that the firmware caused belongs to FrequencyDrop."""
    health = _outcome(sample)
    if health is not Health.BAD or clamps is None:
        return health
    # The limits are read before the knobs, and the firmware may act between: the limits of the next snapshot decide.
    before = history.previous("knob").get(sample.subject)
    is_new = before is None or before.seen != sample.seen
    return Health.BETWEEN if is_new or _finding(sample).observed in clamps else health


def _clamps(history: History) -> frozenset[int] | None:
    """The firmware's limits below the base frequency, of the last snapshots; None where it shows no limit."""
    bases = [khz for sample in history.get("base_khz").values() if (khz := number(sample))]
    least = min(bases, default=0) * history.limits.min_ratio
    found = set()
    for quantity in CLAMPED.values():
        for subject, sample in history.get(quantity).items():
            values = map(number, (sample, *history.all_earlier(quantity, subject)))
            found |= {khz for khz in values if khz is not None}
    return frozenset(round(khz) for khz in found if khz < least) if found else None


def judge_tuners(history: History) -> Iterator[Condition]:
    """ManagerStarted: a service runs that would overwrite what tunectl set. One that owns other keys is no trouble."""
    for subject, sample in history.get("manager").items():
        if sample.freshness is Freshness.ABSENT:
            continue
        if sample.freshness is not Freshness.FRESH:
            yield unknown("ManagerStarted", sample)
        elif isinstance(sample.seen, Objection):
            said = (sample.seen.reason, sample.seen.fix)
            yield Condition("ManagerStarted", subject, Health.BAD, "active", "inactive", sample.source, *said)
        else:
            yield Condition("ManagerStarted", subject, Health.GOOD, sample.value, "inactive", sample.source)


def judge_devices(history: History) -> Iterator[Condition]:
    """DeviceChanged: a device came or went, or its queues changed; what it brings along is not tuned."""
    for subject, sample in history.get("device").items():
        if not subject.startswith(("net/", "queues/")) or sample.freshness is not Freshness.FRESH:
            continue
        if _VIRTUAL in sample.path:
            continue
        summary = f"{subject}: {sample.value}" + (f" ({sample.path})" if sample.path else "")
        fix = in_turn(to_decide("its interrupts and queues are new: tunectl verify"), APPLY)
        seen = (sample.value, None, sample.source)
        yield Condition("DeviceChanged", subject, Health.BAD, *seen, summary, fix, sample.cpus)


def judge_cpus(history: History) -> Iterator[Condition]:
    """CpuOffline: fires with the kernel's event; over when an event brings the CPU back, or when it ticks again."""
    told: dict[int, Condition] = {}
    before = history.previous("timer_ticks")
    for subject, sample in history.get("timer_ticks").items():
        if subject in before and before[subject].freshness is Freshness.FRESH:
            continue  # it ticked in the snapshot before as well
        cpu = cpu_of(subject)
        if cpu is not None and sample.freshness is Freshness.FRESH:
            told[cpu] = Condition("CpuOffline", f"cpu{cpu}", Health.GOOD, "online", "online", sample.source)
    for subject, sample in history.get("device").items():
        cpu = cpu_of(subject.removeprefix("cpu/"))
        health = _CPU_EVENTS.get(str(sample.value))
        if not subject.startswith("cpu/") or cpu is None or health is None or sample.freshness is not Freshness.FRESH:
            continue
        role = "isolated " if cpu in history.limits.isolated else ""
        summary = f"{role}CPU {cpu} went offline" if health is Health.BAD else ""
        online = write("1", f"/sys/devices/system/cpu/cpu{cpu}/online")
        fix = to_decide(f"bring it back: {online}; then: tunectl verify")
        seen = (sample.value, "online", sample.source)
        told[cpu] = Condition("CpuOffline", f"cpu{cpu}", health, *seen, summary, fix, frozenset({cpu}))
    yield from told.values()
