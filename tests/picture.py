"""docs/no-go-to-go.svg: what `preflight` says of a host before and after it was tuned, as a terminal shows it.

python -m tests.picture NO-GO.json GO.json draws it anew from two documents of `preflight --format json`; without
words, from those of the lab that lie beside it.
"""

import json
import re
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tunectl import kinds
from tunectl.model import Document, HostId
from tunectl.report import render
from tunectl.report.urgency import findings_in

FOLDER = Path(__file__).parents[1] / "docs"
PICTURE = FOLDER / "no-go-to-go.svg"
DOCUMENTS = (FOLDER / "no-go.json", FOLDER / "go.json")
# What is typed, and how many lines of the answer are shown: a longer one is cut, and says so.
_TYPED = ("sudo tunectl preflight", "sudo tunectl apply && sudo reboot", "sudo tunectl preflight")
_LINES = (24, 24)
_WIDTH = 80


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


if __name__ == "__main__":
    PICTURE.write_text(drawn(*(map(Path, sys.argv[1:]) if sys.argv[1:] else DOCUMENTS)))
