"""`tunectl fleet keep` and what is asked of the columns, as installed: exit codes, documents, what is refused."""

import csv
import fcntl
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.places import complaint
from tests.cli.test_commands import valid
from tests.cli.test_fleet import fresh, stamp
from tests.fleet.cage import TUNECTL
from tests.fleet.made import preflight, written
from tests.fleet.test_keep import HOSTILE, no_go
from tests.ran import Ran
from tunectl.fleet.columns import TABLES

Run = Callable[..., Ran]


@pytest.fixture
def store(tunectl: Run, tmp_path: Path) -> Path:
    """Yesterday's session and today's, in columns; today's folder is gone."""
    store = tmp_path / "store"
    written(store, {"tx-01": preflight("tx-01", at=stamp(24)), "tx-02": None}, "yesterday", stamp(24))
    bad = no_go("tx-01", "mm.swappiness")
    today = written(store, {"tx-01": {**bad, "at": stamp()}, "tx-02": fresh("tx-02")}, "today", stamp())
    done = tunectl("fleet", "keep", "--store", store, "--format", "json")
    assert (done.code, done.err) == (0, "")
    assert {one["name"]: (one["documents"], one["without"]) for one in valid("fleet.kept", done.out)["sessions"]} == {
        "yesterday": (1, 1),
        "today": (2, 0),
    }
    shutil.rmtree(today.directory)
    return store


def test_the_last_session_is_reported_from_the_columns(tunectl: Run, store: Path) -> None:
    done = tunectl("fleet", "report", "--store", store, "--format", "json")
    body = valid("fleet", done.out)
    assert (done.code, body["session"]["name"], body["verdict"]) == (3, "today", "no-go")
    assert [(one["knob"], one["hosts"]) for one in body["causes"]] == [("mm.swappiness", ["tx-01"])]
    assert tunectl("fleet", "report", "--store", store, "--format", "html").out.startswith("<!doctype html>")
    refused = tunectl("fleet", "report", "--store", store, "--save")
    said = "--save: of session today the columns alone are there (--format html prints a page)"
    assert complaint(refused, 2) == said


def test_a_folder_is_asked_before_the_columns(tunectl: Run, store: Path) -> None:
    """It may be newer."""
    assert (
        tunectl("fleet", "record", "yesterday", "tx-02", "--store", store, stdin=json.dumps(no_go("tx-02"))).code == 0
    )
    done = tunectl("fleet", "report", "yesterday", "--store", store, "--format", "json")
    assert {one["name"]: one["answer"] for one in json.loads(done.out)["hosts"]}["tx-02"] == "document"


@pytest.mark.parametrize(("session", "kept"), [("today", "columns of"), ("yesterday", "session")])
def test_a_word_for_a_folder_here_and_a_session_is_neither(
    tunectl: Run, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: str, kept: str
) -> None:
    """Its one good document would be a GO in place of the session's NO-GO."""
    (tmp_path / session).mkdir()
    (tmp_path / session / "tx-09.json").write_text(json.dumps(fresh("tx-09")))
    there = tunectl("fleet", "report", session, "--store", store)
    monkeypatch.chdir(tmp_path)
    said = complaint(tunectl("fleet", "report", session, "--store", store), 2)
    assert said.startswith(f"{session}: a folder here, and ")
    assert kept in said
    assert f"./{session} is the folder" in said
    assert there.code != 0
    assert tunectl("fleet", "report", f"./{session}", "--store", store).code == 0


def test_a_folder_that_is_taken_in_today_and_made_last_week_is_no_answer_for_today(
    tunectl: Run, tmp_path: Path
) -> None:
    (tmp_path / "day").mkdir()
    (tmp_path / "day/tx-01.json").write_text(json.dumps(preflight("tx-01", at=stamp(170))))
    assert tunectl("fleet", "keep", tmp_path / "day", "--store", tmp_path / "store").code == 0
    done = tunectl("fleet", "report", "--store", tmp_path / "store")
    assert complaint(done, 1).startswith("the latest session, day, began 170 hours ago")


def test_what_changed(tunectl: Run, store: Path) -> None:
    done = tunectl("fleet", "diff", "yesterday", "today", "--store", store, "--format", "json")
    body = valid("fleet.diff", done.out)
    assert body["verdicts"] == [
        {"before": "go", "after": "no-go", "hosts": ["tx-01"]},
        {"before": "unknown", "after": "go", "hosts": ["tx-02"]},
    ]
    assert [(one["knob"], one["came"]) for one in body["causes"]] == [("mm.swappiness", ["tx-01"])]
    text = tunectl("fleet", "diff", "yesterday", "today", "--store", store).out
    assert "GO -> NO-GO: 1 host: tx-01" in text


def test_a_host_and_a_knob_over_folders_and_columns(tunectl: Run, store: Path) -> None:
    body = valid("fleet.history", tunectl("fleet", "history", "tx-01", "--store", store, "--format", "json").out)
    assert [(one["session"]["name"], one["verdict"]) for one in body["sessions"]] == [
        ("yesterday", "go"),
        ("today", "no-go"),
    ]
    table = tunectl("fleet", "history", "--knob", "mm.swappiness", "--store", store, "--format", "json")
    assert [row[:4] for row in valid("fleet.table", table.out)["rows"]] == [
        ["yesterday", "", "compliant", 1],
        ["yesterday", "", "no document", 1],
        ["today", "", "compliant", 1],
        ["today", "", "drifted", 1],
    ]
    unknown = tunectl("fleet", "history", "--knob", "mm.swapiness", "--store", store)
    assert unknown.code == 1
    assert "no session has the knob 'mm.swapiness'" in unknown.err


def test_an_export_is_read_by_others(tunectl: Run, store: Path, tmp_path: Path) -> None:
    done = tunectl("fleet", "export", "--format", "csv", "--output", tmp_path / "runs.csv", "--store", store)
    assert (done.code, done.out, done.err) == (0, "", "")
    with (tmp_path / "runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert sorted((row["session"], row["host"], row["said"]) for row in rows) == [
        ("today", "tx-01", "no-go"),
        ("today", "tx-02", "go"),
        ("yesterday", "tx-01", "go"),
    ]
    words = ["today", "--table", "hosts", "--format", "parquet", "--output", tmp_path / "hosts.parquet"]
    assert tunectl("fleet", "export", *words, "--store", store).code == 0
    assert (tmp_path / "hosts.parquet").read_bytes()[:4] == b"PAR1"
    (tmp_path / "link").symlink_to(store / "manifest.json")
    for own in (store / "manifest.json", store / "session=today/x.csv", tmp_path / "link"):
        refused = tunectl("fleet", "export", "--format", "csv", "--output", own, "--store", store)
        assert (refused.code, "is in the store" in refused.err) == (2, True)
    assert not list(tmp_path.glob(".*"))


FORMULAS = [
    *("=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1", "a;=1", 'a";"=1'),
    "x\x1b]0;y\x07\u202e",
]


def test_a_host_puts_no_formula_and_no_escape_into_csv(tunectl: Run, tmp_path: Path) -> None:
    documents: dict[str, dict[str, Any] | None] = {"-lost": None}
    for text in FORMULAS:
        made = no_go("x", f"mm.swappiness[{text}]")
        made["host"] |= {"hostname": text, "kernel": text, "boot_id": text}
        made["hardware"]["product"] = made["verify"]["findings"][0]["observed"] = text
        documents[text] = {**made, "at": stamp(), "reasons": [text]}
    written(tmp_path / "store", documents, "day", stamp())
    assert tunectl("fleet", "keep", "--store", tmp_path / "store").code == 0
    for table in TABLES:
        words = ("fleet", "export", "--format", "csv", "--table", table, "--store", tmp_path / "store", "--output")
        assert tunectl(*words, tmp_path / "safe.csv").code == 0
        assert tunectl(*words, tmp_path / "raw.csv", "--raw").code == 0
        text, raw = ((tmp_path / name).read_bytes().decode() for name in ("safe.csv", "raw.csv"))
        assert all(char.isprintable() or char == "\n" for char in text), table
        rows = [*csv.reader(io.StringIO(text, ""))]
        assert len(rows) == len([*csv.reader(io.StringIO(raw, ""))])
        formulas = [cell for row in rows for cell in row if re.match(r"[-=+@\uff1d](?![0-9.e+-]*$)", cell)]
        assert not formulas, table
        assert not re.search(r"""^[^"]*("[^"]*"[^"]*)*;""", re.sub('""', "", text), re.M), "between quotes alone"
        if table == "runs":
            assert {row["host"] for row in csv.DictReader(io.StringIO(raw, ""))} == {*FORMULAS}


def test_a_query(tunectl: Run, store: Path) -> None:
    words = ["fleet", "sql", "SELECT host, said FROM runs WHERE session = 'today' ORDER BY host", "--store", store]
    assert valid("fleet.table", tunectl(*words, "--format", "json").out)["rows"] == [
        ["tx-01", "no-go"],
        ["tx-02", "go"],
    ]
    cut = tunectl(*words, "--rows", "1")
    assert "there are more: --rows 0 shows all" in cut.out
    refused = tunectl("fleet", "sql", "COPY runs TO '/tmp/x.csv'", "--store", store)
    assert (refused.code, refused.err.count("\n")) == (2, 1)


MUCH = [
    "SELECT length(repeat('x', 2500000000))",
    "SELECT count(*) FROM range(1000000000000)",
    "SELECT length(string_agg(range::VARCHAR, ',')) FROM range(100000000)",
    "SELECT count(*) FROM (SELECT unnest(range(100000))) a, (SELECT unnest(range(100000))) b, range(100000)",
    "SELECT list(range) FROM range(100000000)",
    "SELECT repeat('x', 20000000) FROM range(100)",
]


# A program begins with the size of what has started it: so this small one starts it.
SIZED = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_maxrss, used.ru_utime + used.ru_stime)
sys.exit(done.returncode)
"""


@pytest.mark.parametrize("query", MUCH)
def test_a_query_has_its_memory_and_its_time(store: Path, query: str) -> None:
    words = ["fleet", "sql", query, "--memory", "60", "--limit", "1", "--store", str(store)]
    done = subprocess.run(
        [sys.executable, "-c", SIZED, str(TUNECTL), *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert re.search(r"longer than 1 s|more than 60 MB|Out of Memory", done.stderr)
    size_kib, cpu_s = map(float, done.stdout.split())
    assert (size_kib < 300 << 10, cpu_s < 30) == (True, True)  # a machine under load takes longer, and no more of them


def test_hostile_names_are_drawn_as_data(tunectl: Run, tmp_path: Path) -> None:
    made = {**no_go("x", f"mm.swappiness[{HOSTILE}]"), "at": stamp()}
    written(tmp_path, {HOSTILE: made, "cut": None}, "today", stamp())
    (tmp_path / "today/hosts/cut.json").write_text("\x1b[31m{")
    (tmp_path / "today/hosts/other%1B.json").write_text(json.dumps(made))
    asked = (
        ("keep",),
        ("report",),
        ("history", HOSTILE.replace("\x00", "")),
        ("history", "--knob", "mm.swappiness"),
        ("sql", "FROM hosts"),
        ("diff", "today", "today"),
    )
    for words in asked:
        done = tunectl("fleet", *words, "--store", tmp_path)
        assert done.code < 4, done.err
        assert not {"\x1b", "\x00", "\u202e"} & set(done.out + done.err), words


def test_one_process_writes(tunectl: Run, store: Path) -> None:
    with (store / "lock").open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        other = subprocess.Popen(["sleep", "60"], pass_fds=[held.fileno()])
        done = tunectl("fleet", "keep", "--store", store)
        other.kill()
        other.wait()
    said = complaint(done, 1)
    assert said.startswith(f"{store}: sessions are taken in at this moment, by process ")
    assert f"process {os.getpid()} (" in said
    assert f"process {other.pid} ('sleep'" in said


def test_sessions_go_when_more_were_kept_than_are_to_stay(tunectl: Run, store: Path) -> None:
    done = tunectl("fleet", "keep", "--keep-sessions", "1", "--store", store)
    assert "no longer kept: yesterday" in done.out


def test_no_other_command_imports_the_engine() -> None:
    said = "import sys, tunectl.cli.fleet; print([one for one in ('duckdb', 'multiprocessing') if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
