"""The first screen of the pages that judge: it fits, it ends with the verdict, and it folds nothing that decides."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.conftest import write_host_file
from tests.golden.world import World
from tests.report.documents import document
from tunectl.command import argv
from tunectl.fix import apply, to_type
from tunectl.model import Document, Finding, HostId, Outcome, Severity
from tunectl.report import render
from tunectl.report.actions import actions_of
from tunectl.report.escape import printable
from tunectl.report.figures import Limited, limited
from tunectl.report.findings import groups
from tunectl.report.html.charts import budget_bars
from tunectl.report.text.page import Room, TextPage
from tunectl.report.text.screen import against_limits, continued, wrong


def lines(made: Document, width: int = 80) -> list[str]:
    return render(made, "text", width=width).splitlines()


def verify_of(found: list[Finding], verdict: str = "drifted", **more: Any) -> Document:
    body = {"verdict": verdict, "findings": found, "notes": [], **more}
    return Document("verify", HostId(hostname="tx-01"), "2026-11-28T08:00:00Z", body, tuple(found))


def drifted(knob: str, instance: str = "", severity: Severity = Severity.STALL, **more: Any) -> Finding:
    return Finding(knob, instance, Outcome.DRIFTED, "1", "2", "why", severity=severity, **more)


def waived(knob: str, until: str, instance: str = "", why: str = "why", outcome: Outcome = Outcome.WAIVED) -> Finding:
    return Finding(knob, instance, outcome, "1", "2", f"{why} (until {until})", until=until)


@pytest.mark.parametrize(("name", "width"), [("lab4", 100), ("xeon2s", 100), ("epyc", 100), ("bare4", 80)])
def test_a_host_that_nobody_tuned_fits_forty_lines_and_names_every_knob(name: str, width: int) -> None:
    """bare4 has no host file, either: what writes one is a step, and no note repeats it."""
    world = World()
    try:
        words = f"preflight --window 0.05 --duration 0.1 --root {name}"
        shown = world.run(words, env={"COLUMNS": str(width)}).out.splitlines()
        judged = world.run(f"{words} --format json").json
    finally:
        world.close()
    assert len(shown) <= 40
    assert shown[0].split()[0] == shown[-1].split()[0] == "NO-GO"
    found = [each for part in ("verify", "check", "thermal") for each in judged[part]["findings"]]
    bad = {each["knob"] for each in found if each["outcome"] in ("drifted", "unreadable")}
    assert bad
    assert [knob for knob in bad if knob not in "\n".join(shown)] == []


LARGE = """profile = "low-latency"
isolated = "2-3,18-19"
[network]
interfaces = ["ens2f0"]
[budget]
max_ns = 200000
p99_9_ns = 50000
interruptions_per_s = 100
stolen_ppm = 1000
"""
WAIVER = '[[waivers]]\nknob = "{}"\nreason = "{}"\nuntil = {}\n'
WAIVED = {
    "irq.affinity": "2998-03-01",
    "mm.thp_defrag": "2998-02-01",
    "net.busy_poll": "2998-04-01",
    "net.busy_read": "2998-05-01",
    "cpuidle.max_latency_us": "2998-06-01",
    "mm.swappiness": "2998-07-01",
    "kernel.stat_interval": "2020-01-24",
    "mm.numa_balancing": "2020-01-25",
}
_NEXT = "the vendor's matching engine needs transparent huge pages and says so in its handbook"
# What may be longer in a page that is never folded further: every limit that is looser, and what stands in a step.
_MANY_STEPS = [{"command": f"tune {n} {'x' * 90}", "note": "why " * 40, "mends": [], "reboot": False} for n in range(9)]


@pytest.fixture(scope="module")
def large() -> Iterator[World]:
    """Two sockets, limits that are looser than the profile's, and waivers of which two have expired."""
    world = World()
    text = LARGE + "".join(WAIVER.format(knob, "as above", until) for knob, until in WAIVED.items())
    write_host_file(world.host("xeon2s", "own"), text + WAIVER.format("mm.thp_enabled", _NEXT, "2998-01-01"))
    yield world
    world.close()


@pytest.mark.parametrize("line", ["preflight --window 0.05 --duration 0.1", "verify", "check --window 0.05", "plan"])
def test_a_page_of_a_large_host_folds_names_and_neither_waivers_nor_limits(large: World, line: str) -> None:
    page = large.run(f"{line} --root own", env={"COLUMNS": "80"}).out
    assert len(page.splitlines()) <= 40
    said = " ".join(page.split())
    if line.split()[0] in ("preflight", "verify"):
        assert f"waived until 2998-01-01: mm.thp_enabled: {_NEXT}" in said
        assert "waiver expired: kernel.stat_interval (2020-01-24), mm.numa_balancing (2020-01-25)" in said
        assert all(knob in said for knob in WAIVED)
    if line.startswith("preflight"):
        assert "2 expired (kernel.stat_interval, mm.numa_balancing)" in said
        looser = ("longest interruption", "P99.9 of arrivals", "interruptions", "stolen time")
        assert all(re.search(rf"{name} \S+( \S+)? \(profile ", said) for name in looser)


@pytest.mark.parametrize(
    "more",
    [{}, {"notes": ["about this host " * 20] * 9}, {"actions": _MANY_STEPS}],
    ids=["measured", "many notes", "many steps"],
)
def test_with_a_measured_probe_it_fits_too(large: World, more: dict[str, Any]) -> None:
    body = large.run("preflight --window 0.05 --duration 0.1 --root own --format json").json
    measured = document("preflight").body
    body |= {name: measured[name] for name in ("probe", "feed")} | {"reasons": [], "reasons_about": []} | more
    made = document("preflight", **body)._replace(host=HostId(hostname="x" * 64))
    shown = lines(made)
    assert len(shown) <= 40
    said = " ".join(" ".join(shown).split())
    assert "mm.thp_enabled: the vendor's" in said
    assert all(knob in said for knob in WAIVED)
    assert re.search(r"Not known +\d+ ", said)
    assert re.search(r"\b\d+ unknown\b", " ".join(shown[-4:]))
    assert sum("of" in line and "OVER" in line for line in shown) >= 1
    assert not re.search(r"more\b.*: -v", "\n".join(lines(made._replace(verbose=1))))


@pytest.mark.parametrize("more", [0, 5])
def test_a_host_that_is_ready_fits_a_terminal(more: int) -> None:
    """Also with limits looser than the profile's, waivers and notes."""
    whole = document("preflight")
    sections = {
        name: {**whole.body[name], "verdict": verdict,
               "findings": [one for one in whole.body[name]["findings"] if one["outcome"] == "compliant"]}
        for name, verdict in (("verify", "compliant"), ("check", "compliant"), ("thermal", "ok"))
    }  # fmt: skip
    sections["verify"]["findings"] += [
        waived(f"mm.w{n}", f"2027-03-0{n + 1}", why="a reason " * 9) for n in range(more)
    ]
    sections["verify"]["notes"] = ["unconfirmed, back at noon", *["of this host " * 9] * more]
    looser = "".join(f"max_ns_{n} 200000 (profile 50000), " for n in range(more))
    go = {
        **whole.body,
        **sections,
        "verdict": "go",
        "headline": f"this host is ready to trade; {looser}no waiver stands",
    }
    shown = lines(whole._replace(body={**go, "actions": [], "reasons": [], "reasons_about": []}, findings=()))
    assert len(shown) <= 24
    assert (shown[0].split()[0], shown[-1].split()[0]) == ("GO", "GO")
    assert not any(line.startswith(("Wrong", "To do")) for line in shown)
    assert "  - unconfirmed, back at noon" in shown
    assert all(f"mm.w{n}" in " ".join(shown) for n in range(more))


def test_the_last_line_names_what_decides() -> None:
    shown = "\n".join(lines(document("preflight")))
    assert "\nNO-GO  4 limits broken, 10 drifted, " in shown
    assert "\nNO-GO  not measured, " in "\n".join(lines(document("preflight", probe=None, feed=None)))


def test_an_eighth_step_is_counted_and_not_lost() -> None:
    found = [drifted(f"a.k{n}", fix=to_type(argv("sudo", f"mend{n}"))) for n in range(9)]
    shown = lines(verify_of(found))
    assert sum("sudo mend" in line for line in shown) == Room().steps
    assert "  2 more: -v" in shown
    assert sum("sudo mend" in line for line in lines(verify_of(found)._replace(verbose=1))) >= 9


def test_each_severity_has_its_number_and_its_worst_with_its_value() -> None:
    found = [
        drifted("mm.a"),
        drifted("mm.d"),
        drifted("mm.b", "1"),
        drifted("mm.b", "2"),
        drifted("mm.c", severity=Severity.SLOWER),
    ]
    shown = lines(verify_of(found))
    assert "  stall        4  mm.a 1, should be 2; mm.d, mm.b (2)" in shown
    assert "  slower       1  mm.c 1, should be 2" in shown
    assert "                  why" in shown


def test_what_apply_alone_mends_needs_no_reason() -> None:
    page = TextPage(80)
    found = [drifted("mm.a", fix=to_type(argv("sudo", "tunectl", "apply")))]
    wrong(page, groups(found), [{"kind": "apply", "mends": ["mm.a"]}])
    assert "why" not in page.plain()
    page = TextPage(80)
    wrong(page, groups(found), actions_of(found))
    assert "why" in page.plain()


def test_only_what_waits_for_a_reboot_is_not_called_wrong() -> None:
    waits = Finding("boot.tsc", "", Outcome.PENDING_REBOOT, None, "reliable", "x", severity=Severity.INTERRUPT)
    assert "Waits for the reboot" in lines(verify_of([waits], "pending-reboot"))
    assert "Wrong" in lines(verify_of([waits, drifted("mm.a")]))


def test_what_is_not_known_is_never_called_right() -> None:
    unread = Finding("mm.a", "", Outcome.UNREADABLE, None, "2", "nobody may look", severity=Severity.STALL)
    shown = lines(verify_of([unread, Finding("mm.b", "", Outcome.COMPLIANT)], "unreadable"))
    assert shown[0] == "UNREADABLE  1 unknown"
    assert shown[-1] == "UNREADABLE  1 unknown · tx-01 · 2026-11-28T08:00:00Z"
    assert "Not known      1  mm.a" in shown
    assert "                  nobody may look" in shown
    assert "  1 compliant, 1 unknown: -v lists them" in shown


def test_what_is_in_force_and_would_be_lost_says_so() -> None:
    lost = Finding("boot.tsc", "", Outcome.DRIFTED, "reliable", "reliable", "the next boot will not have it",
                   apply(), severity=Severity.STALL)  # fmt: skip
    shown = lines(verify_of([lost, drifted("mm.a", fix=apply())]))
    assert "                  the next boot will not have it" in shown


def test_waivers_have_a_line_each_the_next_that_expires_first_and_in_full() -> None:
    long = "the matching engine needs it, says its vendor's handbook on page 48, and nobody has measured what it costs"
    found = [
        *(waived("irq.affinity", "2027-03-02", str(n)) for n in range(17)),
        *(waived(f"mm.w{n}", f"2027-04-0{n}") for n in range(1, 6)),
        waived("mm.next", "2027-01-09", why=long),
    ]
    shown = lines(verify_of(found, "compliant"))
    at = next(number for number, line in enumerate(shown) if "waived" in line)
    whole = " ".join(line.strip() for line in shown[at:])
    assert whole.startswith(f"waived until 2027-01-09: mm.next: {long} waived until 2027-03-02: irq.affinity (17): why")
    assert [line for line in shown if line.startswith("  waived until 2027-04")] == [
        f"  waived until 2027-04-0{n}: mm.w{n}: why" for n in (1, 2, 3)
    ]
    assert "  waived, too: mm.w4, mm.w5" in shown


def test_an_expired_waiver_is_named_as_one() -> None:
    found = [waived("mm.a", "2026-01-24", outcome=Outcome.DRIFTED)]
    shown = lines(verify_of([*found, waived("mm.b", "2026-01-25", "1", outcome=Outcome.DRIFTED)]))
    assert "  waiver expired: mm.a (2026-01-24), mm.b[1] (2026-01-25)" in shown


def test_a_document_of_an_earlier_version_says_in_its_reason_until_when() -> None:
    old = waived("mm.a", "2027-01-09")._replace(until="")
    assert "  waived: mm.a: why (until 2027-01-09)" in lines(verify_of([old], "compliant"))


def test_a_command_in_a_note_is_never_cut() -> None:
    command = "`sudo /a/very/long/path/to/the/installation/bin/tunectl --root /somewhere/else/again confirm 12345678`"
    shown = "\n".join(
        lines(verify_of([], "compliant", notes=["one", f"unconfirmed, back at noon: {command} keeps it"]))
    )
    assert command.split("`")[1] in shown.replace("\n    ", " ")


@example(["0", "'", "'"], 10)
@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=8), st.integers(10, 80))
def test_a_command_that_is_too_long_goes_on_as_a_shell_reads_it(words: list[str], room: int) -> None:
    command = printable(shlex.join(words))
    parts = list(continued(command, room))
    assert shlex.split("\n".join(parts).replace("\\\n", "")) == shlex.split(command)  # a shell takes both out
    assert all(part.endswith(" \\") for part in parts[:-1])
    alone = [len(shlex.split(part.removesuffix(" \\"))) == 1 for part in parts]
    assert len(parts) == 1 or all(cell_len(part) <= room or is_one for part, is_one in zip(parts, alone, strict=True))


def test_a_step_with_a_long_path_is_not_broken_by_the_terminal() -> None:
    place = "/opt/desk/hosts/in-new-york/tx-04/" + "a" * 40
    shown = lines(verify_of([drifted("mm.a", fix=to_type(argv("sudo", "mend", "--output", place)))]))
    at = next(number for number, line in enumerate(shown) if "sudo mend" in line)
    assert shown[at : at + 2] == ["  1. sudo mend --output \\", f"         {place}"]


def bars(*rows: Limited, width: int = 80) -> list[str]:
    page = TextPage(width)
    against_limits(page, rows)
    return page.plain().splitlines()[2:]


def row(value: float, limit: float | None, label: str = "longest") -> Limited:
    said = "-" if limit is None else f"{limit:g} ns"
    return limited(label, value, limit, "CPU 3")._replace(measured=f"{value:g} ns", limit=said)


@pytest.mark.parametrize(
    ("value", "limit", "left", "right", "word"),
    [
        (0, 100, 0, 0, "within"),
        (100, 100, 15, 0, "within"),
        (101, 100, 15, 1, "OVER"),
        (10_000, 100, 12, 8, "OVER"),
        (1e9, 100, 6, 14, "OVER"),
        (1, 0, 15, 5, "OVER"),
        (0, 0, 0, 0, "within"),
    ],
)
def test_a_bar_is_beyond_the_mark_where_the_limit_is_broken(
    value: float, limit: float, left: int, right: int, word: str
) -> None:
    (drawn,) = bars(row(value, limit))
    before, after = drawn.split("│")
    assert (before.count("█"), abs(after.count("█") - right) <= 1, word in after) == (left, True, True)
    assert (after.count("█") > 0) is (word == "OVER")


def test_a_bar_is_as_long_as_that_of_the_page() -> None:
    rows = [row(value, 100) for value in (1, 20, 100, 3_000, 400_000)]
    page = [cell["width"] / 100 for cell in budget_bars(rows)["rows"]]
    drawn = [re.split("  (?:within|OVER)", line.split("100 ns  ")[1])[0] for line in bars(*rows)]
    cells = {len(bar) for bar in drawn}
    assert len(cells) == 1
    lengths = [len(bar.replace("│", "█").rstrip()) if "█" in bar.partition("│")[2] else bar.count("█") for bar in drawn]
    assert all(abs(of_page * max(cells) - length) <= 1.1 for of_page, length in zip(page, lengths, strict=True))


@pytest.mark.parametrize("limit", ["100 ns", "5,000,000 µs", "5,000,000,000,000,000 µs"])
def test_where_it_was_measured_is_never_cut(limit: str) -> None:
    """However long the limit is, and so the line: then it is a table."""
    shown = bars(Limited("P99.9 of arrivals", limit, limit, "CPU 13", "within", 1.0))
    assert "CPU 13" in "\n".join(shown)
    assert max(map(len, shown)) <= 80


def test_a_figure_without_a_limit_has_no_bar() -> None:
    (drawn,) = bars(row(5, None))
    assert "│" not in drawn
    assert "no limit" in drawn


def test_of_many_figures_those_closest_to_their_limits_are_shown() -> None:
    shown = bars(*(row(value, 100, f"f{value}") for value in (1, 99, 2, 101, 3, 98, 97)))
    assert [line.split()[0] for line in shown[: Room().figures]] == ["f99", "f101", "f3", "f98", "f97"]
    assert shown[-1] == "  2 more, further from their limits: -v"
