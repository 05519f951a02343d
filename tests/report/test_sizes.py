"""The pages of probes and comparisons at a default run's size: a screen of 80 columns, the outcome first and last."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.compare.runs import cpu_of, document, simulated
from tests.report import sizes
from tests.report.documents import AT, HOST, body
from tests.report.pages import Page, file
from tests.report.pages import page as html_page
from tunectl.compare.compared import compared
from tunectl.model import Document
from tunectl.probe.document import read_document
from tunectl.report import render
from tunectl.report.cases import ended
from tunectl.shapes import Wake, fields_of, replaced, typed

_MOST = 40
VOID: dict[str, Any] = {"throttled_us": 1}
PAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "wake": ("probe.wake", sizes.wake()),
    "wake, two void": ("probe.wake", sizes.wake(void=2)),
    "wake, most void": ("probe.wake", sizes.wake(void=150)),
    "wake, all void": ("probe.wake", sizes.wake(void=1000)),
    "feed": ("probe.feed", sizes.feed()),
    "feed, all void": ("probe.feed", sizes.feed(**VOID)),
    "hedge": ("probe.hedge", sizes.hedge()),
    "hedge, all void": ("probe.hedge", sizes.hedge(**VOID)),
    "contention": ("probe.contention", sizes.contention()),
    "contention, all void": ("probe.contention", sizes.contention(**VOID)),
    "selftest": ("probe.selftest", body("probe.selftest")),
    **{f"jitter, {cpus} CPUs": ("probe.jitter", sizes.jitter(cpus)) for cpus in (1, 4, 16, 32)},
    **{f"loaded, {cpus} CPUs": ("probe.jitter.loaded", sizes.loaded(cpus)) for cpus in (1, 4, 16)},
}
OUTCOMES = {
    "wake": "MEASURED  192 cases, 32 not measured",
    "wake, two void": "MEASURED  192 cases, 2 void, 32 not measured",
    "wake, all void": "NO RESULT  192 cases, 160 void, 32 not measured",
    "feed": "MEASURED  1 case",
    "feed, all void": "NO RESULT  1 case, 1 void",
    "hedge": "MEASURED  15 cases",
    "hedge, all void": "NO RESULT  15 cases, 15 void",
    "contention": "MEASURED  6 cases",
    "contention, all void": "NO RESULT  6 cases, 6 void",
    "selftest": "NOT PASSED  ",
    "jitter, 16 CPUs": "OVER  ",
    "loaded, 16 CPUs": "NOT JUDGED  ",
}


def drawn(name: str, made: dict[str, Any], verbose: int = 0) -> list[str]:
    return render(Document(name, HOST, AT, made, verbose=verbose), "text", width=80).splitlines()


@pytest.mark.parametrize("which", PAGES)
def test_a_default_page_is_one_screen_of_80_columns(which: str) -> None:
    lines = drawn(*PAGES[which])
    assert len(lines) <= _MOST
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.parametrize("which", OUTCOMES)
def test_the_outcome_stands_first_and_last(which: str) -> None:
    lines = drawn(*PAGES[which])
    assert lines[0].startswith(OUTCOMES[which])
    assert lines[-1].startswith(OUTCOMES[which])
    assert lines[-1].endswith("tx-04 · 2026-11-21T09:30:00Z")


@pytest.mark.parametrize("which", [which for which in PAGES if "all void" in which])
def test_that_no_case_is_a_result_is_said_once_with_why_and_what_helps(which: str) -> None:
    lines = drawn(*PAGES[which])
    said = "a cpu.max stopped the probe's threads; what would help: a start where no control group"
    text = "\n".join(lines)
    assert said in " ".join(" ".join(lines[: lines.index("")]).split())
    assert text.count("what would help") == text.count("stopped the probe") == 1
    assert not re.search(r"(?m)^ +\S.* void", text)  # no table of void cases
    assert any(line.startswith("  - void: ") for line in drawn(*PAGES[which], verbose=1))
    name, made = PAGES[which]
    words = html_page(file(name, made)).words
    assert words.count("what would help: a start where no control group") == 1
    assert "void void" not in words


@pytest.mark.parametrize("which", ["wake", "hedge", "contention"])
def test_the_html_page_of_an_experiment_has_a_tile_with_its_outcome(which: str) -> None:
    for name, word in ((which, "measured"), (f"{which}, all void", "no result")):
        page = html_page(file(*PAGES[name]))
        assert f'<strong class="verdict">{word}</strong><span>{OUTCOMES[name].partition("  ")[2]}' in page.raw


def test_the_rows_that_tell_most_stand_for_all_of_a_wake_run() -> None:
    lines = drawn(*PAGES["wake"])
    assert [line.strip() for line in lines if "more: -v" in line] == [
        "the least and the most; 37 more: -v",
        "the least and the most; 37 more: -v",
        "the least and the most; 21 more: -v",
    ]
    whole = drawn(*PAGES["wake"], verbose=1)
    assert not any(" more: -v" in line for line in whole)
    assert sum("busy-poll" in line for line in whole) > sum("busy-poll" in line for line in lines)


def test_cpus_with_the_same_period_share_its_line() -> None:
    made = sizes.jitter(16)
    lines = drawn("probe.jitter", made)
    assert any(line.startswith("CPUs 2-17, every 1.000 ms: 80,000 gaps, 1.4 µs each") for line in lines)
    for at, cpu in enumerate(made["cpus"]):
        of_cpu = cpu["periods"][0]["cause"].replace("kworker/3:1", f"kworker/{cpu['cpu']}:1")
        cpu["periods"] = [cpu["periods"][0] | {"cause": of_cpu, "period_ns": 1_000_021 + at // 8 * 3_000_000}]
    lines = drawn("probe.jitter", made)
    assert [line.partition(":")[0] for line in lines if ", every " in line] == [
        "CPUs 2-9, every 1.000 ms",
        "CPUs 10-17, every 4.000 ms",
    ]
    apart = copy.deepcopy(made)
    for at, cpu in enumerate(apart["cpus"]):
        cpu["periods"][0]["period_ns"] = 1_000_000 * (at + 1)
    lines = drawn("probe.jitter", apart)
    assert len(lines) <= _MOST
    assert any(re.fullmatch(r"and 1\d more periods: -v", line) for line in lines)


# ---- compare


def comparison(place: Path, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    for name, side in (("before", before), ("after", after)):
        (place / name).write_text(json.dumps(side))
    made: dict[str, Any] = fields_of(compared(read_document(place / "before"), read_document(place / "after")))
    return made


def test_cases_that_are_equal_on_both_sides_are_counted(tmp_path: Path) -> None:
    made = comparison(tmp_path, sizes.wake(), sizes.wake() | {"at": "2026-11-22T09:00:00Z"})
    lines = drawn("compare", made)
    assert lines[0].startswith("no verdict: ")
    assert lines[-1] == "NO VERDICT"
    assert "160 cases equal on both sides in every row: -v" in lines
    assert not any(line.startswith("  wake-up") for line in lines)
    assert len(lines) <= _MOST
    assert not any("equal on both sides" in line for line in drawn("compare", made, verbose=1))


@pytest.mark.parametrize("worse", [1, 30, 160])
def test_the_cases_that_changed_most_stand_for_all_of_a_comparison(tmp_path: Path, worse: int) -> None:
    after = sizes.wake(factor=3.0, worse=worse) | {"at": "2026-11-22T09:00:00Z"}
    lines = drawn("compare", comparison(tmp_path, sizes.wake(), after))
    assert len(lines) <= _MOST
    tables = sum(line.endswith(" ms") and ", after " in line for line in lines)
    assert 1 <= tables <= worse
    counted = [f"{worse - tables} more cases changed less"] * (worse > tables)
    counted += [f"{160 - worse} cases equal on both sides in every row"] * (worse < 160)
    assert f"{', '.join(counted)}: -v" in lines


@pytest.mark.parametrize("kind", ["feed", "hedge", "contention"])
def test_other_experiments_are_compared_on_one_screen(tmp_path: Path, kind: str) -> None:
    made = PAGES[kind][1]
    lines = drawn("compare", comparison(tmp_path, made, made | {"at": "2026-11-22T09:00:00Z"}))
    assert len(lines) <= _MOST
    assert lines[-1] == "NO VERDICT"


def test_a_table_says_that_it_hides_equal_rows_only_where_it_does(tmp_path: Path) -> None:
    first, second = (document(cpu_of(simulated(seed, 10.0), 10.0), at=f"2026-11-2{seed}T09:00:00Z") for seed in (1, 2))
    made = comparison(tmp_path, first, first | {"at": second["at"]})
    hidden = [line.strip() for line in drawn("compare", made) if "equal on both sides" in line]
    assert hidden == [f"{len(rows_of(made)) - 1} more, equal on both sides: -v"]
    made = comparison(tmp_path, first, second)
    lines = drawn("compare", made)
    printed = [line for line in lines if re.match(r"  (arrival|gap|longest|interruptions|stolen) (?! *equal)", line)]
    hidden = [line.strip() for line in lines if "equal on both sides" in line]
    assert len(printed) > 1
    assert not any("  equal" in line for line in printed)
    left = len(rows_of(made)) - len(printed)
    assert hidden == [f"{left} more, equal on both sides: -v"] * (left > 0)


def rows_of(made: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = made["groups"][0]["rows"]
    return [row for row in rows if row["before"] or row["after"]]


# ---- HTML


def test_commands_are_no_backticks_and_bounds_are_a_range(tmp_path: Path) -> None:
    first, second = (document(cpu_of(simulated(seed, 10.0), 10.0), at=f"2026-11-2{seed}T09:00:00Z") for seed in (1, 2))
    made = comparison(tmp_path, first, second)
    shown = {"files": [file("probe.jitter", first), file("probe.jitter", second)], "compare": made}
    page = Page(render(Document("report", HOST, AT, shown), "html"))
    assert "<samp>tunectl probe jitter --runs 5 --output FILE</samp>" in page.raw
    assert "`" not in page.words.partition("import")[0]
    assert re.search(r"from [\d.]+ %? ?\w* ?to ", page.words)


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("ask `tunectl verify -v`", "ask <samp>tunectl verify -v</samp>"),
        ("`<b>` and `", "<samp>&lt;b&gt;</samp> and `"),
        ("no command", "no command"),
    ],
)
def test_what_a_sentence_quotes_stays_text(text: str, drawn: str) -> None:
    warned = sizes.contention() | {"warnings": [text]}
    assert f"<li>{drawn}</li>" in html_page(file("probe.contention", warned)).raw


def test_what_is_void_is_no_result_though_it_has_figures() -> None:
    """As the schema has it; a document that says both is somebody else's."""
    result = typed(sizes.wake(), Wake)
    void = replaced(result, cases=[replaced(case, is_void=True) for case in result.cases])
    word, said, _ = ended(void)
    assert (word, "-" in said) == ("no result", False)
