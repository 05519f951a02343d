"""The long set goes on where it stopped, and counts only what passed on what is played today."""

import subprocess
from pathlib import Path

import pytest

from tests import long
from tests.long import Part, Result, load, passed, run, save, table

GOOD, BAD, SLOW = ("-c", "print('fine')"), ("-c", "raise SystemExit(3)"), ("-c", "import time; time.sleep(60)")


@pytest.mark.slow
def test_each_result_is_noted_with_its_commit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = [Part("good", "it works", GOOD), Part("bad", "it fails", BAD), Part("slow", "it hangs", SLOW)]
    run(parts[:2], tmp_path, "abc")
    run(parts[2:], tmp_path, "abc", limit_s=1)
    results = load(tmp_path)
    assert [results[part.name].outcome for part in parts] == [
        "passed",
        "failed, exit 3",
        f"not done after {1 / 60:g} minutes",
    ]
    assert {one.commit for one in results.values()} == {"abc"}
    assert (tmp_path / "good.log").read_text() == "fine\n"
    assert [passed(results, part.name, "abc") for part in parts] == [True, False, False]
    minutes = f"{results['good'].seconds / 60:.1f}"
    assert f"| good | it works | passed | abc | {results['good'].day} | {minutes} |" in capsys.readouterr().out


@pytest.mark.parametrize("now", ["abd", "abc+", "abd+"])
def test_what_passed_elsewhere_does_not_count(tmp_path: Path, now: str) -> None:
    save(
        tmp_path,
        {"good": Result("passed", "abc", "2026-11-22", 1.0), "dirty": Result("passed", "abc+", "2026-11-22", 1.0)},
    )
    assert not passed(load(tmp_path), "good", now)
    assert not passed(load(tmp_path), "dirty", now)
    assert not passed(load(tmp_path), "dirty", "abc")


def test_another_result_stays(tmp_path: Path) -> None:
    run([Part("one", "", GOOD)], tmp_path, "a")
    run([Part("two", "", GOOD)], tmp_path, "b")
    assert {name: one.commit for name, one in load(tmp_path).items()} == {"one": "a", "two": "b"}
    assert table([Part("three", "later", GOOD)], load(tmp_path)).endswith("| three | later | not run |  |  |  |")


def test_a_result_counts_until_something_changes_that_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long, "ROOT", tmp_path)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)

    def write(path: str) -> None:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        with (tmp_path / path).open("a") as file:
            file.write("a line\n")

    def keep() -> str:
        author = ("-c", "user.name=t", "-c", "user.email=t@example.com")
        for words in (("add", "-A"), (*author, "commit", "-q", "-m", "kept")):
            subprocess.run(["git", *words], cwd=tmp_path, check=True)
        return long.commit()

    write("docs/tutorial.md")
    played = keep()
    for path in long.UNPLAYED:
        write(path)
        assert (long.commit(), keep()) == (played, played), path
    write("docs/tutorial.md")
    assert long.commit() == f"{played}+"
    later = keep()
    assert not later.startswith(played)
    subprocess.run(["git", "config", "status.showUntrackedFiles", "no"], cwd=tmp_path, check=True)
    write("tests/new.py")
    assert long.commit() == f"{later}+"
