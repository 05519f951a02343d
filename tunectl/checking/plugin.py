"""The pytest plugin behind `tunectl check`: it turns the end of each check into a finding."""

from __future__ import annotations

import inspect
from collections.abc import Generator

import pytest

from tunectl.checking.fixtures import SUBJECT
from tunectl.checking.outcomes import OF_CHECKS, Settled, least_s_of, needs_sight_of, severity_of
from tunectl.checking.subject import Subject
from tunectl.fix import NOTHING
from tunectl.host.refusals import ON_HOST
from tunectl.model import Finding, Match, Outcome


class Verdicts:
    """Collects a finding for every check that was collected, whatever becomes of it."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._findings: dict[str, Finding] = {}
        self._broken: list[Finding] = []
        self.interrupted: BaseException | None = None
        self.internal: str = ""

    @property
    def findings(self) -> list[Finding]:
        """In the order of collection, what could not be loaded first."""
        return [*self._broken, *self._findings.values()]

    def pytest_configure(self, config: pytest.Config) -> None:
        """The host under check is put where the fixtures find it."""
        config.stash[SUBJECT] = self._subject

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Each check has an answer from the start: that it did not run. A run that stops short hides none."""
        for item in session.items:
            self._findings[item.nodeid] = _finding(item, Outcome.UNREADABLE, "the check was not run")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be loaded is one finding, in one line."""
        if report.failed and report.nodeid:
            name = _stem(report.nodeid)
            reason = f"check {name} failed to load: {_last_line(report.longreprtext)}"
            self._broken.append(Finding(f"check.{name}", "", Outcome.UNREADABLE, reason=reason, severity=OF_CHECKS))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Progress: which check runs."""
        if nodeid in self._findings:
            self._subject.on_progress(self._findings[nodeid].target)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Set-up, the check itself and tear-down each come by here; what ended badly decides."""
        report = yield
        error = call.excinfo.value if call.excinfo else None
        drifted = self._findings[item.nodeid].outcome == Outcome.DRIFTED
        if error is not None and not (drifted and call.when == "teardown"):
            self._findings[item.nodeid] = _proved(item, _ended(item, error, report), self._subject)
        elif call.when == "call":
            found = _finding(item, Outcome.COMPLIANT, "")
            self._findings[item.nodeid] = _proved(item, found, self._subject)
        return report

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Ctrl-C ends the whole run; a check that calls pytest.exit() comes by here, too."""
        self.interrupted = excinfo.value

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """pytest itself failed: kept, to be told in one line."""
        self.internal = _sentence(excinfo.value)


def _ended(item: pytest.Item, error: BaseException, report: pytest.TestReport) -> Finding:
    if isinstance(error, Settled):
        return _finding(item, error.outcome, error.reason, error)
    if hasattr(report, "wasxfail"):
        return _finding(item, Outcome.WAIVED, f"expected to fail: {report.wasxfail or _first_line(str(error))}")
    if isinstance(error, pytest.skip.Exception):
        return _finding(item, Outcome.UNSUPPORTED, str(error.msg))
    if isinstance(error, pytest.fail.Exception):
        return _finding(item, Outcome.DRIFTED, str(error.msg))
    if isinstance(error, AssertionError) and report.when == "call":
        return _finding(item, Outcome.DRIFTED, _first_line(str(error)) or "its assertion does not hold")
    name = _name(item)
    return _finding(item, Outcome.UNREADABLE, f"check {name} failed to run: {_sentence(error)}")


def _proved(item: pytest.Item, found: Finding, subject: Subject) -> Finding:
    """What was seen in too short a time, or in part, was seen; that nothing was seen proves nothing."""
    least_s, watched_s = least_s_of(item), subject.window_s
    if found.outcome is not Outcome.COMPLIANT:
        return found
    if watched_s < least_s:
        why = f"watched for {watched_s:.3g} s, needs {least_s:g} s (--window {least_s:g})"
        return _finding(item, Outcome.UNREADABLE, why)
    if subject.hidden and needs_sight_of(item):
        return _finding(item, Outcome.UNREADABLE, subject.hidden)._replace(fix=ON_HOST)
    return found


def _finding(item: pytest.Item, outcome: Outcome, found: str, settled: Settled | None = None) -> Finding:
    """What was found, and why it matters where it is not as it should be: one line."""
    knob = f"check.{_name(item)}"
    callspec = getattr(item, "callspec", None)
    why = _why(item)
    parts = [found, why if outcome in (Outcome.DRIFTED, Outcome.COMPLIANT) and not (settled and found == why) else ""]
    return Finding(
        knob,
        callspec.id if callspec else "",
        outcome,
        settled.observed if settled else None,
        settled.desired if settled else None,
        ". ".join(_first_line(part).rstrip(".") for part in parts if part),
        settled.fix if settled else NOTHING,
        severity=severity_of(item),
        match=settled.match if settled else Match.EQUAL,
    )


def _name(item: pytest.Item) -> str:
    """`device_interrupts` of `test_device_interrupts[2]`."""
    return (getattr(item, "originalname", None) or item.name).removeprefix("test_")


def _stem(nodeid: str) -> str:
    return nodeid.rpartition("/")[2].partition("::")[0].removesuffix(".py").removeprefix("test_")


def _why(item: pytest.Item) -> str:
    """The first paragraph of a check's docstring, as one line."""
    doc = inspect.getdoc(getattr(item, "obj", None)) or ""
    return " ".join(doc.partition("\n\n")[0].split())


def _sentence(error: BaseException) -> str:
    text = _first_line(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _last_line(text: str) -> str:
    """What a traceback ends with, pytest's `E ` in front of it taken away."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("E ").strip() if lines else "no reason given"
