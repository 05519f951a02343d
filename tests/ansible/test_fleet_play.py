"""preflight.yml over simulated hosts: one call a host, one report, nobody dropped."""

import json
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import valid
from tests.fleet.cage import PLAY, TUNECTL, Cage
from tests.fleet.made import preflight

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PLAY.exists(), reason="needs ansible-core")]
needs_ssh = pytest.mark.skipif(not shutil.which("ssh"), reason="needs an ssh client, to find a host unreachable")


@pytest.fixture
def cage(tmp_path: Path, zip_cache: dict[str, str]) -> Cage:
    return Cage(tmp_path, more=zip_cache)


def soon() -> str:
    """In four minutes: no sign of a wrong clock, nor is a round that begins nine minutes from now on a busy machine."""
    return (datetime.now(UTC) + timedelta(minutes=4)).strftime("%Y-%m-%dT%H:%M:%SZ")


def verdicts(body: Any) -> dict[str, str]:
    return {one["name"]: one["verdict"] for one in body["hosts"]}


ACCEPTED = "tunectl_fleet_accepted=['go','no-go']"


def recap(out: str) -> dict[str, dict[str, int]]:
    """host -> {"ok": 3, "failed": 1, ...}"""
    lines = re.findall(r"^(\S+)\s+: (ok=\d+.*)$", out, re.MULTILINE)
    return {host: {key: int(n) for key, n in (word.split("=") for word in words.split())} for host, words in lines}


def failed(out: str) -> set[str]:
    """The hosts that the recap calls failed."""
    return {host for host, counts in recap(out).items() if counts["failed"]}


def called(out: str, task: str) -> int:
    """How many hosts a task ran on."""
    part = out.partition(f"TASK [{task}]")[2].partition("TASK [")[0]
    return len(re.findall(r"^(?:ok|changed|failed|fatal|skipping): \[", part, re.MULTILINE))


@needs_ssh
def test_a_round_over_recorded_hosts(cage: Cage) -> None:
    cage.unreachable("gone")  # the first: what runs once must not run there
    cage.recorded(3)
    done = cage.run("monday")
    assert done.returncode == 2, done.stdout + done.stderr
    body = valid("fleet", (cage.place / "sessions/monday/report.json").read_text())
    assert (body["verdict"], body["session"]["name"], body["session"]["selection"]) == ("no-go", "monday", "tunectl")
    assert verdicts(body) == {"h000": "no-go", "h001": "no-go", "h002": "no-go", "gone": "unknown"}
    (gone,) = [one for one in body["hosts"] if one["name"] == "gone"]
    assert gone["answer"] == "unreachable"
    assert "127.0.0.1" in gone["reasons"][0]  # what ssh said; which of its complaints is first differs from run to run
    assert body["groups"][0]["hosts"] == ["h000", "h001", "h002"]
    for name in ("h000", "h001", "h002"):
        document = valid("preflight", (cage.place / f"sessions/monday/hosts/{name}.json").read_text())
        assert document["host"]["hostname"] == name
        assert "probe: a recorded host cannot be measured" in document["reasons"]
    assert called(done.stdout, "Verify, check, probe and look at the thermal state") == 4
    assert "Gathering Facts" not in done.stdout
    assert failed(done.stdout) == {"h000", "h001", "h002", "gone"}
    assert recap(done.stdout)["gone"]["unreachable"] == 0  # in the recap it has failed, once
    assert "unknown: " in done.stdout.partition("fatal: [gone]: FAILED!")[2].partition("\n}")[0]
    assert "NO-GO  4 hosts: 3 NO-GO, 1 missing" in done.stdout
    assert "irqbalance.banned_cpus" in (cage.place / "sessions/monday/report.html").read_text()
    scheduler = subprocess.run([sys.executable, TUNECTL, "fleet", "report", cage.place / "sessions/monday"])
    assert scheduler.returncode == 3


def test_a_part_of_the_cage_that_is_go_and_the_same_session_again(cage: Cage) -> None:
    at = soon()  # documents that were made before the round are refused
    cage.canned({f"h{n}": preflight(f"h{n}", "go" if n else "no-go", at=at, max_ns=4000 + 10 * n) for n in range(7)})
    cage.hosts["h1"] = {"tunectl_rack": "A1"}
    cage.hosts["h2"] = {"tunectl_rack": 7}  # YAML makes a number of it
    done = cage.run("go", "--limit", "h1:h2:h3:h4:h5:h6")
    assert done.returncode == 0, done.stdout + done.stderr
    body = cage.report("go")
    assert (body["verdict"], body["counts"]["go"], body["outliers"]) == ("go", 6, [])
    assert (set(verdicts(body)), body["session"]["selection"]) == ({f"h{n}" for n in range(1, 7)}, "h1:h2:h3:h4:h5:h6")
    assert body["groups"][0]["usual"]["max_ns"]["n"] == 6
    racks = {one["name"]: one["rack"] for one in body["hosts"]}
    assert racks == dict.fromkeys(verdicts(body), "") | {"h1": "A1", "h2": "7"}
    document = json.loads((cage.place / "sessions/go/hosts/h1.json").read_text())
    assert document == preflight("h1", at=at, max_ns=4010)  # whole, as the host said it
    assert "histogram" not in done.stdout

    assert failed(done.stdout) == set()
    mixed = cage.run("mixed", "--limit", "h0:h1", "-e", ACCEPTED)  # what is accepted fails no host; the first one is it
    assert (mixed.returncode, failed(mixed.stdout)) == (0, set()), mixed.stdout

    again = cage.run("go")
    assert again.returncode == 2
    assert "there is such a session already" in again.stdout + again.stderr


def test_a_host_that_cannot_say(cage: Cage) -> None:
    cage.canned({"good": preflight("good", at=soon()), "empty": {}, "../evil": {}, "slow": {}})
    cage.program.write_text(
        "#!/bin/sh\ncase $TUNECTL_ROOT in */slow) sleep 60;; esac\nexec cat $TUNECTL_ROOT/document.json\n"
    )
    for limit_s in (8, 40):  # on a busy machine the others may take more than the shorter one
        session = f"within-{limit_s}"
        done = cage.run(session, "-e", f"tunectl_fleet_timeout_s={limit_s}")
        body = cage.report(session)
        if verdicts(body)["good"] == "go":
            break
    assert done.returncode == 2, done.stdout + done.stderr
    assert verdicts(body) == {"../evil": "unknown", "empty": "unknown", "slow": "unknown", "good": "go"}
    answers = {one["name"]: (one["answer"], " ".join(one["reasons"])) for one in body["hosts"]}
    assert failed(done.stdout) == {"../evil", "empty", "slow"}
    assert answers["empty"][0] == "failed"
    assert "it speaks no schema" in answers["empty"][1]
    assert answers["slow"][0] == "failed"
    assert f"it took longer than the {limit_s} s that the task allows" in answers["slow"][1]
    files = {path.name for path in (cage.place / f"sessions/{session}/hosts").iterdir()}
    assert files == {"%2E.%2Fevil.json", "empty.json", "good.json", "slow.json"}
