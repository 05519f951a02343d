"""Text: what is left out of a page and what is gathered, 80 columns, and strings that must not reach a terminal.

The pages themselves, in their words, are goldens: tests/golden/expected/drawn-*-text.txt.
"""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.conftest import examples
from tests.report.documents import AT, HOST, NAMES, body, document, findings, hostile, replaced, verify_of
from tunectl.errors import TunectlError, UsageError
from tunectl.fix import to_decide
from tunectl.model import Document, Finding, Outcome
from tunectl.report import FORMATS, render
from tunectl.report.findings import finding_body
from tunectl.report.text import page as text_page
from tunectl.report.text import render as render_text


def page(made: Document, width: int = 80) -> list[str]:
    return render(made, "text", width=width).splitlines()


FIGURES = (
    "probe.jitter",
    "probe.jitter.runs",
    "probe.selftest",
    "probe.wake",
    "probe.feed",
    "probe.hedge",
    "probe.contention",
    "compare",
)


def too_wide(lines: list[str], width: int) -> list[str]:
    """Lines beyond the width although they could have been broken: they hold a second word after a label.

    A label takes 18 cells, and a command is never broken.
    """
    wide = [line for line in lines if cell_len(line) > width and not re.match(r" +(\d\. )?(sudo )?tunectl ", line)]
    return [line for line in wide if max(map(cell_len, line.split(" "))) + 18 < width]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [80, 60, 40, 132])
@pytest.mark.parametrize("verbose", [0, 1])
def test_lines_fit(name: str, width: int, verbose: int) -> None:
    lines = page(document(name)._replace(verbose=verbose), width)
    assert too_wide(lines, width) == []
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.parametrize("name", NAMES)
def test_no_line_is_wider_than_a_terminal(name: str) -> None:
    assert [line for line in page(document(name), 80) if cell_len(line) > 80] == []


@pytest.mark.parametrize(("name", "width"), [*((one, 60) for one in FIGURES), ("probe.feed", 40), ("probe.hedge", 40)])
def test_no_line_of_figures_is_too_wide(name: str, width: int) -> None:
    assert [line for line in page(document(name), width) if cell_len(line) > width] == []


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("width", [40, 60])
def test_no_figure_is_ever_cut(name: str, width: int) -> None:
    made = document(name)._replace(verbose=1)  # notes are cut without it, tables never
    whole = {word for line in page(made, 200) for word in re.findall(r"(?<!\S)\d[\d.,]*\w*(?!\S)", line)}
    assert whole - set(" ".join(page(made, width)).split()) == set()


def test_a_command_is_never_broken() -> None:
    command = "/usr/sbin/" + "x" * 120
    lines = page(verify_of([Finding("a.b", "", Outcome.DRIFTED, fix=to_decide(f"run {command} now"))]))
    assert any(command in line for line in lines)


def test_verify_needs_no_more_than_a_page_for_4096_interrupts() -> None:
    found = [
        Finding("irq.affinity", str(irq), Outcome.DRIFTED, str(irq % 256), "0-3", f"IRQ {irq}", to_decide("x"))
        for irq in range(4096)
    ]
    made = verify_of(found)
    assert len(page(made)) < 16
    assert "irq.affinity[0-4095] 256 CPU sets within 0-255, should be 0-3" in "\n".join(page(made))
    assert "[0-4095]  observed 256 CPU sets within 0-255  desired 0-3" in "\n".join(page(made._replace(verbose=1)))


def test_a_cpu_without_an_interruption_has_no_percentiles() -> None:
    quiet = {"interruptions": 0, "histogram": [], "max_ns": 0, "counters": None, "series": None, "periods": []}
    cpu = {**body("probe.jitter")["cpus"][0], **quiet}
    lines = page(document("probe.jitter", cpus=[cpu])._replace(verbose=1))
    assert [line.split()[4:8] for line in lines if line.startswith("  2 ")] == [["-"] * 4]
    assert not [line for line in lines if "█" in line and " of " not in line]


@pytest.mark.parametrize("name", NAMES)
@given(text=hostile)
def test_no_string_reaches_the_terminal_raw(name: str, text: str) -> None:
    made = Document(name, HOST, AT, replaced(body(name), text))
    for line in render(made, "text", width=80).split("\n"):
        assert line.isprintable(), repr(line)


@settings(max_examples=examples(50))
@given(st.lists(findings), st.integers(1, 200))
def test_any_findings_at_any_width(found: list[Finding], width: int) -> None:
    rendered = render(verify_of(found), "text", width=width)
    assert all(line.isprintable() for line in rendered.split("\n"))
    rendered.encode("utf-8")


LONG = "n" * 100


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"compare", "probe.jitter.loaded"}))  # they name no more than ours
def test_a_long_name_is_cut_with_a_mark_and_v_has_it_whole(name: str) -> None:
    """So that no word of ours stands where nobody sees it. A command that is there to be copied stays whole."""
    made = Document(name, HOST, AT, replaced(body(name), LONG))
    commands = tuple(f"  {LONG}" if name == "apply" else f"  tunectl compare {LONG}" for _ in range(1))
    lines = [line for line in page(made) if not line.startswith(commands)]
    assert [line for line in lines if cell_len(line) > 80] == []
    if any("…" in line for line in lines):
        assert [line for line in page(made._replace(verbose=1)) if LONG in line]


def test_a_label_that_is_longer_than_half_a_line_has_a_line_of_its_own() -> None:
    (source, *others) = body("monitor")["sources"]
    lines = page(document("monitor", sources=[{**source, "name": "s" * 60, "fresh": 0}, *others])._replace(verbose=1))
    at = lines.index(f"  {'s' * 60}")
    assert re.match(r" {6}\S", lines[at + 1])


def test_a_controlled_name_is_escaped_not_dropped() -> None:
    rendered = render(verify_of([Finding("thread.affinity", "\x1b[2J", Outcome.DRIFTED, 1, 2)]), "text")
    assert "[\\x1b[2J]" in rendered


def test_colour_is_only_there_when_asked_for() -> None:
    plain = render(document("preflight"), "text", width=80)
    coloured = render(document("preflight"), "text", width=80, colour=True)
    assert "\x1b" not in plain
    assert coloured.startswith("\x1b[1;31mNO-GO\x1b[0m")
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_the_environment_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = render(document("verify"), "text", width=80)
    for name, value in {"COLUMNS": "20", "FORCE_COLOR": "1", "TERM": "dumb", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    assert render(document("verify"), "text", width=80) == before


def test_unknown_formats_and_pages_are_refused() -> None:
    with pytest.raises(UsageError, match=r"there is no format 'yaml' \(one of text, json"):
        render(document("verify"), "yaml")
    with pytest.raises(TunectlError, match="'x' has no text form"):
        render(Document("x", HOST, AT, {}), "text")


@pytest.mark.parametrize("fmt", sorted({*FORMATS} - {"markdown", "toml", "html"}))
@pytest.mark.parametrize("name", ["verify", "check", "preflight"])
def test_every_format_ends_its_last_line(fmt: str, name: str) -> None:
    assert render(document(name), fmt).endswith("\n")


def test_texts_are_as_wide_as_rich_says() -> None:
    every = [chr(code) for code in range(0x3000) if not 0xD800 <= code < 0xE000]
    assert [char for char in every if text_page.cell_len(char) != cell_len(char)] == []
    for text in ("", "plain", "· µs", "…", "漢字", "e\u0301"):
        assert text_page.cell_len(text) == cell_len(text), text


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_what_was_measured_is_said_once(verbose: int) -> None:
    lines = page(document("probe.jitter")._replace(verbose=verbose), 132)
    assert sum("gaps over " in line for line in lines) == 1


def test_many_cpus_that_look_alike_share_a_row() -> None:
    cpus = [{**body("monitor")["cpus"][2], "cpu": cpu, "alerts": []} for cpu in range(8, 256)]
    cpus[0] |= {"alerts": ["X[cpu8]"]}
    lines = page(document("monitor", cpus=cpus))
    at = next(number for number, line in enumerate(lines) if "CPU" in line and "GHz" in line)
    assert [line.split()[:3] for line in lines[at + 1 : at + 3]] == [
        ["!", "8", "isolated"],
        ["9-255", "isolated", "1.20"],
    ]
    assert lines[at + 3] == ""


def test_one_rule_does_not_fill_the_monitors_page() -> None:
    heat = body("monitor")["alerts"][0]
    lost = [
        {**heat, "rule": "SourceLost", "identity": f"SourceLost[{n}]", "severity": "warning", "subject": str(n)}
        for n in range(40)
    ]
    lines = page(document("monitor", alerts=[*lost, heat], recent=[]))
    at = lines.index("Firing")
    assert lines[at + 1].startswith("  critical  FrequencyDrop")
    assert sum("SourceLost[" in line for line in lines) == 2
    assert "  and 38 more SourceLost" in lines


def test_one_look_names_what_is_wrong_and_says_why_below() -> None:
    """Before an alert fires, too; forty settings do not hide the rest."""
    seen = [Finding("KnobDrift", name, Outcome.DRIFTED, reason="r") for name in KNOBS]
    seen.append(Finding("ManagerStarted", "tuned", Outcome.DRIFTED, reason="tuned runs and overwrites knobs"))
    reasons = [f"{finding.target}: {finding.reason}" for finding in seen]
    found = [finding_body(finding) for finding in seen]
    lines = page(document("monitor", alerts=[], recent=[], reasons=reasons, findings=found))
    assert lines[0].split("  ")[1].startswith("ManagerStarted[tuned]; 26 settings differ; ")
    assert lines[lines.index("Wrong") + 1] == "  ManagerStarted[tuned]  tuned runs and overwrites knobs"
    assert [name for name in KNOBS if not any(name in line for line in lines)] == []


KNOBS = ["irq.affinity", "irq.default_affinity", *(f"mm.knob{n}" for n in range(24))]


def untuned() -> list[dict[str, Any]]:
    """What fires on a host that nobody tuned, and heat; the last of the settings has another fix."""
    heat = body("monitor")["alerts"][0]
    values = {"observed": "0-3", "expected": "0-1", "severity": "warning", "fix": "sudo tunectl apply"}
    drift = [
        {**heat, **values, "rule": "KnobDrift", "subject": name, "identity": f"KnobDrift[{name}]"} for name in KNOBS
    ]
    drift[-1] |= {"fix": "by hand: that one"}
    return [*drift, heat]


def test_a_host_that_nobody_tuned_is_one_alert_with_a_line_for_each_family() -> None:
    made = document("monitor", alerts=untuned(), recent=[])
    lines = page(made)
    assert lines[0].split("  ")[1].startswith("2 alerts firing")
    at = next(number for number, line in enumerate(lines) if line.startswith("  warning"))
    since = body("monitor")["alerts"][0]["since"][11:19]
    assert lines[at : at + 3] == [
        f"  warning  26 settings differ  since {since}",
        "    fix of 25  sudo tunectl apply",
        "    irq  2  affinity 0-3 → 0-1, default_affinity 0-3 → 0-1",
    ]
    assert lines[at + 3].startswith("    mm  24  knob0 0-3 → 0-1, knob1 0-3 → 0-1")
    assert lines[at + 3].endswith(" and 21 more")
    assert lines[at + 4] == ""
    families = [{**alert, "subject": f"f{n}.knob"} for n, alert in enumerate(untuned()[:9])]
    lines = page(document("monitor", alerts=families, recent=[]))
    assert [line for line in lines if line.startswith("    f")][1:] == [
        f"    f{n}  1  knob 0-3 → 0-1" for n in range(3)
    ]
    assert "    and f3 1, f4 1, f5 1, f6 1, f7 1, f8 1: -v" in lines
    every = page(made._replace(verbose=1))
    assert [name for name in KNOBS if not any(f"KnobDrift[{name}]" in line for line in every)] == []


def live(*past: Mapping[str, Any], count: int = 4) -> list[str]:
    """The live view after these samples of CPU 2; the others stand still."""
    still = body("monitor")
    seen = []
    for sample in past:
        cpus = [{**row, **(sample if row["cpu"] == 2 else {})} for row in still["cpus"]]
        seen.append({"cpus": cpus, "zones": [{**still["zones"][0], "temperature_mc": sample["heat"]}]})
    return page(document("monitor", past=seen, cpus=seen[-1]["cpus"][:count]))


def test_the_live_view_shows_how_each_figure_went() -> None:
    calm = {"frequency_khz": 3_500_000, "throttles_new": 0, "ticks_per_s": 0.0, "heat": 40_000}
    first = {**calm, "ticks_per_s": None, "calls_per_s": None, "reschedules_per_s": None}  # no look before it
    slow = {"frequency_khz": 1_750_000, "throttles_new": 1, "ticks_per_s": 1000.0, "heat": 95_000}
    lines = live(first, calm, calm, slow)
    (row,) = [line for line in lines if line.split()[:2] == ["!", "2"]]
    assert row.split() == ["!", "2", "1.75", "50", "███▄", "1000", "█", "3", "+1", "▁"]
    assert "1000    █" in row  # a sample before which nobody looked has no rate, and is not drawn
    (heat,) = [line for line in lines if line.startswith("Temperature")]
    assert heat.endswith("96 C of 95 C ▄▄▄█")
    assert max(map(cell_len, lines)) <= 80


def test_the_live_view_has_no_column_for_interrupts_where_none_has_a_name() -> None:
    heads = []
    for named in (["33 eth0"], []):
        cpus = [{**row, "interrupts": named} for row in body("monitor")["cpus"]]
        lines = page(document("monitor", cpus=cpus, past=[{"cpus": cpus, "zones": []}]))
        heads.append(next(line for line in lines if line.split()[:1] == ["CPU"]))
    assert ["interrupts" in head for head in heads] == [True, False]


def test_a_trend_has_no_more_samples_than_its_line_has_room_for() -> None:
    calm = {"frequency_khz": 3_500_000, "throttles_new": 0, "ticks_per_s": 1.0, "heat": 40_000}
    lines = live(*[calm] * 16)
    assert max(map(cell_len, lines)) <= 80
    (row,) = [line for line in lines if line.split()[:2] == ["!", "2"]]
    assert row.split()[4] == "███████"


def test_a_list_for_a_recorded_host_says_whose_files_it_names() -> None:
    said = "To do, in this order; what has no --root: on the host itself"
    assert page(document("preflight")._replace(recorded="/tmp/tx-04")).count(said) == 1
    assert "To do, in this order" in page(document("preflight"))


@pytest.mark.parametrize("options", ["", " --root '/a name  with spaces/that is long'", " --host /h.toml --state /s"])
@pytest.mark.parametrize("program", ["tunectl", "/home/me/.venv/bin/tunectl", "'/my place/.venv/bin/tunectl'"])
@pytest.mark.parametrize("width", [1, 40])
def test_a_command_of_ours_is_never_broken(program: str, options: str, width: int) -> None:
    for command in ("apply", "apply --adopt", "restore"):
        whole = f"sudo {program}{options} {command}"
        assert [one for one in text_page.wrap(f"put it back; or decide: {whole}, then reboot", width) if whole in one]


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("name", ["probe.contention", "probe.feed", "probe.hedge", "probe.wake"])
def test_no_word_and_no_figure_of_a_table_of_cases_is_cut(name: str, width: int) -> None:
    """What stands beside figures is broken between words, or the table is."""
    made = document(name)._replace(verbose=1)
    narrow, wide = (set(re.sub("[█▉▊▋▌▍▎▏]+", "", render_text(made, width=cells)).split()) for cells in (width, 400))
    assert narrow == wide
