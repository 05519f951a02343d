"""kill -9 of apply at every instruction that reaches the disk, then restore: the tree is byte-equal.

The child process is a real one and is really killed. What is counted are its system calls that can
change a file; the kill comes just before the n-th. Between the n-th and the one after it nothing reaches
the disk, so that is also the kill just after each; the end of the walk, a child that lives, is after the last.
"""

from __future__ import annotations

import os
import shutil
import signal
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import write_host_file
from tests.hosts.builder import HostFactory
from tests.trees import differences, picture
from tests.tuned import apply, restore
from tunectl.host.sysroot import WritableSysroot

CALLS = ("open", "write", "fsync", "rename", "unlink", "mkdir", "symlink", "ftruncate", "truncate", "fchmod", "rmdir")
# A knob of every kind of write: whole file, attribute, several files for one, choice, unit and link, drop-in.
ONE_OF_EACH = {
    "net.rx_ring": "128",
    "irqbalance.banned_cpus": '"isolated"',
    "irq.default_affinity": '"housekeeping"',
    "irq.affinity": '"housekeeping"',
    "mm.thp_enabled": '"never"',
    "mm.swappiness": "1",
    "cpuset.isolated": '"isolated"',
    "kthread.affinity": '"housekeeping"',
    "systemd.allowed_cpus": '"housekeeping"',
    "systemd.apply_at_boot": '"enabled"',
    "systemd.apply_on_hotplug": '"enabled"',
    "boot.isolcpus": '"isolated"',
    "boot.nohz_full": '"isolated"',
}
ENOUGH = 20_000  # more calls than apply makes: the walk ends when a child lives to its end


def killed_at(count: int, work: Callable[[], object]) -> bool:
    """Runs `work` in a child that is killed before its count-th call. True if it was; False if it came to its end."""
    child = os.fork()
    if child == 0:
        left = [count]

        def counting(real: Callable[..., object]) -> Callable[..., object]:
            def call(*args: object, **kwargs: object) -> object:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **kwargs)

            return call

        for name in CALLS:
            setattr(os, name, counting(getattr(os, name)))
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def small_host(host_root: HostFactory, tmp_path: Path) -> Path:
    """A host with one target of every kind of driver, so that the walk over all boundaries is short."""
    tree = host_root.fresh("vm2", tmp_path)
    keep = {"default_smp_affinity", *sorted(name.name for name in (tree / "proc/irq").iterdir() if name.is_dir())[:1]}
    for path in (tree / "proc/irq").iterdir():
        if path.name not in keep:
            shutil.rmtree(path)
    for number in keep - {"default_smp_affinity"}:
        (tree / f"proc/irq/{number}/effective_affinity_list").write_text("1\n")
    grub = tree / "etc/default/grub"
    if not grub.exists():
        grub.parent.mkdir(parents=True, exist_ok=True)
        grub.write_text('GRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX=""\n')
    (tree / "etc/default/irqbalance").write_text("IRQBALANCE_ARGS=\n")
    (tree / "etc/systemd/system").mkdir(parents=True, exist_ok=True)
    (tree / "var/lib").mkdir(parents=True, exist_ok=True)
    write_host_file(tree, 'profile = "one-of-each.toml"\nisolated = "1"\n[network]\ninterfaces = ["ens3"]\n')
    rows = (f'[knobs."{name}"]\nvalue = {value}\nreason = "one of each"\n' for name, value in ONE_OF_EACH.items())
    (tree / "etc/tunectl/one-of-each.toml").write_text("".join(rows))
    return tree


@pytest.mark.parametrize("victim", ["apply", "restore"])
@pytest.mark.slow
def test_killed_at_every_boundary(host_root: HostFactory, tmp_path: Path, victim: str) -> None:
    tree = small_host(host_root, tmp_path)
    before = picture(tree)
    root = WritableSysroot(str(tree))
    boundaries = 0
    for count in range(1, ENOUGH):
        if victim == "restore":
            apply(root)
        if not killed_at(count, lambda: (apply if victim == "apply" else restore)(root)):
            break
        boundaries = count
        undone = restore(root)
        assert undone.complete, undone
        left = differences(before, tree)
        assert not left, f"boundary {count}: {left}"
    assert boundaries > 50
    restore(root)
    assert not differences(before, tree)


@pytest.mark.slow
def test_killed_and_applied_again_before_it_is_restored(host_root: HostFactory, tmp_path: Path) -> None:
    tree = small_host(host_root, tmp_path)
    before = picture(tree)
    root = WritableSysroot(str(tree))
    for count in range(1, ENOUGH, 7):
        if not killed_at(count, lambda: apply(root)):
            break
        apply(root)
        assert restore(root).complete
        assert not differences(before, tree), f"boundary {count}"
    restore(root)
    assert not differences(before, tree)
