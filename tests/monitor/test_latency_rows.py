"""`latency` of tunectl.monitor/1: a row for each who sends latencies, as the published schema has it."""

from __future__ import annotations

import json
from pathlib import Path

from jsonschema import Draft202012Validator

from tunectl.monitor.document import monitor_body
from tunectl.monitor.model import Freshness, Sample, Snapshot, Status

SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "tunectl.monitor-1.json"


def body_of(*samples: Sample) -> dict[str, object]:
    status = Status(Snapshot(1000.0, "2026-11-25T10:00:00Z", samples), (), (), (), {})
    return monitor_body(status, None, ("ok", []))


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
