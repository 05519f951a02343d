"""Which test is in which ring (docs/testing.md): nothing is in none, and the quick ring has been in every room."""

import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache

import pytest

from tests.conftest import QUICK
from tests.long import PARTS, ROOT

ROOMS = sorted({path.parent.name for path in (ROOT / "tunectl").glob("*/[!_]*.py")})


@cache
def collected(*words: str) -> frozenset[str]:
    """The tests that pytest would run."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *words], cwd=ROOT, capture_output=True, text=True
    )
    return frozenset(re.findall(r"^(tests/\S+::.+)$", done.stdout, re.MULTILINE))


def without_a_test(quick: frozenset[str]) -> list[str]:
    return [room for room in ROOMS if not any(test.startswith(f"tests/{room}/") for test in quick)]


@pytest.mark.slow
def test_every_room_has_quick_tests(pytestconfig: pytest.Config) -> None:
    """A run of the whole tree has collected them already; a run of less has to ask."""
    if without_a_test(pytestconfig.stash[QUICK]):
        assert without_a_test(collected("-m", "quick")) == []


@pytest.mark.slow
def test_every_long_test_of_the_lab_is_in_a_part_of_the_long_set() -> None:
    """Those that need no lab are in a part by their marker. Files are keywords, so one collection answers for all."""
    parts = [selected(part.words[2:]) for part in PARTS if "TUNECTL_LAB" in part.variables]
    long = collected("-m", "lab and long", "tests/lab")
    assert long
    assert long <= collected("-m", "lab", "-k", " or ".join(parts), "tests/lab")


@pytest.mark.slow
def test_a_tour_plays_its_own_platform_alone() -> None:
    """And all of it: no test of the tour is in two parts, and none in none."""
    parts = [part for part in PARTS if part.name.startswith("tour-")]
    played = [collected("-m", "lab", "-k", selected(part.words[2:]), "tests/lab") for part in parts]
    assert sum(map(len, played)) == len(collected("tests/lab/test_platforms_lab.py"))


def test_what_asks_for_the_lab_is_in_its_folder() -> None:
    """README's command collects that folder alone for its second half: the whole tree takes ten seconds."""
    marked = {path for path in (ROOT / "tests").rglob("test_*.py") if re.search(r"mark\.(lab)\b", path.read_text())}
    assert {path.parent for path in marked} <= {ROOT / "tests/lab"}


def selected(words: Sequence[str]) -> str:
    """A part's files and its -k, as one expression for -k."""
    assert words[:2] == ("-m", "lab")
    files = " or ".join(word.rpartition("/")[2] for word in words if word.endswith(".py"))
    return f"(({files}) and ({words[words.index('-k') + 1]}))" if "-k" in words else f"({files})"


def test_each_part_of_the_long_set_is_in_its_document() -> None:
    rows = re.findall(r"^\| (\S+) \| (.+?) \|", (ROOT / "docs/testing.md").read_text(), re.MULTILINE)
    assert {(part.name, part.plays) for part in PARTS} <= set(rows)
