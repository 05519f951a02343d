"""A result as text: one file a format, and one line here. Sees only the model.

Each module named below has `render(document, *, width, colour) -> str`. It is imported only when
its format is asked for: JSON must not pay for rich, nor text for prometheus_client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from tunectl.errors import UsageError
from tunectl.installed import needed

if TYPE_CHECKING:  # every command's last words pass through `escape`, and a help text needs no model
    from tunectl.model import Document

FORMATS: dict[str, str] = {
    "text": "tunectl.report.text",
    "json": "tunectl.report.json",
    "junit": "tunectl.report.junit",
    "nagios": "tunectl.report.nagios",
    "prometheus": "tunectl.report.prometheus",
    "markdown": "tunectl.report.markdown",  # of `knobs` only
    "html": "tunectl.report.html",  # of `report` and `fleet` only
    "toml": "tunectl.report.toml",  # of `propose` only
}


class Renderer(Protocol):
    """What a format's module offers as `render`."""

    def __call__(self, document: Document, *, width: int, colour: bool) -> str:
        """The whole document, ending in a newline."""


def render(document: Document, fmt: str, *, width: int = 100, colour: bool = False) -> str:
    """The document in format `fmt`, ending in a newline; always encodable as UTF-8.

    `width` is in terminal cells; it and `colour` matter to text only. Raises what `renderer` raises.
    """
    return renderer(fmt)(document, width=width, colour=colour)


def renderer(fmt: str) -> Renderer:
    """What draws a format. UsageError for an unknown one, TunectlError where the extra that it needs is missing."""
    if fmt not in FORMATS:
        raise UsageError(f"there is no format '{fmt}'", "one of " + ", ".join(FORMATS))
    with needed(f"the format {fmt}"):
        found: Renderer = import_module(FORMATS[fmt]).render
    return found
