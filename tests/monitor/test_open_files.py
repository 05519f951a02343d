"""Files held open say what they hold now: changed, replaced, unplugged, plugged in again, never there."""

import os
from pathlib import Path

from tests.probe.running import links
from tunectl.host.sysroot import Sysroot
from tunectl.monitor.open_files import Numbers


def numbers(place: Path, *names: str) -> Numbers[str]:
    return Numbers(Sysroot(str(place)), {name: name for name in names})


def test_a_number_is_read_once_and_told_when_it_changes(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1200000\n")
    held = numbers(tmp_path, "a")
    assert held.refresh() == ["a"]
    assert held.value == {"a": 1200000}
    assert held.refresh() == []
    (tmp_path / "a").write_text("-1\n")
    assert held.refresh() == ["a"]
    assert held.value == {"a": -1}


def test_what_is_no_number_has_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("<unknown>\n")
    held = numbers(tmp_path, "a")
    held.refresh()
    assert held.value == {"a": None}
    assert held.problem == {"a": "/a holds '<unknown>', no number"}
    assert held.absent == set()


def test_a_file_that_goes_is_absent_and_comes_back_at_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    held = numbers(tmp_path, "a")
    held.refresh()
    (tmp_path / "a").unlink()
    assert held.refresh() == ["a"]
    assert held.absent == {"a"}
    assert "No such file" in held.problem["a"]
    (tmp_path / "a").write_text("1\n")
    assert held.refresh() == ["a"]
    assert (held.value, held.absent, held.problem) == ({"a": 1}, set(), {})


def test_a_replaced_file_does_not_live_on(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    held = numbers(tmp_path, "a")
    held.refresh()
    (tmp_path / "new").write_text("2\n")
    os.replace(tmp_path / "new", tmp_path / "a")
    assert held.refresh() == ["a"]
    assert held.value == {"a": 2}


def test_what_never_was_there_is_found_within_some_twenty_rounds(tmp_path: Path) -> None:
    names = [f"f{n}" for n in range(20)]
    held = numbers(tmp_path, *names)
    held.refresh()
    assert held.absent == set(names)
    for name in names:
        (tmp_path / name).write_text("7\n")
    for _ in range(20):
        held.refresh()
    assert held.value == dict.fromkeys(names, 7)
    assert held.absent == set()


def opened(place: Path) -> list[str]:
    """What this process has open there: its other descriptors come and go with what other tests left behind."""
    return [link for link in links(os.getpid()).values() if link.startswith(str(place))]


def test_no_file_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    held = numbers(tmp_path, "a", "none")
    held.refresh()
    assert opened(tmp_path) == [str(tmp_path / "a")]
    held.close()
    assert opened(tmp_path) == []
