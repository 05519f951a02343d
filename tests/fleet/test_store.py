"""Sessions on disk: whole files only, nobody dropped, and no name leads out of the directory."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fleet.made import BEGAN, HEADER, NOW, good, preflight, written
from tests.fleet.test_names import ODD
from tests.schemas import problems
from tunectl.errors import TunectlError, UsageError
from tunectl.fleet.body import fleet_body, history_body
from tunectl.fleet.documents import parse_hosts
from tunectl.fleet.names import is_text
from tunectl.fleet.records import Absent, Answer, Asked, Session
from tunectl.fleet.store import ask, ask_one, default_store, open_session, read_session, record_document, sessions


def answers(found: Session) -> dict[str, Asked]:
    return {one.name: one for one in ask(found)}


def test_a_session(tmp_path: Path) -> None:
    made = written(tmp_path, {"a": preflight("a"), "b": None})
    place = Path(made.directory)
    assert place == tmp_path / "morning"
    assert problems("fleet.session", json.loads((place / "session.json").read_text())) == []
    assert problems("fleet.absent", json.loads((place / "hosts/b.json").read_text())) == []
    found = answers(read_session(place))
    assert found["a"].document
    assert found["a"].file == str(place / "hosts/a.json")
    assert (found["b"].answer, found["b"].problem) == (Answer.UNREACHABLE, "unreachable: 'No route to host'")
    assert not list(place.rglob(".tunectl-*"))
    assert {path.stat().st_mode & 0o777 for path in place.rglob("*.json")} == {0o644}


def test_who_left_nothing_is_there(tmp_path: Path) -> None:
    made = written(tmp_path, {"a": preflight("a"), "b": None})
    (tmp_path / "morning/hosts/a.json").unlink()
    found = answers(read_session(Path(made.directory)))
    assert (found["a"].answer, found["a"].problem) == (Answer.SILENT, "it left no document, and no note says why")


def test_who_was_not_asked_is_there_too(tmp_path: Path) -> None:
    made = written(tmp_path, {"a": preflight("a")})
    record_document(Path(made.directory), "b", json.dumps(preflight("b")).encode())
    found = answers(made)
    assert [one.expected for one in found.values()] == [True, False]


@pytest.mark.parametrize("name", [name for name in ODD if is_text(name)])
def test_no_name_leads_out_of_the_session(tmp_path: Path, name: str) -> None:
    store = tmp_path / "deep/er/store"
    made = written(store, {name: preflight("x"), "y": None})
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.parent for path in files} == {Path(made.directory), Path(made.directory) / "hosts"}
    found = answers(read_session(Path(made.directory)))
    assert list(found) == [name, "y"]
    assert found[name].document


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=30), unique=True, min_size=1, max_size=5))
def test_any_names_come_back(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    store = tmp_path_factory.mktemp("store")
    made = written(store, dict.fromkeys(names))
    found = answers(read_session(Path(made.directory)))
    assert list(found) == names
    assert all(one.answer is Answer.UNREACHABLE for one in found.values())


WITHOUT_GAPS = {**preflight()["probe"]["cpus"][0], "histogram": []}
BROKEN = {
    "empty": "",
    "cut": json.dumps(preflight())[:500],
    "a list": "[]",
    "deep": "[" * 100_000,
    "another schema": json.dumps(preflight(schema="tunectl.verify/1")),
    "another version": json.dumps(preflight(schema="tunectl.preflight/2")),
    "a probe": json.dumps({**preflight()["probe"], "schema": "tunectl.probe.jitter/1"}),
    "a wrong type": json.dumps(preflight(reasons="none")),
    "no verdict": json.dumps({key: value for key, value in preflight().items() if key != "verdict"}),
    "a sum that is not": json.dumps(preflight(probe={**preflight()["probe"], "cpus": [WITHOUT_GAPS]})),
    "no reason": '{"schema": "tunectl.fleet.absent/1"}',
    "another kind": '{"schema": "tunectl.fleet.absent/1", "kind": "go", "reason": ""}',
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_document_that_is_none(tmp_path: Path, case: str) -> None:
    made = written(tmp_path, {"a": None})
    (Path(made.directory) / "hosts/a.json").write_text(BROKEN[case])
    found = ask_one(made, "a")
    assert (found.answer, found.document, bool(found.problem)) == (Answer.UNUSABLE, None, True)


def test_what_is_no_file(tmp_path: Path) -> None:
    made = written(tmp_path, dict.fromkeys(["fifo", "link", "dangling", "directory"]))
    hosts = Path(made.directory) / "hosts"
    for path in hosts.iterdir():
        path.unlink()
    (tmp_path / "secret").write_text(json.dumps(preflight()))
    os.mkfifo(hosts / "fifo.json")
    (hosts / "link.json").symlink_to(tmp_path / "secret")
    (hosts / "dangling.json").symlink_to("nowhere")
    (hosts / "directory.json").mkdir()
    for one in ask(made):
        assert (one.answer, one.problem) == (Answer.UNUSABLE, f"{one.name}.json is not a regular file")


def test_a_session_is_not_begun_twice(tmp_path: Path) -> None:
    written(tmp_path, {"a": preflight("a")})
    with pytest.raises(UsageError, match="there is such a session already"):
        written(tmp_path, {"a": None})
    assert answers(read_session(tmp_path / "morning"))["a"].document
    by_time = [open_session(tmp_path, Session("", "", BEGAN), HEADER).name for _ in range(3)]
    assert by_time == ["2026-11-21T083000Z", "2026-11-21T083000Z-2", "2026-11-21T083000Z-3"]


@pytest.mark.parametrize("name", ["../x", ".", "..", "a/b", "-x", "a b", "a\n", "x" * 101])
def test_a_session_has_a_plain_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="a session cannot be called"):
        written(tmp_path, {"a": None}, name)
    assert list(tmp_path.iterdir()) == []


def test_sessions_in_order(tmp_path: Path) -> None:
    written(tmp_path, {"a": None}, "z", "2026-11-20T08:30:00Z")
    written(tmp_path, {"a": None}, "a", "2026-11-21T08:30:00Z")
    (tmp_path / "no-session").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/session.json").write_text("{")
    assert [one.name for one in sessions(tmp_path)] == ["z", "a"]
    assert sessions(tmp_path / "none") == []


def test_a_plain_directory_of_documents(tmp_path: Path) -> None:
    (tmp_path / "tx-01.json").write_text(json.dumps(preflight("tx-01")))
    (tmp_path / "~.json").write_text("{")
    (tmp_path / ".tunectl-half").write_text("{")
    found = answers(read_session(tmp_path, ["tx-01", "tx-02"]))
    assert {name: one.answer.value for name, one in found.items()} == {
        "tx-01": "document",
        "tx-02": "silent",
        "~.json": "unusable",
    }
    with pytest.raises(TunectlError, match="no such session"):
        read_session(tmp_path / "none")


def test_a_broken_list_is_an_error(tmp_path: Path) -> None:
    made = written(tmp_path, {"a": None})
    (Path(made.directory) / "session.json").write_text('{"schema": "tunectl.fleet.session/1", "name": 3}')
    with pytest.raises(TunectlError, match=r"session\.json: Expected `str`"):
        read_session(Path(made.directory))


def test_a_list_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "session.json")
    with pytest.raises(TunectlError, match=r"session\.json: not a regular file"):
        read_session(tmp_path)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TunectlError, match="cannot make a session in"):
        written(tmp_path / "file", {"a": None})
    with pytest.raises(TunectlError, match="cannot write"):
        record_document(tmp_path / "none", "a", b"{}")


_TWO = "tx-01\r\n\n \ttx-02\t # spare\r\n# the desk\r\n; old\r\ntx-01\r\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_lists_of_hosts(encoding: str) -> None:
    assert parse_hosts(_TWO.encode(encoding), "x") == {"tx-01": "", "tx-02": ""}
    assert parse_hosts('[\n"a b", "#", "a b"]'.encode(encoding), "x") == {"a b": "", "#": ""}
    for wrong in ('{"a": 1}', "[1, 2]", "[", '["\\udc80"]'):
        with pytest.raises(UsageError, match="x: "):
            parse_hosts(wrong.encode(encoding), "x")


@pytest.mark.parametrize("name", ["tx-01.ny4.example.", "tx_01", "h\xf6st", "10.0.0.1", "fe80::1%eth0"])
def test_what_is_a_host_s_name(name: str) -> None:
    assert parse_hosts(name.encode(), "x") == {name: ""}


@pytest.mark.parametrize(
    "line",
    [
        *("[old]", "[web:children]  # a group", "tx-01 ansible_host=10.0.0.1", "tx-01\tspare", "tx-01#spare", "a,b"),
        *("tx-[01:10]", "- tx-01", "---", "all:", '"tx-01"', "\u200btx-01", "t\0x", "\x1b[31m", "a" * 254, "tx-01:22"),
    ],
)
@pytest.mark.parametrize("before", ["", "tx-00\n\n"])
def test_a_line_that_is_no_host_s_name_is_refused_with_its_number(before: str, line: str) -> None:
    with pytest.raises(UsageError, match=f"x, line {1 + before.count(chr(10))}: "):
        parse_hosts(f"{before}{line}\ntx-02\n".encode(), "x")


def test_a_list_in_no_known_encoding_is_refused() -> None:
    with pytest.raises(UsageError, match="x: "):
        parse_hosts("h\xf6st".encode("latin-1"), "x")


def test_the_default_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_store() == tmp_path / "tunectl/fleet"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_store() == tmp_path / ".local/state/tunectl/fleet"


def test_absent_is_not_guessed_from_a_documents_text(tmp_path: Path) -> None:
    """A host that calls itself by our schema's name is an ordinary host."""
    made = written(tmp_path, {"a": preflight("tunectl.fleet.absent/1")})
    assert ask_one(made, "a").document
    assert Absent(Answer.FAILED, "") == (Answer.FAILED, "", "")


def test_a_document_beyond_measure_loses_no_other(tmp_path: Path) -> None:
    made = written(tmp_path, {"a": preflight("a"), "b": None})
    with (Path(made.directory) / "hosts/b.json").open("w") as file:
        file.truncate((64 << 20) + 1)
    found = answers(made)
    assert found["a"].document
    assert (found["b"].answer, found["b"].problem) == (
        Answer.UNUSABLE,
        "its document cannot be read: is larger than 64 MiB",
    )


def test_of_many_hosts_the_first_reasons_are_kept_and_of_one_host_all(tmp_path: Path) -> None:
    reasons = [f"reason {number}" for number in range(9)]
    made = written(tmp_path, {"a": preflight("a", "no-go", reasons=reasons), "b": preflight("b")})
    (row, other) = fleet_body(made, ask(made), NOW)["hosts"]
    assert (row["reasons"], row["more_reasons"], other["more_reasons"]) == (reasons[:5], 4, 0)
    (past,) = history_body("a", [(made, ask_one(made, "a"))], NOW)["sessions"]
    assert (past["reasons"], past["more_reasons"], past["own_words"]) == (reasons, 0, 9)


def test_a_cause_counts_hosts_and_sentences_wherever_they_are_kept(tmp_path: Path) -> None:
    def drifted(name: str, seen: int) -> dict[str, Any]:
        finding = {**good("irq.affinity[24]"), "outcome": "drifted", "reason": f"seen {seen} times"}
        verify = {"verdict": "drifted", "findings": [finding]}
        reasons = ["irq.affinity[24] is wrong"]
        return preflight(name, "no-go", reasons=reasons, reasons_about=["irq.affinity"], verify=verify)

    made = written(tmp_path, {name: drifted(name, seen) for name, seen in (("a", 1), ("b", 2), ("c", 2))})
    (cause,) = fleet_body(made, ask(made), NOW)["causes"]
    assert (cause["hosts"], cause["targets"], cause["texts"]) == (["a", "b", "c"], 3, 2)
    assert cause["example"]["host"] == "a"
    assert cause["example"]["text"].endswith("seen 1 times")
