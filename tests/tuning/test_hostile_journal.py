"""A journal of right checksums and any records: `restore` undoes what can be undone, and names the rest.

Who may write the journal is root, and so is who made a mistake in it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.hosts.builder import HostFactory
from tests.journals import Record, records_of
from tests.trees import Lent, Picture, differences, picture
from tests.tuned import apply, state_of
from tests.tuning.hosts import edited_host, small_host
from tunectl.cli.restore import _body
from tunectl.durable import line_of
from tunectl.errors import TunectlError
from tunectl.host.identity import read_identity
from tunectl.host.writable import WritableSysroot
from tunectl.model import Document
from tunectl.report import render
from tunectl.shapes import fields_of
from tunectl.tuning.journal import load
from tunectl.tuning.records import KINDS
from tunectl.tuning.transaction import Undone, run_restore

OWN = ("var/",)  # the directories that were made for the journal, and what stays in them
ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.just("\udcff")
    | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
# What comes near to what stands there: numbers of no process, texts for other kinds, names of no file.
NEAR = st.sampled_from(
    [
        *KINDS, "start", "before", "after", "refused", "told", "held", "end", "", ".", "..", "/", "a//b", "\0", "€",
        "fifo:99 1 x", "fifo:-1 1 x", "fifo:a", "other:0", "policy-9:0 1 x", "0-3", "9-1", "99999999999", "9" * 5000,
        "proc/2/stat", "proc/2/status", "proc/99999999/stat", "proc/x/stat", "proc/self/status", "ethtool/x", "etc",
        "var/lib/tunectl", "var/lib/tunectl/journal.jsonl", "+cpuset", "x" * 5000, ["update-grub"],
        -1, 0, 1, 2, 7, 1 << 70, 0o777, 0o10000,
    ]
)  # fmt: skip


class Applied:
    """A host with everything applied, lent again and again as it then was."""

    def __init__(self, make: Callable[[HostFactory, Path], Path], host_root: HostFactory, place: Path) -> None:
        tree = make(host_root, place)
        self.before: Picture = picture(tree)
        apply(tree)
        self.records = records_of(Path(state_of(WritableSysroot(str(tree)))) / "journal.jsonl")
        self._lent = Lent(tree, place / "lent")

    def restored(self, records: list[Record]) -> tuple[Path, Undone | TunectlError]:
        """The host after a restore by these records, and what that said."""
        tree = self._lent()
        root = WritableSysroot(str(tree))
        Path(state_of(root), "journal.jsonl").write_bytes(b"".join(map(line_of, records)))
        identity = read_identity(root)
        try:
            undone = run_restore(root, state_of(root), identity.boot_id, wait_s=0)
        except TunectlError as error:
            return tree, error
        for form in ("text", "json"):
            render(Document("restore", identity, "", fields_of(_body(root, undone))), form)
        return tree, undone


@pytest.fixture(scope="module")
def small(host_root: HostFactory, tmp_path_factory: pytest.TempPathFactory) -> Applied:
    """Every kind of write but one."""
    return Applied(small_host, host_root, tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def edited(host_root: HostFactory, tmp_path_factory: pytest.TempPathFactory) -> Applied:
    """A host whose operator's own files are edited."""
    return Applied(edited_host, host_root, tmp_path_factory.mktemp("edited"))


def changed(record: Record, draw: Callable[[Any], Any]) -> Record:
    """The record with a field that is another, is gone, or is new."""
    key = draw(st.sampled_from(sorted(record)) | st.text(max_size=5))
    value = draw(NEAR | ANY | st.just(KeyError))
    return {name: one for name, one in {**record, key: value}.items() if one is not KeyError}


@pytest.mark.slow
@pytest.mark.parametrize("host", ["small", "edited"])
@settings(max_examples=examples(100))
@given(data=st.data())
def test_what_can_be_undone_is_and_the_rest_is_named(
    request: pytest.FixtureRequest, host: str, data: st.DataObject
) -> None:
    applied: Applied = request.getfixturevalue(host)
    records = list(applied.records)
    numbers = data.draw(st.lists(st.integers(0, len(records) - 1), min_size=1, max_size=3, unique=True))
    for number in numbers:
        records[number] = changed(records[number], data.draw)
    tree, undone = applied.restored(records)
    if isinstance(undone, TunectlError):  # it says that the journal is another host's, or that it cannot be put aside
        assert "\n" not in str(undone)
        return
    said = str(undone)
    touched = {str(one.get("path")) for number in numbers for one in (applied.records[number], records[number])}
    mine = {path for path in differences(applied.before, tree) if not f"{path}/".startswith(OWN)}
    unsaid = {path for path in mine - touched if f"/{path}" not in said}
    assert not unsaid, said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "key", "value", "why"),
    [
        ("scheduling", "undo", "fifo", "undo: 'fifo' is no policy and priority"),
        ("scheduling", "before", "fifo:5:5 1 x", "before: 'fifo:5:5 1 x' is no policy and priority"),
        ("scheduling", "path", "proc/x/stat", "path: is no thread's"),
        ("affinity", "undo", "1-0", "undo: not a CPU list: '1-0': '1-0' runs backwards"),
        ("affinity", "undo", "", "undo: a thread has at least one CPU"),
        ("value", "before", None, "before: a kernel's attribute was there before"),
        ("value", "seq", "1", "seq: Expected `int`, got `str`"),
        ("file", "path", "../etc/passwd", "path: is not below the root"),
        ("link", "before", "a\0b", "before: is no name of a file"),
        ("directory", "kind", "door", "path: a write of the kind 'door', which no version makes"),
        ("value", "commands", ["rm"], "commands: 'rm' is no program that any version runs"),
    ],
)
def test_a_record_that_cannot_be_undone_is_named_with_why(
    small: Applied, kind: str, key: str, value: object, why: str
) -> None:
    number = next(place for place, one in enumerate(small.records) if one.get("kind") == kind)
    path = small.records[number]["path"]
    records = list(small.records)
    records[number] = {**records[number], key: value}
    tree, undone = small.restored(records)
    assert isinstance(undone, Undone)
    assert (undone.complete, undone.set_aside) == (True, True)
    journal = f"{state_of(WritableSysroot(str(tree)))}/journal.jsonl"
    shown = records[number]["path"]
    assert any(note.startswith(f"{journal}: line {number + 1} (/{shown}): {why}") for note in undone.notes), (
        undone.notes
    )
    assert Path(f"{journal}.damaged.1").exists()
    left = {one for one in differences(small.before, tree) if not f"{one}/".startswith(OWN)}
    assert left <= {path, *beside(path)}


def beside(path: str) -> set[str]:
    """What stays along with a path: the directories that hold it, and the same thread's other file."""
    parts = path.split("/")
    process = parts[1] if parts[0] == "proc" else ""
    return {"/".join(parts[:count]) for count in range(1, len(parts))} | {f"proc/{process}/task/{process}/stat"}


def test_an_entry_whose_number_is_anothers_is_damage(tmp_path: Path) -> None:
    start = {"type": "start", "boot_id": "b", "root": "/", "created": [], "kept": True, "line": 1}
    entry = {"type": "before", "seq": 7, "boot_id": "b", "kind": "file", "path": "etc/a", "before": None, "undo": "",
             "after": "x", "mode": None, "knobs": [], "commands": []}  # fmt: skip
    (tmp_path / "journal.jsonl").write_bytes(b"".join(map(line_of, [start, entry, {**entry, "path": "etc/b"}])))
    journal = load(str(tmp_path))
    assert (journal.damaged, journal.lost) == ((3,), ("etc/b",))
    assert journal.unusable == ("line 3 (/etc/b): seq: 7 is an earlier entry's",)
