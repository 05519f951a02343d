"""What tunectl.monitor/1 says of latencies, as the published schema has it, and of what a source could not read."""

import json
from pathlib import Path

from jsonschema import Draft202012Validator

from tunectl.fix import to_decide
from tunectl.model import Finding, Outcome
from tunectl.monitor.document import cpu_rows, monitor_body, sources_of
from tunectl.monitor.model import Condition, Freshness, Health, Sample, Snapshot, Status
from tunectl.monitor.sources.drift import _sample
from tunectl.monitor.watcher import verdict_of

SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "tunectl.monitor-1.json"


def body_of(*samples: Sample) -> dict[str, object]:
    status = Status(Snapshot(1000.0, "2026-11-25T10:00:00Z", samples), (), (), (), {})
    return monitor_body(status, None, ("ok", []))


def test_what_waits_for_a_reboot_is_named_whatever_else_is_in_order() -> None:
    knobs = [Sample("knob", f"boot.{name}", "pending-reboot", "knobs") for name in ("isolcpus", "nohz_full")]
    status = Status(Snapshot(1000.0, "2026-11-25T10:00:00Z", tuple(knobs)), (), (), (), {})
    good = status._replace(conditions=(Condition("KnobDrift", "boot.isolcpus", Health.GOOD),))
    assert verdict_of(good) == ("ok", ["pending reboot: boot.isolcpus, boot.nohz_full"])
    bad = status._replace(conditions=(Condition("KnobDrift", "mm.ksm", Health.BAD, summary="on"),))
    assert verdict_of(bad)[1] == ["KnobDrift[mm.ksm]: on", "pending reboot: boot.isolcpus, boot.nohz_full"]


def test_misses_a_day_are_in_the_document() -> None:
    values = {
        "max_ns": 90_000,
        "p99_9_ns": 21_000,
        "missed": 12,
        "allowed": 9,
        "missed_per_day": 94_255,
        "count": 10_000,
    }
    rows = body_of(
        *(Sample(f"latency_{name}", "application", value, "latency") for name, value in values.items()),
        Sample("latency_max_ns", "sentinel", None, "clock", Freshness.NO_DATA, "nothing came in the last window"),
    )["latency"]
    assert isinstance(rows, list)
    rest = {"bad_input": None, "bad_pairs": None, "dropped": None}
    assert rows[0] == {"subject": "application", **values, **rest, "health": "fresh", "reason": ""}
    assert (rows[1]["subject"], rows[1]["max_ns"], rows[1]["health"]) == ("sentinel", None, "no-data")
    published = json.loads(SCHEMA.read_text())
    schema = {**published["properties"]["latency"], "$defs": published["$defs"]}
    assert list(Draft202012Validator(schema).iter_errors(rows)) == []
    assert set(published["$defs"]["LatencyRow"]["required"]) == rows[0].keys()


def test_where_nobody_sends_latencies_there_is_no_row() -> None:
    absent = Sample("latency_max_ns", "application", None, "latency", Freshness.ABSENT, "no socket is named")
    assert body_of(absent)["latency"] == []


def reasons(*samples: Sample) -> list[str]:
    return [reason for row in sources_of(Snapshot(0.0, "", samples)) for reason in row.reasons]


def test_a_knob_that_could_not_be_read_is_named() -> None:
    dark = Finding("cpufreq.energy_perf_bias", "2", Outcome.UNREADABLE, None, "performance", "it would interrupt CPU 2")
    assert reasons(_sample(dark)) == [
        "cpufreq.energy_perf_bias[2]: could not be read, should be performance: it would interrupt CPU 2"
    ]
    assert reasons(_sample(dark._replace(desired=None, fix=to_decide("run as root")))) == [
        "cpufreq.energy_perf_bias[2]: could not be read: it would interrupt CPU 2; fix: run as root"
    ]


def test_a_knob_that_this_host_lacks_is_not_called_unset() -> None:
    absent = Finding("net.lro", "", Outcome.UNSUPPORTED, None, "off", "the host file names no interface")
    assert reasons(_sample(absent)) == ["net.lro: the host file names no interface"]


def test_another_quantity_is_named_as_before() -> None:
    lost = Sample("frequency_khz", "cpu2", None, "frequency", Freshness.NO_DATA, "permission denied")
    assert reasons(lost) == ["frequency_khz: permission denied"]


def test_how_often_a_core_throttled_since_the_look_before_is_not_known_at_the_first() -> None:
    """Its CPUs count the same events and need not count all: the largest count, and apart from it the largest rise."""

    def row(*counts: int) -> tuple[Sample, ...]:
        pairs = enumerate(counts)
        return tuple(
            Sample("core_throttles", f"cpu{cpu}", count, "throttle", cpus=frozenset({0, 1}), whole="core0")
            for cpu, count in pairs
        )

    first = Snapshot(1000.0, "2026-11-25T10:00:00Z", row(900, 3))
    status = Status(first._replace(monotonic_s=1001.0, samples=row(900, 5)), (), (), (), {}, isolated=frozenset({1}))
    counts = [(cpu.throttles, cpu.throttles_new) for cpu in cpu_rows(status, first)]
    assert counts == [(900, 2)] * 2
    assert [cpu.throttles_new for cpu in cpu_rows(status, None)] == [None] * 2
