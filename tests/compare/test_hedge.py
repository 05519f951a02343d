"""Two results of `hedge` side by side: rows with bounds, what second copies cost, and what else differs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from tests.compare.feeds import feed_document
from tests.compare.hedges import hedge_document, simulated_hedge
from tests.experiments.feeds import case as feed_case
from tests.experiments.hedges import OWN, case, tail, unmeasured
from tunectl.compare.compared import compared
from tunectl.errors import TunectlError
from tunectl.model import Document, HostId
from tunectl.probe.document import ProbeFile, read_document
from tunectl.report import render

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schema" / "tunectl.compare-1.json").read_text())
Read = Callable[..., ProbeFile]
VOID: dict[str, Any] = {"threads": [OWN | {"cpu_ns": 0}, OWN, OWN]}


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def made(name: str, body: dict[str, Any]) -> ProbeFile:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(body))
        return read_document(path)

    return made


def both(before: ProbeFile, after: ProbeFile) -> dict[str, Any]:
    later = msgspec.structs.replace(after.result, at="2026-11-21T10:00:00Z")  # one file may stand for both
    made = compared(before, dataclasses.replace(after, result=later))
    host = {"hostname": "h", "kernel": "k", "boot_id": "b", "machine": "m"}
    header = {"schema": "tunectl.compare/1", "tunectl_version": "1", "host": host, "at": "2026-11-21T10:00:00Z"}
    jsonschema.validate(header | made, SCHEMA)
    return made


def rows(made: dict[str, Any], group: int = 0) -> dict[tuple[str, str | None], dict[str, Any]]:
    return {(row["measure"], row["percentile"]): row for row in made["groups"][group]["rows"]}


def test_percentiles_have_bounds_and_costs_are_one_figure_a_run(read: Read) -> None:
    before = read("a", hedge_document(case(tail(20_000), hedged=200, busy_ticks=200_000)))
    after = read("b", hedge_document(case([2 * ns for ns in tail(20_000)], hedged=400, busy_ticks=300_000)))
    made = both(before, after)
    found = rows(made)
    assert [*found] == [
        *(("answer_ns", name) for name in ("50", "99", "99.9")),
        *((name, None) for name in ("max_ns", "hedged_percent", "missed_percent", "utilisation_percent")),
    ]
    ratio = found["answer_ns", "50"]["ratio"]
    assert 1.9 < ratio["low"] <= ratio["value"] <= ratio["high"] < 2.1
    assert found["hedged_percent", None]["after"]["value"] == 2
    assert found["utilisation_percent", None]["ratio"]["value"] == 1.5
    assert (made["kind"], made["judged"]) == ("hedge", None)
    assert made["groups"][0]["name"] == "load 0.1, second copy after 5 µs"
    assert any("those that wait in one queue are not" in text for text in made["warnings"])


def test_cases_are_matched_by_all_that_was_asked(read: Read) -> None:
    some = [3_000] * 100
    ways: list[dict[str, Any]] = [
        *({}, {"load": 0.5}, {"delay": "p95"}, {"stall": "a"}, {"service_ns": 5000}, {"cancel": False}),
        *({"budget": 0.1}, {"shed_at": 4}),
    ]
    cases = [case(some, **way) for way in ways]
    made = both(read("a", hedge_document(*cases)), read("b", hedge_document(*reversed(cases))))
    assert len(made["groups"]) == len(ways)
    one = both(
        read("c", hedge_document(case(some), case(some, load=0.5))),
        read("d", hedge_document(case(some), case(some, load=0.7))),
    )
    assert [text for text in one["warnings"] if text.startswith("only ")] == [
        "only before: load 0.5, no second copy",
        "only after: load 0.7, no second copy",
    ]


def test_a_simulation_is_not_compared_with_a_measurement(read: Read) -> None:
    some = case([3_000] * 100)
    said = r"have no case in common \(probe both hosts with the same loads, .*both measured or both simulated"
    with pytest.raises(TunectlError, match=said):
        compared(read("a", hedge_document(some)), read("b", simulated_hedge(some)))
    assert both(read("a", simulated_hedge(some)), read("b", simulated_hedge(some)))["groups"]


@pytest.mark.parametrize("made", [hedge_document, simulated_hedge])
def test_a_simulation_that_is_called_a_measurement_is_refused(read: Read, made: Callable[..., dict[str, Any]]) -> None:
    document = made(case([3_000] * 100))
    read("a", document)
    with pytest.raises(TunectlError, match=r"cells\[0\]\.cpus: simulated is .*a simulation has no CPUs"):
        read("b", document | {"simulated": not document["simulated"]})


def test_what_missed_has_no_ratio_and_leaves_bounds_open(read: Read) -> None:
    calm = read("a", hedge_document(case([3_000] * 1000)))
    missing = read("b", hedge_document(case([3_000] * 980, unanswered=20)))
    found = rows(both(calm, missing))
    assert found["answer_ns", "50"]["ratio"] is not None
    assert found["answer_ns", "99"]["ratio"] is None
    assert "too many of them missed" in found["answer_ns", "99"]["reason"]
    assert found["missed_percent", None]["after"]["value"] == 2
    few = read("c", hedge_document(case([3_000] * 992, unanswered=8)))
    assert rows(both(calm, few))["answer_ns", "99"]["after"]["high"] is None


def test_what_else_differs_is_named(read: Read) -> None:
    some = [3_000] * 100
    before = read("a", hedge_document(case(some), case(some, load=0.5)))
    changed: dict[str, Any] = {"fifo_priority": 3, "cpus": [4, 5, 6], "interrupted": True}
    after = read("b", hedge_document(case(some), case(some, load=0.5, **VOID), **changed))
    said = "\n".join(both(before, after)["warnings"])
    for text in (
        "another scheduling priority: ordinary before, 3 after",
        "after was interrupted before its time",
        "after: load 0.5, no second copy: void: the spinner had CPU 4 for 0 % of the time",
        "load 0.1, no second copy: other CPUs: 2-3-4 before, 4-5-6 after",
    ):
        assert text in said


def test_what_cannot_be_compared(read: Read) -> None:
    hedge, feed = read("a", hedge_document(case([3_000] * 100))), read("f", feed_document(feed_case()))
    with pytest.raises(TunectlError, match=r"a\.json is of `probe hedge`, .*f\.json is of `probe feed`"):
        compared(hedge, feed)
    void = read("c", hedge_document(case([3_000] * 100, **VOID)))
    with pytest.raises(
        TunectlError, match=r"in common is void: the spinner had CPU 2 .*nobody else wants the three CPUs"
    ):
        compared(void, void)
    with pytest.raises(TunectlError, match=r"in common is void or not measured: .*interrupted"):
        compared(void, read("d", hedge_document(unmeasured("interrupted"))))


@pytest.mark.parametrize("width", [80, 120])
def test_the_page(read: Read, width: int) -> None:
    made = both(read("a", hedge_document(case(tail(20_000)))), read("b", hedge_document(case(tail(20_000, 900_000)))))
    lines = render(Document("compare", HostId("h", "k", "b", "m"), "", made), "text", width=width).splitlines()
    assert lines[0].startswith("no verdict: the bounds of answers' times say what differs between these two")
    assert any(line.startswith("  due to answer P99.9 ") for line in lines)
    assert any(line.startswith("  servers busy ") for line in lines)
    assert [line for line in lines if len(line) > width] == []


@pytest.mark.parametrize(("key", "raised", "is_read"), [("50", 0, True), ("50", 500, False), ("99", 500, False)])
def test_a_percentile_that_the_histogram_contradicts_is_refused(
    read: Read, key: str, raised: int, *, is_read: bool
) -> None:
    document = hedge_document(case([3_000] * 1000))
    document["cells"][0]["percentiles_ns"][key] += raised
    if is_read:
        read("a", document)
        return
    with pytest.raises(TunectlError, match=rf"cells\[0\]: {key}: is .* ns, and the histogram has it from"):
        read("a", document)


def test_what_missed_has_no_percentile(read: Read) -> None:
    document = hedge_document(case([3_000] * 1000))
    cell = document["cells"][0]
    cell["answered"] -= 20
    cell["shed"] += 20
    cell["histogram"][-1][2] -= 20
    with pytest.raises(TunectlError, match=r"99: is .* ns, and the histogram does not reach it"):
        read("a", document)
