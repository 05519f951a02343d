"""Loads: the table, where they run, what is left of them, and that none is taken for a load that did not run."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import tunectl
from tests.cli.places import environment, unprivileged
from tests.cli.test_commands import valid
from tests.probe.running import PATIENCE_S, until_ended
from tests.probe.samples import cpu_result, typed_result
from tests.probe.stressed import BROKEN, WHO, WORKED, put, works
from tests.ran import JITTER
from tunectl.compare.compared import quiet_and_loaded
from tunectl.errors import TunectlError, UsageError
from tunectl.host import stressng
from tunectl.host.cpusets import CpuFacts, read_scope_facts
from tunectl.host.identity import read_start
from tunectl.host.procs import read_session
from tunectl.host.stressng import PLACE, Ended, Figures, StressNg, check_room, figures_of, find_program, sweep
from tunectl.host.sysroot import Sysroot
from tunectl.model import Trading
from tunectl.probe.budget import judge
from tunectl.probe.loaded import Plan, planned, quiet_then_loaded, recorded, refusal, under
from tunectl.probe.loads import LOADS, chosen, needs_mib, words
from tunectl.shapes import Jitter, JitterLoaded

HERE = frozenset({min(os.sched_getaffinity(0))})
ROOT = Sysroot()
PLAN = Plan(("memory", "timers"), HERE, "stress-ng 0.99.01")
DID = {"stream": Figures(16, 0.75, 1024), "timer": Figures(9)}
LIMITS = {"max_ns": 50_000, "p99_9_ns": 10_000, "interruptions_per_s": 10, "stolen_ppm": 200}


def left() -> set[str]:
    """The directories of loads, but for those at which another program is at work now."""
    names = {name for name in os.listdir(PLACE) if name.startswith("tunectl-load-")}
    owners = {name: name.removeprefix("tunectl-load-").partition("-") for name in names}
    return {
        name for name, (pid, _, began) in owners.items() if pid == str(os.getpid()) or read_start(ROOT, pid) != began
    }


@pytest.fixture
def clean() -> Iterator[None]:
    """Nothing of a load is there afterwards: no directory, no process."""
    before = left()
    yield
    assert left() <= before


def stressed(monkeypatch: pytest.MonkeyPatch, place: Path, text: str) -> None:
    monkeypatch.setenv(stressng.OVERRIDE, str(put(place, text)))


# ---- the table


def test_names_are_of_the_table_and_in_its_order() -> None:
    assert chosen(["timers", " memory"], "--load") == ("memory", "timers")
    assert chosen(["all"], "--load") == tuple(LOADS)
    assert chosen(["none"], "--load") == ()
    for wrong in (["memori"], ["none", "memory"], [], [""]):
        with pytest.raises(UsageError, match="--load: "):
            chosen(wrong, "--load")


def test_a_row_is_bounded_and_says_what_it_proves() -> None:
    assert words(("files", "timers"), 64) == [
        *("--hdd", "1", "--hdd-bytes", "32M", "--hdd-opts", "wr-seq,rd-seq,fdatasync"),
        *("--timer", "8", "--timer-freq", "10000"),
    ]
    assert needs_mib(("memory", "files"), 64) == (8 * 64 + 16, 32)
    assert all(row.proves and row.memory_mib for row in LOADS.values())
    assert len({row.stressor for row in LOADS.values()}) == len(LOADS)  # figures are told by the stressor's name


def test_the_documentation_has_the_table() -> None:
    text = (Path(__file__).parents[2] / "docs/probe.md").read_text()
    for name, row in LOADS.items():
        assert f"| `{name}` | `{' '.join((f'--{row.stressor}', *row.words))}` | {row.proves} |" in text


# ---- what it did


def test_figures_are_read_by_stressor() -> None:
    assert figures_of(WORKED) == DID
    assert figures_of("metrics:\n  bogo-ops: 3\n- stressor: 'hdd'\n  bogo-ops: many\n") == {"hdd": Figures()}


@pytest.mark.parametrize(
    ("broke", "ended", "reason"),
    [
        ("", Ended(0, DID, ()), ""),
        ("stress-ng has ended: killed", Ended(-9, {}, ("killed",)), "stress-ng has ended: killed"),
        ("", Ended(None, DID, ()), "stress-ng did not end when it was told to"),
        ("", Ended(0, {"stream": DID["stream"]}, ()), "stress-ng names no work of timers"),
        ("", Ended(0, DID | {"timer": Figures(0, 1.0)}, ()), "stress-ng names no work of timers"),
        ("", Ended(2, DID, ("fail",)), "stress-ng failed (exit status 2)"),
    ],
)
def test_a_load_ran_only_where_every_stressor_worked_to_the_end(broke: str, ended: Ended, reason: str) -> None:
    made = recorded(PLAN, broke, ended)
    assert (made.ran, made.reason) == (not reason, reason)
    assert made.said == ([] if not reason else list(ended.said))
    judged = judge(replace(typed_result(cpu_result()), load=made), LIMITS)
    assert judged.verdict == ("not-judged" if reason else "within")
    assert reason in judged.reason
    broken = judge(replace(typed_result(cpu_result(max_ns=60_000)), load=made), LIMITS)
    assert broken.verdict == "broken"  # it did break


def test_quiet_runs_stay_where_the_load_fails() -> None:
    def measured(tell: Any) -> Jitter:
        return typed_result(cpu_result())

    plan = PLAN._replace(names=("memory",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(stressng.OVERRIDE, "/bin/false")
        made = quiet_then_loaded(plan, 1, 0.0, 1.0, measured, lambda: "", lambda _: None)
        late = quiet_then_loaded(plan, 1, 0.0, 1.0, measured, lambda: "engine runs", lambda _: None)
    assert (len(made.quiet), made.loaded) == (1, [])
    assert made.warnings[0].startswith("not measured under load memory on CPU")
    assert quiet_and_loaded(made) is None
    assert (late.loaded, late.warnings[0].endswith(": refused: engine runs")) == ([], True)


def test_a_run_beside_a_load_that_did_not_run_is_compared_with_nothing() -> None:
    ran, failed = (recorded(PLAN, broke, Ended(0, DID, ())) for broke in ("", "stress-ng has ended: killed"))
    quiet = typed_result(cpu_result())
    compared = quiet_and_loaded(JitterLoaded(quiet=[quiet], loaded=[replace(quiet, load=ran)]))
    assert compared
    assert (compared.before.file, compared.after.file) == ("quiet", "loaded")
    assert quiet_and_loaded(JitterLoaded(quiet=[quiet], loaded=[replace(quiet, load=failed)])) is None


# ---- where it may run


def facts(online: int = 4, isolated: tuple[int, ...] = ()) -> CpuFacts:
    every = frozenset(range(online))
    return read_scope_facts(ROOT)._replace(online=every, present=every, kernel_isolated=frozenset(isolated))


def test_a_load_has_housekeeping_cpus_or_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stressed(monkeypatch, tmp_path, works())
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: frozenset(range(4)))
    none: frozenset[int] = frozenset()
    assert planned(ROOT, facts(), ("memory",), frozenset({3}), frozenset({2, 3})).cpus == {0, 1}
    assert planned(ROOT, facts(4, (1,)), ("memory",), frozenset({3}), none).cpus == {0, 2}
    for probed, isolated in ((frozenset(range(4)), none), (frozenset({0, 1}), frozenset({2, 3}))):
        with pytest.raises(UsageError, match="no housekeeping CPU is left"):
            planned(ROOT, facts(), ("memory",), probed, isolated)


def test_what_would_fill_memory_or_the_disk_is_refused(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 9999999 kB\nMemAvailable:     262144 kB\n")
    check_room(Sysroot(str(tmp_path)), 64, 1)
    with pytest.raises(TunectlError, match="takes up to 65 MiB of memory, and only 256 MiB"):
        check_room(Sysroot(str(tmp_path)), 65, 1)
    with pytest.raises(TunectlError, match="below /var/tmp"):
        check_room(Sysroot(str(tmp_path)), 64, 1 << 40)


def test_where_stress_ng_is_missing_a_line_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(stressng.OVERRIDE, "/no/such/stress-ng")
    with pytest.raises(TunectlError, match=r"is not installed, and a load needs it \(sudo apt install stress-ng\)"):
        find_program()


def test_none_beside_a_declared_engine_that_lives_asleep_or_not() -> None:
    """It sleeps: nobody would find it by the CPU time that it takes."""
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        engine = Trading("engine", "", "sleep", "", 1, "other", 0, False, ())
        assert "engine of the host file runs" in refusal(ROOT, facts(), HERE, frozenset(), (engine,))
    finally:
        sleeper.kill()
        sleeper.wait()


# ---- the program


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("name", BROKEN)
def test_a_load_that_breaks_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, said = BROKEN[name]
    if name == "is on another CPU" and os.cpu_count() == 1:
        pytest.skip("needs two CPUs")
    stressed(monkeypatch, tmp_path, program)
    monkeypatch.setattr(stressng, "_STARTS_S", 2.0 if "silent" in name else PATIENCE_S)

    def measured(tell: Any) -> Jitter:
        for who in Path(PLACE).glob(f"tunectl-load-{os.getpid()}-*/{WHO}"):  # of the one that ends meanwhile
            leader, last = map(int, who.read_text().split())
            os.kill(leader, signal.SIGALRM)
            assert until_ended(last)
        return typed_result(cpu_result())

    assert said in why_not(measured)


def why_not(measured: Any) -> str:
    """Why the run of `measured` was not under load."""
    try:
        made = under(PLAN, 1.0, lambda _: None, measured)
    except TunectlError as error:
        return str(error)
    assert made.load
    assert not made.load.ran
    return made.load.reason


@pytest.mark.alone
@pytest.mark.usefixtures("clean")
def test_a_load_that_works_ran_and_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stressed(monkeypatch, tmp_path, works())
    stress = StressNg(ROOT, HERE, words(PLAN.names, 1), 60)
    leader = stress._child.pid
    try:
        stress.until_at_work()
        there = read_session(ROOT, leader)
        assert len(there) == 3  # it, its child, and what it was started through
        assert {one.allowed for one in there} == {HERE}
        assert stress.stopped() == ""
        assert stress.end() == Ended(0, DID, ())
    finally:
        stress.close()
    assert [one for one in read_session(ROOT, leader) if one.alive] == []


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_load_ends_with_tunectl_whatever_ends_it(end: signal.Signals, tmp_path: Path) -> None:
    """And what a killed one leaves on the disk is empty, and is swept away by the next."""
    program = put(tmp_path, works(last="os.killpg(0, 9)"))
    env = environment({stressng.OVERRIDE: str(program)})
    code = (
        "from tunectl.host.stressng import StressNg\nfrom tunectl.host.sysroot import Sysroot\nimport time\n"
        f"one = StressNg(Sysroot(), {set(HERE)}, [], 60)\none.until_at_work()\n"
        "print(one._child.pid, flush=True)\n"
        "try:\n    time.sleep(60)\nfinally:\n    one.close()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert child.stdout
    leader = int(child.stdout.readline())
    child.send_signal(end)
    child.wait()
    deadline = time.monotonic() + PATIENCE_S
    while any(one.alive for one in read_session(ROOT, leader)):
        assert time.monotonic() < deadline, "the load outlives the program that started it"
        time.sleep(0.02)
    sweep(ROOT)
    assert not [name for name in left() if name.startswith(f"tunectl-load-{child.pid}-")]


_LEAVES = """
if not os.fork():
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open({pid!r} + ".new", "w").write(str(os.getpid()))
    os.rename({pid!r} + ".new", {pid!r})
    time.sleep(120)
    os._exit(0)
while not os.path.exists({pid!r}):
    time.sleep(0.01)
"""
_STARTS = f"""
import os, signal
from tunectl.host.stressng import StressNg
from tunectl.host.sysroot import Sysroot
one = StressNg(Sysroot(), {set(HERE)}, [], 60)
one.until_at_work()
"""


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("end", ["", "SIGKILL"], ids=["ended", "killed"])
@pytest.mark.parametrize("prefix", [list, unprivileged], ids=["as it is", "without root"])
def test_what_left_the_loads_session_ends_with_it(prefix: Callable[[], list[str]], end: str) -> None:
    """A process of stress-ng whose parent has ended, in a session of its own."""
    words = prefix()
    own = sys.executable if not words else shutil.which("python3", path="/usr/bin")  # nobody may not reach ours
    if not own:
        pytest.skip("needs a python3 that everybody may run")
    place = Path(tempfile.mkdtemp(dir="/var/tmp"))
    place.chmod(0o777)
    try:
        program = put(place, works(first=_LEAVES.format(pid=str(place / "pid"))))
        env = environment({stressng.OVERRIDE: str(program), "PYTHONPATH": str(Path(tunectl.__file__).parents[1])})
        code = f"import sys\nsys.executable = {own!r}\n{_STARTS}"
        code += f"os.kill(os.getpid(), signal.{end})" if end else "assert one.end().status == 0"
        child = subprocess.Popen([*words, sys.executable, "-c", code], env=env, cwd="/")
        assert child.wait(60) == (-signal.SIGKILL if end else 0)
        assert until_ended(int((place / "pid").read_text())), "it outlives the load"
        for name in left():
            if name.startswith(f"tunectl-load-{child.pid}-"):  # of one that was killed, whoever it was
                shutil.rmtree(Path(PLACE, name))
    finally:
        shutil.rmtree(place)


def test_only_ones_own_leavings_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stressng, "PLACE", str(tmp_path))
    (tmp_path / "tunectl-load-4194999-7").mkdir()
    (tmp_path / "tunectl-load-4194999-7/file").touch()
    (tmp_path / "tunectl-load-4194999-8").symlink_to(tmp_path)  # anybody may make one there
    mine = tmp_path / f"tunectl-load-{os.getpid()}-{read_start(ROOT, 'self')}"
    mine.mkdir()
    (tmp_path / "else").mkdir()
    sweep(ROOT)
    assert {path.name for path in tmp_path.iterdir()} == {mine.name, "else", "tunectl-load-4194999-8"}


# ---- the real one


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.usefixtures("clean")
def test_every_load_of_the_real_stress_ng(tunectl: Any, tmp_path: Path) -> None:
    try:
        find_program()
    except TunectlError as error:
        pytest.skip(str(error))
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs a CPU beside the probed one")
    names = "all" if os.geteuid() == 0 else ",".join(name for name, row in LOADS.items() if not row.needs_root)
    out = tmp_path / "loaded.json"
    asked = ("--cpus", max(os.sched_getaffinity(0)), "--load", names, "--output", out, "--format", "json")
    for seconds in (1, 5, 20):  # a disk or a machine that is slow may do no work that counts in the first
        done = tunectl(*JITTER, *asked, "--duration", seconds)
        made = valid("probe.jitter.loaded", done.out)
        if not made["warnings"]:
            break
    assert (done.code, made["warnings"]) == (0, []), made
    (quiet,), (loaded,) = made["quiet"], made["loaded"]
    for run in (quiet, loaded):
        valid("probe.jitter", json.dumps(run))
    assert "load" not in quiet
    assert loaded["load"]["ran"], loaded["load"]
    assert all(one["bogo_ops"] > 0 for one in loaded["load"]["stressors"])
    assert made["comparison"]["kind"] == "jitter"
    page = tunectl("report", out, "--format", "html")
    assert "Quiet and under load" in page.out
