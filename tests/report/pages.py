"""A report page taken apart by a parser of the standard library."""

import copy
from collections.abc import Mapping
from functools import cache
from html.parser import HTMLParser
from typing import Any

from tests.compare.runs import cpu_of, document, simulated
from tests.compare.wakes import cell, wake_document
from tests.report.documents import HOST, body
from tunectl.model import Document
from tunectl.report import render
from tunectl.shapes import Contention, Feed, Hedge, Jitter, JitterLoaded, JitterRuns, Preflight, Wake, typed

EVIL = "<script>document.title='owned'</script>"
JITTER = document(
    cpu_of(simulated(1, 10.0), 10.0, counters={"irq": {"33": 7, "LOC": 9}, "softirq": {}}),
    cpu_of(simulated(2, 10.0), 10.0, cpu=3),
    irq_descriptions={"33": EVIL, "LOC": "Local timer interrupts"},
)
WAKE = wake_document(
    *[cell("futex", "sleeping", idle, 1 + idle / 10) for idle in (0, 1, 10)], cell("tcp", "spinning", 1, 0.1)
)
_VOID = {"meta", "br", "hr", "line", "path", "rect", "circle"}


class Page(HTMLParser):
    """Every tag with its attributes and the tags around it, and all text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str], tuple[str, ...]]] = []
        self.words = ""
        self.raw = text
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == [], f"left open: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begins an element."""
        self.tags.append((tag, {name: value or "" for name, value in attrs}, tuple(self._open)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element without content."""
        self.tags.append((tag, {name: value or "" for name, value in attrs}, tuple(self._open)))

    def handle_endtag(self, tag: str) -> None:
        """Ends the innermost element, and no other."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Text."""
        self.words += data

    def all(self, tag: str) -> list[dict[str, str]]:
        """The attributes of every such element."""
        return [attrs for name, attrs, _ in self.tags if name == tag]


def file(name: str, of: Mapping[str, Any], path: str = "x.json") -> dict[str, Any]:
    """A file as the report is handed it."""
    made = copy.deepcopy(dict(of))
    kinds: dict[str, type[Any]] = {
        "preflight": Preflight,
        "probe.jitter": Jitter,
        "probe.jitter.runs": JitterRuns,
        "probe.jitter.loaded": JitterLoaded,
        "probe.wake": Wake,
        "probe.feed": Feed,
        "probe.hedge": Hedge,
        "probe.contention": Contention,
    }
    return {"path": path, "name": name, "body": made, "result": typed(made, kinds[name]), "doubt": ""}


def page(*files: Mapping[str, Any], compare: Mapping[str, Any] | None = None) -> Page:
    """The page of these files."""
    made = {"files": list(files), "compare": compare}
    return Page(render(Document("report", HOST, "2026-11-21T12:00:00Z", made), "html"))


@cache
def full() -> Page:
    """A page with every section."""
    preflight = {**body("preflight"), "host": JITTER["host"]}
    return page(file("preflight", preflight), file("probe.jitter", JITTER), file("probe.wake", WAKE))


@cache
def before_and_after() -> Page:
    """A page with a comparison."""
    return page(file("probe.jitter", JITTER), file("probe.jitter", JITTER), compare=body("compare"))


@cache
def fleet() -> Page:
    """A page of twelve hosts."""
    return Page(render(Document("fleet", HOST, "2026-11-21T12:00:00Z", body("fleet")), "html"))
