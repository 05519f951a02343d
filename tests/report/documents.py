"""One document of each kind, and strings that try to break out of a format."""

import copy
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.report.samples import SAMPLES
from tunectl import kinds
from tunectl.fix import APPLY, REBOOT, Fix, of_text
from tunectl.model import Document, Finding, HostId, Outcome, Severity
from tunectl.report.urgency import findings_in

NAMES = tuple(SAMPLES)
_TASKS = {str(APPLY): APPLY.tasks, "reboot": REBOOT.tasks}
HOST = HostId("tx-04", "6.12.5", "0e2a7a37-2f1c-4b0e-9d6f-3f5f6f0c2d11", "x86_64")
AT = "2026-11-21T09:30:00Z"

NASTY = (
    "always madvise [never]",
    "[bold red]x[/]",
    "a|b'c=1;2",
    "two\nlines",
    "\x1b[31mred\x1b[0m",
    "\x00\x07\x7f\x85\u2028\u202e",
    "\udc80\udcff",
    "\ufffe\uffff",
    "]]><!--&<x>\"'",
    ":smile: {braces} \\ %s",
    "日本語の長い名前",
    "",
)
hostile = st.sampled_from(NASTY) | st.text(st.characters(), max_size=40)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | hostile
findings = st.builds(
    Finding,
    knob=hostile,
    instance=hostile,
    outcome=st.sampled_from(Outcome),
    observed=scalars,
    desired=scalars,
    reason=hostile,
    fix=hostile.map(of_text),
    harmful=st.booleans(),
    points=st.none() | st.dictionaries(st.sampled_from(["asked", "next_boot", "this_boot", "kernel"]), scalars),
    severity=st.none() | st.sampled_from(Severity),
)


def body(name: str) -> dict[str, Any]:
    """A copy of the sample of that name, to be changed at will."""
    return copy.deepcopy(_made(name))


@cache
def _made(name: str) -> dict[str, Any]:
    return SAMPLES[name]()


def all_findings(of: Mapping[str, Any]) -> Iterator[Finding]:
    """The findings of a body and of its sections."""
    yield from findings_in(of)
    for section in ("verify", "check", "thermal"):
        yield from findings_in(of.get(section))


def document(name: str, **changed: Any) -> Document:
    """The sample of that name, with some fields of its body changed."""
    made = {**body(name), **changed}
    if "actions" in made:
        made["actions"] = [*map(_own, made["actions"])]
    if "findings" in made:
        made["findings"] = [*map(_just_made, findings_in(made))]
    return Document(name, HOST, AT, made, tuple(all_findings(made)))


def _own(action: dict[str, Any]) -> dict[str, Any]:
    """An action whose command is one, as the command that makes the document has it."""
    command = kinds.made_of(action.get("kind"), action.get("arguments", {}))
    return {**action, "command": command} if command else action


def _just_made(finding: Finding) -> Finding:
    """A finding whose fix has its tasks, as a command makes it."""
    return finding._replace(fix=Fix(_TASKS.get(str(finding.fix), finding.fix.tasks)))


def verify_of(found: list[Finding], verdict: str = "drifted", name: str = "verify") -> Document:
    """A document of just these findings."""
    return Document(name, HOST, AT, {"verdict": verdict, "findings": found, "notes": []}, tuple(found))


def replaced(value: Any, text: str) -> Any:
    """The same structure with every word of free text replaced; words of a fixed vocabulary stay."""
    fixed = {"outcome", "verdict", "lifetime", "result", "match", "facility"}
    if isinstance(value, dict):
        return {key: item if key in fixed else replaced(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, text) for item in value]
    return text if isinstance(value, str) else value
