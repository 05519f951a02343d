"""JUnit: what every command writes satisfies the schema of Jenkins' xUnit plugin (tests/oracles)."""

from pathlib import Path

import pytest
import xmlschema
from hypothesis import given
from hypothesis import strategies as st

from tests.report.documents import NAMES, document, findings, hostile, verify_of
from tunectl.report import render

SCHEMA = xmlschema.XMLSchema(str(Path(__file__).parents[1] / "oracles" / "junit-10.xsd"))


@pytest.mark.parametrize("name", NAMES)
def test_every_document_is_what_jenkins_reads(name: str) -> None:
    SCHEMA.validate(render(document(name), "junit"))


@given(st.lists(findings, max_size=5), st.lists(hostile, max_size=3), hostile)
def test_no_text_breaks_it(found: list, reasons: list[str], headline: str) -> None:  # type: ignore[type-arg]
    made = verify_of(found)
    body = {**made.body, "reasons": reasons, "headline": headline}
    SCHEMA.validate(render(made._replace(body=body), "junit"))


def test_the_schema_refuses_what_it_does_not_know() -> None:
    text = render(document("verify"), "junit")
    assert SCHEMA.is_valid(text)
    assert not SCHEMA.is_valid(text.replace("<testsuites ", '<testsuites skipped="1" ', 1))
