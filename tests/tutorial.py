"""The tutorial as data: every command of docs/tutorial.md, and the exit statuses that the page says it may have.

python -m tests.tutorial prints them, one a line, as JSON: for whoever follows it on a real host.
"""

import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[1] / "docs/tutorial.md"
_LINE = re.compile(r"(?P<command>.*?\S) +# exit (?P<codes>\d(?: or \d)?)(?:: (?P<why>.+))?")


class Step(NamedTuple):
    """A line to type. `section` is the heading above it."""

    section: str
    command: str
    codes: tuple[int, ...]
    why: str


def steps(text: str) -> list[Step]:
    """Every line of every ```sh block. ValueError for one that does not say how it ends."""
    found, section, inside = [], "", False
    for line in text.splitlines():
        if line.startswith("```"):
            inside = line == "```sh"
        elif line.startswith("#") and not inside:
            section = line.lstrip("# ")
        elif inside:
            said = _LINE.fullmatch(line)
            if not said:
                raise ValueError(f"no `# exit N` behind: {line}")
            codes = tuple(map(int, said["codes"].split(" or ")))
            found.append(Step(section, said["command"], codes, said["why"] or ""))
    return found


if __name__ == "__main__":
    sys.stdout.writelines(f"{json.dumps(step._asdict())}\n" for step in steps(PAGE.read_text()))
