"""JSON: the header, the published schemas, and strings and numbers JSON has no word for."""

import json
import math
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given

from tests.report.documents import AT, HOST, NAMES, body, document, hostile, replaced
from tests.schemas import problems
from tunectl.model import Document
from tunectl.report import render
from tunectl.report.json import pieces

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"


def schema(name: str) -> Any:
    return json.loads((SCHEMAS / f"tunectl.{name}-1.json").read_text(encoding="utf-8"))


def errors(name: str, text: str) -> list[str]:
    return problems(name, json.loads(text))


@pytest.mark.parametrize("name", NAMES)
def test_a_document_satisfies_its_schema(name: str) -> None:
    assert errors(name, render(document(name), "json")) == []


def test_a_body_cannot_replace_the_header() -> None:
    assert json.loads(render(document("verify", schema="x", at="y"), "json"))["schema"] == "tunectl.verify/1"


def test_schemas_refuse_what_is_wrong() -> None:
    wrong: dict[str, dict[str, Any]] = {
        "verify": {"verdict": "fine"},
        "preflight": {"verdict": "drifted"},
        "plan": {"reboot_required": "yes"},
        "apply": {"verdict": None},
        "snapshot": {"files": -1},
    }
    for name, change in wrong.items():
        assert errors(name, render(document(name, **change), "json")), name


@pytest.mark.parametrize("field", ["knob", "target", "outcome", "observed", "desired", "reason", "fix"])
def test_every_field_of_a_finding_is_required(field: str) -> None:
    made = body("verify")["findings"]
    del made[0][field]
    whole = {"findings": made, "verdict": "drifted", "notes": []}
    assert errors("verify", render(Document("verify", HOST, AT, whole), "json")) == [
        f"$.findings[0]: '{field}' is a required property"
    ]


@pytest.mark.parametrize("name", NAMES)
@given(text=hostile)
def test_any_string_is_valid_json_and_utf8(name: str, text: str) -> None:
    made = Document(name, HOST, AT, replaced(body(name), text))
    rendered = render(made, "json")
    assert json.loads(rendered.encode("utf-8"))["schema"] == f"tunectl.{name}/1"


def test_text_is_not_mangled() -> None:
    read = render(document("verify", notes=["always madvise [never] µs", "\x1b", "\udc80"]), "json")
    assert "always madvise [never] µs" in read
    assert json.loads(read)["notes"] == ["always madvise [never] µs", "\x1b", "\\udc80"]


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_what_is_no_number_is_null(number: float) -> None:
    read = render(document("verify", notes=[{"max_ns": number, "pair": (1, number)}]), "json")
    assert json.loads(read)["notes"] == [{"max_ns": None, "pair": [1, None]}]
    assert "NaN" not in read
    assert "Infinity" not in read


def test_a_large_document_comes_in_pieces_that_are_the_whole() -> None:
    rows = [{"name": f"h{n}", "gap": [[n, n + 1, 0]], "x": math.nan if n == 401 else n} for n in range(1001)]
    body = {"before": 1, "hosts": rows, "also": rows[:3], "triples": [[1, 2, 3]] * 500, "findings": []}
    made = Document("fleet", HOST, AT, body)
    parts = [*pieces(made)]
    assert len(parts) > 8
    assert len({*map(len, parts)}) > 1
    assert max(map(len, parts)) < len("".join(parts)) / 4
    known = json.loads("".join(parts))
    assert known["hosts"][401]["x"] is None
    assert [row["name"] for row in known["hosts"]] == [row["name"] for row in rows]
    assert (known["triples"], known["also"], known["schema"]) == ([[1, 2, 3]] * 500, rows[:3], "tunectl.fleet/1")
    whole = msgspec.json.format(json.dumps(known), indent=2)
    assert re.sub(r"\s", "", "".join(parts)) == re.sub(r"\s", "", whole)
    assert "".join(parts).splitlines()[10:14] == whole.splitlines()[10:14]
    assert len([*pieces(made._replace(body={"hosts": rows[:200]}))]) == 1


def test_a_list_on_the_border_of_a_piece() -> None:
    for count in (0, 1, 199, 200, 201, 400, 401):
        body = {"hosts": [{"n": n} for n in range(count)], "end": True}
        text = render(Document("fleet", HOST, AT, body), "json")
        assert text == msgspec.json.format(json.dumps(json.loads(text)), indent=2) + "\n"
