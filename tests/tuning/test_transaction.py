"""A whole run of apply or restore: its passes, its lock, what it refuses to begin, and what is left when it is over."""

import errno
import fcntl
import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fake_kernel import KernelRoot, Manners
from tests.hosts.builder import HostFactory
from tests.journals import records_of, rewrite
from tests.trees import differences, picture
from tests.tuned import apply, inspection_on, restore, results, state_of
from tests.tuning.hosts import small_host, wish
from tunectl.errors import TunectlError
from tunectl.host.writable import WritableSysroot
from tunectl.model import Change, Finding, Lifetime, Outcome, Plan
from tunectl.tuning.apply import Applied, Became, Result
from tunectl.tuning.journal import load
from tunectl.tuning.transaction import _once_more, preview_restore, run_apply, run_restore, unsettled

SWAPPINESS = "proc/sys/vm/swappiness"
STATE, JOURNAL = "var/lib/tunectl", "var/lib/tunectl/journal.jsonl"
BOOT_ID = "proc/sys/kernel/random/boot_id"


@pytest.fixture
def tree(host_root: HostFactory, tmp_path: Path) -> Path:
    """A host that wants two values of the running kernel."""
    made = small_host(host_root, tmp_path)
    wish(made, {"mm.swappiness": "1", "kernel.stat_interval": "120"}, 'isolated = "1"\n')
    return made


def change(name: str) -> Change:
    return Change("k.k", name, None, None, Lifetime.RUNTIME, "", None)


def plan(changes: str, **outcomes: Outcome) -> Plan:
    """`changes` are names of one letter; so are the findings."""
    findings = tuple(Finding("k.k", name, outcome) for name, outcome in outcomes.items())
    return Plan(tuple(map(change, changes)), findings, reboot_required=False)


# ---- passes

DRIFTED, COMPLIANT, REFUSED = Outcome.DRIFTED, Outcome.COMPLIANT, Outcome.REFUSED


@pytest.mark.parametrize(
    ("before", "now", "made", "open_"),
    [
        (plan("a", a=DRIFTED), plan("", a=COMPLIANT), {"a": "changed"}, ""),
        (plan("a", a=DRIFTED), plan("a", a=DRIFTED), {"a": "changed"}, "a"),  # written, and not in force yet
        (plan("a", a=DRIFTED), plan("a", a=DRIFTED), {"a": "failed"}, ""),
        (plan("a", a=DRIFTED), plan("a", a=DRIFTED), {"a": "refused"}, ""),
        (plan("a", a=DRIFTED), plan("a", a=DRIFTED), {}, "a"),
        (plan("", a=DRIFTED), plan("", a=DRIFTED), {}, ""),  # nothing that apply could change
        (plan("", a=COMPLIANT), plan("", a=DRIFTED), {}, "a"),  # it was in force, and a write took it away
        (plan("", a=COMPLIANT), plan("", a=REFUSED), {}, ""),
        (plan("ab", a=DRIFTED, b=DRIFTED), plan("", a=DRIFTED, b=DRIFTED), {"a": "changed", "b": "failed"}, "a"),
    ],
)
def test_what_is_not_settled_yet(before: Plan, now: Plan, made: dict[str, Became], open_: str) -> None:
    known = {f"k.k[{name}]": Result(change(name), result) for name, result in made.items()}
    assert unsettled(before, now, known) == {f"k.k[{name}]" for name in open_}


@pytest.mark.parametrize(
    ("result", "failed", "earlier", "again"),
    [
        (Result(change("a"), "failed"), [], {}, True),
        (Result(change("a"), "failed", errno.EIO), [], {}, False),
        (Result(change("a"), "changed"), [], {}, False),
        (Result(change("a"), "refused"), [], {}, False),
        (Result(change("a"), "failed"), ["update-grub"], {}, False),
        (Result(change("a"), "failed"), [], {"k.k[a]": Result(change("a"), "failed")}, False),
    ],
)
def test_what_shows_something_else_is_written_once_more(
    result: Result, failed: list[str], earlier: dict[str, Result], again: bool
) -> None:
    assert _once_more(Applied([result], [], failed), earlier) == ({"k.k[a]"} if again else set())


class Counting(KernelRoot):
    """Takes the value at the `taken_at`-th write, and shows 60 until then."""

    def __init__(self, root: Path, taken_at: int) -> None:
        super().__init__(root, Manners())
        self.taken_at = taken_at

    def _taken(self, path: str, text: str) -> str:
        return "60\n" if path == SWAPPINESS and self.written.count(path) < self.taken_at else text


@pytest.mark.parametrize(("taken_at", "writes", "result"), [(1, 1, "changed"), (2, 2, "changed"), (3, 2, "failed")])
def test_a_value_that_is_not_taken_is_written_twice_and_no_oftener(
    tree: Path, taken_at: int, writes: int, result: str
) -> None:
    root = Counting(tree, taken_at)
    run = apply(root)
    assert (root.written.count(SWAPPINESS), results(run)["mm.swappiness"]) == (writes, result)
    drifted = {one.target for one in run.plan.findings if one.outcome is DRIFTED}
    assert drifted == ({"mm.swappiness"} if result == "failed" else set())


def test_a_write_that_an_error_ends_is_not_made_again(tree: Path) -> None:
    root = KernelRoot(tree, Manners(errors={SWAPPINESS: errno.EINVAL}))
    run = apply(root)
    assert results(run) == {"mm.swappiness": "failed", "kernel.stat_interval": "changed"}
    assert root.written == ["proc/sys/vm/stat_interval"]


def test_the_journal_says_what_is_in_force_and_where_the_run_ended(tree: Path) -> None:
    apply(tree)
    records = records_of(tree / JOURNAL)
    assert [one["type"] for one in records if one["type"] not in ("before", "after", "told")] == [
        "start",
        "held",
        "end",
    ]
    assert sorted(records[-1]["wrote"]) == ["proc/sys/vm/stat_interval", SWAPPINESS]
    journal = load(state_of(WritableSysroot(str(tree))))
    assert (set(journal.in_force()), journal.ended, journal.run) == ({"mm.swappiness", "kernel.stat_interval"}, True, 1)
    assert {entry.shown for entry in journal.entries.values()} == {"1\n", "120\n"}


def test_a_run_that_has_nothing_to_change_makes_nothing_and_waits_for_nobody(tree: Path) -> None:
    (tree / SWAPPINESS).write_text("1\n")
    (tree / "proc/sys/vm/stat_interval").write_text("120\n")
    before = picture(tree)
    assert apply(tree).applied == Applied([], [], [])
    assert not differences(before, tree)


def test_a_program_that_an_earlier_run_did_not_come_to_is_run_where_nothing_is_left_to_write(tree: Path) -> None:
    wish(tree, {"boot.isolcpus": '"isolated"'}, 'isolated = "1"\n')
    update_grub = ["/usr/sbin/update-grub"]  # named, and not run, on a recorded host
    assert [apply(tree).applied.not_run for _ in range(2)] == [update_grub, []]
    rewrite(tree / JOURNAL, lambda record: record["type"] != "told")
    assert [apply(tree).applied.not_run for _ in range(2)] == [update_grub, []]


# ---- what it refuses to begin


def test_a_run_that_cannot_begin_leaves_no_directory_behind(tree: Path) -> None:
    before = picture(tree)
    inspection = inspection_on(tree)
    unread = inspection.identity._replace(boot_id="")
    root = WritableSysroot(str(tree))
    with pytest.raises(TunectlError, match="boot id could not be read: nothing was touched"):
        run_apply(inspection._replace(identity=unread), root, state_of(root), runtime_only=False, wait_s=0)
    assert not differences(before, tree)


def test_a_recorded_host_without_a_boot_id_is_restored(tree: Path) -> None:
    (tree / BOOT_ID).unlink()
    apply(tree)
    (tree / BOOT_ID).write_text("11111111-0000-4000-8000-000000000001\n")
    with pytest.raises(TunectlError, match="boot id could not be read"):
        run_restore(WritableSysroot(str(tree)), str(tree / STATE), "", wait_s=0)
    assert (tree / SWAPPINESS).read_text() == "1\n"
    (tree / BOOT_ID).unlink()
    assert restore(tree).complete
    assert (tree / SWAPPINESS).read_text() != "1\n"


class Ends(NamedTuple):
    """What a restore says it did."""

    complete: bool
    set_aside: bool
    results: dict[str, int]


def ends(tree: Path, *, force: bool = False) -> Ends:
    undone = restore(tree, force=force)
    words = [one.result for one in undone.outcome.results]
    return Ends(undone.complete, undone.set_aside, {word: words.count(word) for word in sorted(set(words))})


def test_who_holds_the_lock_is_waited_for_and_nothing_is_written(tree: Path) -> None:
    (tree / STATE).mkdir(parents=True)
    for act in (apply, restore):
        before = (tree / SWAPPINESS).read_text()
        with open(tree / STATE / "lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with pytest.raises(TunectlError):
                act(tree)
        assert (tree / SWAPPINESS).read_text() == before
        act(tree)
        assert (tree / SWAPPINESS).read_text() != before


def test_an_apply_upon_a_damaged_journal_changes_nothing(tree: Path) -> None:
    apply(tree)
    (tree / SWAPPINESS).write_text("60\n")
    whole = (tree / JOURNAL).read_bytes()
    first, second, rest = whole.split(b"\n", 2)
    (tree / JOURNAL).write_bytes(b"\n".join([first, b"00000000" + second[8:], rest]))
    with pytest.raises(TunectlError, match="damaged; nothing was changed"):
        apply(tree)
    assert (tree / SWAPPINESS).read_text() == "60\n"
    (tree / JOURNAL).write_bytes(whole)
    apply(tree)
    assert (tree / SWAPPINESS).read_text() == "1\n"


FOREIGN = pytest.raises(TunectlError, match="belongs to the host below /elsewhere")


@pytest.mark.parametrize(
    ("state", "below", "swappiness", "ends"),
    [
        ("inside", "", "60", nullcontext()),
        ("inside", "/elsewhere", "60", nullcontext()),
        ("outside", "", "60", nullcontext()),
        ("outside", "/elsewhere", "1", FOREIGN),
        ("beside", "/elsewhere", "1", FOREIGN),  # a path that begins as the tree's does
    ],
)
def test_whose_journal_it_is(
    tree: Path, tmp_path: Path, state: str, below: str, swappiness: str, ends: AbstractContextManager[object]
) -> None:
    """One that lies in the tree is the tree's, wherever that was when it was written."""
    place = {"inside": str(tree / STATE), "outside": str(tmp_path / "state"), "beside": f"{tree}-state"}[state]
    root = WritableSysroot(str(tree))
    run_apply(inspection_on(tree), root, place, runtime_only=False, wait_s=0)
    wrote = {"root": below or str(tree)}
    rewrite(Path(place) / "journal.jsonl", lambda one: one["type"] != "start" or one.update(wrote) is None)
    with ends:
        assert run_restore(root, place, (tree / BOOT_ID).read_text().strip(), wait_s=0).complete
    assert (tree / SWAPPINESS).read_text() == f"{swappiness}\n"


# ---- what is left when a restore is over


def test_a_whole_restore_leaves_nothing_of_ours(tree: Path) -> None:
    before = picture(tree)
    apply(tree)
    assert ends(tree) == Ends(True, False, {"restored": 2})
    assert not differences(before, tree)
    assert ends(tree) == Ends(True, False, {})


class Refusing(WritableSysroot):
    """Takes no earlier value back."""

    def write_back(self, path: str, content: bytes, text: str, mode: int | None) -> None:
        if path == SWAPPINESS:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        super().write_back(path, content, text, mode)


def test_what_failed_keeps_the_journal_and_the_rest_is_restored(tree: Path) -> None:
    apply(tree)
    undone = restore(Refusing(str(tree)))
    assert {one.path: one.result for one in undone.outcome.results} == {
        f"/{SWAPPINESS}": "failed",
        "/proc/sys/vm/stat_interval": "restored",
    }
    assert (undone.complete, undone.set_aside, undone.standing) == (False, False, ())
    assert len(load(str(tree / STATE)).entries) == 2
    assert ends(tree) == Ends(True, False, {"already": 1, "restored": 1})


def test_what_was_changed_since_is_all_that_stays_in_the_journal(tree: Path) -> None:
    before = picture(tree)
    apply(tree)
    (tree / SWAPPINESS).write_text("33\n")
    assert ends(tree) == Ends(True, False, {"changed-since": 1, "restored": 1})
    journal = load(str(tree / STATE))
    assert [entry.path for entry in journal.entries.values()] == [SWAPPINESS]
    assert (journal.damaged, journal.held) == ((), None)
    assert ends(tree) == Ends(True, False, {"changed-since": 1})
    assert ends(tree, force=True) == Ends(True, False, {"restored": 1})
    assert not differences(before, tree)


def test_a_damaged_journal_is_set_aside_and_followed_as_far_as_it_goes(tree: Path) -> None:
    apply(tree)
    lines = (tree / JOURNAL).read_bytes().splitlines(keepends=True)
    (number,) = [at for at, one in enumerate(records_of(tree / JOURNAL)) if one.get("path") == SWAPPINESS]
    (tree / JOURNAL).write_bytes(b"".join([*lines[:number], b"00000000" + lines[number][8:], *lines[number + 1 :]]))
    undone = restore(tree)
    assert [one.result for one in undone.outcome.results] == ["restored"]
    assert (undone.set_aside, (tree / JOURNAL).exists()) == (True, False)
    assert (tree / f"{JOURNAL}.damaged.1").exists()
    assert (tree / SWAPPINESS).read_text() == "1\n"
    assert f"/{SWAPPINESS}" in "".join(undone.notes)


@pytest.mark.parametrize("force", [False, True])
def test_a_preview_says_what_would_become_of_each_path_and_writes_nothing(tree: Path, force: bool) -> None:
    apply(tree)
    (tree / SWAPPINESS).write_text("33\n")
    before = picture(tree)
    root = WritableSysroot(str(tree))
    boot_id = (tree / BOOT_ID).read_text().strip()
    undone = preview_restore(root, str(tree / STATE), boot_id, force=force)
    words = {one.path: one.result for one in undone.outcome.results}
    assert words == {
        f"/{SWAPPINESS}": "would-restore" if force else "changed-since",
        "/proc/sys/vm/stat_interval": "would-restore",
    }
    assert (undone.complete, undone.set_aside, undone.standing) == (True, False, ())
    assert not differences(before, tree)


def test_values_of_another_boot_are_over(tree: Path) -> None:
    apply(tree)
    (tree / BOOT_ID).write_text("11111111-0000-4000-8000-000000000001\n")
    assert ends(tree) == Ends(True, False, {})
    assert (tree / SWAPPINESS).read_text() == "1\n"  # as somebody set it in this boot
    assert not (tree / STATE).exists()


def test_a_directory_that_holds_something_else_stays(tree: Path) -> None:
    apply(tree)
    (tree / STATE / "theirs").touch()
    assert ends(tree).complete
    assert os.listdir(tree / STATE) == ["theirs"]
