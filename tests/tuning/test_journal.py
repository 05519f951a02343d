"""The journal: what is on disk, what survives damage, who holds the lock."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tunectl.errors import TunectlError
from tunectl.model import Target
from tunectl.tuning.journal import Journal, load
from tunectl.tuning.lock import hold, make_directory
from tunectl.tuning.records import Entry


def entry(path: str = "proc/sys/vm/swappiness", before: str | None = "60\n", boot: str = "boot-1") -> Entry:
    return Entry(0, boot, "value", path, before, "60", "1", 0o644, (Target("mm.swappiness"),), ())


def filled(directory: Path, count: int = 3) -> Journal:
    journal = load(str(directory))
    journal.start("boot-1", "/", ())
    for number in range(count):
        seq = journal.before(entry(f"proc/sys/vm/n{number}"))
        journal.after(seq, "1\n")
    journal.end()
    return journal


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    written = filled(tmp_path)
    read = load(str(tmp_path))
    assert read.entries == written.entries
    assert [one.shown for one in read.entries.values()] == ["1\n"] * 3
    assert not read.torn
    assert not read.damaged


def test_bytes_that_are_no_text_survive(tmp_path: Path) -> None:
    journal = load(str(tmp_path))
    before = bytes(range(256)).decode("latin-1")
    journal.before(entry(before=before))
    (kept,) = load(str(tmp_path)).entries.values()
    assert kept.before == before


@pytest.mark.parametrize(
    ("kind", "before", "mode", "expected"),
    [
        ("file", "secret\n", 0o600, 0o600),
        ("edit", "secret\n", 0o640, 0o600),
        ("file", "known to all\n", 0o644, 0o644),
        ("file", None, 0o600, 0o644),  # there was none
        ("value", "60\n", 0o600, 0o644),
    ],
)
def test_who_may_read_a_before_image_is_who_might_read_the_file(
    tmp_path: Path, kind: str, before: str | None, mode: int, expected: int
) -> None:
    journal = filled(tmp_path)
    assert Path(journal.path).stat().st_mode & 0o777 == 0o644
    journal.before(entry("etc/default/irqbalance", before)._replace(kind=kind, mode=mode))
    assert Path(journal.path).stat().st_mode & 0o777 == expected
    journal.end()
    journal.keep([max(journal.entries)], "boot-1", "")
    assert Path(journal.path).stat().st_mode & 0o777 == expected


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_line_that_was_cut_off_is_noted_and_its_place_taken(tmp_path: Path, cut: int) -> None:
    journal = filled(tmp_path)
    journal.before(entry("proc/sys/vm/last"))
    size = os.path.getsize(journal.path)
    os.truncate(journal.path, size - cut)
    torn = load(str(tmp_path))
    assert torn.torn
    assert not torn.damaged
    assert len(torn.entries) == 3
    torn.before(entry("proc/sys/vm/next"))
    again = load(str(tmp_path))
    assert not again.torn
    assert [one.path for one in again.entries.values()][-1] == "proc/sys/vm/next"


def taken_out(journal: Journal, *gone: int) -> tuple[int, ...]:
    """Which lines are damaged once these, counted from 1, are gone."""
    lines = Path(journal.path).read_bytes().splitlines(keepends=True)
    left = [line for number, line in enumerate(lines, start=1) if number not in gone]
    Path(journal.path).write_bytes(b"".join(left))
    damaged = load(journal.directory).damaged
    Path(journal.path).write_bytes(b"".join(lines))
    assert load(journal.directory).damaged == ()
    return damaged


def test_an_entry_that_is_missing_is_damage(tmp_path: Path) -> None:
    journal = filled(tmp_path)  # start; before and after, three times; end
    assert taken_out(journal, 2) == (2, 3)  # what became of 1, and then 2 where 1 should be
    assert taken_out(journal, 4) == (4, 5)
    assert taken_out(journal, 4, 5) == (4,)
    assert taken_out(journal, 6) == (6,)
    again = load(str(tmp_path))
    again.start("boot-1", "/", ())
    for number in range(2):
        again.refused(again.before(entry(f"proc/sys/vm/m{number}")), 5)
    again.end()
    assert taken_out(again, 6, 7) == (8,)
    assert taken_out(again, 10, 11) == (10,)
    assert taken_out(again, 12) == (12,)


def test_what_was_forgotten_is_no_damage(tmp_path: Path) -> None:
    journal = filled(tmp_path, 5)
    for numbers in ([1, 3, 4], [3], []):
        journal.keep(numbers, "boot-1", "nothing was changed")
        assert load(str(tmp_path)).damaged == ()
        journal.start("boot-1", "/", ())
        journal.after(journal.before(entry()), "1\n")
        journal.end()
        assert load(str(tmp_path)).damaged == ()
        later = load(str(tmp_path))
        later.start("boot-1", "/", ())
        later.after(later.before(entry()), "1\n")
        later.end()
        assert load(str(tmp_path)).damaged == ()
        Path(journal.path).unlink()
        journal = filled(tmp_path, 5)


def test_dead_values_are_forgotten_and_files_are_not(tmp_path: Path) -> None:
    journal = filled(tmp_path)
    kept = journal.before(entry("etc/default/irqbalance")._replace(kind="file"))
    journal.after(kept, "x")
    journal.prune("boot-2")
    again = load(str(tmp_path))
    assert [one.path for one in again.entries.values()] == ["etc/default/irqbalance"]
    assert again.entries[kept].shown == "x"
    assert not again.damaged
    journal.prune("boot-2")
    assert journal.before(entry(boot="boot-2")) == kept + 1
    assert len(load(str(tmp_path)).entries) == 2


def test_the_state_directory_is_written_by_its_owner_only_and_what_was_made_is_told(tmp_path: Path) -> None:
    made = make_directory(str(tmp_path / "var/lib/tunectl"))
    assert [os.path.relpath(path, tmp_path) for path in made] == ["var", "var/lib", "var/lib/tunectl"]
    assert (tmp_path / "var/lib/tunectl").stat().st_mode & 0o777 == 0o755
    assert make_directory(str(tmp_path / "var/lib/tunectl")) == ()


def test_the_holder_of_the_lock_is_named(tmp_path: Path) -> None:
    script = (
        "import sys, time\nfrom tunectl.tuning.lock import hold\n"
        "with hold(sys.argv[1], 0):\n print('held', flush=True)\n time.sleep(60)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(TunectlError, match=rf"process {other.pid} \('python"), hold(str(tmp_path), 0):
            pass
    finally:
        other.kill()
        other.wait()
    with hold(str(tmp_path), 0):  # a killed holder holds nothing
        pass
    assert not (tmp_path / "lock").exists()


def test_what_a_killed_holder_started_holds_the_lock_to_its_end(tmp_path: Path) -> None:
    """An update-grub that apply was killed under would write its result after restore had written its own."""
    script = (
        "from tunectl.host.run import run\nfrom tunectl.tuning.lock import hold\n"
        f"with hold({str(tmp_path)!r}, 0):\n"
        f"    run(['/bin/sh', '-c', 'echo > {tmp_path}/started; while [ ! -e {tmp_path}/end ]; do sleep 0.05; done'])\n"
    )
    apply = subprocess.Popen([sys.executable, "-c", script])
    while not (tmp_path / "started").exists():
        assert apply.poll() is None
        time.sleep(0.05)
    apply.kill()
    apply.wait()
    with pytest.raises(TunectlError, match=r"process \d+ \('sh', uid \d+\)"), hold(str(tmp_path), 0):
        pass
    (tmp_path / "end").touch()
    with hold(str(tmp_path), 30):
        pass
