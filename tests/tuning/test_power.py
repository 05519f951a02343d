"""The power fails during apply, during restore, and while one file is replaced: what the disk had promised is enough.

After the loss of power the host boots: what is in /proc and /sys is new, and of the files there is what the disk kept
(tests/tuning/disk.py). Then `restore` brings every byte and mode back.
"""

import errno
import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.builder import HostFactory
from tests.trees import Picture, differences, lay_out, picture
from tests.tuned import apply, restore
from tests.tuning.calls import changes, in_child, watched
from tests.tuning.disk import OF_THIS_BOOT, Disk, lasting
from tests.tuning.hosts import edited_host, small_host
from tests.tuning.stride import STRIDES
from tunectl import durable
from tunectl.host.writable import TEMPORARY

JOURNAL = "var/lib/tunectl/journal.jsonl"
BOOT_ID = "proc/sys/kernel/random/boot_id"
NEXT_BOOT = ("file", 0o444, b"99999999-0000-4000-8000-000000000009\n")
HOSTS = pytest.mark.parametrize("host", [small_host, edited_host])
MakeHost = Callable[[HostFactory, Path], Path]


def after_losses(tree: Path, work: Callable[[], object]) -> list[Picture]:
    """What a loss of power behind each call of `work` may leave, each tree once."""
    found: dict[frozenset[tuple[str, Any]], Picture] = {}
    disk = Disk(tree)

    def after(name: str, args: tuple[Any, ...], result: Any) -> None:
        disk.after(name, args, result)
        if changes(name, args):
            found.update({frozenset(one.items()): one for one in disk.survivors()})

    def child() -> list[Picture]:
        with watched(after=after):
            work()
        return list(found.values())

    return in_child(child) or []


def booted(before: Picture, disk: Picture) -> Picture:
    """The host at its next boot: its kernel's files as before all, the others as the disk has them."""
    kernel = {path: node for path, node in before.items() if path.partition("/")[0] in OF_THIS_BOOT}
    return {**kernel, **disk, BOOT_ID: NEXT_BOOT}


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDES)
@HOSTS
@pytest.mark.parametrize("victim", ["apply", "restore"])
def test_restore_brings_back_what_was_there_before(
    host_root: HostFactory, tmp_path: Path, host: MakeHost, victim: str, stride: int
) -> None:
    tree = host(host_root, tmp_path)
    (tree / "var/lib").mkdir(parents=True, exist_ok=True)
    before = picture(tree)
    if victim == "restore":
        apply(tree)
    left = after_losses(tree, lambda: (apply if victim == "apply" else restore)(tree))
    assert len(left) > 5
    expected = booted(before, lasting(before))
    for number, disk in enumerate(left[::stride]):
        shutil.rmtree(tree)
        tree.mkdir()
        lay_out(booted(before, disk), tree)
        undone = restore(tree)
        assert undone.complete, undone
        assert not differences(expected, tree), f"loss {number * stride}: {undone}"


@HOSTS
def test_a_restore_that_has_ended_is_on_the_disk(host_root: HostFactory, tmp_path: Path, host: MakeHost) -> None:
    tree = host(host_root, tmp_path)
    (tree / "var/lib").mkdir(parents=True, exist_ok=True)
    before = lasting(picture(tree))
    apply(tree)
    disk = Disk(tree)

    def child() -> list[Picture]:
        with watched(after=disk.after):
            assert restore(tree).complete
        return list(disk.survivors())

    for left in in_child(child) or [{}]:
        assert left == before


def test_once_the_journal_is_gone_nothing_is_unpromised(host_root: HostFactory, tmp_path: Path) -> None:
    """Also what an earlier restore had brought back, which could sync no directory."""
    tree = small_host(host_root, tmp_path)
    (tree / "var/lib/tunectl/monitor").mkdir(parents=True)  # so the state directory stays
    before = lasting(picture(tree))
    apply(tree)
    after_first, after_second = in_child(lambda: restored_twice(tree)) or ([], [])
    assert any(left != before for left in after_first)
    for left in after_second:
        left.pop("var/lib/tunectl/lock", None)  # the next run takes it, and removes it
        assert left == before


def restored_twice(tree: Path) -> tuple[list[Picture], list[Picture]]:
    """What a loss of power leaves after a restore whose syncs of directories all fail, and after a second restore."""
    disk = Disk(tree)

    def fail(name: str, args: tuple[Any, ...], _: dict[str, Any]) -> None:
        if name == "fsync" and stat.S_ISDIR(os.fstat(args[0]).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with watched(fail, disk.after):
        assert not restore(tree).complete
    first = list(disk.survivors())
    with watched(after=disk.after):
        assert restore(tree).complete
    return first, list(disk.survivors())


@HOSTS
def test_no_file_is_touched_before_its_record_is_on_disk(
    host_root: HostFactory, tmp_path: Path, host: MakeHost
) -> None:
    tree = host(host_root, tmp_path)
    disk = Disk(tree)
    written: list[str] = []

    def before(name: str, args: tuple[Any, ...], _: dict[str, Any]) -> None:
        if name in ("rename", "symlink", "mkdir", "unlink", "rmdir"):
            path = str(args[-1] if name in ("rename", "symlink") else args[0]).removeprefix(f"{tree}/")
            if not path.startswith("var") and not path.endswith(TEMPORARY):
                written.append(path)
                assert path in journaled(disk), path

    def child() -> list[str]:
        with watched(before, disk.after):
            apply(tree)
        return written

    assert len(in_child(child) or []) >= 2


def journaled(disk: Disk) -> set[str]:
    """The paths whose before-images would survive a loss of power."""
    content = disk.promised[JOURNAL].synced[2] if JOURNAL in disk.promised else b""
    assert isinstance(content, bytes)
    records = [json.loads(line[9:]) for line in content.splitlines()]
    return {record["path"] for record in records if record["type"] == "before"}


@pytest.mark.parametrize("beside", ["", "file.new"])
def test_a_replaced_file_is_the_old_one_or_the_new_one_and_then_the_new_one(tmp_path: Path, beside: str) -> None:
    old, new = ("file", 0o640, b"old"), ("file", 0o600, b"new")
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "file").chmod(0o640)
    disk = Disk(tmp_path)
    seen: list[list[object]] = []

    def after(name: str, args: tuple[Any, ...], result: Any) -> None:
        disk.after(name, args, result)
        seen.append([left.get("file") for left in disk.survivors()])

    with watched(after=after):
        durable.replace_file(f"{tmp_path}/file", b"new", mode=0o600, beside=beside and f"{tmp_path}/{beside}")
    assert all(found in (old, new) for left in seen for found in left)
    assert seen[-1] == [new, new, new]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_directory_that_was_made_stays_and_one_that_was_removed_is_gone(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    with watched(after=disk.after):
        durable.make_directory(f"{tmp_path}/made")
        assert all("made" in left for left in disk.survivors())
        durable.replace_link(f"{tmp_path}/link", "target", beside=f"{tmp_path}/link.new")
        assert all(left["link"] == ("link", 0, "target") for left in disk.survivors())
        durable.remove_file(f"{tmp_path}/link")
        durable.remove_directory(f"{tmp_path}/made")
    assert [left for left in disk.survivors() if left] == []
