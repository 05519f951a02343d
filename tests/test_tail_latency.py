"""docs/tail-latency.md: whatever it names exists, and each figure stands in its document or in the page cited."""

import ast
import json
import re
import shlex
from pathlib import Path

import click
import pytest

from tests.bench.tails import DOCUMENT, ROWS, page_of, wait_of
from tunectl.cli.main import cli
from tunectl.knobs import KNOBS
from tunectl.monitor.receivers.naming import PREFIX
from tunectl.monitor.rules import RULES

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/tail-latency.md"
FIGURE = re.compile(r"\d+(?:\.\d+)? (?:ns|µs|ms)\b")
CITED = re.compile(r"\]\(([\w-]+\.md)\)")
MEASURED = json.loads(DOCUMENT.read_text(encoding="utf-8"))
SOURCES = ("scheduler", "timers", "throttling", "NUMA", "coalescing", "GC", "locks", "allocator", "server")


def rows() -> list[tuple[str, str, str]]:
    """The table's: the source, what shows it, what it was measured at."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| **")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [(source, shown, measured) for source, shown, measured in cells]


def checks() -> set[str]:
    """Those that tunectl ships, as findings name them."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "checks").glob("test_*.py")]
    names = [node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {f"check.{name.removeprefix('test_')}" for name in names if name.startswith("test_")}


def is_command(line: str) -> bool:
    """Can this command line be typed? Its options are click's to know, and the words after them."""
    _, *words = shlex.split(line)
    command: click.Command = cli
    while isinstance(command, click.Group) and words:
        found = command.get_command(click.Context(command), words.pop(0))
        if found is None:
            return False
        command = found
    known = {name for parameter in command.params for name in parameter.opts}
    return not isinstance(command, click.Group) and {word for word in words if word.startswith("--")} <= known


def exists(name: str) -> bool:
    """Is this a knob, a check, an alert or a command?"""
    if name.startswith("tunectl "):
        return is_command(name)
    return name in KNOBS or name in checks() or name in [f"{PREFIX}{rule.name}" for rule in RULES]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_whatever_shows_it_exists(row: tuple[str, str, str]) -> None:
    named = re.findall(r"`([^`]+)`", row[1])
    assert named
    assert [name for name in named if not exists(name)] == []


@pytest.mark.parametrize("row", [row for row in rows() if CITED.search(row[2])], ids=lambda row: row[0])
def test_a_figure_stands_in_the_page_that_it_cites(row: tuple[str, str, str]) -> None:
    text = (ROOT / "docs" / CITED.findall(row[2])[0]).read_text(encoding="utf-8")
    figures = FIGURE.findall(row[2])
    assert figures
    assert [figure for figure in figures if re.split(" ", figure)[0] not in text] == []


def test_each_source_is_measured_here_or_cited_or_has_a_command() -> None:
    here = tuple(row["source"] for row in MEASURED["rows"] if not row["reason"])
    assert len(set(here)) > 8
    others = [row for row in rows() if not row[0].startswith(here) and not CITED.search(row[2])]
    assert [row[0] for row in others if not row[2].startswith("not measured here: ")] == []
    commands = [re.findall(r"`(tunectl [^`]+)`", row[2]) for row in others]
    assert [command for of in commands for command in of or ["none"] if not exists(command)] == []


def test_the_figures_are_those_of_the_document() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page_of(text, MEASURED) == text
    changed = {**MEASURED, "rows": [row | {"figure": "P12.3"} for row in MEASURED["rows"]]}
    assert page_of(text, changed).count("P12.3") == len([row for row in MEASURED["rows"] if not row["reason"]])


def test_each_row_of_the_document_is_one_that_is_measured() -> None:
    asked = [(row.source, row.figure, row.induced, row.absent) for row in ROWS]
    assert [(row["source"], row["figure"], row["induced"], row["absent"]) for row in MEASURED["rows"]] == asked


def test_a_wait_is_the_rest_of_the_gap_that_a_message_meets() -> None:
    assert wait_of([1_000_000], 1e9, 0.0005) == 500_000  # one gap of a thousandth: half of it is longer than its half
    assert wait_of([300, 100, 100], 1e6, 0.0002) == 100
    assert wait_of([], 1e9, 0.001) == 2000


@pytest.mark.parametrize(
    "name",
    [
        "cpu.onlin",
        "check.trading_fedd",
        "TunectlLatencySlo",
        "LatencySla",
        "tunectl probe hedg",
        "tunectl probe",
        "tunectl show --x",
    ],
)
def test_what_does_not_exist_is_seen(name: str) -> None:
    assert not exists(name)


def test_each_source_has_a_row() -> None:
    told = " ".join(row[0] for row in rows())
    assert [one for one in SOURCES if one not in told] == []
