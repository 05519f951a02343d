"""Runs checks: pytest, in this process, over the shipped modules or the operator's own; the plugin makes findings."""

from __future__ import annotations

import inspect
import io
import os
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import tunectl
from tunectl import installed
from tunectl.checking import fixtures
from tunectl.checking.fixtures import SUBJECT
from tunectl.checking.outcomes import OF_CHECKS, Settled, least_s_of, needs_sight_of, severity_of
from tunectl.checking.subject import Subject
from tunectl.errors import TunectlError, UsageError
from tunectl.fix import NOTHING
from tunectl.host.refusals import ON_HOST
from tunectl.host.sysroot import Sysroot
from tunectl.hostfile.shape import Clock
from tunectl.model import Finding, Match, Outcome, Scope, Trading
from tunectl.work import Tell, Work

# Nothing of the operator's own pytest may take part: no configuration file, no options from the environment, no
# plugin that happens to be installed beside us, no cache directory. `-s`: nested capturing would take the
# terminal away from the code that reports progress. What nobody raises is not looked for: that takes two collections
# of garbage, which a large process pays for.
_OPTIONS = (
    *("-c", os.devnull, "-o", "addopts=", "--import-mode=importlib", "-q", "-s"),
    *("--tb=line", "--no-header", "--continue-on-collection-errors"),
    *("-p", "no:cacheprovider", "-p", "no:faulthandler", "-p", "no:warnings", "-p", "no:logging", "-p", "no:doctest"),
    *("-p", "no:unraisableexception", "-p", "no:threadexception"),
)
_ENVIRONMENT: Mapping[str, str | None] = {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTEST_ADDOPTS": None,
    "PYTEST_PLUGINS": None,
}
_HINT = "a check is a file test_*.py, or a directory of them"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C came in between."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__()
        self.found = findings


def usual_s(window_s: float) -> float:
    """How long the shipped checks take: each of them watches, spins or traces for one of these windows."""
    return 3 * window_s


def shipped_checks() -> Path:
    """Where the checks that come with tunectl are. TunectlError where the installation lacks them."""
    source = Path(tunectl.__file__).parent.parent
    copied = Path(installed.data()) / "share" / "tunectl" / "checks"
    # An editable install has both, and the copy in share/ is as old as the installation.
    places = [source / "checks", copied] if (source / "pyproject.toml").is_file() else [copied]
    for place in places:
        if place.is_dir():
            return place
    raise TunectlError(f"the checks are not installed: there is no {places[-1]}", "install tunectl again")


def told_as_work(tell: Tell) -> Callable[[str], None]:
    """What run_checks() is to be given, so that `tell` hears how far it is."""
    return lambda text: tell(Work(text.replace("check.", "checking ", 1)))


def run_checks(
    root: Sysroot,
    scope: Scope,
    *,
    paths: Sequence[str] = (),
    window_s: float = 2.0,
    settings: Mapping[str, Any] | None = None,
    on_progress: Callable[[str], None] | None = None,
    interfaces: tuple[str, ...] = (),
    trading: Sequence[Trading] = (),
    intrude: bool = False,
    clock_limit_ns: float = Clock().limit_ns,
) -> list[Finding]:
    """A finding for each check and instance: the shipped checks, or those in `paths` (a file, a directory, FILE::NAME).

    `window_s` is how long the host is watched, once for all checks; `settings` are the desired values by knob,
    `interfaces` the NICs the host file names, `trading` the operator's own threads. With `intrude` a
    spinner goes also where somebody else's threads run. `clock_limit_ns`: how far the clock may be from UTC.
    UsageError for a path that is not there or holds no check. Must not run on an isolated CPU: the caller pins.
    Interrupted, with what was found so far, by Ctrl-C.
    """
    # One object for all paths: what was measured for one is there for the next.
    tell = _with_streams(on_progress)
    subject = Subject(root, scope, window_s, settings or {}, tell, interfaces, trading, intrude, clock_limit_ns)
    places = list(paths) or [str(shipped_checks())]
    for place in places:
        if not Path(place.partition("::")[0]).exists():
            raise UsageError(f"there are no checks at {place}: no such file or directory", _HINT)
    findings: list[Finding] = []
    for place in places:
        try:
            findings.extend(_run(place, Verdicts(subject)))
        except Interrupted as interrupted:
            raise Interrupted([*findings, *interrupted.found]) from None
    return findings


def _run(place: str, verdicts: Verdicts) -> list[Finding]:
    path = Path(place.partition("::")[0]).resolve()
    folder = path if path.is_dir() else path.parent
    selected = str(path) + place[len(place.partition("::")[0]) :]
    with _quiet() as output, _clean_environment(), _forgotten_modules(folder):
        code = pytest.main(
            [*_OPTIONS, f"--rootdir={folder}", f"--confcutdir={folder}", selected], plugins=[fixtures, verdicts]
        )
    if type(verdicts.interrupted) is KeyboardInterrupt:  # pytest's own reasons to stop are subclasses of it
        raise Interrupted(verdicts.findings)
    if verdicts.internal or code == pytest.ExitCode.INTERNAL_ERROR:
        raise TunectlError(f"the checks in {place} could not be run: {verdicts.internal or _tail(output.getvalue())}")
    if not verdicts.findings:
        why = _tail(output.getvalue()) if code == pytest.ExitCode.USAGE_ERROR else "no function test_* in it"
        raise UsageError(f"there are no checks at {place}: {why}", _HINT)
    return verdicts.findings


def _with_streams(on_progress: Callable[[str], None] | None) -> Callable[[str], None]:
    """`on_progress` with the streams as they are now: while pytest runs, they are taken away from it."""
    if on_progress is None:
        return lambda _: None
    out, err = sys.stdout, sys.stderr

    def progress(message: str) -> None:
        with redirect_stdout(out), redirect_stderr(err):
            on_progress(message)

    return progress


@contextmanager
def _quiet() -> Iterator[io.StringIO]:
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        yield output


@contextmanager
def _clean_environment() -> Iterator[None]:
    """The environment without the operator's pytest, and no .pyc files written beside the checks."""
    # pytest sets PYTEST_VERSION and PYTEST_CURRENT_TEST for its own time; a pytest around this one has them, too.
    names = [*_ENVIRONMENT, "PYTEST_VERSION", "PYTEST_CURRENT_TEST"]
    before = {name: os.environ.get(name) for name in names}
    written = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    _set_environment(_ENVIRONMENT)
    try:
        yield
    finally:
        _set_environment(before)
        sys.dont_write_bytecode = written


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def _forgotten_modules(folder: Path) -> Iterator[None]:
    """pytest takes a module of the same name from sys.modules: another directory's test_x.py would be run again."""
    before = set(sys.modules)
    try:
        yield
    finally:
        for name in set(sys.modules) - before:
            place = getattr(sys.modules[name], "__file__", None)
            if place and Path(place).is_relative_to(folder):
                del sys.modules[name]


def _tail(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("ERROR: ") if lines else "no reason given"


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
            file = report.nodeid.rpartition("/")[2].partition("::")[0]
            name = file.removesuffix(".py").removeprefix("test_")
            why = _tail(report.longreprtext).removeprefix("E ").strip()  # pytest puts that in front of an exception
            reason = f"check {name} failed to load: {why}"
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
            finding = _finding(item, Outcome.COMPLIANT, "")
            self._findings[item.nodeid] = _proved(item, finding, self._subject)
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


def _proved(item: pytest.Item, finding: Finding, subject: Subject) -> Finding:
    """What was seen in too short a time, or in part, was seen; that nothing was seen proves nothing."""
    least_s, watched_s = least_s_of(item), subject.window_s
    if finding.outcome is not Outcome.COMPLIANT:
        return finding
    if watched_s < least_s:
        why = f"watched for {watched_s:.3g} s, needs {least_s:g} s (--window {least_s:g})"
        return _finding(item, Outcome.UNREADABLE, why)
    if subject.hidden and needs_sight_of(item):
        return _finding(item, Outcome.UNREADABLE, subject.hidden)._replace(fix=ON_HOST)
    return finding


def _finding(item: pytest.Item, outcome: Outcome, found: str, settled: Settled | None = None) -> Finding:
    """What was found, and why it matters where it is not as it should be: one line."""
    knob = f"check.{_name(item)}"
    callspec = getattr(item, "callspec", None)
    doc = inspect.getdoc(getattr(item, "obj", None)) or ""
    why = " ".join(doc.partition("\n\n")[0].split())
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


def _sentence(error: BaseException) -> str:
    text = _first_line(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
