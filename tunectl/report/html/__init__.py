"""One self-contained page: plots as inline SVG, no script, nothing loaded from anywhere.

jinja2 escapes every value. The page's policy allows no script and no source but the one style sheet, by its digest.
The plots are templates, too: a plotting library would not follow the reader's light or dark theme, and the light ones
draw no logarithmic axes.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from tunectl import __version__
from tunectl.errors import TunectlError
from tunectl.model import Document
from tunectl.report.escape import printable
from tunectl.report.html.view import compare_view, file_view
from tunectl.report.measures import nanoseconds, plain


def render(document: Document, *, width: int = 0, colour: bool = False) -> str:
    """The page for `report`'s files: {files: [{path, name, body}], compare: a tunectl.compare/1 body or None}."""
    if document.name != "report":
        raise TunectlError(f"there is no HTML page for tunectl.{document.name}", "`tunectl report` makes one of files")
    style = files("tunectl.report.html").joinpath("style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    compared = document.body["compare"]
    page = (
        _environment()
        .get_template("page.html.j2")
        .render(
            style=style,
            digest=digest,
            version=__version__,
            at=document.at,
            files=[file_view(file, number) for number, file in enumerate(document.body["files"], 1)],
            compare=compare_view(compared, document.body["files"]) if compared else None,
        )
    )
    return page.encode("utf-8", "backslashreplace").decode() + "\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tunectl.report", "html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_safe,
    )
    environment.filters.update(ns=nanoseconds, plain=plain)
    return environment


def _safe(value: object) -> object:
    """Characters that would turn the reading direction around, or end a line, are shown as what they are."""
    return printable(value) if type(value) is str else value
