"""A document that is none is refused in one line, by its type; of any other there is a page, a host of a fleet."""

import copy
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.fleet.made import good, preflight
from tests.report.documents import AT, HOST, NASTY
from tunectl.cli.report import _compared, _doubt
from tunectl.errors import TunectlError
from tunectl.fleet.records import summary_of
from tunectl.model import Document
from tunectl.probe.document import read_document
from tunectl.report import render
from tunectl.shapes import Preflight

ACTION = {"command": "sudo tunectl apply", "note": "first", "mends": ["mm.swappiness"], "reboot": False}
DECIDE = {"decide": "look for what took it away", "mends": ["irq.affinity[7]"], "reboot": True}
POINTS = {"asked": "2-3", "next_boot": "", "this_boot": None, "kernel": ""}
WRONG = {"outcome": "drifted", "reason": "is 60", "fix": "sudo tunectl apply", "severity": "stall", "points": POINTS}


def whole() -> dict[str, Any]:
    """A preflight with something of everything that its page shows."""
    findings = [good("mm.swappiness") | WRONG, good("irq.affinity[7]") | {"outcome": "refused", "harmful": True}]
    section = {"verdict": "drifted", "findings": [*findings, good("mm.ksm") | {"outcome": "unreadable"}]}
    return preflight(
        verdict="no-go",
        actions=[ACTION, ACTION | {"mends": ["a", "b"]}, DECIDE],
        verify=section,
        headline="NO-GO",
        looser=[{"key": "max_ns"}],
        waivers={"standing": 1},
    )


def page(path: Path, document: Any) -> str:
    """The page of `report` of a document twice; a fleet reads it as well."""
    path.write_text(json.dumps(document))
    read = [read_document(path), read_document(path)]
    if isinstance(read[0].result, Preflight):
        summary_of(read[0].result)
    found, _ = _compared(read)
    sources = [{**vars(one), "doubt": _doubt(one)} for one in read]
    return render(Document("report", HOST, AT, {"files": sources, "compare": found}), "html")


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("actions", 0, "mends"), KeyError, "actions[0]: Object missing required field `mends`"),
        (("actions", 0, "note"), 5, "actions[0].note: Expected `str`, got `int`"),
        (("verify", "findings", 0, "outcome"), "fine", "verify.findings[0].outcome: Invalid enum value 'fine'"),
        (("verify", "findings", 0, "fix"), KeyError, "verify.findings[0]: Object missing required field `fix`"),
        (("check", "findings", 0, "reason"), None, "check.findings[0].reason: Expected `str`, got `null`"),
    ],
)
def test_what_no_version_writes_is_refused_with_its_place(
    tmp_path: Path, place: tuple[str | int, ...], value: object, said: str
) -> None:
    path = tmp_path / "x.json"
    assert "mm.swappiness" in page(path, whole())
    with pytest.raises(TunectlError) as caught:
        page(path, changed(whole(), place, value))
    assert caught.value.message == f"{path}: {said}"
    assert caught.value.hint == "docs/schema/tunectl.preflight-1.json says what stands there"


def changed(document: Any, place: tuple[str | int, ...], value: object) -> Any:
    """The document with another value at a place; KeyError: with none."""
    made = copy.deepcopy(document)
    inner: Any = made
    for key in place[:-1]:
        inner = inner[key]
    if value is KeyError:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return made


def places(value: Any, above: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Where something stands in a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, each in inside for place in ((*above, key), *places(each, (*above, key)))]


PLACES = places(whole())
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e18, 1e18) | st.sampled_from(NASTY) | st.just("9" * 5000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=examples(300))
@given(st.lists(st.tuples(st.sampled_from(PLACES), ANY | st.just(KeyError)), min_size=1, max_size=3))
def test_any_document_has_a_page_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[tuple[str | int, ...], object]]
) -> None:
    document = whole()
    for place, value in changes:
        try:
            document = changed(document, place, value)
        except (KeyError, IndexError, TypeError):  # an earlier change took the place away
            continue
    with suppress(TunectlError):
        assert page(tmp_path_factory.getbasetemp() / "x.json", document).startswith("<!doctype html>")
