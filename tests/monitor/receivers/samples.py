"""Alerts and a board with one of everything, as the rest of the monitor makes them."""

from msgspec.structs import replace

from tunectl.model import HostId
from tunectl.monitor.model import Alert, AlertState, Condition, Freshness, Health, Sample, Severity, Snapshot, Status

HOST = HostId("tx-04", "6.12.5", "0e2a7a37-2f1c-4b0e-9d6f-3f5f6f0c2d11", "x86_64")
SINCE, AT, OVER = "2026-11-21T09:30:00Z", "2026-11-21T09:30:01Z", "2026-11-21T09:31:00Z"
DROP = Alert(
    rule="FrequencyDrop",
    subject="package0",
    status=AlertState.FIRING,
    severity=Severity.CRITICAL,
    since=SINCE,
    at=AT,
    observed=1_200_000,
    expected=3_500_000,
    source="limits",
    summary="the firmware permits CPUs 0-19 no more than 1200000 kHz",
    fix="look for a failed fan; check the BMC's event log",
    cpus="0-19",
)


def fired(number: int = 0, **changed: object) -> Alert:
    """A firing alert; each number is an event of its own."""
    return replace(DROP, **{"subject": f"package{number}", **changed})


def over(alert: Alert, **changed: object) -> Alert:
    """The resolve of `alert`."""
    return replace(alert, **{"status": AlertState.RESOLVED, "at": OVER, **changed})


def snapshot(*samples: Sample, seconds: float = 100.0) -> Snapshot:
    return Snapshot(seconds, AT, samples)


SAMPLES = (
    Sample("core_throttles", "cpu0", 7, "throttle", whole="core0"),
    Sample("core_throttles", "cpu1", 3, "throttle", whole="core0"),
    Sample("package_throttles", "cpu0", 9, "throttle", whole="package0"),
    Sample("thermal_interrupts", "cpu1", 3, "interrupts"),
    Sample("base_khz", "cpu0", 3_500_000, "limits", reason="base_frequency"),
    Sample("base_khz", "cpu1", None, "limits", Freshness.NO_DATA, "nothing says it"),
    Sample("bios_limit_khz", "cpu2", 1_200_000, "limits"),
    Sample("max_khz", "cpu2", 3_800_000, "limits"),
    Sample("frequency_khz", "cpu0", 3_499_123, "frequency"),
    Sample("frequency_khz", "cpu1", 800_000, "frequency", Freshness.STALE, "the CPU was idle"),
    Sample("frequency_khz", "cpu3", None, "frequency", Freshness.NO_DATA, "0"),
    Sample("sentinel_khz", "package0", 3_499_123, "frequency", cpus=frozenset({2, 3})),
    Sample("core_khz", "cpu2", 3_480_000.5, "clock"),
    Sample("temperature_mc", "thermal_zone0", 61_500, "thermal"),
    Sample("trip_mc", "thermal_zone0", 95_000, "thermal"),
    Sample("cooling_state", "cooling_device2", 1, "thermal"),
    Sample("interrupts", "irq42.cpu2", 12, "interrupts", kind='eth"0\\-rx\n-0', cpus=frozenset({2}), whole="irq42"),
    Sample("interrupts", "irq43", 0, "interrupts", kind="eth0-rx-1"),
    Sample("timer_ticks", "cpu2", 1000, "interrupts"),
    Sample("function_calls", "cpu2", 20, "interrupts"),
    Sample("reschedules", "cpu2", 30, "interrupts"),
    Sample("own_interruptions", "cpu2", 2, "audit"),
    Sample("own_interruptions", "cpu3", 0, "audit"),
    Sample("knob", "irq.affinity[42]", "drifted", "drift", reason="observed 2, desired 0-1: ..."),
    Sample("knob", "cpufreq.governor[2]", "compliant", "drift"),
    Sample("manager", "irqbalance", "active", "managers"),
    Sample("manager", "tuned", "inactive", "managers"),
    Sample("device", "net/eth1", "add", "events"),
    Sample("latency_p99_9_ns", "application", 12_500.0, "latency"),
    Sample("latency_max_ns", "application", 48_000.0, "latency"),
    Sample("latency_count", "application", 100_000, "latency"),
    Sample("latency_worst_p99_9_ns", "application", 22_500.0, "latency"),
    Sample("latency_worst_max_ns", "application", 98_000.0, "latency"),
    Sample("latency_open_max_ns", "application", 8_000.0, "latency"),
    Sample("latency_missed", "application", 5, "latency"),
    Sample("latency_allowed", "application", 9, "latency"),
    Sample("latency_missed_per_day", "application", 39_273, "latency"),
    Sample("latency_bad_pairs", "application", 3, "latency"),
    Sample("latency_bad_input", "application", 1, "latency"),
    Sample("latency_dropped", "application", 2, "latency"),
    Sample("latency_window_dropped", "application", 1, "latency"),
    Sample("latency_max_ns", "sentinel", None, "clock", Freshness.NO_DATA, "nothing came in the last window"),
    Sample("core_khz", "host", None, "clock", Freshness.ABSENT, "no CPU is given to it ([monitor.sentinel])"),
)
CONDITIONS = (
    Condition("FrequencyDrop", "package0", Health.BAD),
    Condition("FrequencyDrop", "package1", Health.GOOD),
    Condition("CoolingActive", "cooling_device2", Health.UNKNOWN),
)
OWN = {
    "cycle_seconds": 0.004,
    "cycle_cpu_seconds": 0.003,
    "cpu_seconds_total": 1.25,
    "cycles_total": 300.0,
    "outbox_depth[journal]": 0.0,
    "outbox_depth[webhook-am-1]": 3.0,
    "outbox_unsaved[webhook-am-1]": 0.0,
    "outbox_oldest_seconds[webhook-am-1]": 12.0,
    "outbox_delivered_total[webhook-am-1]": 5.0,
    "outbox_failures_total[webhook-am-1]": 4.0,
    "outbox_lost_total[webhook-am-1]": 1.0,
}


def status(*samples: Sample, firing: tuple[Alert, ...] = (DROP,), seconds: float = 100.0) -> Status:
    return Status(
        snapshot(*(samples or SAMPLES), seconds=seconds),
        CONDITIONS,
        firing,
        firing,
        OWN,
        isolated=frozenset({2, 3}),
        housekeeping=frozenset({0, 1}),
        host=HOST,
    )
