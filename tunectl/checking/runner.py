"""Runs checks: pytest, in this process, over the shipped modules or the operator's own."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import tunectl
from tunectl import installed
from tunectl.checking import fixtures
from tunectl.checking.plugin import Verdicts
from tunectl.checking.subject import Subject
from tunectl.errors import TunectlError, UsageError
from tunectl.host.sysroot import Sysroot
from tunectl.model import Finding, Scope, Trading

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

    def __init__(self, found: list[Finding]) -> None:
        super().__init__()
        self.found = found


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
) -> list[Finding]:
    """A finding for each check and instance: the shipped checks, or those in `paths` (a file, a directory, FILE::NAME).

    `window_s` is how long the host is watched, once for all checks; `settings` are the desired values by knob,
    `interfaces` the NICs the host file names, `trading` the operator's own threads. With `intrude` a
    spinner goes also where somebody else's threads run.
    UsageError for a path that is not there or holds no check. Must not run on an isolated CPU: the caller pins.
    Interrupted, with what was found so far, by Ctrl-C.
    """
    # One object for all paths: what was measured for one is there for the next.
    subject = Subject(root, scope, window_s, settings or {}, _with_streams(on_progress), interfaces, trading, intrude)
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
