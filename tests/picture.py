"""docs/no-go-to-go.svg: what `preflight` says of a host before and after it was tuned, as a terminal shows it; and
docs/no-go-page.png: the first of the two as `tunectl report` draws it, as Chromium shows it.

python -m tests.picture NO-GO.json GO.json draws them anew from two documents of `preflight --format json`; without
words, from those of the lab that lie beside it.
"""

import json
import re
import sys
from io import StringIO
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
# What is typed, and how many lines of the answer are shown: a longer one is cut, and says so.
_TYPED = ("sudo tunectl preflight", "sudo tunectl apply && sudo reboot", "sudo tunectl preflight")
_LINES = (24, 24)
_WIDTH = 80
# The verdict, the limits and what to do; below them the page draws the gaps, which the documents here leave out.
_WINDOW = "--window-size=1400,790"


def drawn(before: Path, after: Path) -> str:
    """The picture: the same bytes for the same documents and the same tunectl."""
    console = Console(record=True, width=_WIDTH, file=StringIO(), force_terminal=True, markup=False, highlight=False)
    first, then, last = _TYPED
    for typed, answer, lines in ((first, before, _LINES[0]), (then, None, 0), (last, after, _LINES[1])):
        console.print(Text(f"$ {typed}", style="bold"))
        if answer:
            shown = _page(answer)
            console.print(Text.from_ansi("\n".join(shown[:lines])))
            console.print("  [...]\n" if len(shown) > lines else "")
    made = console.export_svg(title="tunectl", theme=MONOKAI, unique_id="tunectl")
    # Nothing is loaded from elsewhere: the reader's own monospaced font does.
    return re.sub(r"\s*@font-face \{.*?\n    \}", "", made, flags=re.DOTALL)


def _page(path: Path) -> list[str]:
    document = json.loads(path.read_text())
    # It is drawn as on the host itself, which has its own commands and words.
    said = document["actions"]
    read = zip(kinds.read(said), said, strict=True)
    document["actions"] = [{**made, "note": one.get("note", "")} for made, one in read]
    host = HostId(**document["host"])
    findings = [one for part in ("verify", "check", "thermal") for one in findings_in(document[part])]
    whole = Document("preflight", host, document["at"], document, tuple(findings))
    return render(whole, "text", width=_WIDTH, colour=True).rstrip("\n").splitlines()


def page_of(path: Path) -> str:
    """The page of one document, whole: the same text for the same document and the same tunectl."""
    document = json.loads(path.read_text())
    body = {"files": [file("preflight", document, path.name)], "compare": None}
    return render(Document("report", HostId(**document["host"]), document["at"], body), "html")


if __name__ == "__main__":
    before, after = map(Path, sys.argv[1:]) if sys.argv[1:] else DOCUMENTS
    PICTURE.write_text(drawn(before, after))
    if not CHROMIUM:
        sys.exit(f"{PAGE.name} is as it was: it needs chromium")
    with TemporaryDirectory() as place:
        PAGE.write_bytes(shot(page_of(before), Path(place), _WINDOW))
