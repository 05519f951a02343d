"""One failing system call anywhere in apply or restore: afterwards `restore` brings every byte and mode back.

Each call that touches a file fails once: with EIO, with EINTR, and with ENOSPC from there on. What restore itself
cannot do while the error lasts, it names, and exits with an error; the next restore does it.
"""

import errno
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.hosts.builder import HostFactory
from tests.trees import Applied, differences
from tests.tuned import apply, inspection_on, restore
from tests.tuning.calls import Kind, changes, count_calls, failing_at, looks, on
from tests.tuning.hosts import edited_host, small_host
from tests.tuning.stride import STRIDES, thinned
from tunectl.errors import TunectlError
from tunectl.host.writable import WritableSysroot
from tunectl.knobs import KNOBS


class Said(NamedTuple):
    """How a command ended, and what it told its user."""

    complete: bool
    text: str


def applied(root: WritableSysroot) -> Said:
    try:
        run = apply(root)
    except TunectlError as error:
        return Said(False, str(error))
    return Said(all(one.result == "changed" for one in run.applied.results), str(run.applied))


def restored(root: WritableSysroot) -> Said:
    try:
        undone = restore(root)
    except TunectlError as error:
        return Said(False, str(error))
    return Said(undone.complete and not undone.set_aside, str(undone))


class Walk:
    """One host whose tree must come back after each fault."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self.root = WritableSysroot(str(tree))
        self.applied = Applied(tree, lambda: apply(self.root))
        self.before = self.applied.before
        assert restored(self.root).complete

    def calls(self, victim: str, kind: Kind) -> int:
        """How many calls of this kind a run without faults makes."""
        if victim == "restore":
            self.applied.lay()
            return count_calls(kind, lambda: restored(self.root))
        calls = count_calls(kind, lambda: applied(self.root))
        assert restored(self.root).complete
        return calls

    def check(self, victim: str, place: int, kind: Kind, number: int) -> None:
        """One fault; then what was said must be true, and a restore by a healthy process must do the rest."""
        if victim == "restore":
            self.applied.lay()
        work = applied if victim == "apply" else restored
        said = failing_at(place, kind, number, lambda: work(self.root), lasting=number == errno.ENOSPC)
        assert said
        where = f"{victim}, call {place}, {os.strerror(number)}: {said.text}"
        assert "result='refused'" not in said.text, where
        if victim == "restore" and said.complete:
            assert not differences(self.before, self.tree), where
        again = restored(self.root)
        assert again.complete, f"{where}\n{again.text}"
        left = differences(self.before, self.tree)
        if victim == "restore" and not said.complete:
            for path in [path for path in reversed(left) if f"{self.tree}/{path}" in said.text]:
                (self.tree / path).rmdir()  # a state directory that was named, once its journal is gone
                del left[path]
        assert not left, f"{where}\n{again.text}"


ERRORS = pytest.mark.parametrize("number", [errno.EIO, errno.EINTR, errno.ENOSPC], ids=errno.errorcode.get)
VICTIMS = pytest.mark.parametrize("victim", ["apply", "restore"])


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDES)
@ERRORS
@VICTIMS
def test_a_call_that_writes_fails(
    host_root: HostFactory, tmp_path: Path, victim: str, number: int, stride: int
) -> None:
    walk = Walk(small_host(host_root, tmp_path))
    calls = walk.calls(victim, changes)
    assert calls > 70
    # A full disk refuses all that follows: the places overlap. EIO and EINTR take turns, which are handled as one.
    step = thinned(stride, 3 if number == errno.ENOSPC else 2)
    for place in range(1 + step // 2 * (number == errno.EINTR), calls + 1, step):
        walk.check(victim, place, changes, number)


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDES)
@VICTIMS
def test_a_call_that_reads_fails(host_root: HostFactory, tmp_path: Path, victim: str, stride: int) -> None:
    """What cannot be looked at is not taken for absent. Most of these calls follow a path: few of them are enough."""
    walk = Walk(small_host(host_root, tmp_path))
    calls = walk.calls(victim, looks)
    assert calls > 400
    for place in range(1, calls + 1, thinned(stride, 40)):
        walk.check(victim, place, looks, errno.EIO)


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDES)
@VICTIMS
def test_a_call_fails_where_the_operators_own_file_is_edited(
    host_root: HostFactory, tmp_path: Path, victim: str, stride: int
) -> None:
    walk = Walk(edited_host(host_root, tmp_path))
    for kind, step in ((changes, stride), (looks, thinned(stride, 20))):
        for place in range(1, walk.calls(victim, kind) + 1, step):
            walk.check(victim, place, kind, errno.EIO)


def of_an_interrupt(name: str, args: tuple[Any, ...]) -> bool:
    """The calls on the files of one interrupt."""
    return bool(args) and "/proc/irq/" in str(args[0])


@pytest.mark.slow  # a walk over every call
def test_one_error_of_an_interrupts_file_is_no_managed_interrupt(host_root: HostFactory, tmp_path: Path) -> None:
    """A second write tells the two apart; and what could not be read was not refused."""
    walk = Walk(small_host(host_root, tmp_path))
    calls = walk.calls("apply", of_an_interrupt)
    assert calls > 20
    for place in range(1, calls + 1):
        walk.check("apply", place, of_an_interrupt, errno.EIO)


def test_a_file_that_cannot_be_looked_at_is_not_taken_for_absent_before_the_write(lab4: Path) -> None:
    """Between the plan and the write irqbalance's file is looked for once more."""
    inspection, knob = inspection_on(lab4), KNOBS["irqbalance.banned_cpus"]
    batch = [(knob, change) for change in inspection.assess().changes if change.knob == knob.name]

    def look() -> int | None:
        try:
            list(knob.driver.steps(inspection.view(), batch))
        except OSError as error:
            return error.errno
        return None

    assert failing_at(0, on("lstat", "etc/default/irqbalance"), errno.EIO, look) == errno.EIO


def test_a_state_directory_that_cannot_be_looked_at_is_not_passed_over(
    lab4: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nothing else tells of an apply."""
    state, look = f"{lab4}/var/lib/tunectl", os.stat

    def fail(path: Any, **more: Any) -> os.stat_result:
        if path == state:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return look(path, **more)

    monkeypatch.setattr(os, "stat", fail)
    with pytest.raises(TunectlError, match=f"{state}: Input/output error"):
        restore(lab4)


CRUCIAL = [
    ("apply", "open", "random/boot_id"),
    ("apply", "lstat", "etc/default/irqbalance"),
    ("apply", "lstat", "etc/systemd/system"),
    ("apply", "lstat", "cgroup/isolated.slice"),
    ("apply", "open", "proc/2/status"),
    ("apply", "rename", "irqbalance.tunectl-tmp"),
    ("apply", "unlink", "tunectl/lock"),
    ("restore", "open", "random/boot_id"),
    ("restore", "stat", "lib/tunectl"),
    ("restore", "open", "journal.jsonl"),
    ("restore", "lstat", "cgroup/isolated.slice"),
    ("apply", "lstat", "multi-user.target.wants/tunectl-apply.service"),
    ("restore", "lstat", "etc/systemd/system/machine.slice.d"),
    ("restore", "lstat", "etc/systemd/system/tunectl-apply.service"),
    ("restore", "open", "proc/2/status"),
    ("restore", "unlink", "journal.jsonl"),
    ("restore", "unlink", "tunectl/lock"),
    ("restore", "rmdir", "lib/tunectl"),
    ("restore", "rmdir", "cgroup/isolated.slice"),
]


@pytest.mark.parametrize(("victim", "name", "path"), CRUCIAL)
def test_what_cannot_be_known_or_done_is_not_passed_over(
    host_root: HostFactory, tmp_path: Path, victim: str, name: str, path: str
) -> None:
    """The calls of which a silent failure would cost most, each by its name: the first, the last, and each of them."""
    walk = Walk(small_host(host_root, tmp_path))
    calls = walk.calls(victim, on(name, path))
    assert calls
    for place in sorted({0, 1, calls}):
        walk.check(victim, place, on(name, path), errno.EIO)
