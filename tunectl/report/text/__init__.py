"""Text for people: one function a document, `print(body, page)`. rich is used for colour only, and only here."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

from tunectl import __version__
from tunectl.errors import TunectlError
from tunectl.model import Document
from tunectl.report.escape import printable
from tunectl.report.text.page import TextPage

# the document's name -> the module and the function that print its body
_PAGES: dict[str, tuple[str, str]] = {
    "show": ("show", "show"),
    "propose": ("files", "propose"),
    "knobs": ("knobs", "knobs"),
    "plan": ("changes", "plan"),
    "apply": ("changes", "apply"),
    "restore": ("changes", "restore"),
    "trial": ("changes", "trial"),
    "verify": ("findings", "judged"),
    "check": ("findings", "judged"),
    "probe.jitter": ("probe_jitter", "jitter"),
    "probe.jitter.runs": ("probe_jitter", "runs"),
    "probe.jitter.loaded": ("probe_jitter", "loaded"),
    "probe.selftest": ("probe_jitter", "selftest"),
    "probe.wake": ("experiments", "wake"),
    "probe.feed": ("experiments", "feed"),
    "probe.hedge": ("experiments", "hedge"),
    "probe.contention": ("experiments", "contention"),
    "preflight": ("preflight", "preflight"),
    "compare": ("compare", "compare"),
    "report": ("files", "report"),
    "snapshot": ("files", "snapshot"),
    "service": ("files", "service"),
    "threads.unit": ("files", "thread_unit"),
    "monitor": ("monitor", "monitor"),
    "fleet": ("fleet", "report"),
    "fleet.gate": ("gate", "gate"),
    "fleet.session": ("fleet", "session"),
    "fleet.history": ("fleet", "history"),
    "fleet.kept": ("fleet_store", "kept"),
    "fleet.diff": ("fleet_store", "diff"),
    "fleet.table": ("fleet_store", "table"),
}
# Pages that name their host themselves, or are about no host.
_UNSIGNED = {"show", "propose", "knobs", "compare", "report", "snapshot", "fleet.session", "fleet.history"}
_UNSIGNED |= {"fleet.kept", "fleet.diff", "fleet.table"}
_UNSIGNED |= {"threads.unit"}  # it is a file of systemd's
_OF_A_FLEET = {"fleet", "fleet.gate"}  # of other hosts than the one that draws the page
_NARROWEST = 40


class Printer(Protocol):
    """What _PAGES names."""

    def __call__(self, body: Mapping[str, Any], page: TextPage) -> None:
        """Prints the document's body on the page."""


def render(document: Document, *, width: int = 100, colour: bool = False) -> str:
    """The document as text, at most `width` cells wide, except for words that cannot be broken.

    Raises TunectlError for a document that has no page.
    """
    if document.name not in _PAGES:
        raise TunectlError(f"'{document.name}' has no text form", "try --format json")
    module, name = _PAGES[document.name]
    print_body: Printer = getattr(import_module(f"{__name__}.{module}"), name)
    page = TextPage(max(width, _NARROWEST), document.verbose, document.recorded, document.start)
    if document.name not in _UNSIGNED:
        host, at = printable(document.host.hostname), document.at
        kernel = f"Linux {printable(document.host.kernel)}" if document.host.kernel else ""
        known = (host, kernel, printable(document.host.machine), at, f"tunectl {__version__}")
        beside = "" if document.name in _OF_A_FLEET else host
        page.signed = " · ".join(filter(None, (beside, at))), " · ".join(filter(None, known))
    print_body(document.body, page)
    page.sign()
    # The pages escape text that others chose. A lone surrogate must not reach a stream even if a page forgets to.
    return (page.coloured() if colour else page.plain()).encode("utf-8", "backslashreplace").decode()
