"""Isolated partitions of control group v2, and a program that starts inside one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tunectl.errors import TunectlError, UsageError
from tunectl.host.cgroup import home_of, partitioned, partitions, place_for
from tunectl.host.run import Resident, run
from tunectl.host.sysroot import Sysroot


@pytest.mark.parametrize(
    ("shown", "held"), [("isolated", {2, 3}), ("root", set()), ("member", set()), ("isolated invalid (why)", set())]
)
def test_only_a_valid_isolated_partition_holds_cpus(tmp_path: Path, shown: str, held: set[int]) -> None:
    place = tmp_path / "sys/fs/cgroup/trading"
    place.mkdir(parents=True)
    (place / "cpuset.cpus.partition").write_text(f"{shown}\n")
    (place / "cpuset.cpus.effective").write_text("2-3\n")
    assert partitioned(Sysroot(str(tmp_path))) == held
    assert list(partitions(Sysroot(str(tmp_path)))) == (["sys/fs/cgroup/trading"] if held else [])


def test_a_recorded_host_has_no_place_for_a_program(tmp_path: Path) -> None:
    with place_for(Sysroot(str(tmp_path)), frozenset({2})) as group:
        assert group is None


def test_a_program_enters_its_group_before_it_starts(tmp_path: Path) -> None:
    procs = tmp_path / "cgroup.procs"
    procs.touch()
    group = os.open(procs, os.O_WRONLY)
    assert run(["/bin/cat", str(procs)], group=group).stdout == "0"  # "0" is the writer itself
    os.close(group)


def test_a_group_that_takes_nobody_is_told(tmp_path: Path) -> None:
    procs = tmp_path / "cgroup.procs"
    procs.touch()
    group = os.open(procs, os.O_RDONLY)
    with pytest.raises(TunectlError, match="cannot start"):
        run(["/bin/true"], group=group)
    os.close(group)


def test_the_partition_of_some_cpus(tmp_path: Path) -> None:
    place = tmp_path / "sys/fs/cgroup/trading"
    place.mkdir(parents=True)
    (place / "cpuset.cpus.partition").write_text("isolated\n")
    (place / "cpuset.cpus.effective").write_text("2-4\n")
    root = Sysroot(str(tmp_path))
    assert home_of(root, frozenset({2, 4})) == "sys/fs/cgroup/trading"
    assert home_of(root, frozenset({0, 1})) is None
    assert home_of(root, frozenset()) is None
    with pytest.raises(UsageError, match=r"CPUs 3-4 are in the isolated partition /sys/fs/cgroup/trading, CPUs 5 are"):
        home_of(root, frozenset({3, 4, 5}))


def test_a_program_that_stays_lives_in_its_group_and_leaves_it_behind(tmp_path: Path) -> None:
    procs = tmp_path / "group"
    seen: list[str] = []

    @contextmanager
    def place() -> Iterator[int]:
        group = os.open(procs, os.O_WRONLY | os.O_CREAT)
        yield group
        os.close(group)
        seen.append("left")

    program = Resident(["/bin/sleep", "60"], place())
    assert procs.read_text() == "0"
    assert seen == []
    program.close()
    assert seen == ["left"]
    with pytest.raises(TunectlError, match="cannot start"):
        Resident(["/nonexistent"], place())
    assert seen == ["left", "left"]
