"""Text for people: one file a document, each with `render(body, sheet)`. rich is for colour only, and only here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

from tunectl import __version__
from tunectl.errors import TunectlError
from tunectl.model import Document
from tunectl.report.escape import printable
from tunectl.report.text.layout import prose
from tunectl.report.text.sheet import Sheet

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
    "probe.wake": "wake",
    "probe.selftest": "selftest",
    "preflight": "preflight",
    "compare": "compare",
    "report": "report",
    "snapshot": "snapshot",
    "monitor": "watch",
    "service": "service",
    "fleet": "fleet",
    "fleet.session": "fleet_session",
    "fleet.history": "fleet_history",
}
# Pages that say of themselves which host they are about, or are about none.
_UNSIGNED = {"show", "propose", "knobs", "compare", "report", "snapshot", "fleet.session", "fleet.history"}
_NARROWEST = 40


class Page(Protocol):
    """What a page's module offers as `render`."""

    def __call__(self, body: Mapping[str, Any], sheet: Sheet) -> None:
        """Prints the document's body."""


def render(document: Document, *, width: int = 100, colour: bool = False) -> str:
    """The document as text, at most `width` cells wide but for words that cannot be broken.

    Raises TunectlError for a document that has no page.
    """
    if document.name not in _PAGES:
        raise TunectlError(f"'{document.name}' has no text form", "try --format json")
    page: Page = import_module(f"{__name__}.{_PAGES[document.name]}").render
    sheet = Sheet(max(width, _NARROWEST), document.verbose)
    page(document.body, sheet)
    if document.name not in _UNSIGNED:
        _sign(document, sheet)
    # The pages escape what others chose, but a lone surrogate must not reach a stream whatever they do.
    return (sheet.coloured() if colour else sheet.plain()).encode("utf-8", "backslashreplace").decode()


def _sign(document: Document, sheet: Sheet) -> None:
    host = document.host
    known = [host.hostname, f"Linux {host.kernel}" if host.kernel else "", host.machine, document.at]
    sheet.line()
    prose(sheet, " · ".join([*(printable(part) for part in known if part), f"tunectl {__version__}"]), style="dim")
