"""One status line, performance data and detail lines, as Nagios, Icinga and similar programs read them.

Source: https://www.monitoring-plugins.org/doc/guidelines.html. A threshold `0` there means "alert
outside 0 to 0". There is no unit for ppm, so stolen time is a percentage.
"""

from collections.abc import Iterator

from tunectl.model import Document, Finding, Outcome, cost
from tunectl.report.actions import todo
from tunectl.report.escape import printable
from tunectl.report.figures import feed_of, probe_of
from tunectl.report.findings import brief, counts, groups, name_of
from tunectl.shapes import OF_HOST
from tunectl.verdict import fails_gate
from tunectl.wording import plural, sentence

_STATES = {
    "compliant": 0,
    "go": 0,
    "ok": 0,
    "pending-reboot": 1,
    "warning": 1,
    "critical": 2,
    "drifted": 2,
    "no-go": 2,
}
_WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
_DETAILED = {Outcome.DRIFTED, Outcome.REFUSED, Outcome.PENDING_REBOOT, Outcome.UNREADABLE}
MAX_TODO = 4
MAX_DETAILS = 20  # plugin output is cut at a few kilobytes by some transports


def exit_code(verdict: str | None) -> int:
    """0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN; anything that is not a verdict is UNKNOWN."""
    return _STATES.get(verdict or "", 3)


def render(document: Document, *, width: int = 0, colour: bool = False) -> str:
    """The status line with all performance data, then one line for each reason and finding."""
    verdict = document.body.get("verdict")
    reasons = [str(reason) for reason in document.body.get("reasons", ())]
    headline = f"{_clean(str(document.body['headline']))}; " if document.body.get("headline") else ""
    said = f"{_clean(str(verdict or 'no verdict'))}: {headline}{brief(document.findings)}"
    if reasons:
        said += f"; {len(reasons)} reason{'s' if len(reasons) > 1 else ''}, first: {_clean(reasons[0])}"
    status = f"TUNECTL {_WORDS[exit_code(verdict)]} - {said} | {' '.join(_perfdata(document))}"
    numbered = [f"{place}. {_clean(reason)}" for place, reason in enumerate(reasons, 1)]
    details = [*_todo(document), *numbered, *_details(document)]
    hidden = len(details) - MAX_DETAILS
    if hidden > 0:
        details[MAX_DETAILS:] = [f"and {hidden} more; --format json has all"]
    return "\n".join([status, *details]) + "\n"


def _clean(text: str) -> str:
    """One line without the bar that starts performance data."""
    return printable(text).replace("|", "\\x7c")


def _todo(document: Document) -> Iterator[str]:
    """What to do, in the order to do it; the rest is left to the page that a person reads."""
    listed = todo(document.body.get("actions") or ())
    for number, one in enumerate(listed[:MAX_TODO], 1):
        what = "; ".join(one.typed) if one.commands else one.by_hand
        yield _clean(f"do {number}. {what} ({one.said})")
    if len(listed) > MAX_TODO:
        yield f"and {len(listed) - MAX_TODO} more to do"


def _details(document: Document) -> Iterator[str]:
    strict = bool(document.body.get("strict"))
    found = groups(finding for finding in document.findings if finding.outcome in _DETAILED)
    judged = [(fails_gate(Finding("", "", group.outcome, harmful=group.harmful), strict), group) for group in found]
    for fails, group in sorted(judged, key=lambda one: (not one[0], cost(one[1].severity))):
        word = ("FAILS " if fails else "note ") + group.outcome.value
        word += f" ({group.severity.value})" if group.severity else ""
        rows = ((name_of(group.knob, row.instances), group.stands(row)) for row in group.rows[:4])
        values = "; ".join(sentence(name, stands, "") for name, stands in rows)
        more = f" and {plural(len(group.rows) - 4, 'more value')}" if len(group.rows) > 4 else ""
        parts = [values + more, group.reason.rstrip("."), f"fix: {group.fix}" if group.fix else ""]
        yield _clean(f"{word}: " + ". ".join(part for part in parts if part))


def _perfdata(document: Document) -> Iterator[str]:
    """The outcomes; the worst probed CPU's figures, and feed's worst case, each with its limit where there is one."""
    thresholds = {Outcome.DRIFTED: ";;0;0", Outcome.PENDING_REBOOT: ";0;;0"}
    for outcome, count in counts(document.findings).items():
        yield f"'{outcome.value}'={count}{thresholds.get(outcome, ';;;0')}"
    if probe := probe_of(document):
        for label, measure, scale, unit in (
            ("probe_max", "max_ns", 1000, "us"),
            ("probe_arrival_p99.9", "p99_9_ns", 1000, "us"),
            ("probe_interruptions_per_s", "interruptions_per_s", 1, ""),
            ("probe_stolen", "stolen_ppm", 10000, "%"),
            *((f"probe_{key}", key, 1, "") for key in OF_HOST),
        ):
            yield from _figure(label, probe.worst(measure), probe.budget.limits.get(measure), scale, unit)
    if feed := feed_of(document):
        worst = max((value for case in feed.cases if (value := case.at("99.9")) is not None), default=None)
        limit = feed.budget.limits.get("due_to_book_p99_9_ns")
        yield from _figure("feed_due_to_book_p99.9", worst, limit, 1000, "us")


def _figure(label: str, value: float | None, limit: float | None, scale: int, unit: str) -> Iterator[str]:
    if value is not None:
        crit = "" if limit is None else _number(limit / scale)
        yield f"'{label}'={_number(value / scale)}{unit};;{crit};0"


def _number(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")
