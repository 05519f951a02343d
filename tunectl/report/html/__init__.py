"""One self-contained page: plots as inline SVG, no script, nothing loaded from anywhere.

jinja2 escapes every value. The page's policy allows no script and no source but the one style sheet, by its digest.
The plots are templates, too: a plotting library would not follow the reader's light or dark theme, and the small
libraries cannot draw logarithmic axes.
"""

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from tunectl import __version__
from tunectl.errors import TunectlError
from tunectl.model import Document
from tunectl.report.escape import printable
from tunectl.report.figures import listed_cpus, plain
from tunectl.report.html.fleet import fleet_view
from tunectl.report.html.report import compare_view, file_view
from tunectl.shapes import Comparison, typed
from tunectl.wording import nanoseconds


def render(document: Document, *, width: int = 0, colour: bool = False) -> str:
    """The page of a document: of `fleet`, or for `report`'s files.

    The latter's body is {files: [{path, name, body}], compare: a tunectl.compare/1 body or None}.
    """
    if document.name not in _PAGES:
        raise TunectlError(f"there is no HTML page for tunectl.{document.name}", "`tunectl report` makes one of files")
    template, view = _PAGES[document.name]
    style = files("tunectl.report.html").joinpath("style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    made = {"style": style, "digest": digest, "version": __version__, "at": document.at, **view(document.body)}
    page = _environment().get_template(template).render(made)
    return page.encode("utf-8", "backslashreplace").decode() + "\n"


def _report(body: Mapping[str, Any]) -> dict[str, Any]:
    compared = body["compare"]
    views = [file_view(file, number) for number, file in enumerate(body["files"], 1)]
    return {
        "files": views,
        "has_gaps": any(view["jitter"] or view["runs"] for view in views),
        "compare": compare_view(typed(compared, Comparison), body["files"]) if compared else None,
    }


def _fleet(body: Mapping[str, Any]) -> dict[str, Any]:
    return {"fleet": fleet_view(body), "has_gaps": True}


# the document's name -> its template, and what that shows of a body
_PAGES = {"report": ("report.html.j2", _report), "fleet": ("fleet.html.j2", _fleet)}


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
    environment.filters.update(ns=nanoseconds, plain=plain, cpus=listed_cpus)
    return environment


def _safe(value: object) -> object:
    """Characters that would reverse the reading direction or end a line are replaced by their escapes."""
    return printable(value) if type(value) is str else value
