"""The programs that have to hear of a change, run for real: one that fails leaves apply and restore undone."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.chrooted import furnish, inside, script
from tests.cli.places import needs_mounts
from tests.hosts.builder import HostFactory
from tests.tuned import apply, restore
from tests.tuning.hosts import small_host, wish
from tunectl.host.writable import WritableSysroot
from tunectl.tuning.apply import pending_notifications
from tunectl.tuning.journal import load
from tunectl.tuning.transaction import Undone

UPDATE_GRUB = "usr/sbin/update-grub"
ROOT = Path(__file__).parents[2]
JOURNAL = "var/lib/tunectl/journal.jsonl"


class Seen(NamedTuple):
    """What the program did, and what stands afterwards."""

    has_run: bool
    has_journal: bool
    waits: bool = False  # a program that has to be run since a change


@pytest.fixture
def grub(host_root: HostFactory, tmp_path: Path) -> Path:
    """A host that wants a boot argument, with an update-grub that does as it is told."""
    tree = small_host(host_root, tmp_path)
    wish(tree, {"boot.isolcpus": '"isolated"'}, 'isolated = "1"\n')
    apply(tree)
    restore(tree)  # everything is imported, and the tree as it was
    furnish(tree)
    answers(tree, 0)
    return tree


def answers(tree: Path, status: int) -> None:
    script(tree, UPDATE_GRUB, "echo ran >> /ran", "echo no space left >&2", f"exit {status}")


def seen(tree: Path) -> Seen:
    ran = tree / "ran"
    has_run = ran.exists()
    ran.unlink(missing_ok=True)
    return Seen(has_run, (tree / JOURNAL).exists(), bool(pending_notifications(load(str((tree / JOURNAL).parent)))))


def apply_in(tree: Path) -> list[str]:
    """The programs that failed."""
    return inside(tree, lambda: apply(WritableSysroot("/")).applied.failed)


def restore_in(tree: Path) -> Undone:
    return inside(tree, lambda: restore(WritableSysroot("/")))


FAILED = ["/usr/sbin/update-grub: exit status 1: no space left"]


@needs_mounts
def test_a_restore_whose_update_grub_failed_is_not_done_and_is_done_again(grub: Path) -> None:
    assert (apply_in(grub), seen(grub)) == ([], Seen(True, True))
    answers(grub, 1)
    for _ in range(2):  # nothing is left to write the second time, and still it has to run
        undone = restore_in(grub)
        assert (undone.outcome.failed_commands, undone.complete, seen(grub)) == (FAILED, False, Seen(True, True))
    answers(grub, 0)
    undone = restore_in(grub)
    assert (undone.outcome.failed_commands, undone.complete, seen(grub)) == ([], True, Seen(True, False))


@needs_mounts
def test_an_apply_whose_update_grub_failed_runs_it_again_until_it_works(grub: Path) -> None:
    answers(grub, 1)
    assert (apply_in(grub), seen(grub)) == (FAILED, Seen(True, True, waits=True))
    assert (apply_in(grub), seen(grub)) == (FAILED, Seen(True, True, waits=True))
    answers(grub, 0)
    assert (apply_in(grub), seen(grub)) == ([], Seen(True, True))
    assert restore_in(grub).complete


@needs_mounts
def test_what_update_grub_made_is_on_the_disk_then(grub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program syncs nothing, and what we note of it would outlive a loss of power that grub.cfg does not."""
    script(grub, UPDATE_GRUB, "echo made > /boot/grub/grub.cfg")
    fsync = os.fsync

    def noted(fd: int) -> None:
        fsync(fd)
        with open("/synced", "a") as file:
            file.write(os.readlink(f"/proc/self/fd/{fd}").removeprefix(str(grub)) + "\n")

    monkeypatch.setattr(os, "fsync", noted)
    assert apply_in(grub) == []
    synced = (grub / "synced").read_text().split()
    at = synced.index("/boot/grub/grub.cfg")
    assert synced[at + 1] == "/boot/grub"


# Words: an image of an ext4, and where it is mounted. Prints what a boot loader finds, which reads no journal.
FOUND_BY_A_BOOT_LOADER = """
import os, subprocess, sys
from tunectl.durable import checkpoint, sync_file
from tunectl.host.writable import WritableSysroot
image, place = sys.argv[1:]
os.mkdir(f"{place}/boot")
def finds(name):
    subprocess.run(["debugfs", "-R", f"cat /boot/{name}", image], stderr=subprocess.DEVNULL, check=True)
for text in (b"old", b"new"):
    with open(f"{place}/boot/grub.cfg.new", "wb") as file:
        file.write(text)
    os.rename(f"{place}/boot/grub.cfg.new", f"{place}/boot/grub.cfg")  # as grub-mkconfig does
    sync_file(f"{place}/boot/grub.cfg")
    checkpoint(f"{place}/boot/grub.cfg")
    finds("grub.cfg")
    WritableSysroot(place).replace_file("boot/entry.conf", text, None)
    finds("entry.conf")
"""


@needs_mounts
def test_a_boot_loader_finds_what_was_made_and_written_for_it(tmp_path: Path) -> None:
    """e2fsprogs' debugfs reads the disk as GRUB does: what only the journal holds it does not see."""
    if missing := [name for name in ("mkfs.ext4", "debugfs") if not shutil.which(name, path="/usr/sbin:/sbin")]:
        pytest.skip(f"not here: {', '.join(missing)} (Debian: e2fsprogs)")
    image, place = tmp_path / "ext4", tmp_path / "mounted"
    place.mkdir()
    image.write_bytes(b"")
    os.truncate(image, 64 << 20)
    subprocess.run(["/sbin/mkfs.ext4", "-q", image], check=True)
    mounted = 'mount -o loop "$2" "$3" || exit 77; exec "$0" -c "$1" "$2" "$3"'
    words: list[str | Path] = ["unshare", "--mount", "sh", "-c", mounted, sys.executable, FOUND_BY_A_BOOT_LOADER]
    done = subprocess.run([*words, image, place], capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode == 77:
        pytest.skip(f"no file can be mounted here: {done.stderr.strip()}")
    assert (done.stdout, done.returncode) == ("oldoldnewnew", 0), done.stderr
