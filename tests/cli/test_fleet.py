"""`tunectl fleet` as installed: a session from its list to its report, exit codes, what is refused."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.cli.places import complaint, environment
from tests.cli.test_commands import valid
from tests.conftest import TUNECTL
from tests.fleet.made import preflight, written
from tests.ran import Ran

Run = Callable[..., Ran]


def stamp(hours_ago: float = 0) -> str:
    return (datetime.now(UTC) - timedelta(hours=hours_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


def fresh(name: str, verdict: str = "go", **changes: Any) -> dict[str, Any]:
    return preflight(name, verdict, at=stamp(), **changes)


def test_a_round(tunectl: Run, tmp_path: Path) -> None:
    names = ["tx-01", "../evil", "gone", "silent", "broken"]
    begun = tunectl("fleet", "open", "--store", tmp_path, "--hosts", "-", "--format", "json", stdin=json.dumps(names))
    assert (begun.code, begun.err) == (0, "")
    session = valid("fleet.session", begun.out)
    assert session["hosts"] == names
    place = Path(session["directory"])
    assert valid("fleet.session", (place / "session.json").read_text())["hosts"] == names
    for name in names[:2]:
        assert tunectl("fleet", "record", place, name, stdin=json.dumps(fresh(name))).code == 0
    assert tunectl("fleet", "record", place, "gone", "--unreachable", "No route to host").code == 0
    assert tunectl("fleet", "record", place, "broken", "--failed", "tunectl: internal error").code == 0
    done = tunectl("fleet", "report", place, "--format", "json", "--save")
    body = valid("fleet", done.out)
    assert (done.code, done.err, body["verdict"]) == (1, "", "unknown")
    assert {one["name"]: one["answer"] for one in body["hosts"]} == {
        "tx-01": "document",
        "../evil": "document",
        "gone": "unreachable",
        "silent": "silent",
        "broken": "failed",
    }
    written_there = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    documents = {"%2E.%2Fevil.json", "broken.json", "gone.json", "tx-01.json"}
    pages = {"%2E.%2Fevil.html", "tx-01.html"}
    assert written_there == {*documents, *pages, "session.json", "report.html", "report.json", "report.txt"}
    links = re.findall(r'href="([^"]*)"', (place / "report.html").read_text())
    assert sorted(set(links)) == ["pages/%252E.%252Fevil.html", "pages/tx-01.html"]
    assert all((place / unquote(link)).read_text().startswith("<!doctype html>\n") for link in links)
    assert json.loads((place / "report.json").read_text())["counts"]["unknown"] == 3
    assert (place / "report.txt").read_text().startswith("UNKNOWN  5 hosts: 3 missing, 2 GO")
    assert tunectl("fleet", "report", place, "--format", "html").out.startswith("<!doctype html>\n")


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (["go", "go"], 0),
        (["go", "pending-reboot"], 4),
        (["go", "pending-reboot", "unknown"], 1),
        (["go", "pending-reboot", "unknown", "no-go"], 3),
        (["go", None], 1),
        (["no-go", None], 3),
    ],
)
def test_exit_codes(tunectl: Run, tmp_path: Path, verdicts: list[str | None], code: int) -> None:
    documents = {f"h{n}": fresh(f"h{n}", verdict) if verdict else None for n, verdict in enumerate(verdicts)}
    made = written(tmp_path, documents, at=stamp())
    assert tunectl("fleet", "report", made.directory).code == code
    assert tunectl("fleet", "report", "morning", "--store", tmp_path, "--format", "json").code == code
    assert tunectl("fleet", "report", env={"TUNECTL_FLEET_STORE": str(tmp_path)}).code == code


def test_a_gate_has_an_exit_code_for_each_answer(tunectl: Run, tmp_path: Path) -> None:
    """Of a rack, of a list and of a fact; who is silent is on the page, and is no GO."""
    names = {f"tx-{n:02}": "A" if n < 4 else "B" for n in range(12)}
    begun = tunectl("fleet", "open", "--store", tmp_path, "--hosts", "-", "--name", "m", stdin=json.dumps(names))
    assert begun.code == 0
    for name in [*names][1:]:
        document = fresh(name, host={"hostname": name, "kernel": f"6.{names[name]}", "boot_id": name, "machine": "x"})
        assert tunectl("fleet", "record", tmp_path / "m", name, stdin=json.dumps(document)).code == 0
    words = ("fleet", "gate", "m", "--store", tmp_path, "--max-no-go")
    done = tunectl(*words, "1%", "--canary", "A", "--format", "json")
    body = valid("fleet.gate", done.out)
    assert (done.code, body["share"]["hosts"], body["hosts"]["unknown"]) == (1, 4, ["tx-00"])
    said = tunectl(*words, "1%", "--canary", "@-", stdin="tx-01\nlost\n").out.splitlines()
    assert said[0].startswith("UNKNOWN  canary @-: not enough is known")
    assert said[-1].startswith("UNKNOWN  canary @-")
    assert "  UNKNOWN  lost" in said
    assert len(said) < 40
    assert "; permitted are 99.99 %" in tunectl(*words, "99.99%", "--canary", "A").out
    by_fact = tunectl(*words, "99%", "--confidence", "0.5", "--canary", "kernel=6.B", "--format", "json")
    assert (by_fact.code, valid("fleet.gate", by_fact.out)["share"]["verdict"]) == (0, "go")
    bad = fresh("tx-01", "no-go")
    assert tunectl("fleet", "record", tmp_path / "m", "tx-01", stdin=json.dumps(bad)).code == 0
    assert tunectl(*words, "0.5%", "--canary", "A").code == 3
    assert complaint(tunectl(*words, "1%", "--canary", "C"), 1).startswith(
        "no host of m is of the canary C (racks: A, B"
    )


@pytest.mark.parametrize("canary", ["A", "@-", "kernel=6.B"])
def test_a_gate_says_of_columns_what_it_says_of_their_folder(tunectl: Run, tmp_path: Path, canary: str) -> None:
    names = {f"tx-{n:02}": "A" if n < 4 else "B" for n in range(12)}
    tunectl("fleet", "open", "--store", tmp_path, "--hosts", "-", "--name", "m", stdin=json.dumps(names))
    for number, name in enumerate([*names][1:]):
        boot = {"hostname": name, "kernel": f"6.{names[name]}", "boot_id": name, "machine": "x"}
        document = fresh(name, "no-go" if number == 5 else "go", host=boot, max_ns=4_000 + 50 * number)
        assert tunectl("fleet", "record", tmp_path / "m", name, stdin=json.dumps(document)).code == 0
    words = ("fleet", "gate", "m", "--store", tmp_path, "--max-no-go", "9%", "--canary", canary, "--format", "json")
    asked = {"stdin": "tx-01\ntx-02\nlost\n"} if canary == "@-" else {}
    of_folder = tunectl(*words, **asked)
    assert tunectl("fleet", "keep", "--store", tmp_path).code == 0
    shutil.rmtree(tmp_path / "m")
    of_columns = tunectl(*words, **asked)
    known, found = (valid("fleet.gate", done.out) for done in (of_folder, of_columns))
    assert known["figures"]
    for body in (known, found):
        body.pop("at")
        body["session"].pop("directory")
    assert (of_columns.code, found) == (of_folder.code, known)


def test_yesterdays_go_is_no_answer(tunectl: Run, tmp_path: Path) -> None:
    made = written(tmp_path, {"a": preflight("a", at=stamp(20))}, at=stamp(20))
    said = complaint(tunectl("fleet", "report", "--store", tmp_path), 1)
    assert said.startswith("the latest session, morning, began 20 hours ago")
    assert tunectl("fleet", "report", "--store", tmp_path, "--max-age", 24).code == 0
    assert tunectl("fleet", "report", made.directory).code == 0


def test_a_directory_without_a_list(tunectl: Run, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(preflight("a")))
    body = valid("fleet", tunectl("fleet", "report", tmp_path, "--format", "json").out)
    assert (body["verdict"], body["warnings"][0][:27]) == ("go", "no list says who was asked:")
    done = tunectl("fleet", "report", tmp_path, "--hosts", "-", "--format", "json", stdin="a\nb\n")
    assert (done.code, valid("fleet", done.out)["counts"]["hosts"]) == (1, 2)
    (tmp_path / "B.JSON").write_text(json.dumps(preflight("B")))
    found = tunectl("fleet", "report", tmp_path, "--format", "json").json["hosts"]
    assert sorted(host["name"] for host in found) == ["B.JSON", "a"]  # nobody is left out
    for words, said in (
        (["--hosts", "-"], "--hosts -: names no host"),  # what a failed `ansible-inventory |` leaves
        (["--hosts", ""], "--hosts : "),
        (["--store", ""], "is empty"),
    ):
        refused = tunectl("fleet", "report", tmp_path, *words, stdin="")
        assert (refused.code, refused.out) == (2, "")
        assert said in refused.err
    unset = tunectl("fleet", "report", "")
    assert (unset.code, unset.out, "SESSION is empty" in unset.err) == (2, "", True)


def test_history(tunectl: Run, tmp_path: Path) -> None:
    for day, verdict in enumerate(["go", "no-go", "go"]):
        at = stamp(24 * (3 - day))
        written(tmp_path, {"a": preflight("a", verdict, at=at), "b": None}, f"day{day}", at)
    done = tunectl("fleet", "history", "a", "--store", tmp_path, "--format", "json")
    body = valid("fleet.history", done.out)
    assert [one["verdict"] for one in body["sessions"]] == ["go", "no-go", "go"]
    assert body["compare"] == [str(tmp_path / f"day{n}/hosts/a.json") for n in (1, 2)]
    assert tunectl("compare", *body["compare"]).code == 0
    done = tunectl("fleet", "history", "b", "--last", 2, "--store", tmp_path)
    assert (done.code, done.out.splitlines()[0]) == (0, "b in 2 sessions")
    said = complaint(tunectl("fleet", "history", "c", "--store", tmp_path), 1)
    assert said.startswith(f"{tmp_path}: no session has a host 'c'")


def test_a_session_is_known_by_its_name(tunectl: Run, tmp_path: Path) -> None:
    """As the examples in the help have it: opened, filled and reported on by one name."""
    words = ("--store", tmp_path, "morning")
    assert tunectl("fleet", "open", "--store", tmp_path, "--hosts", "-", "--name", "morning", stdin="a\n").code == 0
    assert tunectl("fleet", "record", *words, "a", stdin=json.dumps(fresh("a"))).code == 0
    assert tunectl("fleet", "report", *words, "--format", "json").json["hosts"][0]["verdict"] == "go"


def test_an_inventory_may_say_the_racks(tunectl: Run, tmp_path: Path) -> None:
    racks = json.dumps({"a": "A1", "b": "", "c": "A2"})
    begun = tunectl("fleet", "open", "--store", tmp_path, "--hosts", "-", "--format", "json", stdin=racks)
    session = valid("fleet.session", begun.out)
    assert (session["hosts"], session["racks"]) == (["a", "b", "c"], {"a": "A1", "c": "A2"})
    body = valid("fleet", tunectl("fleet", "report", session["directory"], "--format", "json").out)
    assert {host["name"]: host["rack"] for host in body["hosts"]} == json.loads(racks)


def test_a_closed_stdin_is_said_in_one_line_and_a_host_has_a_name(tunectl: Run, tmp_path: Path) -> None:
    assert tunectl("fleet", "open", "--store", tmp_path, "--hosts", "-", "--name", "m", stdin="a\n").code == 0
    closed = {"record m a": "record: stdin is closed (it is what ", "open --hosts -": "--hosts -: stdin is closed"}
    for words, said in closed.items():
        script = f'exec "$@" {words} --store {tmp_path} <&-'
        command = ["sh", "-c", script, "sh", sys.executable, str(TUNECTL), "fleet"]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True)
        assert complaint(Ran(done.returncode, done.stdout, done.stderr), 2).startswith(said)
    for name in ("", " "):
        refused = tunectl("fleet", "record", "--store", tmp_path, "m", name, stdin=json.dumps(fresh("a")))
        assert complaint(refused, 2) == "record: the host has no name (HOST is its name in the inventory)"
    assert list((tmp_path / "m/hosts").iterdir()) == []
    assert tunectl("fleet", "record", "--store", tmp_path, "m", "a", stdin=json.dumps(fresh("a"))).code == 0


def test_hostile_documents(tunectl: Run, tmp_path: Path) -> None:
    evil = "\x1b[2J<script>alert(1)</script>\u202e"
    document = fresh(evil, "no-go", reasons=[evil], tunectl_version=evil)
    document["hardware"]["cpu_model"] = document["cpu_sets"]["isolated"] = document["host"]["kernel"] = evil
    made = written(tmp_path, {evil: document, "b\n": None}, at=stamp())
    for fmt in ("text", "json", "html"):
        done = tunectl("fleet", "report", made.directory, "--format", fmt)
        assert (done.code, done.err) == (3, "")
        odd = {char for char in done.out if not char.isprintable()}
        assert odd == ({"\n", "\u202e"} if fmt == "json" else {"\n"})  # JSON keeps what terminals do not obey
        assert ("<script>" in done.out) == (fmt != "html")
    done = tunectl("fleet", "history", evil, "--store", tmp_path)
    assert {char for char in done.out if not char.isprintable()} == {"\n"}
