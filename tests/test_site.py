"""The docs site is built without a network, strictly: each link of a page leads to a page, and to a heading there."""

import html
import json
import re
import shutil
import struct
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.picture import DOCUMENTS, PAGE, PICTURE, drawn, keep, page_of

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
NO_NETWORK = ("unshare", "--map-root-user", "--net", "true")


def built(place: Path) -> subprocess.CompletedProcess[str]:
    """`zensical build --strict` of a copy: it writes beside the pages."""
    program = Path(sys.executable).with_name("zensical")
    if not program.exists():
        pytest.skip("zensical is not installed here: pip install -e '.[test]'")
    shutil.copytree(ROOT / "docs", place / "docs", dirs_exist_ok=True)
    shutil.copy(ROOT / "zensical.toml", place)
    may = shutil.which("unshare") and subprocess.run(NO_NETWORK, capture_output=True).returncode == 0
    offline = NO_NETWORK[:-1] if may else ()
    argv = [*offline, program, "build", "--strict"]
    return subprocess.run(argv, cwd=place, capture_output=True, text=True, timeout=300)


def pages(nav: list[dict[str, Any]]) -> list[str]:
    """Every page that a reader finds in the navigation."""
    entries = [entry for item in nav for entry in item.values()]
    return [page for entry in entries for page in ([entry] if isinstance(entry, str) else pages(entry))]


def test_every_page_is_in_the_navigation_once() -> None:
    there = [str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(pages(SETTINGS["nav"])) == sorted(there)


@pytest.mark.slow
def test_the_site_is_built_strictly_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    done = built(tmp_path)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    for page in pages(SETTINGS["nav"]):
        text = (tmp_path / "site" / page.replace(".md", ".html")).read_text()
        loaded = re.findall(r'<(?:script|img|link)[^>]*(?:src|href)="?(https?:[^" >]+)', text)
        assert loaded == [], page


@pytest.mark.slow
def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/nowhere.md").write_text("[nowhere](no-such-page.md)\n")
    assert built(tmp_path).returncode != 0


def lines_of(picture: str) -> list[str]:
    """The text of each line of a terminal's picture."""
    texts = re.findall(r'<text class="tunectl-r[^"]*" x="[^"]*" y="([^"]*)"[^>]*>([^<]*)</text>', picture)
    lines: dict[float, str] = {}
    for y, text in texts:
        lines[float(y)] = lines.get(float(y), "") + html.unescape(text).replace("\xa0", " ")
    return [lines[y].strip() for y in sorted(lines) if lines[y].strip()]


@pytest.mark.parametrize("picture", [drawn(*DOCUMENTS), PICTURE.read_text()], ids=["of today", "in docs"])
def test_the_picture_shows_both_verdicts_and_what_to_do_is_small_and_loads_nothing(picture: str) -> None:
    """Whether docs/ has today's words is not asked: `python -m tests.picture` draws it anew."""
    assert [json.loads(path.read_text())["verdict"] for path in DOCUMENTS] == ["no-go", "go"]
    lines = lines_of(picture)
    typed = [place for place, text in enumerate(lines) if text.startswith("$ ")]
    before, after = lines[typed[0] + 1 : typed[1]], lines[typed[2] + 1 :]
    for said, verdict in ((before, "NO-GO"), (after, "GO")):
        assert said[0].startswith(f"{verdict} ")
        assert re.fullmatch(rf"{verdict} .* · lab · 2026-\S+", said[-1])
        assert "[...]" in said
    steps = [text for text in before[before.index("To do, in this order") :] if re.match(r"\d\.", text)]
    assert len(steps) == len(json.loads(DOCUMENTS[0].read_text())["actions"])
    wrong = before[before.index("Wrong") : before.index("To do, in this order")]
    assert [text[:5] for text in (*wrong[:2], wrong[3])] == ["Wrong", "stall", "[...]"]
    assert "in the host's own words" not in "".join(lines)
    assert not re.search(r"url\([^#]", picture)
    width, height = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture)[0]
    assert float(height) / float(width) * 836 < 660, "pixels on GitHub, whose pages are 836 pixels wide"


def test_the_page_in_the_pictures_is_that_of_its_document_and_small() -> None:
    assert "NO-GO" in page_of(DOCUMENTS[0])
    width, height = struct.unpack(">II", PAGE.read_bytes()[16:24])
    assert (width, height) == (1040, 680)
    assert PAGE.stat().st_size <= 150_000
    readme = (ROOT / "README.md").read_text()
    assert readme.index(PICTURE.name) < readme.index("| TuneD |") < readme.index(PAGE.name)
    assert PAGE.name in (ROOT / "docs/index.md").read_text()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_the_documents_of_the_pictures_are_drawn_as_a_reader_would(document: Path, tmp_path: Path) -> None:
    """Without the lists of gaps, which are megabytes: all count as those for which the list had no room."""
    kept = tmp_path / "kept.json"
    keep(document, kept)
    assert kept.read_bytes() == document.read_bytes(), "it is what `python -m tests.picture` keeps of a measured one"
    done = subprocess.run(
        [sys.executable, "-m", "tunectl", "report", document, "-o", tmp_path / "page.html"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(document.read_text())["verdict"].upper() in (tmp_path / "page.html").read_text()


def test_the_readme_is_one_screen_and_every_link_of_it_leads_somewhere() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.split()) <= 900
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert [link for link in links if not (ROOT / link).exists()] == []
    assert set(re.findall(r"\]\[([a-z-]+)\]", text)) == set(re.findall(r"^\[([a-z-]+)\]: https://", text, re.MULTILINE))
    first = re.search(r"```sh\n(.*)\n", text)
    assert first
    assert ".venv/bin/pip install -q '.[report,prometheus]'" in first[1]


def test_each_probe_beside_ours_has_a_row_a_command_and_figures_or_why_not() -> None:
    """All at the same priority: no command gives one."""
    text = (ROOT / "docs/other-probes.md").read_text()
    first, second = (re.findall(r"^\|.*\|$", part, re.MULTILINE) for part in text.split("\nMeasured one after", 1))
    programs = [re.findall(r"[a-z]+", row)[0] for row in first[2:]]
    measured = re.findall(r"[a-z]+", second[0])
    assert all(len(row.split("|")) == len(second[0].split("|")) for row in second)
    assert all(all(cell.strip() for cell in row.split("|")[2:-1]) for row in second[2:])
    unmeasured = text.partition("\nNot measured: ")[2].partition("\n\n")[0]
    assert [name for name in programs if name not in measured and name not in unmeasured] == []
    commands = text.partition("```sh\n")[2].partition("```")[0].splitlines()[1:]
    assert [name for name in programs if not any(re.search(rf"\b{name} ", line) for line in commands)] == []
    assert [line for line in commands if re.search("fifo|prio|chrt|nice", line)] == []
