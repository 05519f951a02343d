"""check.movable_threads: threads that ran on an isolated CPU, or are pinned to it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.checking.fake_kernel import BOUND, KTHREAD, Process
from tests.checks.conftest import Judge
from tests.trees import write
from tunectl.checking.visits import visitors
from tunectl.cpulist import format_cpulist
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.sysroot import Sysroot
from tunectl.model import Outcome, Trading
from tunectl.report.actions import actions_of

CHECK = "test_threads.py"
TARGET = "check.movable_threads[2]"


def test_a_sleeping_thread_pinned_to_an_isolated_cpu_is_found(lab4: Path, judge: Judge) -> None:
    found = judge(lab4, {2, 3}, CHECK, processes=[Process(700, "stray worker) x", cpu=2, allowed="2")])
    assert found[TARGET].outcome == Outcome.DRIFTED
    assert "'stray worker) x' (pid 700) is pinned here and sleeps" in found[TARGET].reason
    assert str(*found[TARGET].fix.commands) == "sudo taskset -cp 0-1 700"
    assert found["check.movable_threads[3]"].outcome == Outcome.COMPLIANT


def test_a_real_time_spinner_is_calmed_before_it_is_moved(lab4: Path, judge: Judge) -> None:
    """Moved as it is, it would take a housekeeping CPU from everybody; one that sleeps takes none."""
    for busy, begins in ((0.9, "sudo chrt -o -p 0 700; sudo taskset -cp 0-1 700;"), (0.0, "sudo taskset -cp 0-1 700;")):
        spinner = Process(700, "backtest", cpu=2, allowed="2", busy=busy, policy=1, rt_priority=50)
        found = judge(lab4, {2, 3}, CHECK, processes=[spinner])[TARGET]
        assert found.outcome == Outcome.DRIFTED
        assert str(found.fix).startswith(begins)


STARVED = "check.housekeeping_starved"


@pytest.mark.parametrize(
    "processes",
    [
        [Process(700, "poller", cpu=1, allowed="0-1", busy=1.0, policy=1, rt_priority=1)],
        [Process(700, "poller", cpu=1, allowed="1", busy=0.96, policy=6)],
        [Process(n, "poller", cpu=1, allowed="1", busy=0.48, policy=2, rt_priority=5) for n in (700, 702)],
    ],
    ids=["fifo", "deadline", "two that take turns"],
)
def test_who_starves_a_housekeeping_cpu_is_named(lab4: Path, judge: Judge, processes: list[Process]) -> None:
    found = judge(lab4, {2, 3}, CHECK, processes=processes)[STARVED]
    assert (found.outcome, found.observed) == (Outcome.DRIFTED, "1")
    assert "poller (pid 700, tid 700)" in found.reason
    assert "sudo chrt -o -p 0 700" in str(found.fix)


@pytest.mark.parametrize(
    "process",
    [
        Process(700, "make", cpu=1, allowed="0-1", busy=1.0),
        Process(700, "audio", cpu=1, allowed="0-1", busy=0.3, policy=1, rt_priority=50),
        Process(700, "migration/1", cpu=1, allowed="1", flags=BOUND, busy=1.0, policy=1, rt_priority=99),
        Process(700, "engine", cpu=2, allowed="2", busy=1.0, policy=1, rt_priority=50),
    ],
    ids=["ordinary", "real-time, and sleeps", "the kernel's own", "on an isolated CPU"],
)
def test_who_leaves_others_their_turn_is_no_hog(lab4: Path, judge: Judge, process: Process) -> None:
    assert judge(lab4, {2, 3}, CHECK, processes=[process])[STARVED].outcome == Outcome.COMPLIANT


@pytest.mark.parametrize(
    ("visits", "cpu", "flags", "outcome"),
    [
        (0.0, 1, BOUND, Outcome.DRIFTED),
        (1.0, 1, BOUND, Outcome.COMPLIANT),
        (0.0, 2, BOUND, Outcome.COMPLIANT),
        (0.0, 1, 0, Outcome.COMPLIANT),
    ],
    ids=["ready all along", "it ran once", "on an isolated CPU", "no thread of the kernel"],
)
def test_a_thread_of_the_kernel_that_never_runs_is_found(
    lab4: Path, judge: Judge, visits: float, cpu: int, flags: int, outcome: Outcome
) -> None:
    """By its effect: the thread of an interrupt may keep ksoftirqd from its CPU as well as a spinner does."""
    waiting = Process(730, "ksoftirqd/1", cpu=cpu, allowed=str(cpu), flags=flags, state="R", visits_per_s=visits)
    assert judge(lab4, {2, 3}, CHECK, processes=[waiting])[STARVED].outcome == outcome


@pytest.mark.parametrize(
    ("process", "fix"),
    [
        (Process(701, "cron", cpu=2, allowed="0-3", busy=0.02), "sudo taskset -cp 0-1 701"),
        (Process(702, "short", cpu=2, allowed="0-3", visits_per_s=40), "sudo taskset -cp 0-1 702"),
        (Process(703, "rcuop/1", cpu=2, allowed="0-2", flags=KTHREAD, visits_per_s=40), "sudo taskset -cp 0-1 703"),
        (Process(704, "irq/32-mlx5", cpu=2, allowed="2", flags=KTHREAD, visits_per_s=40), "/proc/irq/32/"),
        (Process(705, "kworker/u8:1-events", cpu=2, allowed="0-3", flags=BOUND, visits_per_s=40), "workqueue/cpumask"),
    ],
    ids=lambda value: value.comm if isinstance(value, Process) else "",
)
def test_a_thread_that_ran_there_is_found(lab4: Path, judge: Judge, process: Process, fix: str) -> None:
    (lab4 / "proc/irq/32/effective_affinity_list").write_text("2\n")
    found = judge(lab4, {2, 3}, CHECK, processes=[process])
    assert found[TARGET].outcome == Outcome.DRIFTED
    assert f"{process.comm} (pid {process.pid}) ran here" in found[TARGET].reason
    assert fix in str(found[TARGET].fix)
    assert found["check.movable_threads[3]"].outcome == Outcome.COMPLIANT


@pytest.mark.parametrize(
    "process",
    [
        Process(730, "rcuop/2", cpu=2, allowed="2", flags=KTHREAD),
        Process(731, "rcuop/3", cpu=3, allowed="2-3", flags=KTHREAD),
        Process(732, "khugepaged", cpu=0, allowed="0-3", flags=KTHREAD),
        Process(733, "kswapd0", cpu=2, allowed="0-3", flags=KTHREAD),
        Process(734, "kswapd0", cpu=0, allowed="2-3", flags=KTHREAD),
        Process(734, "kswapd0", cpu=0, allowed="1-3", flags=KTHREAD),
        Process(735, "irq/31-eth0", cpu=2, allowed="2", flags=KTHREAD),
        # Without nohz_full=, too: a partition that ended gives it all CPUs, and it has a real-time priority.
        Process(736, "irq/31-eth0", cpu=0, allowed="0-3", flags=KTHREAD),
    ],
    ids=lambda one: f"{one.comm}-{one.allowed}",
)
def test_a_sleeping_kernel_thread_is_named_by_its_mask(lab4: Path, judge: Judge, process: Process) -> None:
    (lab4 / "proc/irq/31/effective_affinity_list").write_text("1\n")
    found = judge(lab4, {2, 3}, CHECK, processes=[process])
    assert found[TARGET].outcome == Outcome.DRIFTED
    assert f"{process.comm} (pid {process.pid}) may run on CPUs {process.allowed} " in found[TARGET].reason
    assert str(*found[TARGET].fix.commands) == f"sudo taskset -cp 0-1 {process.pid}"


@pytest.mark.parametrize(
    ("process", "knob", "fix"),
    [
        (Process(737, "kcompactd0", 0, "0-3", flags=KTHREAD), "kthread.node_affinity", "sudo tunectl apply"),
        (Process(738, "khugepaged", 0, "0-3", flags=KTHREAD), "kthread.affinity", "sudo tunectl apply"),
        (Process(739, "khugepaged", 0, "0-3", flags=KTHREAD), "kthread.node_affinity", "sudo taskset -cp 0-1 739"),
    ],
    ids=lambda value: value.comm if isinstance(value, Process) else "",
)
def test_what_a_knob_moves_apply_moves(lab4: Path, judge: Judge, process: Process, knob: str, fix: str) -> None:
    found = judge(lab4, {2, 3}, CHECK, {knob: {0, 1}}, processes=[process])[TARGET]
    assert found.outcome is Outcome.DRIFTED
    assert str(found.fix).startswith(fix)


def test_unbound_work_is_named_by_the_mask_of_the_workqueues(lab4: Path, judge: Judge) -> None:
    worker = Process(736, "kworker/u8:1-events", cpu=0, allowed="0-3", flags=BOUND)
    mask = lab4 / "sys/devices/virtual/workqueue/cpumask"
    mask.write_text("f\n")
    finding = judge(lab4, {2, 3}, CHECK, processes=[worker])[TARGET]
    command = "echo 3 | sudo tee /sys/devices/virtual/workqueue/cpumask"
    assert (finding.outcome, str(*finding.fix.commands)) == (Outcome.DRIFTED, command)
    mask.write_text("3\n")  # the worker is left over from before, and dies as it is
    assert judge(lab4, {2, 3}, CHECK, processes=[worker])[TARGET].outcome == Outcome.COMPLIANT


@pytest.mark.parametrize(
    "process",
    [
        Process(740, "rcuop/2", cpu=1, allowed="0-1", flags=KTHREAD),  # where the kernel puts it
        Process(741, "migration/2", cpu=2, allowed="2", flags=BOUND),  # belongs to its CPU
        Process(742, "kswapd0", cpu=0, allowed="0-3", flags=KTHREAD),  # its node's CPUs, from the kernel; not here
        Process(743, "irq/31-eth0", cpu=1, allowed="1", flags=KTHREAD),  # where its interrupt is delivered
        *(  # of PREEMPT_RT, each CPU's own, as real-time threads
            Process(746 + n, f"{name}/2", cpu=2, allowed="2", flags=BOUND, policy=1, rt_priority=1)
            for n, name in enumerate(("ktimers", "rcuc", "irq_work", "ksoftirqd", "cpuhp", "idle_inject"))
        ),
        Process(760, "kworker/R-rcu_gp", cpu=0, allowed="0-3", flags=BOUND),  # no one may move a rescuer
        Process(744, "irq/32-eth0", cpu=2, allowed="2", flags=KTHREAD),  # its interrupt is here: irq.affinity names it
    ],
    ids=lambda value: value.comm,
)
def test_a_kernel_thread_where_it_belongs_is_silent(lab4: Path, judge: Judge, process: Process) -> None:
    (lab4 / "proc/irq/31/effective_affinity_list").write_text("1\n")
    (lab4 / "proc/irq/32/effective_affinity_list").write_text("2\n")
    found = judge(lab4, {2, 3}, CHECK, processes=[process])
    assert {finding.outcome for finding in found.values()} == {Outcome.COMPLIANT}


@pytest.mark.parametrize(("settings", "outcome"), [({}, "compliant"), ({"kthread.affinity": {0, 1}}, "drifted")])
def test_a_wide_mask_counts_where_kernel_threads_are_kept_away(
    lab4: Path, judge: Judge, settings: dict[str, set[int]], outcome: str
) -> None:
    """Without nohz_full= every kernel thread may run everywhere, and isolcpus= sees that none is moved there."""
    (lab4 / "sys/devices/system/cpu/nohz_full").write_text("\n")
    wide = Process(745, "khugepaged", 0, "0-3", flags=KTHREAD)
    assert judge(lab4, {2, 3}, CHECK, settings, processes=[wide])[TARGET].outcome == outcome


def test_what_may_or_must_be_there_is_silent(lab4: Path, judge: Judge) -> None:
    processes = [
        Process(710, "systemd", cpu=0, allowed="0-3", busy=0.3),  # wide affinity, runs elsewhere
        Process(711, "sleeper", cpu=2, allowed="0-3"),  # was last seen here, and did not run
        Process(712, "ksoftirqd/2", cpu=2, allowed="2", flags=BOUND, visits_per_s=40),  # the CPU's own
        Process(713, "irq/40-nvme", cpu=2, allowed="2", flags=KTHREAD),  # follows its interrupt, which is silent
        Process(714, "tunectl-probe", cpu=2, allowed="2", busy=1.0),
        Process(715, "housekeeper", cpu=1, allowed="0-1", busy=0.9),
    ]
    found = judge(lab4, {2, 3}, CHECK, processes=processes)
    assert {finding.outcome for finding in found.values()} == {Outcome.COMPLIANT}


def test_without_isolation_by_the_kernel_the_fix_is_to_isolate(lab4: Path, judge: Judge) -> None:
    (lab4 / "sys/devices/system/cpu/isolated").write_text("\n")
    found = judge(lab4, {2}, CHECK, processes=[Process(n, "web", 2, "0-3", 0.1) for n in range(800, 808)])
    assert found[TARGET].observed == 8
    moved = "; ".join(f"sudo taskset -cp 0-1,3 {pid}" for pid in range(800, 808))  # each of them, and no "more"
    assert "; ".join(map(str, found[TARGET].fix.commands)) == f"{moved}; sudo tunectl apply; sudo reboot"
    (lab4 / "sys/devices/system/cpu/isolated").write_text("2\n")


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A real process that spins, pinned to CPU 1."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU")
    pinned = "import os; os.sched_setaffinity(0, {1}); os.write(1, b'x')\nwhile True: pass"
    child = subprocess.Popen([sys.executable, "-c", pinned], stdout=subprocess.PIPE)
    assert child.stdout
    child.stdout.read(1)
    yield child
    child.kill()
    child.wait()
    child.stdout.close()


@pytest.mark.alone  # of many that are pinned there the first five are named
def test_a_real_thread_pinned_to_cpu_1_is_found(judge: Judge, stranger: subprocess.Popen[bytes]) -> None:
    for _ in range(100):  # a busy machine may not let it run in one window
        finding = judge("/", {1}, CHECK)["check.movable_threads[1]"]
        assert finding.outcome == Outcome.DRIFTED
        if " is pinned here and ran here" in finding.reason:
            break
    assert f"(pid {stranger.pid}) is pinned here and ran here" in finding.reason
    others = format_cpulist(read_scope_facts(Sysroot()).online - {1})
    assert f"sudo taskset -cp {others} {stranger.pid}" in str(finding.fix)


@pytest.mark.parametrize(
    ("per_s", "known", "outcome"),
    [
        (25.0, [], Outcome.DRIFTED),
        (0.0, [], Outcome.COMPLIANT),
        (25.0, [Process(712, "ksoftirqd/2", cpu=2, allowed="2", flags=BOUND, visits_per_s=25)], Outcome.COMPLIANT),
        (25.0, [Process(712, "ksoftirqd/2", cpu=2, allowed="2", flags=BOUND, visits_per_s=24)], Outcome.DRIFTED),
        (25.0, [Process(714, "tunectl-probe", cpu=2, allowed="2", visits_per_s=25)], Outcome.COMPLIANT),
    ],
    ids=["a stranger", "nobody", "the CPU's own", "more than its own", "our sentinel"],
)
def test_what_ran_between_two_looks_is_counted(
    lab4: Path, judge: Judge, per_s: float, known: list[Process], outcome: Outcome
) -> None:
    """By /proc/schedstat: a thread of 2 ms is there at neither end."""
    slices = {2: per_s, 3: 0.0}
    found = judge(lab4, {2, 3}, CHECK, processes=known, slices_per_s=slices)
    assert found[TARGET].outcome == outcome
    assert found["check.movable_threads[3]"].outcome == Outcome.COMPLIANT


def test_a_trace_names_what_ran_there() -> None:
    text = """# tracer: nop
          <idle>-0       [002] d..2.  100.1: sched_switch: prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a b next_pid=8 next_prio=120
             a b-8       [002] d..2.  100.2: sched_switch: prev_comm=a b prev_pid=8 prev_prio=120 prev_state=S ==> next_comm=swapper/2 next_pid=0 next_prio=120
          <idle>-0       [003] d..2.  100.3: sched_switch: prev_comm=swapper/3 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=c next_pid=9 next_prio=-1
"""  # noqa: E501
    assert visitors(text, 2) == [("a b", 8, 1)]
    assert visitors(text, 3) == [("c", 9, 1)]
    assert visitors("", 2) == []


SYSTEM = "etc/systemd/system"


def of_unit(path: str) -> dict[str, str]:
    return {"cgroup": f"0::/{path}\n"}


def cpuset(root: Path, path: str, cpus: str) -> None:
    (root / "sys/fs/cgroup" / path).mkdir(parents=True, exist_ok=True)
    (root / "sys/fs/cgroup" / path / "cpuset.cpus").write_text(f"{cpus}\n")


def test_a_unit_that_keeps_its_threads_on_an_isolated_cpu_is_the_cause(lab4: Path, judge: Judge) -> None:
    cpuset(lab4, "system.slice/feed.service", "2")
    write(lab4, f"{SYSTEM}/feed.service.d/cpus.conf", "[Service]\nAllowedCPUs=2\n")
    rows = [Process(700 + n, f"feed{n}", 2, "2", files=of_unit("system.slice/feed.service")) for n in range(3)]
    found = judge(lab4, {2, 3}, CHECK, processes=rows)[TARGET]
    place = f"/{SYSTEM}/feed.service.d/cpus.conf:2"
    assert f"feed.service has AllowedCPUs=2 ({place}), which lets 3 threads run here: feed0 (pid 700); " in found.reason
    assert found.observed == 3
    assert "taskset" not in str(found.fix)  # it would change nothing
    command = "sudo systemctl set-property --runtime feed.service AllowedCPUs=0-1"
    assert str(found.fix) == f"{command}; for the next boot, say AllowedCPUs=0-1 at {place}"


@pytest.mark.parametrize("threads", [1, 2])
def test_a_transient_unit_on_an_isolated_cpu_is_named_and_given_other_cpus(
    lab4: Path, judge: Judge, threads: int
) -> None:
    """`systemd-run -p AllowedCPUs=2`: its unit file is systemd's own, and goes when the unit stops."""
    path = "system.slice/batch.service"
    cpuset(lab4, path, "2")
    write(lab4, f"sys/fs/cgroup/{path}/cpuset.cpus.effective", "2\n")
    write(lab4, "sys/fs/cgroup/system.slice/cpuset.cpus.effective", "0-3\n")
    unit = "run/systemd/transient/batch.service"
    write(lab4, unit, "# by systemd\n[Unit]\nDescription=sleep\n\n[Service]\nAllowedCPUs=2\nExecStart=sleep inf\n")
    rows = [Process(490 + n, "sleep", 2, "2", files=of_unit(path)) for n in range(threads)]
    found = judge(lab4, {2, 3}, CHECK, processes=rows)[TARGET]
    assert f"batch.service has AllowedCPUs=2 (/{unit}:6), which lets" in found.reason
    assert "sleep (pid 490)" in found.reason
    assert str(found.fix) == "sudo systemctl set-property --runtime batch.service AllowedCPUs=0-1"


def test_a_group_made_by_hand_is_named_by_its_path(lab4: Path, judge: Judge) -> None:
    cpuset(lab4, "batch", "2-3")
    rows = [Process(700, "sleep", 2, "2-3", busy=0.2, files=of_unit("batch"))]
    found = judge(lab4, {2, 3}, CHECK, processes=rows)[TARGET]
    assert "/batch has cpuset.cpus=2-3, which lets the thread run here: sleep (pid 700)" in found.reason
    assert str(found.fix) == "echo 0-1 | sudo tee /sys/fs/cgroup/batch/cpuset.cpus"


def test_a_slice_that_lets_services_onto_isolated_cpus_is_named_once(lab4: Path, judge: Judge) -> None:
    cpuset(lab4, "system.slice", "0-3")
    control = "etc/systemd/system.control/system.slice.d/50-AllowedCPUs.conf"
    write(lab4, control, "# by systemctl\n[Slice]\nAllowedCPUs=0-3\n")
    rows = [
        Process(700 + n, name, 2, "0-3", visits_per_s=40, files=of_unit(f"system.slice/{name}.service"))
        for n, name in enumerate(("cron", "dbus", "sshd"))
    ]
    found = judge(lab4, {2, 3}, CHECK, processes=rows)[TARGET]
    assert found.reason.count("has AllowedCPUs") == 1
    assert f"(/{control}:3), which lets 3 threads run here: cron (pid 700); dbus (pid 701)" in found.reason
    assert str(found.fix) == "sudo systemctl set-property system.slice AllowedCPUs=0-1"


FOO = of_unit("system.slice/foo.service")
CONFINED = "sudo systemctl set-property --runtime foo.service AllowedCPUs=0-1"
KEEPS_MASKS = "sys/fs/cgroup/cpuset.cpus.isolated"


def strays(number: int, files: dict[str, str], **other: Any) -> list[Process]:
    """Processes that are pinned to isolated CPUs, to one after the other."""
    cpus = [2 + n % 2 for n in range(number)]
    return [Process(700 + n, "worker", cpu, str(cpu), files=files, **other) for n, cpu in enumerate(cpus)]


def test_several_processes_of_a_unit_are_one_step_with_the_unit(lab4: Path, judge: Judge) -> None:
    """On whichever isolated CPU they are; a passer-by and a process without a unit stay as they are."""
    write(lab4, KEEPS_MASKS, "\n")
    passes = Process(800, "cron", cpu=2, allowed="0-3", visits_per_s=40, files=of_unit("system.slice/cron.service"))
    lone = Process(801, "sleep", cpu=3, allowed="3")
    found = judge(lab4, {2, 3}, CHECK, processes=[*strays(12, FOO), passes, lone])
    said = "foo.service: 12 processes are pinned to isolated CPUs: worker (pid 700); worker (pid 701); "
    step = f"{CONFINED}; it holds until the next boot; AllowedCPUs= in its unit does it at each; if these are "
    for cpu, other in ((2, 800), (3, 801)):
        finding = found[f"check.movable_threads[{cpu}]"]
        assert said in finding.reason
        assert finding.observed == 7
        assert list(map(str, finding.fix.commands)) == [CONFINED, f"sudo taskset -cp 0-1 {other}"]
        assert str(finding.fix).startswith(step)
    commands = [action["command"] for action in actions_of(found.values())]
    assert sorted(map(str, commands)) == [CONFINED, "sudo taskset -cp 0-1 800", "sudo taskset -cp 0-1 801"]


def test_a_units_real_time_spinners_are_calmed_before_they_are_confined(lab4: Path, judge: Judge) -> None:
    write(lab4, KEEPS_MASKS, "\n")
    found = judge(lab4, {2, 3}, CHECK, processes=strays(2, FOO, busy=0.9, policy=1, rt_priority=5))[TARGET]
    calmed = [f"sudo chrt -o -p 0 {pid}" for pid in (700, 701)]
    assert list(map(str, found.fix.commands)) == [*calmed, CONFINED]


def test_a_unit_that_pins_all_its_processes_is_named_with_its_line(lab4: Path, judge: Judge) -> None:
    write(lab4, KEEPS_MASKS, "\n")
    write(lab4, f"{SYSTEM}/foo.service", "[Service]\nExecStart=/opt/foo\nCPUAffinity=2 3\n")
    found = judge(lab4, {2, 3}, CHECK, processes=strays(2, FOO))[TARGET]
    assert str(found.fix).endswith(f"for its next start, give CPUAffinity= at /{SYSTEM}/foo.service:3 other CPUs")


@pytest.mark.parametrize(
    ("number", "files", "said"),
    [
        (1, FOO, {KEEPS_MASKS: "\n"}),
        (2, FOO, {}),  # a kernel that would forget where other services' threads wanted to be
        (2, FOO, {KEEPS_MASKS: "\n", f"{SYSTEM}/foo.service": "[Service]\nAllowedCPUs=0-3\n"}),
        (2, of_unit("user.slice/user-1000.slice/session-3.scope"), {KEEPS_MASKS: "\n"}),
        (2, of_unit("user.slice/user-1000.slice/user@1000.service"), {KEEPS_MASKS: "\n"}),
        (2, {}, {KEEPS_MASKS: "\n"}),
    ],
    ids=["one process", "an old kernel", "its CPUs are said", "a login", "a user's manager", "no unit"],
)
def test_other_processes_are_moved_one_by_one(
    lab4: Path, judge: Judge, number: int, files: dict[str, str], said: dict[str, str]
) -> None:
    for path, text in said.items():
        write(lab4, path, text)
    found = judge(lab4, {2, 3}, CHECK, processes=strays(number, files))[TARGET]
    assert [str(command) for command in found.fix.commands] == ["sudo taskset -cp 0-1 700"]


def test_a_unit_that_a_declared_thread_lives_in_is_not_confined(lab4: Path, judge: Judge) -> None:
    write(lab4, KEEPS_MASKS, "\n")
    declared = Trading("engine", "foo.service", "", "engine", 2, "other", 0, False, ())
    engine = Process(710, "engine", cpu=2, allowed="2", files=FOO)
    found = judge(lab4, {2, 3}, CHECK, processes=[*strays(3, FOO), engine], trading=[declared])[TARGET]
    assert [str(command) for command in found.fix.commands] == [f"sudo taskset -cp 0-1 {pid}" for pid in (700, 702)]


@pytest.mark.parametrize(
    ("group", "cpus", "allowed"),
    [("system.slice/a.service", "", "2"), ("system.slice/a.service", "0-3", "2"), ("system.slice", "0-1", "2")],
)
def test_a_thread_that_chose_its_cpu_is_no_units_fault(
    lab4: Path, judge: Judge, group: str, cpus: str, allowed: str
) -> None:
    cpuset(lab4, group, cpus)
    found = judge(lab4, {2, 3}, CHECK, processes=[Process(700, "own", 2, allowed, files=of_unit(group))])
    assert str(found[TARGET].fix).startswith("sudo taskset -cp 0-1 700")
