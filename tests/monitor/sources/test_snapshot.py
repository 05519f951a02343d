"""A snapshot as a whole: it keeps its contract, it disturbs nobody, and no source takes the others down."""

import dataclasses
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.builder import build, generated
from tests.monitor.live import Live
from tests.monitor.quantities import QUANTITIES
from tests.monitor.watched import CPU, Watched, of, watch
from tunectl.cpulist import parse_cpulist
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.devices import DeviceEvent
from tunectl.host.nonintrusive import DISTURBING, NonIntrusiveSysroot
from tunectl.host.sysroot import Sysroot
from tunectl.hostfile.config import kernel_config
from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.sources import SOURCES, take_snapshot
from tunectl.monitor.watched_host import Source, WatchedHost

LARGE = parse_cpulist("4-127,132-255")
HOSTS = {"lab4": {2, 3}, "xeon2s": {2, 18}, "epyc": {2, 18}, "hybrid": {2, 3}, "vm2": {1}, "arm64": {2, 3}}


# What this recorded host need not have: a sentinel that runs, an application that sends its latencies, a source that
# failed, a trip point and a device that cools, a base frequency that is unknown, a share of the highest one, a clock
# that somebody sets.
ELSEWHERE = {"core_khz", "source", "trip_mc", "cooling_state", "highest_khz", "max_perf_khz", "clock_step_ns"}
ELSEWHERE |= {name for name in QUANTITIES if name.startswith("latency_")}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """256 CPUs, of which 248 are isolated, and 4,096 interrupts."""
    spec = dataclasses.replace(generated(256, 4096), tuned_boot=LARGE)
    return Watched(build(tmp_path_factory.mktemp("large") / "host", spec), LARGE)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every path opened, at the system call."""
    paths: list[str] = []
    really = os.open

    def spy(path: str, *rest: Any, **options: Any) -> int:
        below = options.get("dir_fd")
        paths.append(str(path) if below is None else f"{os.readlink(f'/proc/self/fd/{below}')}/{path}")
        return really(path, *rest, **options)

    monkeypatch.setattr(os, "open", spy)
    return paths


def disturbing(paths: list[str], isolated: frozenset[int]) -> list[str]:
    """Those that would interrupt an isolated CPU, or might choose one."""
    found = []
    for path in paths:
        cpu = re.search(r"/(?:cpu|policy)(\d+)/", path)
        whose = int(cpu[1]) if cpu else -1
        zone = re.search(r"thermal_zone\d+/temp$", path)
        kind = Path(path).parent / "type"
        if (
            (path.rpartition("/")[2] in DISTURBING and whose in isolated)
            or re.search(r"/(hwmon|powercap|msr)", path)
            or (zone and kind.read_text().strip() in ("x86_pkg_temp", "TCPU"))
        ):
            found.append(path)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTS)
def test_nothing_is_opened_that_would_disturb(tmp_path: Path, opened: list[str], name: str) -> None:
    host = watch(tmp_path, name, HOSTS[name], '[knobs]\n"cpufreq.energy_performance_preference" = "performance"\n')
    opened.clear()
    for _ in range(12):
        for cpu in host.watched_host.online:
            if name != "arm64":
                host.count("LOC", cpu, 250)
        host.look()
    host.watched_host.announce(DeviceEvent("online", "cpu", "cpu1", ""))
    host.look()
    assert len(opened) > 50
    assert disturbing(opened, host.watched_host.isolated) == []
    if name in ("lab4", "xeon2s", "epyc", "hybrid"):
        assert [path for path in opened if path.endswith("scaling_cur_freq")]
    assert of(host.look(), "source") == {}


@pytest.mark.slow
def test_nothing_disturbs_on_the_large_host_either(large: Watched, opened: list[str]) -> None:
    for _ in range(11):
        large.look()
    large.watched_host.announce(DeviceEvent("add", "queues", "rx-0", ""))
    snapshot = large.look()
    assert disturbing(opened, large.watched_host.isolated) == []
    assert of(snapshot, "source") == {}
    assert len(of(snapshot, "bios_limit_khz")) == 1
    assert len(of(snapshot, "max_khz")) == len(of(snapshot, "timer_ticks")) == 248
    assert len(of(snapshot, "core_throttles")) == 256


@pytest.mark.parametrize("name", sorted(DISTURBING))
def test_the_root_itself_refuses(tmp_path: Path, name: str) -> None:
    for place in ("cpu2", "cpufreq/policy2", "cpu20"):
        (tmp_path / CPU / place).mkdir(parents=True, exist_ok=True)
        (tmp_path / CPU / place / name).write_text("1\n")
    root = NonIntrusiveSysroot(str(tmp_path), frozenset({2}))
    for place in ("cpu2", "cpufreq/policy2"):
        with pytest.raises(PermissionError, match="would interrupt CPU 2"):
            root.read_value(f"{CPU}/{place}/{name}")
    assert root.read_value(f"{CPU}/cpu20/{name}") == "1"
    assert Sysroot(str(tmp_path)).read_value(f"{CPU}/cpu2/{name}") == "1"


def test_every_promised_quantity_is_there(tmp_path: Path) -> None:
    host = watch(tmp_path, "xeon2s", {2, 18})
    host.look()
    host.count("61", 18, 1)
    host.write(f"{CPU}/online", "0-30")
    seen = {sample.quantity for sample in host.look().samples}
    assert set(QUANTITIES) - ELSEWHERE <= seen <= set(QUANTITIES)


@pytest.mark.slow
def test_a_sample_that_is_not_fresh_says_why(tmp_path: Path) -> None:
    for name, isolated in HOSTS.items():
        for sample in watch(tmp_path, name, isolated).look().samples:
            assert sample.freshness is Freshness.FRESH or sample.reason, sample


@pytest.mark.parametrize("broken", [source.name for source in SOURCES])
def test_a_source_that_fails_ends_nothing(tmp_path: Path, broken: str) -> None:
    host = watch(tmp_path, "lab4", {2, 3})

    def fail(_: WatchedHost) -> Iterator[Sample]:
        raise RuntimeError("the fan fell off")

    sources = [source._replace(read=fail) if source.name == broken else source for source in SOURCES]
    snapshot = take_snapshot(host.watched_host, sources)
    assert [(one.subject, one.freshness, one.reason) for one in snapshot.of("source")] == [
        (broken, Freshness.NO_DATA, "RuntimeError: the fan fell off")
    ]
    assert {sample.source for sample in snapshot.samples} >= {"limits", "drift", "frequency", "audit"} - {broken}


def test_what_a_source_gave_before_it_failed_counts(tmp_path: Path) -> None:
    def half(_: WatchedHost) -> Iterator[Sample]:
        yield Sample("half", "a", 1, "half")
        raise OSError("gone")

    snapshot = take_snapshot(watch(tmp_path, "lab4", {2, 3}).watched_host, [Source("half", (), "", "", half)])
    assert [sample.quantity for sample in snapshot.samples] == ["half", "source"]


def test_sources_have_their_names_once_and_say_what_they_do() -> None:
    assert len({source.name for source in SOURCES}) == len(SOURCES)
    assert all(source.reads and source.disturbs and source.valid for source in SOURCES)


@pytest.mark.slow
def test_memory_and_files_stay_flat(tmp_path: Path) -> None:
    host = watch(tmp_path, "lab4", {2, 3})
    for _ in range(20):
        host.look()
    files, kept = len(os.listdir("/proc/self/fd")), len(host.watched_host._kept)
    for number in range(60):
        if number % 10 == 0:
            host.watched_host.announce(DeviceEvent("online", "cpu", "cpu1", ""))
        host.look()
    assert len(os.listdir("/proc/self/fd")) <= files
    assert len(host.watched_host._kept) == kept


def test_this_machine_is_looked_at(tmp_path: Path) -> None:
    host = Live(tmp_path, "").watched_host
    for _ in range(3):
        snapshot = take_snapshot(host)
        assert of(snapshot, "source") == {}
    assert of(snapshot, "timer_ticks")
    assert snapshot.monotonic_s > 0
    assert snapshot.at.endswith("Z")


def test_the_cpus_of_a_partition_are_left_alone_whatever_the_host_file_names(tmp_path: Path) -> None:
    host = watch(tmp_path, "lab4", {3})
    slice_ = host.root / "sys/fs/cgroup/trading"
    slice_.mkdir(parents=True)
    (slice_ / "cpuset.cpus.partition").write_text("isolated\n")
    (slice_ / "cpuset.cpus.effective").write_text("2\n")
    assert Watched(host.root, frozenset({3})).watched_host.quiet == {2, 3}
    assert kernel_config(read_scope_facts(host.watched_host.root)).scope.isolated == {2, 3}
