"""JUnit XML: one test case a finding, the worst severity first, one for each budget, and one for the verdict.

JUnit does not count a skipped case as a failure. A report of skips alone must not pass, so the verdict is a case of
its own. It passes only for compliant and GO: with a pending reboot the host is not ready yet.

The schema that Jenkins reads by (junit-10.xsd) has no properties in a test case; what it has is `group`. So a case's
severity is its group, and the worst one that fails is a property of the suite.
"""

import re
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any, cast

from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite

from tunectl.model import Document, Finding, Outcome, cost
from tunectl.report.escape import printable, shown
from tunectl.report.figures import feed_of, probe_of
from tunectl.report.findings import brief
from tunectl.verdict import fails_gate
from tunectl.wording import standing, wanted

_PASSING = ("compliant", "go")
# XML 1.0 has no way to write these, not even as references; tab, line feed and carriage return it has.
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(document: Document, *, width: int = 0, colour: bool = False) -> str:
    """One test suite, named after the document, with the host and the time."""
    suite = TestSuite(f"tunectl.{document.name}")
    suite.hostname = _xml(document.host.hostname)
    suite.timestamp = _xml(document.at.removesuffix("Z"))
    suite.add_property("kernel", _xml(document.host.kernel))
    suite.add_property("boot_id", _xml(document.host.boot_id))
    if headline := document.body.get("headline"):
        suite.add_property("headline", _xml(str(headline)))
    strict = bool(document.body.get("strict"))
    ordered = sorted(document.findings, key=lambda finding: cost(finding.severity))
    cases = [_case(finding, strict) for finding in ordered]
    failing = [finding.severity for finding in ordered if finding.severity and fails_gate(finding, strict)]
    if failing:
        suite.add_property("severity", failing[0].value)
    suite.add_testcases([*cases, *_budgets(document), _verdict(document)])
    root = JUnitXml()
    root.add_testsuite(suite)
    cast(Any, root).update_statistics()  # junitparser is typed only in part
    # Jenkins' schema (junit-10.xsd) knows this count of a suite, and not of all of them together.
    cast(Any, root)._elem.attrib.pop("skipped", None)
    file = BytesIO()
    root.write(file)
    return file.getvalue().decode() + "\n"


def _xml(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", printable(text))


def _case(finding: Finding, strict: bool) -> TestCase:
    case = TestCase(_xml(finding.target), _xml(finding.knob.partition(".")[0]))
    if finding.severity:
        cast(Any, case)._elem.set("group", finding.severity.value)
    if fails_gate(finding, strict):
        observed, desired = shown(finding.observed), wanted(shown(finding.desired), finding.match)
        lines = {"observed": observed, "desired": desired, "reason": finding.reason, "fix": str(finding.fix)}
        text = [f"{label}: {_xml(said)}" for label, said in lines.items()]
        case.result = [_failure(_xml(standing(finding)), finding.outcome.value, text)]
    elif finding.outcome is not Outcome.COMPLIANT:
        case.result = [Skipped(_xml(f"{finding.outcome.value}: {finding.reason}"), finding.outcome.value)]
    return case


def _failure(message: str, kind: str, lines: Iterable[str]) -> Failure:
    failure = Failure(message, kind)
    failure.text = "\n".join(lines)
    return failure


def _budgets(document: Document) -> Iterator[TestCase]:
    for what, run in (("probe", probe_of(document)), ("feed", feed_of(document))):
        if not run:
            continue
        case = TestCase(f"{what}.budget", what)
        if broken := list(map(_xml, run.budget.broken)):
            case.result = [_failure(broken[0], "broken", broken)]
        elif run.budget.verdict != "within":
            case.result = [Skipped(_xml(run.budget.reason or "not judged"), "not-judged")]
        yield case


def _verdict(document: Document) -> TestCase:
    verdict = str(document.body.get("verdict", "unknown"))
    case = TestCase("verdict", "tunectl")
    if verdict not in _PASSING:
        reasons = [_xml(str(reason)) for reason in document.body.get("reasons", ())]
        case.result = [_failure(_xml(f"{verdict}: {brief(document.findings)}"), _xml(verdict), reasons)]
    return case
