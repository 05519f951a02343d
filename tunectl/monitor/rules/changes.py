"""What somebody changed: a knob, a service that tunes as well, a device, a CPU. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tunectl.model import Finding
from tunectl.monitor.model import CLAMPED, Condition, Health, Sample, Verdict
from tunectl.monitor.rules.history import History, number
from tunectl.monitor.rules.subjects import cpu_of
from tunectl.tuners.conflicts import Objection

# INTERFACE, "Outcomes". What the kernel refuses, and what waits for a reboot, nobody changed.
_OUTCOMES = {
    "compliant": Verdict.GOOD,
    "waived": Verdict.GOOD,
    "unsupported": Verdict.GOOD,
    "drifted": Verdict.BAD,
    "refused": Verdict.GOOD,
    "pending-reboot": Verdict.GOOD,
    "unreadable": Verdict.UNKNOWN,
}
_VIRTUAL = "/devices/virtual/"  # a container's or a tunnel's interface has no interrupt
_LISTED = 4  # targets named in a summary
_CPU_EVENTS = {"offline": Verdict.BAD, "remove": Verdict.BAD, "online": Verdict.GOOD, "add": Verdict.GOOD}


def judge_knobs(history: History) -> Iterator[Condition]:
    """KnobDrift: one condition a knob, however many of its targets somebody changed at once."""
    knobs: dict[str, list[Sample]] = {}
    for sample in history.get("knob").values():
        if isinstance(sample.seen, Finding):
            knobs.setdefault(sample.seen.knob, []).append(sample)
    for knob, samples in knobs.items():
        yield _knob(history, knob, samples)


def _outcome(sample: Sample) -> Verdict:
    return _OUTCOMES.get(str(sample.value), Verdict.UNKNOWN) if sample.health is Health.FRESH else Verdict.UNKNOWN


def _knob(history: History, knob: str, samples: list[Sample]) -> Condition:
    clamps = history.once(_clamps) if knob in CLAMPED else None
    verdicts = [_verdict(history, sample, clamps) for sample in samples]
    drifted = [sample for sample, verdict in zip(samples, verdicts, strict=True) if verdict is Verdict.BAD]
    if not drifted:
        dark = [sample for sample, verdict in zip(samples, verdicts, strict=True) if verdict is Verdict.UNKNOWN]
        # A target that can never be read (it would disturb) says nothing of the others; one that had drifted does.
        is_open = len(dark) == len(samples) or any(_had_drifted(history, sample) for sample in dark)
        verdict = Verdict.UNKNOWN if is_open else Verdict.BETWEEN if Verdict.BETWEEN in verdicts else Verdict.GOOD
        return Condition("KnobDrift", knob, verdict, source=samples[0].source)
    first = drifted[0]
    finding = _finding(first)
    names = ", ".join(sample.subject for sample in drifted[:_LISTED])
    more = f" and {len(drifted) - _LISTED} more" if len(drifted) > _LISTED else ""
    cpus = frozenset(cpu for sample in drifted for cpu in sample.cpus)
    observed, desired = str(finding.observed), str(finding.desired)
    summary = f"{names}{more} drifted: observed {observed}, desired {desired}: {finding.reason}"
    fix = finding.fix or "tunectl apply"
    return Condition("KnobDrift", knob, Verdict.BAD, observed, desired, first.source, summary, fix, cpus)


def _finding(sample: Sample) -> Finding:
    assert isinstance(sample.seen, Finding)  # judge_knobs takes no other
    return sample.seen


def _verdict(history: History, sample: Sample, clamps: frozenset[int] | None) -> Verdict:
    """A drift that is the firmware's doing is FrequencyDrop's to tell."""
    verdict = _outcome(sample)
    if verdict is not Verdict.BAD or clamps is None:
        return verdict
    # The limits are read before the knobs, and the firmware may act between: the next look's limits tell.
    before = history.previous("knob").get(sample.subject)
    is_new = before is None or before.seen != sample.seen
    return Verdict.BETWEEN if is_new or _finding(sample).observed in clamps else verdict


def _clamps(history: History) -> frozenset[int] | None:
    """The firmware's limits below the base frequency, of the last looks; None where it shows no limit."""
    bases = [khz for sample in history.get("base_khz").values() if (khz := number(sample))]
    least = min(bases, default=0) * history.limits.min_ratio
    found = set()
    for quantity in CLAMPED.values():
        for subject, sample in history.get(quantity).items():
            values = map(number, (sample, *history.all_earlier(quantity, subject)))
            found |= {khz for khz in values if khz is not None}
    return frozenset(round(khz) for khz in found if khz < least) if found else None


def _had_drifted(history: History, sample: Sample) -> bool:
    return any(_outcome(one) is Verdict.BAD for one in history.all_earlier(sample.quantity, sample.subject))


def judge_managers(history: History) -> Iterator[Condition]:
    """ManagerStarted: a service runs that would overwrite what tunectl set. One that owns other keys is no trouble."""
    for subject, sample in history.get("manager").items():
        if sample.health is Health.ABSENT:
            continue
        if sample.health is not Health.FRESH:
            yield Condition("ManagerStarted", subject, Verdict.UNKNOWN, source=sample.source, summary=sample.reason)
        elif isinstance(sample.seen, Objection):
            said = (sample.seen.reason, sample.seen.fix)
            yield Condition("ManagerStarted", subject, Verdict.BAD, "active", "inactive", sample.source, *said)
        else:
            yield Condition("ManagerStarted", subject, Verdict.GOOD, sample.value, "inactive", sample.source)


def judge_devices(history: History) -> Iterator[Condition]:
    """DeviceChanged: a device came or went, or its queues changed; what it brings along is not tuned."""
    for subject, sample in history.get("device").items():
        if not subject.startswith(("net/", "queues/")) or sample.health is not Health.FRESH:
            continue
        if _VIRTUAL in sample.reason:
            continue
        summary = f"{subject}: {sample.value}" + (f" ({sample.reason})" if sample.reason else "")
        fix = "its interrupts and queues are new: tunectl verify, then tunectl apply"
        yield Condition(
            "DeviceChanged", subject, Verdict.BAD, sample.value, None, sample.source, summary, fix, sample.cpus
        )


def judge_cpus(history: History) -> Iterator[Condition]:
    """CpuOffline: told by the kernel's event; over with the event that brings it back, or once it ticks again."""
    told: dict[int, Condition] = {}
    before = history.previous("timer_ticks")
    for subject, sample in history.get("timer_ticks").items():
        if subject in before and before[subject].health is Health.FRESH:
            continue  # it ticked a look ago as well
        cpu = cpu_of(subject)
        if cpu is not None and sample.health is Health.FRESH:
            told[cpu] = Condition("CpuOffline", f"cpu{cpu}", Verdict.GOOD, "online", "online", sample.source)
    for subject, sample in history.get("device").items():
        cpu = cpu_of(subject.removeprefix("cpu/"))
        verdict = _CPU_EVENTS.get(str(sample.value))
        if not subject.startswith("cpu/") or cpu is None or verdict is None or sample.health is not Health.FRESH:
            continue
        role = "isolated " if cpu in history.limits.isolated else ""
        summary = f"{role}CPU {cpu} went offline" if verdict is Verdict.BAD else ""
        fix = f"bring it back: echo 1 > /sys/devices/system/cpu/cpu{cpu}/online; then: tunectl verify"
        told[cpu] = Condition(
            "CpuOffline", f"cpu{cpu}", verdict, sample.value, "online", sample.source, summary, fix, frozenset({cpu})
        )
    yield from told.values()
