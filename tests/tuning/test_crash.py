"""kill -9 of apply and of restore at every call that can change a file, then restore: the tree is byte-equal.

The child process is a real one and is really killed, just before its n-th such call. Between two of them nothing
reaches the disk, so that is also the kill just after each; the end of the walk, a child that lives, is after the last.
"""

from pathlib import Path

import pytest

from tests.hosts.builder import HostFactory
from tests.trees import Applied, differences, picture
from tests.tuned import apply, restore
from tests.tuning.calls import killed_at
from tests.tuning.hosts import small_host
from tests.tuning.stride import STRIDES, thinned
from tunectl.host.writable import WritableSysroot

ENOUGH = 20_000  # more calls than apply makes: the walk ends when a child lives to its end


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("victim", ["apply", "restore"])
def test_killed_at_every_boundary(host_root: HostFactory, tmp_path: Path, victim: str, stride: int) -> None:
    tree = small_host(host_root, tmp_path)
    root = WritableSysroot(str(tree))
    applied = Applied(tree, lambda: apply(root))
    before = applied.before
    restore(root)
    boundaries = 0
    for count in range(1, ENOUGH, stride):
        if victim == "restore":
            applied.lay()
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


@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.slow
def test_killed_and_applied_again_before_it_is_restored(host_root: HostFactory, tmp_path: Path, stride: int) -> None:
    tree = small_host(host_root, tmp_path)
    before = picture(tree)
    root = WritableSysroot(str(tree))
    for count in range(3, ENOUGH, thinned(stride, 4)):
        if not killed_at(count, lambda: apply(root)):
            break
        apply(root)
        assert restore(root).complete
        assert not differences(before, tree), f"boundary {count}"
    restore(root)
    assert not differences(before, tree)
