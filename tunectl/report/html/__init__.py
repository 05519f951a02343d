"""One self-contained page: plots as inline SVG, nothing loaded from anywhere, and whole without its script.

jinja2 escapes every value. The page's policy allows the one style sheet and the one script, each by its digest. The
script only adds: it searches, filters and sorts tables, reads curves at the pointer, zooms the timeline, and copies
commands. The plots are templates: a plotting library draws nothing where scripts are blocked, and would be larger.
"""

import base64
import hashlib
import html
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.filters import do_mark_safe

from tunectl import __version__
from tunectl.errors import TunectlError
from tunectl.model import Document
from tunectl.report.escape import printable
from tunectl.report.figures import listed_cpus
from tunectl.report.html.fleet import fleet_view
from tunectl.report.html.report import compare_view, file_view
from tunectl.shapes import Comparison, typed
from tunectl.wording import nanoseconds, percent, plain, seconds_of


def render(document: Document, *, width: int = 0, colour: bool = False) -> str:
    """The page of a document: of `fleet`, or for `report`'s files.

    The latter's body is {files: [{path, name, body}], compare: a tunectl.compare/1 body or None, facts: of each knob
    why it matters and who says so}.
    """
    if document.name not in _PAGES:
        raise TunectlError(f"there is no HTML page for tunectl.{document.name}", "`tunectl report` makes one of files")
    template, view = _PAGES[document.name]
    own = {name: files("tunectl.report.html").joinpath(name).read_text(encoding="utf-8") for name in _OWN}
    digests = {name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for name, text in own.items()}
    made = {"own": own, "digests": digests, "version": __version__, "at": document.at, **view(document.body)}
    page = _environment().get_template(template).render(made)
    return page.encode("utf-8", "backslashreplace").decode() + "\n"


def _report(body: Mapping[str, Any]) -> dict[str, Any]:
    compared = body["compare"]
    views = [file_view(file, number, body.get("facts", {})) for number, file in enumerate(body["files"], 1)]
    return {
        "files": views,
        "has_gaps": any(view["jitter"] or view["runs"] for view in views),
        "compare": compare_view(typed(compared, Comparison), body["files"]) if compared else None,
    }


def _fleet(body: Mapping[str, Any]) -> dict[str, Any]:
    return {"fleet": fleet_view(body), "has_gaps": True}


_COMMAND = re.compile(r"`([^`]+)`")
_OWN = ("style.css", "page.js")
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
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.filters.update(ns=nanoseconds, plain=plain, percent=percent, seconds=seconds_of)
    environment.filters.update(cpus=listed_cpus, told=_told)
    return environment


def _told(text: str) -> str:
    """A sentence, and what stands between backticks: no <code>, which one copies, since it may be another host's."""
    return do_mark_safe(_COMMAND.sub(r"<samp>\1</samp>", html.escape(printable(text))))


def _safe(value: object) -> object:
    """Characters that would reverse the reading direction or end a line are replaced by their escapes."""
    return printable(value) if type(value) is str else value
