"""JUnit: a case a finding and one for the verdict, in XML that a strict parser and Jenkins' schema (oracles) take."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema
from hypothesis import given, settings
from hypothesis import strategies as st
from junitparser import JUnitXml

from tests.conftest import examples
from tests.report.documents import NAMES, body, document, findings, hostile, verify_of
from tunectl.model import Document, Finding, HostId, Outcome
from tunectl.report import render

SCHEMA = xmlschema.XMLSchema(str(Path(__file__).parents[1] / "oracles" / "junit-10.xsd"))


def suite(made: Document) -> ElementTree.Element:
    root = ElementTree.fromstring(render(made, "junit").encode("utf-8"))
    (found,) = root.findall("testsuite")
    return found


def cases(made: Document) -> dict[str, ElementTree.Element]:
    return {case.attrib["name"]: case for case in suite(made).findall("testcase")}


def states(made: Document) -> dict[str, str]:
    """Each case's state: passed, or the tag of what it holds."""
    return {name: next((child.tag for child in case), "passed") for name, case in cases(made).items()}


@pytest.mark.parametrize("verdict", ["drifted", "no-go", "unknown", "unreadable", "pending-reboot"])
def test_skips_alone_do_not_pass(verdict: str) -> None:
    made = verify_of([Finding("a.b", "", Outcome.UNREADABLE)], verdict=verdict)
    assert states(made) == {"a.b": "skipped", "verdict": "failure"}


@pytest.mark.parametrize("verdict", ["compliant", "go"])
def test_a_good_verdict_passes(verdict: str) -> None:
    assert states(verify_of([], verdict=verdict)) == {"verdict": "passed"}


def test_strict_makes_unreadable_fail() -> None:
    assert states(document("verify", strict=True))["kernel.sched_rt_runtime_us"] == "failure"


def test_the_probes_budget_is_a_case() -> None:
    assert states(document("preflight"))["probe.budget"] == "failure"
    for verdict, state in (("within", "passed"), ("not-judged", "skipped")):
        budget = {"limits": {"max_ns": 5}, "verdict": verdict, "broken": [], "reason": "the run was interrupted"}
        probe = {**body("probe.jitter"), "budget": budget}
        assert states(document("preflight", probe=probe))["probe.budget"] == state
    assert "probe.budget" not in states(document("preflight", probe=None))


def test_the_budget_of_feed_is_a_case_of_its_own() -> None:
    assert states(document("preflight"))["feed.budget"] == "failure"
    for verdict, state in (("within", "passed"), ("not-judged", "skipped")):
        budget = {"limits": {"due_to_book_p99_9_ns": 5}, "verdict": verdict, "broken": [], "reason": "it is void"}
        feed = {**body("preflight")["feed"], "budget": budget}
        assert states(document("preflight", feed=feed))["feed.budget"] == state
    assert "feed.budget" not in states(document("preflight", feed=None))


def test_it_is_read_back_by_junitparser() -> None:
    read = JUnitXml.fromstring(render(document("preflight"), "junit").encode("utf-8"))
    assert sum(len(each) for each in read) == read.tests == 53


@settings(max_examples=examples(40))
@given(st.lists(findings), hostile, hostile)
def test_no_name_breaks_the_xml(found: list[Finding], verdict: str, hostname: str) -> None:
    made = verify_of(found, verdict=verdict)
    made = Document("verify", HostId(hostname, hostname), hostname, made.body, made.findings)
    assert len(suite(made).findall("testcase")) == len(found) + 1


def test_a_control_character_stays_visible() -> None:
    made = verify_of([Finding("irq.affinity", "\x1b[2J", Outcome.COMPLIANT)])
    assert "irq.affinity[\\x1b[2J]" in states(made)


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
