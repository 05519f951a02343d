"""A journal that lost a line, or in which a bit flipped: what can be restored is, and the rest is named."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hosts.builder import HostFactory
from tests.journals import records_of
from tests.ran import Ran
from tests.trees import differences, picture
from tests.tuned import apply, restore, state_of
from tests.tuning.hosts import small_host
from tests.tuning.test_journal import filled
from tunectl.durable import line_of
from tunectl.host.writable import WritableSysroot
from tunectl.tuning.journal import Journal, load
from tunectl.tuning.restore import preview

Run = Callable[..., Ran]
JOURNAL = "var/lib/tunectl/journal.jsonl"
SWAPPINESS = "proc/sys/vm/swappiness"


def journal_with(place: Path, data: bytes) -> Journal:
    (place / "journal.jsonl").write_bytes(data)
    return load(str(place))


# --- what counts as damage


@pytest.mark.slow
def test_a_flipped_bit_is_damage_wherever_it_is(tmp_path: Path) -> None:
    """All of the newest record, with its newline; of the others every seventh bit."""
    data = Path(filled(tmp_path).path).read_bytes()
    newest = data.rstrip(b"\n").rindex(b"\n") + 1
    for bit in (*range(0, newest * 8, 7), *range(newest * 8, len(data) * 8)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        assert journal_with(tmp_path, bytes(flipped)).damaged, bit


def test_a_line_that_is_lost_doubled_or_moved_is_damage(tmp_path: Path) -> None:
    """But for the newest, which may never have been written: then the run did not end."""
    lines = Path(filled(tmp_path).path).read_bytes().splitlines(keepends=True)
    for number in range(len(lines) - 1):
        without, doubled, moved = list(lines), list(lines), list(lines)
        del without[number]
        doubled.insert(number, lines[number])
        moved[number], moved[number + 1] = moved[number + 1], moved[number]
        for one in (without, doubled, moved):
            assert journal_with(tmp_path, b"".join(one)).damaged, number
    newest_lost = journal_with(tmp_path, b"".join(lines[:-1]))
    assert (newest_lost.damaged, newest_lost.ended) == ((), False)


def test_an_append_that_never_finished_is_no_damage(tmp_path: Path) -> None:
    """Cut off anywhere; or with blocks that never reached the disk, which read as zeros."""
    data = Path(filled(tmp_path).path).read_bytes()
    line = line_of({"type": "after", "seq": 3, "shown": "x" * 2000})
    for size in range(1, len(line), 97):
        for arrived in (line[:size], line[:size] + bytes(40), bytes(size) + line[size:]):
            journal = journal_with(tmp_path, data + arrived)
            assert (journal.torn, journal.damaged, len(journal.entries)) == (True, (), 3), arrived
    middle = line[:400] + bytes(512) + line[912:]
    assert journal_with(tmp_path, data + middle).torn


def test_a_journal_of_an_earlier_version_has_no_numbers_and_is_whole(tmp_path: Path) -> None:
    journal = filled(tmp_path)
    earlier = [
        {key: value for key, value in one.items() if key not in ("line", "wrote")}
        for one in records_of(Path(journal.path))
    ]
    again = journal_with(tmp_path, b"".join(map(line_of, earlier)))
    assert (again.damaged, len(again.entries)) == ((), 3)
    again.start("boot-1", "/", ())
    again.refused(again.before(again.entries[1]), 5)
    again.end()
    assert load(str(tmp_path)).damaged == ()


RECORDS: list[dict[str, Any]] = [
    {"type": "start", "boot_id": "b", "root": "/", "created": ["/var/lib/tunectl"], "line": 1},
    {"type": "before", "seq": 1, "boot_id": "b", "kind": "value", "path": SWAPPINESS, "before": "60\n", "undo": "60",
     "after": "1", "mode": 420, "knobs": ["mm.swappiness"], "commands": [], "shown": None, "errno": None,
     "told": False},
    {"type": "after", "seq": 1, "shown": "1\n", "line": 3},
    {"type": "refused", "seq": 1, "errno": 5, "line": 4},
    {"type": "told", "seqs": [1], "line": 5},
    {"type": "held", "line": 6,
     "knobs": {"mm.swappiness": {"value": 1, "at": "", "kernel": "", "numbers": "", "names": []}}},
    {"type": "end", "wrote": [SWAPPINESS], "line": 7},
]  # fmt: skip
ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.just("\udcff")
    | st.just("9" * 5000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
FIELDS = [(number, key) for number, record in enumerate(RECORDS) for key in record]


@pytest.mark.slow
@given(st.sampled_from(FIELDS), ANY)
def test_a_whole_record_of_another_type_is_a_damaged_record(
    tmp_path_factory: pytest.TempPathFactory, field: tuple[int, str], value: object
) -> None:
    """Nothing else than damage or a journal that can be followed comes of it."""
    place = tmp_path_factory.mktemp("journal")
    changed = [dict(record) for record in RECORDS]
    changed[field[0]][field[1]] = value
    journal = journal_with(place, b"".join(map(line_of, changed)))
    (place / "proc/sys/vm").mkdir(parents=True)
    (place / SWAPPINESS).write_text("1\n")
    root = WritableSysroot(str(place))
    preview(root, journal, "b", force=False)
    journal.remove_directories(str(place))
    shutil.rmtree(place)


@pytest.mark.parametrize(
    ("number", "key", "value"),
    [
        (0, "created", "/etc"),
        (1, "shown", 5),
        (1, "seq", True),
        (1, "mode", -1),
        (1, "path", ""),
        (1, "path", "a\0b"),
        (1, "before", "\u20ac"),
        (1, "knobs", "mm"),
        (1, "commands", [[]]),
        (2, "seq", []),
        (4, "seqs", 1),
        (5, "knobs", []),
        (6, "type", {}),
        (6, "line", "7"),
    ],
)
def test_what_no_version_writes_is_damage(tmp_path: Path, number: int, key: str, value: object) -> None:
    assert journal_with(tmp_path, b"".join(map(line_of, RECORDS))).damaged == ()
    changed = [dict(record) for record in RECORDS]
    changed[number][key] = value
    assert number + 1 in journal_with(tmp_path, b"".join(map(line_of, changed))).damaged


def test_nesting_beyond_measure_is_damage(tmp_path: Path) -> None:
    import zlib

    body = b"[" * 100_000
    assert journal_with(tmp_path, f"{zlib.crc32(body):08x} ".encode() + body + b"\n").damaged == (1,)


# --- what restore does with it


def flips_a_bit(lines: list[bytes]) -> None:
    lines[-1] = lines[-1].replace(b'"type":"end"', b'"type":"enf"')


def loses_a_change(lines: list[bytes]) -> None:
    """The record of swappiness, and what became of it."""
    (place,) = [number for number, line in enumerate(lines) if SWAPPINESS.encode() in line and b'"before"' in line]
    del lines[place : place + 2]


@pytest.mark.parametrize(("harm", "lost"), [(flips_a_bit, ""), (loses_a_change, SWAPPINESS)])
def test_what_can_be_restored_is_and_what_may_be_left_is_named(
    tunectl: Run, lab4: Path, harm: Callable[[list[bytes]], None], lost: str
) -> None:
    before = picture(lab4)
    assert tunectl("apply", "--yes", "--root", lab4).code in (0, 4)
    lines = (lab4 / JOURNAL).read_bytes().splitlines(keepends=True)
    harm(lines)
    damaged = b"".join(lines)
    (lab4 / JOURNAL).write_bytes(damaged)
    done = tunectl("restore", "--root", lab4, "--format", "json")
    assert done.code == 1
    assert (lab4 / f"{JOURNAL}.damaged.1").read_bytes() == damaged
    left = {path for path in differences(before, lab4) if not path.startswith("var")}
    assert left == ({lost} if lost else set())
    named = [note for note in done.json["notes"] if "may be left as tunectl wrote it" in note]
    assert [note.endswith(f": /{lost}") for note in named] == ([True] if lost else [])
    again = tunectl("restore", "--root", lab4, "--format", "json")
    aside = f"{lab4}/{JOURNAL}.damaged.1"
    if not lost:
        assert again.json["notes"][-1].endswith(f"is kept as {aside}")
        return
    assert (again.code, again.json["standing"]) == (1, [aside]), "what was lost did not come back"
    assert [note.endswith(f"; then remove {aside}") for note in again.json["notes"]].count(True) == 1
    refused = tunectl("apply", "--yes", "--root", lab4)
    assert (refused.code, "for the original: apply --adopt" in refused.err) == (1, True)
    os.unlink(aside)
    assert tunectl("restore", "--root", lab4).code == 0
    assert tunectl("apply", "--yes", "--root", lab4).code in (0, 4)


def damaged_and_adopted(tunectl: Run, host: Path) -> Path:
    """The damaged journal's name while it counts. Swappiness stands as the first apply wrote it."""
    assert tunectl("apply", "--yes", "--root", host).code in (0, 4)
    lines = (host / JOURNAL).read_bytes().splitlines(keepends=True)
    loses_a_change(lines)
    (host / JOURNAL).write_bytes(b"".join(lines))
    assert tunectl("restore", "--root", host).code == 1
    assert tunectl("apply", "--adopt", "--yes", "--root", host).code in (0, 4)
    return host / f"{JOURNAL}.damaged.1"


@pytest.mark.slow
def test_adopting_settles_what_a_damaged_journal_lost(tunectl: Run, lab4: Path) -> None:
    aside = damaged_and_adopted(tunectl, lab4)
    kept = lab4 / f"{JOURNAL}.adopted.1"
    assert not aside.exists()
    assert load(str(kept.parent)).entries, "the new one is a journal of its own"
    assert "journal" not in {
        one["knob"] for one in tunectl("verify", "--root", lab4, "--format", "json").json["findings"]
    }
    for _ in range(2):
        done = tunectl("restore", "--root", lab4, "--format", "json")
        assert (done.code, done.json["standing"]) == (0, [])
        assert done.json["notes"][-1] == f"`apply --adopt` took what stood for the original: {kept} is kept"
    assert b'"before"' in kept.read_bytes(), "nothing that it tells is lost"
    assert tunectl("apply", "--yes", "--root", lab4).code in (0, 4)


def test_an_apply_that_was_killed_before_it_renamed_what_it_adopted_is_finished_by_restore(
    tunectl: Run, lab4: Path
) -> None:
    aside = damaged_and_adopted(tunectl, lab4)
    os.rename(lab4 / f"{JOURNAL}.adopted.1", aside)
    assert [tunectl("restore", "--root", lab4).code for _ in range(2)] == [0, 0]
    assert (lab4 / f"{JOURNAL}.adopted.1").exists()


def test_what_was_damaged_after_an_adoption_counts(tunectl: Run, lab4: Path) -> None:
    aside = damaged_and_adopted(tunectl, lab4)
    lines = (lab4 / JOURNAL).read_bytes().splitlines(keepends=True)
    flips_a_bit(lines)
    del lines[1:3]  # the first entry, which the next record names as its own
    (lab4 / JOURNAL).write_bytes(b"".join(lines))
    assert tunectl("restore", "--root", lab4).code == 1
    assert aside.exists()
    assert (lab4 / f"{JOURNAL}.adopted.1").exists()


def test_only_an_apply_that_wrote_something_is_one_to_undo(tmp_path: Path) -> None:
    entries = filled(tmp_path).entries
    journal = load(str(tmp_path))
    journal.start("boot", "/", ())
    assert not journal.has_written, "what an earlier run wrote is not this run's"
    journal.refused(journal.before(entries[1]), 5)
    assert not journal.has_written
    number = journal.before(entries[1])
    assert journal.has_written, "a write may have been made"
    journal.after(number, "x")
    assert journal.has_written


# --- whose directories are removed


def hostile(tree: Path, created: list[str]) -> Journal:
    journal = load(state_of(WritableSysroot(str(tree))))
    lines = [{**one, "created": created} if one["type"] == "start" else one for one in records_of(Path(journal.path))]
    Path(journal.path).write_bytes(b"".join(map(line_of, lines)))
    return journal


def test_no_directory_outside_of_the_tree_is_removed(host_root: HostFactory, tmp_path: Path) -> None:
    tree = small_host(host_root, tmp_path)
    outside, inside = tmp_path / "outside", tree / "srv"
    outside.mkdir()
    inside.mkdir()
    (tree / "link").symlink_to(outside)
    (outside / "below").mkdir()
    apply(tree)
    names = [
        str(outside / "below"),
        str(outside),
        f"{tree}/../outside",
        f"{tree}/link/below",
        str(inside),
        "",
        "/",
        ".",
    ]
    hostile(tree, [*names, f"{tree}/var/lib/tunectl/../../../../outside"])
    assert restore(tree).complete
    assert outside.is_dir()
    assert (outside / "below").is_dir()
    assert inside.is_dir()


def test_a_moved_tree_keeps_its_state_inside_itself(host_root: HostFactory, tmp_path: Path) -> None:
    """Its journal names directories of the place where it was: their like are removed here, and none there."""
    tree = small_host(host_root, tmp_path)
    shutil.rmtree(tree / "var", ignore_errors=True)
    before = picture(tree)
    apply(tree)
    moved = tmp_path / "moved"
    os.rename(tree, moved)
    (tree / "var/lib/tunectl").mkdir(parents=True)
    assert restore(moved).complete
    assert not differences(before, moved)
    assert (tree / "var/lib/tunectl").is_dir()


def test_the_journal_of_a_recorded_host_is_no_link(tunectl: Run, lab4: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine\n")
    (lab4 / JOURNAL).parent.mkdir(parents=True)
    (lab4 / JOURNAL).symlink_to(outside)
    for words in (["apply", "--yes"], ["restore"], ["verify"]):
        ran = tunectl(*words, "--root", lab4)
        assert (ran.code, ran.err.count("\n")) == (1, 1)
        assert "journal.jsonl: Too many levels of symbolic links" in ran.err
    assert outside.read_text() == "mine\n"


def test_the_state_of_a_recorded_host_lies_inside_whatever_links_say(tunectl: Run, lab4: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (lab4 / "var/lib").mkdir(parents=True, exist_ok=True)
    (lab4 / "var/lib/tunectl").symlink_to(outside)
    before = picture(lab4)
    assert tunectl("apply", "--yes", "--root", lab4).code in (0, 4)
    assert not list(outside.iterdir())
    assert tunectl("restore", "--root", lab4).code == 0
    assert outside.is_dir()
    assert not differences(before, lab4)
