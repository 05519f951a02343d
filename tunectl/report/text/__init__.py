"""Text for people: one file a document, each with `render(body, console)`. Only this package imports rich."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from io import StringIO
from typing import Any, Protocol

from rich.console import Console

from tunectl import __version__
from tunectl.errors import TunectlError
from tunectl.model import Document
from tunectl.report.escape import printable
from tunectl.report.text.layout import prose

_PAGES: dict[str, str] = {
    "show": "show",
    "propose": "propose",
    "knobs": "knobs",
    "plan": "plan",
    "apply": "apply",
    "restore": "restore",
    "verify": "verify",
    "check": "check",
    "probe.jitter": "jitter",
    "preflight": "preflight",
    "snapshot": "snapshot",
}
# Pages that say of themselves which host they are about, or are about none.
_UNSIGNED = {"show", "propose", "knobs", "snapshot"}
_NARROWEST = 40


class Page(Protocol):
    """What a page's module offers as `render`."""

    def __call__(self, body: Mapping[str, Any], console: Console) -> None:
        """Prints the document's body."""


def render(document: Document, *, width: int = 100, colour: bool = False) -> str:
    """The document as text, at most `width` cells wide but for words that cannot be broken.

    Raises TunectlError for a document that has no page.
    """
    if document.name not in _PAGES:
        raise TunectlError(f"'{document.name}' has no text form", "try --format json")
    page: Page = import_module(f"{__name__}.{_PAGES[document.name]}").render
    console = _console(width, colour)
    page(document.body, console)
    if document.name not in _UNSIGNED:
        _sign(document, console)
    # The pages escape what others chose, but a lone surrogate must not reach a stream whatever they do.
    return str(console.file.getvalue()).encode("utf-8", "backslashreplace").decode()  # type: ignore[attr-defined]


def _console(width: int, colour: bool) -> Console:
    """Prints into memory. Markup stays off: rich would take the `[never]` out of `always madvise [never]`."""
    return Console(
        file=StringIO(),
        width=max(width, _NARROWEST),
        color_system="standard" if colour else None,
        force_terminal=colour,
        force_jupyter=False,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        _environ={},  # what the text looks like is decided by the caller, not by COLUMNS or FORCE_COLOR
    )


def _sign(document: Document, console: Console) -> None:
    host = document.host
    known = [host.hostname, f"Linux {host.kernel}" if host.kernel else "", host.machine, document.at]
    console.line()
    prose(console, " · ".join([*(printable(part) for part in known if part), f"tunectl {__version__}"]), style="dim")
