"""A part of the journal backwards: what stood after an earlier apply is there again, byte for byte, and is still known.

The earlier apply asks for some of the settings, the later one for others too; the tree after the earlier one is what
has to come back, and a whole restore then brings back what was there before both.
"""

import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hosts.builder import HostFactory, build, named
from tests.trees import Picture, differences, picture
from tests.tuned import apply, restore, state_of
from tests.tuning.calls import changes, count_calls, failing_at, killed_at
from tests.tuning.hosts import ONE_OF_EACH, small_host, wish
from tests.tuning.stride import STRIDES, thinned
from tunectl.errors import TunectlError
from tunectl.host.identity import read_identity
from tunectl.host.writable import WritableSysroot
from tunectl.tuning.journal import load
from tunectl.tuning.takeback import Before, Taken, take_back

STATE = "var/lib/tunectl"
SWAPPINESS = "proc/sys/vm/swappiness"
ENOUGH = 20_000
REST = 'isolated = "1"\n[network]\ninterfaces = ["ens3"]\n'
EARLIER = {name: ONE_OF_EACH[name] for name in ("mm.swappiness", "boot.nohz_full", "systemd.allowed_cpus")}


class Twice:
    """A host on which apply ran twice, and what it was before each of them."""

    def __init__(self, tree: Path, earlier: dict[str, str], later: dict[str, str], rest: str) -> None:
        self.tree, self.root, self._later, self._rest = tree, WritableSysroot(str(tree)), later, rest
        wish(tree, earlier, rest)
        self.first = self._without_wish(picture(tree))
        apply(self.root)
        self.journal = load(state_of(self.root))
        self.mark = self.journal.next_number
        self.middle = self.files()

    def _without_wish(self, seen: Picture) -> Picture:
        return {path: node for path, node in seen.items() if not path.startswith("etc/tunectl/")}

    def files(self) -> Picture:
        """Without the host file, which the operator writes, and without the journal."""
        return {path: node for path, node in self._without_wish(picture(self.tree)).items() if STATE not in path}

    def again(self) -> None:
        """The later apply, once more."""
        wish(self.tree, self._later, self._rest)
        apply(self.root)

    def back(self) -> Taken:
        """The later apply is taken back."""
        journal = load(state_of(self.root))
        numbers = [seq for seq in journal.entries if seq >= self.mark]
        before = Before(self.journal.in_force(), self.journal.newest.words)
        return take_back(self.root, journal, read_identity(self.root).boot_id, numbers, before)

    def check(self, where: str = "") -> None:
        """Is all as it was between the two, and is the earlier apply known as it was then?"""
        assert self.files() == self.middle, where
        known = load(state_of(self.root))
        assert known.entries == self.journal.entries, where
        assert (known.damaged, known.in_force()) == ((), self.journal.in_force()), where
        assert (known.newest.words, known.is_older) == (self.journal.newest.words, False), where

    def check_restored(self) -> None:
        """A whole restore brings back what was before both."""
        assert restore(self.root).complete
        left = {path: node for path, node in differences(self.first, self.tree).items() if "etc/tunectl" not in path}
        assert not left


def drop_ins(host_root: HostFactory, tmp_path: Path) -> Twice:
    return Twice(small_host(host_root, tmp_path), EARLIER, ONE_OF_EACH, REST)


def edits(_: HostFactory, tmp_path: Path) -> Twice:
    """Boot arguments are words in the operator's own file, which holds words of the earlier apply."""
    tree = build(tmp_path / "raspberry-pi", replace(named("lab4"), loader="raspberry-pi", os="debian"))
    earlier = {"boot.nohz_full": '"isolated"', "mm.swappiness": "10"}
    later = {**earlier, "boot.isolcpus": '"isolated"', "mm.swappiness": "1"}
    return Twice(tree, earlier, later, 'isolated = "2-3"\n')


Make = Callable[[HostFactory, Path], Twice]
HOSTS = pytest.mark.parametrize("make", [drop_ins, edits])


@HOSTS
def test_what_the_later_apply_wrote_goes_back_and_the_earlier_one_stays(
    host_root: HostFactory, tmp_path: Path, make: Make
) -> None:
    host = make(host_root, tmp_path)
    for _ in range(2):
        host.again()
        assert host.files() != host.middle
        assert host.back().complete
        host.check()
    host.check_restored()


@HOSTS
def test_values_of_an_earlier_boot_are_over_and_files_go_back(
    host_root: HostFactory, tmp_path: Path, make: Make
) -> None:
    host = make(host_root, tmp_path)
    host.again()
    (host.tree / SWAPPINESS).write_text("60\n")
    (host.tree / "proc/sys/kernel/random/boot_id").write_text("99999999-0000-4000-8000-000000000009\n")
    assert host.back().complete
    assert (host.tree / SWAPPINESS).read_text() == "60\n"
    lasting = {path: node for path, node in host.middle.items() if path.startswith(("etc", "boot"))}
    assert lasting == {path: node for path, node in host.files().items() if path.startswith(("etc", "boot"))}


def test_what_somebody_changed_since_is_left_and_named_and_stays_journaled(
    host_root: HostFactory, tmp_path: Path
) -> None:
    host = edits(host_root, tmp_path)
    host.again()
    (host.tree / SWAPPINESS).write_text("33\n")
    assert host.back().left == (f"/{SWAPPINESS}",)
    assert (host.tree / SWAPPINESS).read_text() == "33\n"
    restore(host.root, force=True)
    assert host.tree.joinpath(SWAPPINESS).read_bytes() == host.first[SWAPPINESS][2]


def test_the_operators_word_beside_ours_stays_and_only_the_later_words_go(
    host_root: HostFactory, tmp_path: Path
) -> None:
    host = edits(host_root, tmp_path)
    (line,) = [path for path in host.files() if path.endswith("cmdline.txt")]
    earlier = (host.tree / line).read_text().split()
    host.again()
    (host.tree / line).write_text((host.tree / line).read_text().rstrip() + " theirs=1\n")
    assert host.back().complete
    assert sorted((host.tree / line).read_text().split()) == sorted([*earlier, "theirs=1"])


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDES)
@HOSTS
def test_killed_at_every_boundary(host_root: HostFactory, tmp_path: Path, make: Make, stride: int) -> None:
    host = make(host_root, tmp_path)
    boundaries = 0
    for count in range(1, ENOUGH, stride):
        host.again()
        if not killed_at(count, host.back):
            break
        boundaries = count
        assert host.back().complete
        host.check(f"boundary {count}")
    assert boundaries > 5
    host.check()
    host.check_restored()


def tried(host: Twice) -> bool:
    """Does it say that all went back?"""
    try:
        return host.back().complete
    except (TunectlError, OSError):
        return False


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDES)
@HOSTS
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC], ids=errno.errorcode.get)
def test_a_call_that_writes_fails(host_root: HostFactory, tmp_path: Path, make: Make, number: int, stride: int) -> None:
    host = make(host_root, tmp_path)
    host.again()
    calls = count_calls(changes, host.back)
    for place in range(1, calls + 1, thinned(stride, 2)):
        host.again()
        failing_at(place, changes, number, lambda: tried(host), lasting=number == errno.ENOSPC)
        assert host.back().complete
        host.check(f"call {place}")
