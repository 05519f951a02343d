"""Man pages as man, mandoc and lexgrog read them, and the pages of the documentation that are made of the commands."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.cli.places import environment
from tests.cli.test_help import ALL
from tunectl.cli.complete import script
from tunectl.cli.manuals.__main__ import docs, files, main
from tunectl.cli.manuals.documents import published
from tunectl.cli.manuals.native import help_text, native_pages
from tunectl.cli.manuals.pages import Item, Page, pages
from tunectl.cli.manuals.roff import man_page, title

DOCS = Path(__file__).parents[2] / "docs"
SECTIONS = ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS", "FILES", "ENVIRONMENT", "SEE ALSO")
EVIL = ".so /etc/passwd", "'x \\fBy", "\\n[.T] \\", "µ … \x1b", '"quoted" `code` ~ ^ -- - '


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("manuals")
    assert main([str(place)]) == 0
    return place / "share"


def man(path: Path) -> str:
    """As man shows it. It says nothing else."""
    if not shutil.which("man"):
        pytest.skip("needs man(1)")
    env = environment({"LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MANROFFOPT": ""})
    words = ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", str(path)]
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)


def lint(path: Path) -> str:
    if not shutil.which("mandoc"):
        pytest.skip("needs mandoc(1)")
    return subprocess.run(["mandoc", "-Tlint", "-W", "warning", str(path)], capture_output=True, text=True).stdout


def test_every_command_has_a_page(made: Path) -> None:
    assert {one.stem for one in (made / "man/man1").iterdir()} == {title(path) for path in ALL}


def test_the_host_file_has_a_page_with_every_key(made: Path) -> None:
    path = made / "man/man5/tunectl-hostfile.5"
    assert lint(path) == ""
    shown = man(path)
    assert "TUNECTL-HOSTFILE(5)" in shown
    assert "File Formats" in shown
    schema = published()["hostfile.schema.json"]
    for name in schema["$defs"]["HostFile"]["properties"]:
        assert re.search(rf"\n +{name} +\(", shown), name
    assert "monitor.webhooks[].url (string)" in shown
    example = shown.partition("EXAMPLES")[2].partition("FILES")[0].partition("profile:")[2]
    assert tomllib.loads(example)["waivers"][0]["knob"] == "mm.ksm"
    assert not re.search(r"object|\bnull\b", shown)


@pytest.mark.parametrize(
    ("page", "codes"),
    [
        ("tunectl", ["0", "1", "2", "3", "4", "with --format nagios", "128 + N"]),
        ("tunectl probe", ["0", "1", "2", "3", "128 + N"]),
        ("tunectl service", ["0", "1", "2", "128 + N"]),
        ("tunectl preflight", ["0", "1", "2", "3", "4", "with --format nagios", "128 + N"]),
    ],
)
def test_every_exit_status_is_in_the_page_of_a_group_too(page: str, codes: list[str]) -> None:
    (found,) = [one for one in pages() if one.name == page]
    assert [item.term for item in found.exits] == codes


@pytest.mark.slow
def test_man_mandoc_and_lexgrog_are_content(made: Path) -> None:
    for path in (made / "man/man1").iterdir():
        shown = man(path)
        missing = [one for one in SECTIONS if f"\n{one}\n" not in shown]
        assert missing in ([], ["OPTIONS"]) if path.stem != "tunectl-probe" else True, path
        assert lint(path) == ""
        said = subprocess.run(["lexgrog", str(path)], capture_output=True, text=True)
        assert said.stdout.startswith(f'{path}: "{path.stem} - ')


def test_a_page_has_what_is_typed(made: Path) -> None:
    shown = man(made / "man/man1/tunectl-probe-jitter.1")
    for text in ("--threshold-ns N", "sudo tunectl probe jitter --attribute", "tunectl-compare(1)", "TUNECTL_ROOT"):
        assert text in shown
    both = man(made / "man/man1/tunectl-probe.1")
    assert "tunectl probe [OPTIONS] COMMAND" in both
    assert "tunectl-probe jitter [OPTIONS]" in both


def test_see_also_names_pages_that_are_there(made: Path) -> None:
    there = {one.stem for one in (made / "man/man1").iterdir()}
    for path in (made / "man/man1").iterdir():
        named = {one.replace("\\-", "-") for one in re.findall(r"^\.BR \\%(\S+) \(1\)", path.read_text(), re.MULTILINE)}
        assert named
        assert named <= there - {path.stem}


def test_no_text_is_a_request(tmp_path: Path) -> None:
    page = Page("tunectl x", "Does it", ("tunectl x",), EVIL, tuple(Item(one, one) for one in EVIL))
    source = man_page(page, "1.0", "2026-01-01")
    assert source.isascii()
    path = tmp_path / "x.1"
    path.write_text(source)
    shown = man(path)
    for one in (".so /etc/passwd", "'x \\fBy", "\\n[.T] \\", '"quoted" code ~ ^ -- -', "µ …"):
        assert one in shown
    assert "root:" not in shown


def test_a_page_that_is_wrong_is_found(tmp_path: Path) -> None:
    path = tmp_path / "x.1"
    path.write_text(".SH NAME\n.PP\nno title\n")
    assert "WARNING" in lint(path)


def test_the_same_bytes_each_time_and_a_date_from_outside(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    first: Mapping[str, str] = dict(files())
    assert first == dict(files())
    assert '"1970-01-02"' in first["share/man/man1/tunectl.1"]


def test_the_programs_own_help_is_read_whole() -> None:
    text = help_text()
    found = list(native_pages(text))
    options = sum(len(page.options) for page in found)
    assert options == len(re.findall(r"^  --", text, re.MULTILINE))
    words = set(re.findall(r"[a-z]{4,}", text)) - {"status"}
    said = " ".join(str(page) for page in found)
    assert {one for one in words if one not in said} <= {"exit"}


def test_the_completions_are_the_shells_own_part(made: Path) -> None:
    assert (made / "bash-completion/completions/tunectl").read_text() == script("bash")
    assert (made / "zsh/vendor-completions/_tunectl").read_text().startswith("#compdef tunectl\n")
    assert (made / "fish/vendor_completions.d/tunectl.fish").read_text() == script("fish")


@pytest.mark.parametrize("words", [[], ["--docs"], ["a", "b"], ["--help"], [""]])
def test_it_says_how_it_is_called(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.startswith("usage: ")


def test_a_directory_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main([str(tmp_path / "file")]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_no_command_loads_it() -> None:
    said = "import sys, tunectl.cli.main; print([x for x in sys.modules if 'manuals' in x])"
    assert subprocess.check_output([sys.executable, "-c", said], text=True) == "[]\n"


def test_the_documentation_is_current() -> None:
    """Otherwise: python -m tunectl.cli.manuals --docs docs"""
    for path, text in docs(DOCS):
        assert (DOCS / path).read_text(encoding="utf-8") == text, path


def test_each_schema_is_one() -> None:
    for schema in published().values():
        Draft202012Validator.check_schema(schema)


def test_links_lead_to_headings() -> None:
    for path, text in docs(DOCS):
        if path.startswith("reference/"):
            headings = re.findall(r"^##+ (.*)", text, re.MULTILINE)
            plain = [re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings]
            anchors = {f"{one}-{plain[:at].count(one)}" if one in plain[:at] else one for at, one in enumerate(plain)}
            assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= anchors
