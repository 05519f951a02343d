"""docs/no-go-to-go.svg: what `preflight` says of a host before and after it was tuned, as a terminal shows it; and
docs/no-go-page.png: the first of the two as `tunectl report` draws it, as Chromium shows it.

python -m tests.picture draws them anew from docs/no-go.json and docs/go.json. With two documents that `preflight
--format json` has written, it puts those there first, without their lists of gaps, which are megabytes.
"""

import json
import re
import sys
from collections.abc import Mapping
from io import StringIO
from itertools import groupby, takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tests.report.pages import file
from tests.report.test_browser import CHROMIUM, shot
from tunectl import kinds
from tunectl.model import Document, HostId
from tunectl.report import render
from tunectl.report.urgency import findings_in

FOLDER = Path(__file__).parents[1] / "docs"
PICTURE = FOLDER / "no-go-to-go.svg"
PAGE = FOLDER / "no-go-page.png"
DOCUMENTS = (FOLDER / "no-go.json", FOLDER / "go.json")
# How many first and last lines are shown of an answer's paragraphs, by their first words. Its headline and its last
# line always are; what is left out is marked.
_SHOWN = {"Measured": (9, 0), "Wrong": (3, 1), "To do": (99, 0)}
_NONE: dict[str, tuple[int, int]] = {}
_TYPED = (
    ("sudo tunectl preflight", _SHOWN),
    ("sudo tunectl apply && sudo reboot", _NONE),
    ("sudo tunectl preflight", _NONE),
)
_WIDTH = 100
# The verdict, the limits and what to do; below them the page draws the gaps, which the documents here leave out.
_WINDOW = ("--window-size=1300,850", "--force-device-scale-factor=0.8")


def drawn(before: Path, after: Path) -> str:
    """The picture: the same bytes for the same documents and the same tunectl."""
    console = Console(record=True, width=_WIDTH, file=StringIO(), force_terminal=True, markup=False, highlight=False)
    for (typed, shown), answer in zip(_TYPED, (before, None, after), strict=True):
        console.print(Text(f"$ {typed}", style="bold"))
        if answer:
            console.print(Text.from_ansi("\n".join(_excerpt(_page(answer), shown))), end="\n\n" if shown else "\n")
    made = console.export_svg(title="tunectl", theme=MONOKAI, unique_id="tunectl")
    # Nothing is loaded from elsewhere: the reader's own monospaced font does.
    return re.sub(r"\s*@font-face \{.*?\n    \}", "", made, flags=re.DOTALL)


def _excerpt(page: list[str], shown: Mapping[str, tuple[int, int]]) -> list[str]:
    """The page, and one mark for all the lines between two that are shown."""
    plain = [Text.from_ansi(text).plain for text in page]
    kept = {len(page) - 1, *takewhile(lambda at: not re.match(r"  \S|$", plain[at]), range(len(page)))}
    for filled, group in groupby(range(len(page)), key=lambda at: bool(plain[at])):
        places = list(group)
        most = next((most for word, most in shown.items() if filled and plain[places[0]].startswith(word)), (0, 0))
        kept |= {*places[: most[0]], *places[max(len(places) - most[1], 0) :]}
    kept |= {at for at, text in enumerate(plain) if not text and {at - 1, at + 1} <= kept}
    parts = groupby(range(len(page)), key=lambda at: at in kept)
    return [text for is_kept, group in parts for text in ([page[at] for at in group] if is_kept else ["  [...]"])]


def _page(path: Path) -> list[str]:
    document = json.loads(path.read_text())
    # It is drawn as on the host itself, which has its own commands and words.
    said = document["actions"]
    read = zip(kinds.read(said), said, strict=True)
    document["actions"] = [
        {**made, **{key: one.get(key, "") for key in ("decide", "note")}, "own_words": ""} for made, one in read
    ]
    host = HostId(**document["host"])
    findings = [one for part in ("verify", "check", "thermal") for one in findings_in(document[part])]
    whole = Document("preflight", host, document["at"], document, tuple(findings))
    return render(whole, "text", width=_WIDTH, colour=True).rstrip("\n").splitlines()


def page_of(path: Path) -> str:
    """The page of one document, whole: the same text for the same document and the same tunectl."""
    document = json.loads(path.read_text())
    body = {"files": [file("preflight", document, path.name)], "compare": None}
    return render(Document("report", HostId(**document["host"]), document["at"], body), "html")


def keep(measured: Path, place: Path) -> None:
    """A document as it was measured, but all its gaps count as those that its list had no room for."""
    document = json.loads(measured.read_text())
    for cpu in document["probe"]["cpus"]:
        lost = {"events_lost": cpu["interruptions"], "events_lost_max_ns": cpu["max_ns"], "complete_until_ns": 0}
        cpu.update(lost, events=[])
    said = document["probe"]["warnings"]  # one of them is about what the list holds
    document["probe"]["warnings"] = [text for text in said if "`events`" not in text]
    place.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    for measured, kept in zip(map(Path, sys.argv[1:]), DOCUMENTS, strict=False):
        keep(measured, kept)
    PICTURE.write_text(drawn(*DOCUMENTS))
    if not CHROMIUM:
        sys.exit(f"{PAGE.name} is as it was: it needs chromium")
    with TemporaryDirectory() as folder:
        PAGE.write_bytes(shot(page_of(DOCUMENTS[0]), Path(folder), *_WINDOW))
