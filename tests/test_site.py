"""The docs site is built without a network, strictly: each link of a page leads to a page, and to a heading there."""

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

from tests.picture import DOCUMENTS, PAGE, PICTURE, drawn, page_of

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


def test_the_picture_has_both_verdicts_of_its_documents_and_loads_nothing() -> None:
    """Whether it is today's text is not asked: `python -m tests.picture` draws it anew."""
    verdicts = [json.loads(path.read_text())["verdict"] for path in DOCUMENTS]
    assert verdicts == ["no-go", "go"]
    for text in (drawn(*DOCUMENTS), PICTURE.read_text()):
        words = re.sub(r"<[^>]+>", "\n", text).replace("&#160;", " ").split("\n")
        assert "NO-GO" in words
        assert "GO" in words
        assert "in the host's own words" not in text
        assert not re.search(r"url\([^#]", text)


def test_the_page_in_the_pictures_is_that_of_its_document_and_small() -> None:
    assert "NO-GO" in page_of(DOCUMENTS[0])
    width, height = struct.unpack(">II", PAGE.read_bytes()[16:24])
    assert (width, height) == (1400, 790)
    assert PAGE.stat().st_size <= 150_000
    for text in (ROOT / "README.md", ROOT / "docs/index.md"):
        assert PAGE.name in text.read_text()


def test_the_readme_is_one_screen_and_every_link_of_it_leads_somewhere() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.split()) <= 900
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert [link for link in links if not (ROOT / link).exists()] == []
    assert set(re.findall(r"\]\[([a-z-]+)\]", text)) == set(re.findall(r"^\[([a-z-]+)\]: https://", text, re.MULTILINE))
    first = re.search(r"```sh\n(.*)\n", text)
    assert first
    assert ".venv/bin/pip install -q '.[report,prometheus]'" in first[1]
