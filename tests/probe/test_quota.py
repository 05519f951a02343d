"""A cgroup's quota of CPU time beside real runs: what it stopped is void, and the same cgroup without one is not.

Where a quota may stand outside what the probe sees, it does not say that there is none.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.places import needs_mounts
from tests.experiments.test_hedge_native import CPUS
from tunectl.experiments.feed_cells import explained_feed
from tunectl.experiments.hedge_cells import explained_hedge
from tunectl.experiments.wake_cells import explained_wake
from tunectl.probe.causes import UNSEEN, Kind
from tunectl.probe.explain import explained

from .test_attribution import attributed
from .test_attribution import tracing as tracing  # a fixture

pytestmark = [pytest.mark.slow, pytest.mark.pins]
Explain = Callable[[dict[str, Any]], dict[str, Any]]

_V1, _V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
_TENTH = 10_000  # us of each period of 100 ms
# What a gap can be named after while the group stands still.
_THROTTLED = (Kind.THROTTLE, Kind.THREAD, Kind.WORK, Kind.UNKNOWN)
SECONDS = ("0.5", "2", "8")  # a machine that is away for all of a run leaves a quota nothing to stop
STOPPED = "void: cgroup throttling (cpu.max) stopped the probe, on all of its CPUs together for "


class Quota(NamedTuple):
    """A cgroup of this test's own, and its file that holds the quota."""

    place: Path
    file: Path

    def limit(self, us: int | None) -> None:
        unlimited = "max" if self.file.name == "cpu.max" else "-1"
        self.file.write_text(str(unlimited if us is None else us))


@pytest.fixture
def quota() -> Iterator[Quota]:
    home, name = (_V1, "cpu.cfs_quota_us") if (_V1 / "cpu.cfs_quota_us").exists() else (_V2, "cpu.max")
    place = home / f"tunectl-test-{os.getpid()}"
    try:
        place.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error.strerror}")
    if not (place / name).exists():
        place.rmdir()
        pytest.skip("this kernel, or the cgroup above, has no quota of CPU time")
    yield Quota(place, place / name)
    with suppress(OSError):
        place.rmdir()


def measured(program: Path, quota: Quota, us: int | None, *words: str, prefix: tuple[str, ...] = ()) -> Any:
    quota.limit(us)
    enter = f'echo $$ > {quota.place}/cgroup.procs && exec "$@"'
    argv = ["sh", "-c", enter, "sh", *prefix, str(program), *words, "--intrude"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize(("case", "messages"), [("tcp:block:0", "20000"), ("tcp:minimal:2", "200")])
def test_wake(program: Path, quota: Quota, pair: str, case: str, messages: str) -> None:
    """Much work: threads that sleep between messages would keep within the quota."""
    words = ("wake", "--cpus", pair, "--case", case, "--messages", messages)
    (stopped,) = explained_wake(measured(program, quota, _TENTH, *words))["cells"]
    assert stopped["reason"].startswith(STOPPED)
    assert (stopped["n"], stopped["percentiles_ns"]) == (0, None)
    (free,) = explained_wake(measured(program, quota, None, *words))["cells"]
    assert "cgroup" not in free["reason"]


def _is_void_where_stopped_alone(program: Path, quota: Quota, explain: Explain, *words: str) -> None:
    """`words` end before how long it measures."""
    for seconds in SECONDS:
        (stopped,) = explain(measured(program, quota, _TENTH, *words, seconds))["cells"]
        if is_said := stopped["reason"].startswith(STOPPED):
            break
    assert is_said, stopped["reason"]
    (free,) = explain(measured(program, quota, None, *words, seconds))["cells"]
    assert "cgroup" not in free["reason"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="feed spins on two CPUs, and here is one")
def test_feed(program: Path, quota: Quota, pair: str) -> None:
    words = ("feed", "--cpus", pair, "--rate", "1000", "--duration")
    _is_void_where_stopped_alone(program, quota, explained_feed, *words)


def test_hedge(program: Path, quota: Quota) -> None:
    words = ("hedge", "--cpus", CPUS, "--shared", "--load", "0.1", "--duration")
    _is_void_where_stopped_alone(program, quota, explained_hedge, *words)


# What of the control groups a program sees: all of them; those below its own, as in a container; and none.
_SEES = {
    "all": (),
    "a namespace that mounts nothing": ("unshare", "-C"),
    "nothing": ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh"),
}


@needs_mounts
@pytest.mark.parametrize("sees", _SEES)
def test_a_quota_that_is_not_seen_is_not_said_to_be_none(program: Path, quota: Quota, pair: str, sees: str) -> None:
    """Each of the probe's experiments: jitter, and wake for those that are a pair."""
    jitter = ("jitter", "--cpus", pair.partition(",")[0], "--duration")
    wake = ("wake", "--cpus", pair, "--case", "tcp:block:0", "--messages", "20000")
    for seconds in SECONDS:
        stopped = explained(measured(program, quota, _TENTH, *jitter, seconds, prefix=_SEES[sees]))
        if stopped["cpus"][0]["unfit"]:
            break
    assert stopped["cpus"][0]["unfit"]
    assert (stopped["throttled_ns"] is None) == (sees != "all")
    (case,) = measured(program, quota, _TENTH, *wake, prefix=_SEES[sees])["cells"]
    assert (case["throttled_us"] is None) == (sees != "all")


@needs_mounts
def test_a_quota_is_seen_where_its_group_is_all_that_is_seen(program: Path, quota: Quota, pair: str) -> None:
    """As in a container, whose root is its own group: what that counts is known."""
    kind = "-t cgroup -o cpu" if quota.place.parent == _V1 else "-t cgroup2"
    mount = f'umount {quota.place.parent} && mount {kind} none {quota.place.parent} && exec "$@"'
    prefix = ("unshare", "-C", "-m", "sh", "-c", mount, "sh")
    words = ("jitter", "--cpus", pair.partition(",")[0], "--duration")
    for seconds in SECONDS:
        stopped = explained(measured(program, quota, _TENTH, *words, seconds, prefix=prefix))
        if stopped["throttled_ns"]:
            break
    assert stopped["throttled_ns"] > 0
    free = explained(measured(program, quota, None, *words, seconds, prefix=prefix))
    assert not free["throttled_ns"]


@pytest.mark.usefixtures("tracing")
def test_what_a_quota_took_is_named(
    program: Path, quota: Quota, cpu: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CPU that others want has another thread while the group stands still, and the account says for how long.

    So small a quota that the program gets more than it also where many share the CPU; tunectl itself has none.
    """
    entering = tmp_path / "tunectl-probe"
    entering.write_text(f'#!/bin/sh\necho $$ > {quota.place}/cgroup.procs\nexec {program} "$@"\n')
    entering.chmod(0o755)
    monkeypatch.setenv("TUNECTL_PROBE", str(entering))
    quota.limit(_TENTH // 2)
    for _ in range(4):  # of twenty throttles one that a hypervisor hides, or whose end the trace lacks, is too many
        document = attributed("--cpus", cpu, "--duration", 2)
        (one,) = document["cpus"]
        taken = sum(row["total_ns"] for row in one["causes"] if row["kind"] in _THROTTLED)
        lacking = sum(row["total_ns"] for row in one["causes"] if row["cause"] == UNSEEN.label)
        if taken >= 0.95 * document["throttled_ns"] > 0 and lacking <= 0.05 * one["stolen_ns"]:
            break
    assert one["unfit"]
    assert taken >= 0.95 * document["throttled_ns"] > 0
    assert lacking <= 0.05 * one["stolen_ns"]
