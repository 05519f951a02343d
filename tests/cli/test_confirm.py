"""`apply --confirm-within`, `confirm` and `deadline`, as they are typed, and every command that says that one waits."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import valid
from tests.conftest import LOW_LATENCY, write_host_file
from tests.ran import Ran
from tests.trees import differences, picture
from tunectl.tuning.trial import boot_time

Tunectl = Callable[..., Ran]
BY_SYSTEMD = {"INVOCATION_ID": "0123456789abcdef0123456789abcdef"}
SAYING = [
    ("show",),
    ("plan",),
    ("verify",),
    ("check", "--window", "0.1"),
    ("preflight", "--window", "0.1", "--duration", "0.1"),
    ("monitor", "--once", "--interval", "0.05"),
]


@pytest.fixture
def tree(lab4: Path) -> Path:
    """A host with systemd, and a host file that was not applied yet."""
    (lab4 / "etc/systemd/system").mkdir(parents=True, exist_ok=True)
    return lab4


def record(tree: Path) -> Path:
    return tree / "var/lib/tunectl/trial.json"


def is_due(tree: Path) -> None:
    record(tree).write_text(json.dumps(json.loads(record(tree).read_text()) | {"deadline_s": boot_time() - 1}))


def armed(tunectl: Tunectl, tree: Path) -> Any:
    return tunectl("apply", "--yes", "--confirm-within", "10m", "--root", tree, "--format", "json").json


def test_it_is_made_and_says_until_when_it_stands(tunectl: Tunectl, tree: Path) -> None:
    done = tunectl("apply", "--yes", "--confirm-within", "10m", "--root", tree, "--format", "json")
    body = valid("apply", done.out)
    trial = json.loads(record(tree).read_text())
    assert (body["unconfirmed"]["id"], body["unconfirmed"]["kind"]) == (trial["id"], "runtime")
    assert 590 < trial["deadline_s"] - boot_time() <= 600


@pytest.mark.parametrize("words", SAYING)
def test_every_look_at_the_host_says_so(tunectl: Tunectl, tree: Path, words: tuple[str, ...]) -> None:
    assert "unconfirmed" not in tunectl(*words, "--root", tree, "--format", "json").json
    waits = armed(tunectl, tree)["unconfirmed"]
    body = valid(words[0], tunectl(*words, "--root", tree, "--format", "json").out)
    assert body["unconfirmed"]["id"] == waits["id"]
    assert "unconfirmed" in tunectl(*words, "--root", tree).out


def test_of_some_knobs_too_and_before_all_other_notes(tunectl: Tunectl, tree: Path) -> None:
    armed(tunectl, tree)
    first, second, *_ = tunectl("verify", "boot", "--root", tree, "--format", "json").json["notes"]
    assert (first.split(",")[0], second.split(":")[0]) == ("unconfirmed", "judged")


def test_metrics_say_so_and_the_verdict_is_as_it_would_be(tunectl: Tunectl, tree: Path) -> None:
    armed(tunectl, tree)
    waiting = tunectl("verify", "--root", tree)
    assert "\ntunectl_unconfirmed{" in tunectl("verify", "--root", tree, "--format", "prometheus").out
    tunectl("confirm", "--root", tree)
    assert "\ntunectl_unconfirmed{" not in tunectl("verify", "--root", tree, "--format", "prometheus").out
    assert tunectl("verify", "--root", tree).code == waiting.code


def test_confirmed_once_and_twice(tunectl: Tunectl, tree: Path) -> None:
    assert tunectl("confirm", "--root", tree).code == 1
    armed(tunectl, tree)
    for already in (False, True):
        done = tunectl("confirm", "--root", tree, "--format", "json")
        body = valid("trial", done.out)
        assert (done.code, body["status"], body["already"]) == (0, "confirmed", already)
    assert tunectl("deadline", "--root", tree).code == 0


def test_what_somebody_edited_of_its_units_is_named(tunectl: Tunectl, tree: Path) -> None:
    armed(tunectl, tree)
    unit = tree / "etc/systemd/system/tunectl-deadline.service"
    unit.write_text(unit.read_text() + "# mine\n")
    notes = tunectl("confirm", "--root", tree, "--format", "json").json["notes"]
    assert any("/etc/systemd/system/tunectl-deadline.service" in note for note in notes)


def test_restore_names_what_somebody_put_beside_its_units_and_the_lines_he_edited(tunectl: Tunectl, tree: Path) -> None:
    armed(tunectl, tree)
    unit = tree / "etc/systemd/system/tunectl-deadline.service"
    unit.write_text(f"{unit.read_text()}# mine\n")
    drop_in = tree / "etc/systemd/system/tunectl-return.service.d/mine.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\n")
    notes = tunectl("restore", "--dry-run", "--root", tree, "--format", "json").json["notes"]
    assert f"/{drop_in.relative_to(tree)} is not tunectl's: it stays" in notes
    done = tunectl("restore", "--yes", "--root", tree)
    assert done.code == 3
    assert f"/{drop_in.relative_to(tree)}" in done.out
    assert "somebody edited it (+# mine)" in done.out
    assert "ExecStart" not in done.out
    assert drop_in.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away")
@pytest.mark.parametrize(
    "words", [("verify",), ("plan",), ("restore", "--dry-run"), ("restore", "--yes"), ("apply", "-y")]
)
def test_a_journal_of_somebody_else_is_refused_in_one_line(
    tunectl: Tunectl, tree: Path, words: tuple[str, ...]
) -> None:
    armed(tunectl, tree)
    os.chown(tree / "var/lib/tunectl/journal.jsonl", 65534, 65534)
    refused = tunectl(*words, "--root", tree)
    assert refused.code == 1
    assert "journal.jsonl can be written by others than root: it is not believed" in refused.err


def test_too_late_it_is_taken_back_and_the_host_is_as_before(tunectl: Tunectl, tree: Path) -> None:
    before = picture(tree)
    armed(tunectl, tree)
    assert tunectl("deadline", "--root", tree, "--format", "json").json["status"] == "armed"
    is_due(tree)
    assert tunectl("confirm", "--root", tree).code == 1
    done = tunectl("deadline", "--root", tree, "--format", "json")
    body = valid("trial", done.out)
    assert (done.code, body["status"]) == (0, "returned")
    assert {row["result"] for row in body["results"]} <= {"restored", "already"}
    assert {path for path in differences(before, tree) if not path.startswith("var")} == set()
    assert tunectl("confirm", "--root", tree).code == 1


def test_another_apply_takes_back_first_what_is_due(tunectl: Tunectl, tree: Path) -> None:
    armed(tunectl, tree)
    assert tunectl("apply", "--yes", "--root", tree).code == 1
    is_due(tree)
    assert tunectl("apply", "--yes", "--root", tree).code == 4
    assert "unconfirmed" not in tunectl("verify", "--root", tree, "--format", "json").json


def test_what_came_back_is_told_until_the_host_file_is_another_or_kept(tunectl: Tunectl, tree: Path) -> None:
    kept = (tree / "etc/tunectl/host.toml").read_text()
    waits = armed(tunectl, tree)["unconfirmed"]
    assert "returned" not in tunectl("verify", "--root", tree, "--format", "json").json
    is_due(tree)
    tunectl("deadline", "--root", tree)
    back = valid("verify", tunectl("verify", "--root", tree, "--format", "json").out)["returned"]
    assert (back["id"], back["kind"]) == (waits["id"], "runtime")
    assert back["journal"] == f"{tree}/var/lib/tunectl/journal.jsonl"
    flight = tunectl("preflight", "--window", "0.1", "--duration", "0.1", "--root", tree, "--format", "json").json
    assert flight["verify"]["returned"] == back
    write_host_file(tree, f'{LOW_LATENCY}[knobs]\n"mm.swappiness" = 0\n')
    assert "returned" not in tunectl("verify", "--root", tree, "--format", "json").json
    write_host_file(tree, kept)
    assert tunectl("apply", "--yes", "--root", tree).code == 4
    assert "returned" not in tunectl("verify", "--root", tree, "--format", "json").json


def test_a_plan_says_whether_a_change_can_take_itself_back(tunectl: Tunectl, tree: Path) -> None:
    assert tunectl("plan", "--root", tree, "--format", "json").json["confirm_refused"] == ""
    shutil.rmtree(tree / "etc/systemd/system")
    assert valid("plan", tunectl("plan", "--root", tree, "--format", "json").out)["confirm_refused"]
    assert tunectl("apply", "--yes", "--confirm-within", "10m", "--root", tree).code == 1


@pytest.mark.parametrize("text", ["", "10", "0s", "25h", "1d", "-5m", "1.5h", "1e3s", "999999999h"])
def test_a_time_that_is_none_is_refused(tunectl: Tunectl, tree: Path, text: str) -> None:
    before = picture(tree)
    assert tunectl("apply", "--yes", "--confirm-within", text, "--root", tree).code == 2
    assert not differences(before, tree)


def test_at_boot_nothing_that_came_back_is_put_in_force_again(tunectl: Tunectl, tree: Path) -> None:
    armed(tunectl, tree)
    is_due(tree)
    tunectl("deadline", "--root", tree)
    before = picture(tree)
    done = tunectl("apply", "--yes", "--runtime", "--root", tree, "--format", "json", env=BY_SYSTEMD)
    assert (done.code, done.json["changes"]) == (0, [])
    assert not differences(before, tree)


def test_at_boot_the_confirmed_host_file_is_put_in_force(tunectl: Tunectl, tree: Path) -> None:
    swappiness = tree / "proc/sys/vm/swappiness"
    tunectl("apply", "--yes", "--root", tree)
    assert swappiness.read_text() == "1\n"
    write_host_file(tree, f'{LOW_LATENCY}[knobs]\n"mm.swappiness" = 0\n')
    armed(tunectl, tree)
    assert swappiness.read_text() == "0\n"
    is_due(tree)
    tunectl("deadline", "--root", tree)
    for _ in range(2):
        swappiness.write_text("60\n")  # as a kernel begins
        assert tunectl("apply", "--yes", "--runtime", "--root", tree, env=BY_SYSTEMD).code == 4
        assert swappiness.read_text() == "1\n"


@pytest.mark.parametrize("words", [["--reach", "auto"], ["--confirm-within", "1m", "--reach", "nonsense"]])
def test_who_has_to_answer_is_named_and_only_with_a_deadline(tunectl: Tunectl, tree: Path, words: list[str]) -> None:
    assert tunectl("apply", "--yes", "--root", tree, *words).code == 2


def test_a_recorded_host_reaches_nobody_and_says_so(tunectl: Tunectl, tree: Path) -> None:
    words = ("apply", "--yes", "--confirm-within", "1m", "--reach", "192.0.2.1:22", "--format", "json")
    assert any("192.0.2.1:22" in note for note in tunectl(*words, "--root", tree).json["notes"])
    assert json.loads(record(tree).read_text())["reach"] == ""
