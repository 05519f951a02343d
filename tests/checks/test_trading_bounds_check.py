"""check.trading_bounded and check.trading_held: limits and holders of a declared thread, real ones where root may."""

import ctypes
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.checking.fake_kernel import Process
from tests.checks.conftest import Judge
from tests.checks.test_trading_check import FEED, FILES, RX
from tests.trees import write
from tunectl.host.confinement import MOUNT
from tunectl.model import Finding, Outcome, Trading

pytestmark = pytest.mark.slow
CHECK = "test_trading_bounds.py"
BOUNDED, HELD = "check.trading_bounded[rx]", "check.trading_held[rx]"
SERVICE = f"{MOUNT}/isolated.slice/feed.service"
HEAD = f"{'Limit':<26}{'Soft Limit':<21}{'Hard Limit':<21}Units\n"


def limits(cpu: str = "unlimited", rttime: str = "unlimited") -> str:
    rows = (("Max cpu time", cpu, "seconds"), ("Max realtime timeout", rttime, "us"))
    return HEAD + "".join(f"{name:<26}{soft:<21}{soft:<21}{unit}\n" for name, soft, unit in rows)


FREE = {**FILES, "limits": limits()}
ENGINE = replace(RX, files=FREE)
ORDINARY = replace(ENGINE, policy=0, rt_priority=0)


def group(host: Path, path: str, **files: str) -> None:
    """A control group of version 2 with two threads."""
    write(host, f"{path}/cgroup.procs", "700\n")
    write(host, f"{path}/cgroup.threads", "700\n701\n")
    for name, text in files.items():
        write(host, f"{path}/{name.replace('_', '.', 1)}", f"{text}\n")


def found_on(host: Path, judge: Judge, process: Process) -> dict[str, Finding]:
    return judge(host, {2, 3}, CHECK, trading=(FEED,), processes=[process])


def test_a_thread_with_no_bounds_is_silent(lab4: Path, judge: Judge) -> None:
    group(lab4, SERVICE, cpu_max="max 100000", memory_high="max", memory_max="max", memory_peak="7", cgroup_freeze="0")
    group(lab4, f"{MOUNT}/isolated.slice", cpu_max="max 100000", memory_high="max")
    assert {finding.outcome for finding in found_on(lab4, judge, ENGINE).values()} == {Outcome.COMPLIANT}


@pytest.mark.parametrize(
    ("path", "files", "fix"),
    [
        (SERVICE, {"cpu_max": "150000 100000"}, "sudo systemctl set-property feed.service CPUQuota="),
        (f"{MOUNT}/isolated.slice", {"cpu_max": "50000 100000"}, "systemctl set-property isolated.slice CPUQuota="),
        (SERVICE, {"memory_high": "4096", "memory_peak": "4096"}, "set-property feed.service MemoryHigh=infinity"),
        (SERVICE, {"memory_max": "4096", "memory_current": "4096"}, "set-property feed.service MemoryMax=infinity"),
        (SERVICE, {"cpu_uclamp.max": "40.00"}, f"echo max | sudo tee /{SERVICE}/cpu.uclamp.max"),
    ],
    ids=["cpu.max", "of the slice", "memory.high", "memory.max, before 5.19", "clamp"],
)
def test_what_its_groups_bound_is_found(lab4: Path, judge: Judge, path: str, files: dict[str, str], fix: str) -> None:
    write(lab4, "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "schedutil\n")
    group(lab4, SERVICE)
    group(lab4, path, **files)
    found = found_on(lab4, judge, ORDINARY)[BOUNDED]
    assert (found.outcome, found.observed) == (Outcome.DRIFTED, 1)
    assert fix in str(found.fix)


@pytest.mark.parametrize(
    ("process", "files"),
    [
        (ORDINARY, {"cpu_max": "200000 100000"}),
        (ENGINE, {"cpu_max": "50000 100000"}),
        (ORDINARY, {"memory_high": "4097", "memory_peak": "4096"}),
        (ORDINARY, {"cpu_uclamp.max": "40.00"}),
        (ORDINARY, {"cpu_uclamp.max": "max"}),
    ],
    ids=["more than its threads can use", "real-time", "never reached", "no schedutil", "no clamp"],
)
def test_what_bounds_nothing_is_silent(lab4: Path, judge: Judge, process: Process, files: dict[str, str]) -> None:
    write(lab4, "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "performance\n")
    group(lab4, SERVICE, **files)
    assert found_on(lab4, judge, process)[BOUNDED].outcome == Outcome.COMPLIANT


@pytest.mark.parametrize(
    ("process", "given", "fix"),
    [
        (ENGINE, limits(rttime="200000"), "sudo prlimit --pid 700 --rttime=unlimited:unlimited"),
        (ENGINE, limits(cpu="3600"), "sudo prlimit --pid 700 --cpu=unlimited:unlimited"),
        (ORDINARY, limits(rttime="200000"), ""),
    ],
    ids=["RLIMIT_RTTIME", "RLIMIT_CPU", "no real-time thread"],
)
def test_a_resource_limit_that_ends_it_is_found(
    lab4: Path, judge: Judge, process: Process, given: str, fix: str
) -> None:
    group(lab4, SERVICE)
    found = found_on(lab4, judge, replace(process, files={**FILES, "limits": given}))[BOUNDED]
    assert found.outcome == (Outcome.DRIFTED if fix else Outcome.COMPLIANT)
    assert fix in str(found.fix)


def test_a_quota_for_real_time_threads_is_version_1s(lab4: Path, judge: Judge) -> None:
    """What stands at the root of the hierarchy is kernel.sched_rt_runtime_us."""
    engine = replace(ENGINE, files={**FREE, "cgroup": "3:cpu:/system.slice/feed.service\n1:name=systemd:/x\n"})
    declared = FEED._replace(unit="", command="rx")
    for place, runtime in ((f"{MOUNT}/cpu", "950000"), (f"{MOUNT}/cpu/system.slice/feed.service", "-1")):
        write(lab4, f"{place}/cpu.rt_runtime_us", f"{runtime}\n")
        write(lab4, f"{place}/cpu.rt_period_us", "1000000\n")
    assert judge(lab4, {2}, CHECK, trading=(declared,), processes=[engine])[BOUNDED].outcome == Outcome.COMPLIANT
    write(lab4, f"{MOUNT}/cpu/system.slice/feed.service/cpu.rt_runtime_us", "500000\n")
    found = judge(lab4, {2}, CHECK, trading=(declared,), processes=[engine])[BOUNDED]
    assert "echo -1 | sudo tee /sys/fs/cgroup/cpu/system.slice/feed.service/cpu.rt_runtime_us" in str(found.fix)


@pytest.mark.parametrize("files", [FILES, {**FREE, "cgroup": "0::/../other\n"}], ids=["limits", "groups"])
def test_what_cannot_be_seen_is_unknown(lab4: Path, judge: Judge, files: dict[str, str]) -> None:
    declared = FEED._replace(unit="", command="rx")
    found = judge(lab4, {2}, CHECK, trading=(declared,), processes=[replace(RX, files=files)])[BOUNDED]
    assert found.outcome == Outcome.UNREADABLE


@pytest.mark.parametrize(
    ("held", "frozen", "fix"),
    [
        (replace(ENGINE, tracer=1), "", "end it: "),
        (replace(ENGINE, state="T"), "", "sudo kill -CONT 700"),
        (ENGINE, SERVICE, "sudo systemctl thaw feed.service"),
        (ENGINE, f"{MOUNT}/isolated.slice", "sudo systemctl thaw isolated.slice"),
    ],
    ids=["traced", "stopped", "frozen", "its slice is frozen"],
)
def test_who_holds_it_is_found(lab4: Path, judge: Judge, held: Process, frozen: str, fix: str) -> None:
    group(lab4, SERVICE, cgroup_freeze="0")
    group(lab4, frozen or "tmp", cgroup_freeze="1")
    found = found_on(lab4, judge, held)[HELD]
    assert found.outcome == Outcome.DRIFTED
    assert fix in str(found.fix)


# --- real processes and real groups

MINE = Trading("rx", "", "tt-engine", "", 0, "other", 0, False, ())


@pytest.fixture
def engine() -> Iterator[int]:
    """A process that sleeps, and is declared."""
    sleeps = "import os, time; os.write(1, b'x'); time.sleep(60)"
    with subprocess.Popen(["tt-engine", "-c", sleeps], executable=sys.executable, stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.read(1)
        yield child.pid
        child.kill()


def seen(judge: Judge, target: str) -> Finding:
    return judge("/", {0}, CHECK, trading=(MINE,))[target]


def type_commands(finding: Finding) -> None:
    """As root, so without sudo."""
    for step in (step for command in finding.fix.commands for step in command.steps):
        subprocess.run(step.words[1:], input=step.fed, text=True, check=True, capture_output=True)


@pytest.fixture
def real_group(engine: int, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A group of its own in a hierarchy, with the engine in it."""
    place = Path("/", MOUNT, request.param, f"tt-engine-{engine}")
    if not (place.parent / "cgroup.procs").exists():
        pytest.skip(f"no hierarchy of control groups is at {place.parent}")
    try:
        place.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made in {request.param}: {error.strerror}")
    try:
        (place / "cgroup.procs").write_text(f"{engine}\n")
        yield place
    finally:
        with suppress(OSError):
            (place.parent / "cgroup.procs").write_text(f"{engine}\n")
        place.rmdir()


@pytest.mark.parametrize("real_group", ["cpu"], indirect=True)
def test_a_real_quota_is_found_and_lifted(judge: Judge, real_group: Path) -> None:
    """Of version 1; half a CPU."""
    if not (real_group / "cpu.cfs_quota_us").exists():
        pytest.skip("version 1 of control groups has no cpu controller here")
    (real_group / "cpu.cfs_quota_us").write_text("50000\n")
    found = seen(judge, BOUNDED)
    assert found.outcome == Outcome.DRIFTED
    type_commands(found)
    assert seen(judge, BOUNDED).outcome == Outcome.COMPLIANT


@pytest.mark.parametrize("real_group", ["unified", ".", "freezer"], indirect=True)
def test_a_really_frozen_group_is_found_and_thawed(judge: Judge, real_group: Path) -> None:
    known = {"cgroup.freeze": "1", "freezer.state": "FROZEN"}
    files = [name for name in known if (real_group / name).exists()]
    if not files:
        pytest.skip("nothing freezes a control group here")
    (real_group / files[0]).write_text(known[files[0]])
    found = seen(judge, HELD)
    assert found.outcome == Outcome.DRIFTED
    type_commands(found)
    assert seen(judge, HELD).outcome == Outcome.COMPLIANT


@pytest.mark.parametrize(("kind", "given"), [(resource.RLIMIT_CPU, 3600), (15, 200_000)], ids=["CPU", "RTTIME"])
def test_a_real_limit_is_found_and_lifted(judge: Judge, engine: int, kind: int, given: int) -> None:
    """RLIMIT_RTTIME, 15, has no name in Python. A real-time thread that sleeps keeps nobody waiting."""
    try:
        os.sched_setscheduler(engine, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pytest.skip("no real-time thread may run here")
    resource.prlimit(engine, kind, (given, resource.RLIM_INFINITY))
    found = seen(judge, BOUNDED)
    assert found.outcome == Outcome.DRIFTED
    type_commands(found)
    assert seen(judge, BOUNDED).outcome == Outcome.COMPLIANT


def test_a_really_stopped_process_is_found_and_goes_on(judge: Judge, engine: int) -> None:
    os.kill(engine, signal.SIGSTOP)
    os.waitid(os.P_PID, engine, os.WSTOPPED)
    found = seen(judge, HELD)
    assert found.outcome == Outcome.DRIFTED
    type_commands(found)
    assert seen(judge, HELD).outcome == Outcome.COMPLIANT


def test_a_real_tracer_is_named(judge: Judge, engine: int) -> None:
    attach, detach = 0x4206, 17  # PTRACE_SEIZE, which stops nothing; PTRACE_DETACH
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(attach, engine, None, None):
        pytest.skip(f"nothing may be traced here: {os.strerror(ctypes.get_errno())}")
    found = seen(judge, HELD)
    assert found.outcome == Outcome.DRIFTED
    assert f"(pid {os.getpid()}) traces it" in found.reason
    libc.ptrace(detach, engine, None, None)
