"""What an answer amounts to: GO only by a whole document of this session in which something was measured."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fleet.made import BEGAN, HARDWARE, NOW, asked, cage, preflight, session
from tests.report.documents import hostile
from tunectl.fleet.body import fleet_body
from tunectl.fleet.causes import Told
from tunectl.fleet.judge import Judged, judge
from tunectl.fleet.records import VERDICTS, Answer, Asked, Summary, packed
from tunectl.shapes import Host


def one(document: dict[str, Any] | None, **of_session: Any) -> Judged:
    (judged,) = judge(session("tx-01", **of_session), [asked("tx-01", document)], NOW)
    return judged


def test_go() -> None:
    assert one(preflight()).verdict == "go"
    assert one(preflight()).reasons == ()


def test_documents_of_a_folder_are_of_one_round() -> None:
    """Nobody knows when it began: what is 12 hours older than the newest is of another day."""
    newest = "2026-11-21T08:30:00Z"
    made = {"a": newest, "b": "2026-11-20T20:30:00Z", "c": "2026-11-20T20:29:59Z", "d": "2099-01-01T00:00:00Z"}
    found = judge(session(at=""), [asked(name, preflight(name, at=at)) for name, at in made.items()], NOW)
    assert {one.name: one.verdict for one in found} == {"a": "go", "b": "go", "c": "unknown", "d": "unknown"}
    (old,) = [one.reasons[0] for one in found if one.name == "c"]
    assert old.endswith(f"and the newest of these is of {newest}: they are not of one session")


def held_to(verdict: str) -> dict[str, Any]:
    """A probe whose budget came to this."""
    return {**preflight()["probe"], "budget": {"limits": {}, "verdict": verdict, "broken": []}}


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": "fine"},
        {"verdict": "GO"},
        {"max_ns": None},
        {"at": "2026-11-20T08:30:05Z"},  # before the session began
        {"at": "2099-01-01T00:00:00Z"},
        {"at": ""},
        {"at": "yesterday"},
        # ISO 8601 has more than RFC 3339.
        {"at": "2026-11-21T08:30:05"},
        {"at": "2026-11-21"},
        {"at": "20261121T083005Z"},
        {"at": "2026-W47-6T08:30:05Z"},
        {"at": "2026-11-21 08:30:05Z"},
        {"at": "2026-11-21T08:30Z"},
        {"at": "2026-11-21T08:30:05+00"},
        {"at": "0001-01-01T00:00:00+23:59"},
        # Its own probe contradicts it.
        {"probe": held_to("not-judged")},
        {"probe": held_to("")},
        {"probe": held_to("broken")},
    ],
    ids=str,
)
def test_a_go_that_is_none(changes: dict[str, Any]) -> None:
    document = preflight(**changes)
    judged = one(document)
    assert (judged.verdict, judged.reasons[0] in document["reasons"]) == ("unknown", False)


def test_on_what_terms_hosts_are_go_is_a_warning() -> None:
    loose = preflight("tx-02", looser=[{"key": "max_ns"}, {"key": "stolen_ppm"}], headline="ready; looser")
    waived = preflight("tx-03", waivers={"standing": 2, "expired": 0, "next": None})
    hosts = [asked(name, document) for name, document in (("tx-02", loose), ("tx-03", waived), ("tx-01", preflight()))]
    body = fleet_body(session("tx-01", "tx-02", "tx-03"), hosts, NOW)
    assert body["verdict"] == "go"
    assert body["warnings"] == [
        "judged by looser limits than their profile has: longest interruption, stolen time on tx-02",
        "waivers stand: 2 on tx-03",
    ]
    assert {row["name"]: row["headline"] for row in body["hosts"]} == {
        "tx-01": "",
        "tx-02": "ready; looser",
        "tx-03": "",
    }


def test_time() -> None:
    assert one(preflight(at="2026-11-21T08:26:00Z")).verdict == "go"  # a clock that is four minutes off
    assert one(preflight(at="2026-11-21T09:30:05+01:00")).verdict == "go"
    assert one(preflight(at="2026-11-21T08:45:00Z")).verdict == "go"  # five minutes ahead, which is still allowed
    assert one(preflight(at="2026-11-21T08:45:01Z")).verdict == "unknown"
    assert one(preflight(at="2026-11-20T08:30:05Z"), at="").verdict == "go"  # nobody wrote down when it began
    assert one(preflight(at="2099-01-01T00:00:00Z"), at="").verdict == "unknown"
    assert one(preflight(at=""), at="").verdict == "unknown"


@pytest.mark.parametrize(
    ("at", "age"),
    [
        ("2001-01-01T00:00:00Z", "9,455 days"),
        ("2026-11-19T08:40:00Z", "2 days"),
        ("2026-11-19T08:41:00Z", "47 hours"),
        ("2026-11-21T06:41:00Z", "119 minutes"),
    ],
)
def test_without_a_session_the_age_of_the_oldest_document_is_said(at: str, age: str) -> None:
    body = fleet_body(session("old", at=""), [asked("old", preflight("old", at=at))], NOW)
    assert body["verdict"] == "go"
    said = f"nothing says when they were asked: the oldest document, old's, is of {at}, {age} ago"
    assert body["warnings"] == [said]


def test_no_document() -> None:
    judged = one(None)
    assert (judged.verdict, judged.reasons) == ("unknown", ("it left no document",))


def test_another_verdict_needs_a_reason() -> None:
    assert one(preflight(verdict="no-go", reasons=[])).reasons == ("it gives no reason",)


def test_two_names_of_one_machine() -> None:
    twin = preflight("tx-01")
    hosts = [asked("tx-01", twin), asked("alias", twin), asked("tx-02", preflight("tx-02"))]
    judged = {found.name: found for found in judge(session(), hosts, NOW)}
    assert {name: found.verdict for name, found in judged.items()} == {
        "tx-01": "unknown",
        "alias": "unknown",
        "tx-02": "go",
    }
    assert "tx-01" in judged["alias"].reasons[0]
    bad = preflight("tx-01", "no-go")
    verdicts = [found.verdict for found in judge(session(), [asked("tx-01", bad), asked("alias", bad)], NOW)]
    assert verdicts == ["no-go", "no-go"]  # whoever it was, it must not trade
    body = fleet_body(session(), [asked(f"n{n}", bad) for n in range(6)], NOW)
    assert "6 documents of one machine: n0, n1, n2, n3, n4, n5" in body["warnings"]
    assert not [said for said in fleet_body(session(), hosts[1:], NOW)["warnings"] if "one machine" in said]
    many = judge(session(), [asked(f"n{n}", twin) for n in range(9)], NOW)
    assert many[-1].reasons[0].startswith("the machine that answered is n0, n1, n2 and 5 more, too")


@pytest.mark.parametrize("host", [{"hostname": "another"}, {"boot_id": "BOOT-tx-01 "}])
def test_a_copy_of_a_machine_is_one_whatever_it_calls_itself(host: dict[str, str]) -> None:
    """Its own name is the host's to choose; the boot of the machine that answered is not."""
    copy = preflight("tx-01")
    copy["host"] = {**copy["host"], **host}
    copy["probe"]["host"] = copy["host"]
    judged = judge(session(), [asked("tx-01", preflight("tx-01")), asked("tx-09", copy)], NOW)
    assert [found.verdict for found in judged] == ["unknown", "unknown"]


@pytest.mark.parametrize(
    ("verdicts", "whole"),
    [
        (["go", "go"], "go"),
        (["go", "pending-reboot"], "pending-reboot"),
        (["go", "pending-reboot", "unknown"], "unknown"),
        (["unknown", "no-go", "go"], "no-go"),
        ([], "unknown"),
    ],
)
def test_the_whole_is_the_worst(verdicts: list[str], whole: str) -> None:
    hosts = [asked(f"h{n}", preflight(f"h{n}", verdict)) for n, verdict in enumerate(verdicts)]
    assert fleet_body(session(*(one.name for one in hosts)), hosts, NOW)["verdict"] == whole


texts = hostile | st.sampled_from([BEGAN, *VERDICTS])
documents = st.builds(
    Summary,
    verdict=texts,
    reasons=st.lists(hostile, max_size=3).map(tuple),
    at=texts,
    host=st.builds(Host, hostname=hostile, boot_id=hostile),
    figures=st.none(),
    told=st.lists(st.from_type(Told), max_size=3).map(packed),
    doubt=st.just("nothing was measured"),  # as `summary` finds of such a document
)
anybody = st.builds(
    Asked,
    name=hostile,
    answer=st.sampled_from(Answer),
    document=st.none() | documents,
    problem=hostile,
    expected=st.booleans(),
)


@pytest.mark.slow
@given(st.lists(anybody, max_size=8, unique_by=lambda asked: asked.name))
def test_nobody_is_dropped_and_nothing_improves(hosts: list[Asked]) -> None:
    body = fleet_body(session(*(one.name for one in hosts)), hosts, NOW)
    assert sorted(one["name"] for one in body["hosts"]) == sorted(one.name for one in hosts)
    assert sum(body["counts"][verdict] for verdict in VERDICTS) == body["counts"]["hosts"] == len(hosts)
    said = {one.name: one.document.verdict if one.document else "" for one in hosts}
    for one in body["hosts"]:
        assert one["verdict"] in VERDICTS
        assert one["verdict"] in ("unknown", said[one["name"]])
        assert one["verdict"] != "go"  # none of these measured anything
        assert one["reasons"]
    assert (body["verdict"] == "no-go") == any(one["verdict"] == "no-go" for one in body["hosts"])


# ---- among peers


def test_the_cage() -> None:
    body = fleet_body(session(*(one.name for one in cage())), cage(), NOW)
    assert body["verdict"] == "no-go"
    assert body["counts"] == {"hosts": 12, "no-go": 1, "unknown": 2, "pending-reboot": 1, "go": 8}
    assert [one["name"] for one in body["hosts"]][:4] == ["tx-09", "tx-10", "tx-11", "old-1"]
    assert [len(group["hosts"]) for group in body["groups"]] == [9, 1]
    assert {one["host"] for one in body["outliers"]} == {"tx-08", "tx-09"}
    slow = [one for one in body["outliers"] if one["host"] == "tx-08"]
    assert {one["measure"] for one in slow} == {"max_ns", "stolen_ppm"}
    assert slow[0]["differs"] == ["the kernel is 6.1.0-39; 8 of 8 peers: 6.12.5"]
    assert slow[0]["worse"]
    assert body["warnings"] == []


def peers(*changed: dict[str, Any]) -> dict[str, Any]:
    """Five alike, and one for each of the changes."""
    hosts = [asked(f"p{n}", preflight(f"p{n}")) for n in range(5)]
    hosts += [asked(f"x{n}", preflight(f"x{n}", **changes)) for n, changes in enumerate(changed)]
    return fleet_body(session(*(one.name for one in hosts)), hosts, NOW)


@pytest.mark.parametrize(
    "other",
    [
        {"product": "R2"},
        {"cpu_model": "i9"},
        {"cores": 8},
        {"cpus": 32},
        {"sockets": 1},
        {"hypervisor": "KVM"},
        {"vendor": ""},
    ],
)
def test_other_hardware_is_no_peer(other: dict[str, Any]) -> None:
    body = peers({"max_ns": 90_000, "hardware": {**HARDWARE, **other}})
    assert body["outliers"] == []
    assert body["groups"][1]["hosts"] == ["x0"]
    assert "too few to tell what is usual" in body["groups"][1]["notes"][0]


def test_a_run_of_another_length_is_not_compared() -> None:
    longer = preflight(max_ns=90_000)["probe"] | {"duration_s": 20.0}
    coarser = preflight(max_ns=90_000)["probe"] | {"threshold_ns": 400}
    body = peers({"probe": longer}, {"probe": coarser})
    assert body["outliers"] == []
    assert body["groups"][0]["compared"] == ["p0", "p1", "p2", "p3", "p4"]
    assert body["groups"][0]["notes"] == [
        "x0 is not compared: measured for 20 s; the median is 10 s",
        "x1 is not compared: it counts gaps over 400 ns; the median is 160 ns",
    ]


def test_unknown_hardware_is_compared_with_nobody() -> None:
    body = peers(*[{"hardware": None, "max_ns": 90_000}] * 6)
    assert body["outliers"] == []
    assert body["groups"][0]["notes"] == ["these documents do not say what hardware it is, so no host is compared"]


def test_a_slow_clock() -> None:
    slow = preflight()["probe"]
    slow["cpus"][0]["loop_ns"] = {"mean": 14.0, "min": 13.9}
    (odd,) = peers({"probe": slow})["outliers"]
    assert (odd["host"], odd["measure"]) == ("x0", "loop_ns")


def test_warnings() -> None:
    assert fleet_body(session(), [], NOW)["warnings"] == ["no host was asked, so nothing is known"]
    hosts = [asked("a", preflight("a")), asked("b", preflight("b"))._replace(expected=False)]
    four = [asked(f"tx-{n}", preflight(f"tx-{n}", waivers={"standing": 4 - n // 3})) for n in range(4)]
    assert fleet_body(session(*(one.name for one in four)), four, NOW)["warnings"] == [
        "waivers stand: 4 each on 3 hosts (tx-0, tx-1, tx-2), 3 on tx-3"
    ]
    assert fleet_body(session("a"), hosts, NOW)["warnings"] == ["left a document, and was not asked: b"]
    body = fleet_body(session(), [hosts[0], asked("b", preflight("b", tunectl_version="0.2.0"))], NOW)
    assert body["warnings"][0].startswith("no list says who was asked")
    assert body["warnings"][1] == "several versions of tunectl: 0.1.0 (1), 0.2.0 (1)"
