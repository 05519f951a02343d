"""The rules: samples -> conditions. Pure functions over the last snapshots; a new rule is a function and a row here."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tunectl.monitor.model import Condition, Health, Severity
from tunectl.monitor.rules import cards, changes, frequency, hosttime, interrupts, latency, thermal, unknown
from tunectl.monitor.rules.history import History

FAILED = "rule"  # the subject of the one condition of a rule that raised: nothing is known of other subjects


class Rule(NamedTuple):
    """One kind of trouble: how it is found, and when it is worth an alert."""

    name: str  # as its alerts are named
    severity: Severity
    why: str  # the mechanism, one sentence
    source_of_truth: str  # which reading decides, and who says so
    judge: Callable[[History], Iterable[Condition]]
    bad: tuple[int, int] = (1, 1)  # fires when N of the last M snapshots were bad; unknown ones do not count
    good: int = 3  # resolves after so many good snapshots in a row; unknown ones between them do not count
    looks_again: bool = False  # what first is in between is looked at once more in half the time: it may be trouble
    lasts: bool = False  # a subject that is no longer mentioned keeps its state; by default it is over after `good`
    explained_by: tuple[str, ...] = ()  # while one of these rules fires for the same CPUs, this one is only evidence


_CRITICAL, _WARNING = Severity.CRITICAL, Severity.WARNING
_SLOW = ("FrequencyDrop", "ThermalThrottle")

# In this order: what comes first explains what comes later.
RULES: tuple[Rule, ...] = (
    Rule(
        "FrequencyDrop",
        _CRITICAL,
        "a core that is held below its base frequency takes longer for every message, and often nothing else shows it",
        "bios_limit and scaling_max_freq, the core's clock against the TSC, a ticking CPU of the package",
        frequency.judge,
        looks_again=True,
        explained_by=_SLOW,
    ),
    Rule(
        "ThermalThrottle",
        _CRITICAL,
        "a core that gets too hot is slowed at once, by its own hardware",
        "core_throttle_count and package_throttle_count (drivers/thermal/intel/therm_throt.c)",
        thermal.judge_throttling,
        explained_by=_SLOW,
    ),
    Rule(
        "TemperatureHigh",
        _WARNING,
        "at this trip the kernel begins to slow CPUs, or stops the host",
        "thermal zones whose reading interrupts no CPU, against their lowest passive, hot or critical trip",
        thermal.judge_zones,
        bad=(2, 3),
        explained_by=_SLOW,
    ),
    Rule(
        "CoolingActive",
        _WARNING,
        "a cooling device at work lowers frequencies or forces idle time",
        "cur_state of cooling devices that act on CPUs (Documentation/driver-api/thermal/sysfs-api.rst)",
        thermal.judge_cooling,
        explained_by=_SLOW,
    ),
    Rule(
        "LatencySla",
        _CRITICAL,
        "a burst of slow messages hides in the average of a minute; a window that slides shows it wherever it is",
        "the application's own latencies, or the sentinel's gaps: P99.9 and the longest of any window",
        latency.judge,
        good=1,  # the worst of the last windows already waits
    ),
    Rule(
        "InterruptOnIsolatedCpu",
        _WARNING,
        "an interrupt takes an isolated CPU away from its thread, for 10 to 50 us and the cold caches after",
        "the rise of /proc/interrupts on the isolated CPUs",
        interrupts.judge_devices,
        good=30,  # a large host's table is read every ten seconds
    ),
    *(Rule(kind.rule, _WARNING, kind.why, kind.source, cards.judge_of(kind)) for kind in cards.KINDS),
    Rule(
        "KnobDrift",
        _WARNING,
        "somebody changed what tunectl had set",
        "verify: observed against desired, knob by knob",
        changes.judge_knobs,
        good=1,
    ),
    Rule(
        "ManagerStarted",
        _WARNING,
        "two services that tune the same key overwrite each other",
        "the services that run, and what each does to the knobs asked for: as check.other_tuners judges",
        changes.judge_tuners,
        good=1,
    ),
    Rule(
        "DeviceChanged",
        _WARNING,
        "a device that came later brings interrupts and queues that nobody has placed",
        "the kernel's device events (udev)",
        changes.judge_devices,
        good=10,
    ),
    Rule(
        "CpuOffline",
        _WARNING,
        "what was pinned to a CPU that goes offline is moved elsewhere",
        "the kernel's CPU hot-plug events (udev)",
        changes.judge_cpus,
        good=1,
        lasts=True,
    ),
    Rule(
        "ClockOffset",
        _CRITICAL,
        "time stamps of a clock that is off are wrong before every venue and regulator",
        "its owner's estimate and bound (chronyd, ptp4l with phc2sys, systemd-timesyncd) against [clock], and steps",
        hosttime.judge,
    ),
    Rule(
        "MonitorDisturbs",
        _WARNING,
        "a monitor that interrupts the CPUs it watches is noise itself",
        "the CAL, RES and LOC rows of /proc/interrupts over its own cycle",
        interrupts.judge_own,
        bad=(3, 5),
        good=5,
    ),
    Rule(
        "FrequencyUnknown",
        _WARNING,
        "where a slow core would not be seen, nobody knows that the host is fast",
        "no fresh limit, clock, sentinel or throttle counter with a known base frequency",
        unknown.judge_frequency,
        bad=(5, 5),
    ),
    Rule(
        "SourceLost",
        _WARNING,
        "what cannot be read is not watched",
        "every source's own samples, and each zone, limit or counter that could be read before",
        unknown.judge_sources,
        bad=(5, 5),
    ),
)


def judge(history: History, rules: tuple[Rule, ...] = RULES) -> tuple[Condition, ...]:
    """Every rule's conditions for the newest snapshot, in the order of the rules. Never raises for what a rule does."""
    conditions: list[Condition] = []
    for rule in rules:
        try:
            conditions += tuple(rule.judge(history))
        except Exception as error:  # the other rules go on, and this one reports its error
            why = f"the rule failed: {type(error).__name__}: {error}"
            conditions.append(Condition(rule.name, FAILED, Health.UNKNOWN, source="monitor", summary=why))
    return tuple(conditions)
