"""docs/tail-latency.md: whatever it names exists, and each figure stands in the page that it cites."""

import ast
import re
import shlex
from pathlib import Path

import click
import pytest

from tunectl.cli.main import cli
from tunectl.knobs import KNOBS
from tunectl.monitor.rules import RULES

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/tail-latency.md"
FIGURE = re.compile(r"\d+(?:\.\d+)? (?:ns|µs|ms)\b")
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
    """Is this a knob, a check, a rule or a command?"""
    if name.startswith("tunectl "):
        return is_command(name)
    return name in KNOBS or name in checks() or name in [rule.name for rule in RULES]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_whatever_shows_it_exists(row: tuple[str, str, str]) -> None:
    named = re.findall(r"`([^`]+)`", row[1])
    assert named
    assert [name for name in named if not exists(name)] == []


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_a_figure_stands_in_the_page_that_it_cites(row: tuple[str, str, str]) -> None:
    measured = row[2]
    page = re.search(r"\]\(([\w-]+\.md)\)", measured)
    assert bool(page) is not measured.startswith("not measured here")
    if page:
        text = (ROOT / "docs" / page[1]).read_text(encoding="utf-8")
        figures = FIGURE.findall(measured)
        assert figures
        assert [one for one in figures if re.split(" ", one)[0] not in text] == []


@pytest.mark.parametrize(
    "name", ["cpu.onlin", "check.trading_fedd", "LatencySlo", "tunectl probe hedg", "tunectl probe", "tunectl show --x"]
)
def test_what_does_not_exist_is_seen(name: str) -> None:
    assert not exists(name)


def test_each_source_has_a_row() -> None:
    told = " ".join(row[0] for row in rows())
    assert [one for one in SOURCES if one not in told] == []
