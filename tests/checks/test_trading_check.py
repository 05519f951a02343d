"""The checks of the operator's own threads, on a fake host that runs."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.checking.fake_kernel import BOUND, KTHREAD, FakeKernel, Process
from tests.checks.conftest import Judge
from tests.lab.follow import steps
from tests.trees import write
from tunectl.model import Finding, Outcome, Trading

pytestmark = pytest.mark.slow

CHECK = "test_trading.py"
FEED = Trading("rx", "feed.service", "", "rx", 2, "fifo", 50, True, ("eth0",))
BOOK = Trading("book", "", "orderbook", "", 3, "other", 0, False, ("rx",))
LOCKED = "Name:\trx\nVmLck:\t  4096 kB\nVmRSS:\t  4000 kB\n"
FILES = {"cgroup": "0::/isolated.slice/feed.service\n", "status": LOCKED}
RX = Process(700, "rx", cpu=2, allowed="2", busy=1.0, policy=1, rt_priority=50, files=FILES)
ORDERBOOK = Process(701, "orderbook", cpu=3, allowed="3", busy=0.9)
OWN = Process(710, "ksoftirqd/2", cpu=2, allowed="2", flags=BOUND)


def quiet(host: Path) -> Path:
    """The interrupts of the card go to housekeeping CPUs."""
    for irq in (30, 31, 32):
        for name in ("smp_affinity_list", "effective_affinity_list"):
            (host / f"proc/irq/{irq}/{name}").write_text("0-1\n")
    return host


def found_on(
    host: Path, judge: Judge, *processes: Process, declared: tuple[Trading, ...] = (FEED, BOOK)
) -> dict[str, Finding]:
    return judge(host, {2, 3}, CHECK, trading=declared, processes=[OWN, *processes])


def test_threads_as_declared_are_silent(lab4: Path, judge: Judge) -> None:
    found = found_on(quiet(lab4), judge, RX, ORDERBOOK)
    assert {one.outcome for one in found.values()} <= {Outcome.COMPLIANT, Outcome.UNSUPPORTED}
    assert found["check.trading_thread[rx]"].outcome == Outcome.COMPLIANT


@pytest.mark.parametrize(("columns", "outcome"), [(11, Outcome.UNREADABLE), (13, Outcome.COMPLIANT)])
def test_a_backlog_without_the_number_of_its_cpu_is_not_known(
    lab4: Path, judge: Judge, columns: int, outcome: Outcome
) -> None:
    """The kernel's lines are of online CPUs in order, so without the number in them a line may be any CPU's."""
    lines = [" ".join(["00000000"] * 12 + [f"{cpu:08x}"]) for cpu in range(4)]
    (lab4 / "proc/net").mkdir(exist_ok=True)
    (lab4 / "proc/net/softnet_stat").write_text("".join(" ".join(one.split()[:columns]) + "\n" for one in lines))
    assert found_on(quiet(lab4), judge, RX, ORDERBOOK)["check.trading_fed[rx]"].outcome == outcome


@pytest.mark.parametrize(
    ("process", "fix"),
    [
        (replace(RX, allowed="2-3"), "sudo taskset -cp 2 700"),
        (replace(RX, allowed="3", cpu=3), "sudo taskset -cp 2 700"),
        (replace(RX, policy=0, rt_priority=0), "chrt -f -p 50 700"),
        (replace(RX, rt_priority=98), "chrt -f -p 50 700"),
        (replace(RX, policy=2), "chrt -f -p 50 700"),
    ],
)
def test_a_thread_that_runs_otherwise(lab4: Path, judge: Judge, process: Process, fix: str) -> None:
    finding = found_on(quiet(lab4), judge, process, ORDERBOOK)["check.trading_thread[rx]"]
    assert finding.outcome == Outcome.DRIFTED
    assert fix in str(finding.fix)


@pytest.mark.parametrize(
    ("own", "effective", "told"),
    [
        ("0-1", "0-1", "sudo systemctl set-property --runtime feed.service AllowedCPUs=0-2; "),
        ("", "0-1", "have its unit live where that CPU is: Slice=isolated.slice"),
        ("0-2", "0-2", "sudo taskset -cp 2 700"),
    ],
    ids=["its unit", "a partition took it", "the group has it"],
)
def test_a_group_without_its_cpu_gets_that_first(lab4: Path, judge: Judge, own: str, effective: str, told: str) -> None:
    """taskset(1) is refused a CPU that the group does not allow."""
    write(lab4, "sys/fs/cgroup/isolated.slice/feed.service/cpuset.cpus", f"{own}\n")
    write(lab4, "sys/fs/cgroup/isolated.slice/feed.service/cpuset.cpus.effective", f"{effective}\n")
    finding = found_on(quiet(lab4), judge, replace(RX, allowed="0-1"), ORDERBOOK)["check.trading_thread[rx]"]
    assert str(finding.fix).startswith(told)
    assert "sudo taskset -cp 2 700" in str(finding.fix)


@pytest.mark.parametrize(("allowed", "later"), [("2", "0-3"), ("0-3", "2")], ids=["away", "home"])
def test_a_thread_that_moves_meanwhile_is_named(lab4: Path, judge: Judge, allowed: str, later: str) -> None:
    restless = replace(RX, allowed=allowed, later=later)
    finding = found_on(quiet(lab4), judge, restless, ORDERBOOK)["check.trading_thread[rx]"]
    assert finding.outcome == Outcome.DRIFTED
    assert ("taskset -cp 2 700" in str(finding.fix)) is (later != "2")


def test_what_chrt_cannot_set_is_the_programs_own_to_ask_for(lab4: Path, judge: Judge) -> None:
    """SCHED_DEADLINE needs a runtime and a deadline, which nobody declared: `chrt -d -p 0` is refused."""
    declared = FEED._replace(policy="deadline", priority=0)
    finding = judge(quiet(lab4), {2, 3}, CHECK, trading=(declared,), processes=[RX])["check.trading_thread[rx]"]
    assert "sched_setattr(2) of tid 700" in str(finding.fix)
    assert "chrt" not in str(finding.fix)


def test_a_thread_that_does_not_run_is_no_verdict(lab4: Path, judge: Judge) -> None:
    wrong_unit = replace(RX, files={**FILES, "cgroup": "0::/system.slice/feed.service.d/x.service\n"})
    found = found_on(quiet(lab4), judge, wrong_unit, ORDERBOOK)
    assert found["check.trading_thread[rx]"].outcome == Outcome.UNREADABLE
    assert found["check.trading_alone[rx]"].outcome == Outcome.UNSUPPORTED
    assert found["check.trading_alone[book]"].outcome == Outcome.COMPLIANT


def test_a_declaration_that_fits_two_threads(lab4: Path, judge: Judge) -> None:
    finding = found_on(quiet(lab4), judge, RX, ORDERBOOK, replace(ORDERBOOK, pid=702))["check.trading_thread[book]"]
    assert "is 2 threads: 701, 702" in finding.reason


FIRST = Trading("one", "", "orderbook", "engine", 2, "other", 0, False, ())
SECOND = FIRST._replace(name="two", cpu=3)


def engine(tid: int, allowed: str, of: int = 0) -> Process:
    return Process(tid, "engine", cpu=int(allowed[0]), allowed=allowed, of=of)


POOL = [Process(701, "orderbook", 0, "0-1"), engine(702, "2", 701)]


@pytest.mark.parametrize(("allowed", "fix"), [("3", ""), ("0-1", "sudo taskset -cp 3 703; for its next start, ")])
def test_workers_of_one_name_are_told_apart_by_their_cpus(lab4: Path, judge: Judge, allowed: str, fix: str) -> None:
    """A pool of two threads of one name, each declared with its CPU and pinned to it, or not."""
    found = found_on(quiet(lab4), judge, *POOL, engine(703, allowed, 701), declared=(FIRST, SECOND))
    one, two = (found[f"check.trading_thread[{name}]"] for name in ("one", "two"))
    assert (one.outcome, two.outcome) == (Outcome.COMPLIANT, Outcome.DRIFTED if fix else Outcome.COMPLIANT)
    assert str(two.fix).startswith(fix)


def test_two_threads_of_one_name_and_one_declaration(lab4: Path, judge: Judge) -> None:
    """The name was said: what is left to decide is which of them gets another one."""
    found = found_on(quiet(lab4), judge, *POOL, engine(703, "0-1", 701), declared=(FIRST,))["check.trading_thread[one]"]
    assert "is 2 threads: 702, 703" in found.reason
    assert "tid 703" in str(found.fix)


def test_two_processes_of_one_name_are_told_apart_by_their_units(lab4: Path, judge: Judge) -> None:
    one = replace(ORDERBOOK, files={"cgroup": "0::/system.slice/book-a.service\n"})
    other = replace(ORDERBOOK, pid=702, files={"cgroup": "0::/system.slice/book-b.service\n"})
    found = found_on(quiet(lab4), judge, one, other, declared=(BOOK._replace(fed_by=()),))
    fix = str(found["check.trading_thread[book]"].fix)
    assert 'unit = "book-a.service" (tid 701) or unit = "book-b.service" (tid 702)' in fix


@pytest.mark.parametrize(
    "stranger",
    [Process(720, "stray", cpu=2, allowed="2"), Process(721, "cron", cpu=2, allowed="0-3", visits_per_s=40)],
    ids=lambda one: one.comm,
)
def test_a_thread_beside_it_is_found(lab4: Path, judge: Judge, stranger: Process) -> None:
    found = found_on(quiet(lab4), judge, RX, ORDERBOOK, stranger)
    assert found["check.trading_alone[rx]"].outcome == Outcome.DRIFTED
    assert f"{stranger.comm} (tid {stranger.pid}) on its CPU" in found["check.trading_alone[rx]"].reason
    assert found["check.trading_alone[book]"].outcome == Outcome.COMPLIANT


def test_two_on_one_core_are_found(xeon: Path, judge: Judge) -> None:
    sibling = BOOK._replace(cpu=18)
    processes = [RX, replace(ORDERBOOK, cpu=18, allowed="18")]
    found = judge(xeon, {2, 3, 18, 19}, CHECK, trading=(FEED, sibling), processes=processes)
    reason = found["check.trading_alone[rx]"].reason
    assert "orderbook (tid 701) on sibling 18" in reason
    assert "book on CPU 18, the same core" in reason


@pytest.mark.parametrize(("locked", "outcome"), [(0, "drifted"), (3999, "drifted"), (4000, "compliant")])
def test_memory_that_is_not_locked(lab4: Path, judge: Judge, locked: int, outcome: str) -> None:
    status = f"Name:\trx\nVmLck:\t{locked} kB\nVmRSS:\t4000 kB\n"
    finding = found_on(quiet(lab4), judge, replace(RX, files={**FILES, "status": status}), ORDERBOOK)
    assert finding["check.trading_locked[rx]"].outcome == outcome


def mapping(kib: int, flags: str) -> str:
    return f"7f00-7f01 rw-p 00000000 00:00 0\nSize: 9999 kB\nRss: {kib} kB\nLocked: 0 kB\nVmFlags: rd wr {flags}\n"


@pytest.mark.parametrize(
    ("maps", "outcome"),
    [
        # a packet ring, [vdso]
        (mapping(3000, "mr lo ac") + mapping(70000, "mm de") + mapping(8, "de sd"), "compliant"),
        (mapping(3000, "lo") + mapping(4, "ac"), "drifted"),
        (mapping(0, "ac") + mapping(3000, "lo"), "compliant"),  # what was never touched takes no room
    ],
)
def test_each_mapping_that_can_be_locked_counts(lab4: Path, judge: Judge, maps: str, outcome: str) -> None:
    """Whatever the sums of the status file say."""
    rx = replace(RX, files={**FILES, "smaps": maps})
    assert found_on(quiet(lab4), judge, rx, ORDERBOOK)["check.trading_locked[rx]"].outcome == outcome


NEAR = "7f00 default anon=900 dirty=900 N0=900 kernelpagesize_kB=4\n"
FAR = "7f10 default file=/dev/hugepages/x huge dirty=1 N1=1 kernelpagesize_kB=2048\n"
TEXT = "5500 default file=/usr/bin/feed mapped=9000 N1=9000 kernelpagesize_kB=4\n"


@pytest.mark.parametrize(
    ("files", "outcome"),
    [
        ({"numa_maps": NEAR + TEXT}, "compliant"),
        ({"numa_maps": NEAR + FAR}, "drifted"),
        ({"numa_maps": ""}, "compliant"),
        ({}, "unreadable"),
    ],
)
def test_memory_on_another_node(xeon: Path, judge: Judge, files: dict[str, str], outcome: str) -> None:
    rx = replace(RX, files={**FILES, **files})
    found = judge(xeon, {2, 3, 18, 19}, CHECK, trading=(FEED,), processes=[rx])["check.trading_memory_local[rx]"]
    assert found.outcome == outcome


def test_a_fifo_spinner_on_the_cpu_of_its_card(lab4: Path, judge: Judge) -> None:
    (quiet(lab4) / "proc/irq/31/effective_affinity_list").write_text("2\n")
    queue = lab4 / "sys/class/net/eth0/queues/rx-0/rps_cpus"
    queue.parent.mkdir(parents=True, exist_ok=True)
    queue.write_text("00000006\n")
    found = found_on(lab4, judge, RX, ORDERBOOK)
    reason = found["check.trading_fed[rx]"].reason
    assert "interrupt 31 of eth0" in reason
    assert "RPS of eth0 rx-0" in reason
    assert found["check.trading_fed[book]"].outcome == Outcome.COMPLIANT  # not a real-time thread: it takes turns


def test_a_fifo_spinner_on_the_cpu_of_the_thread_that_feeds_it(lab4: Path, judge: Judge) -> None:
    rx = FEED._replace(fed_by=("book",))
    found = found_on(quiet(lab4), judge, RX, replace(ORDERBOOK, cpu=2, allowed="2"), declared=(rx, BOOK))
    assert "book (tid 701)" in found["check.trading_fed[rx]"].reason


def test_without_a_declaration_each_check_says_so(lab4: Path, judge: Judge) -> None:
    found = found_on(lab4, judge, declared=())
    assert {one.outcome for one in found.values()} == {Outcome.UNSUPPORTED}


def test_a_declared_thread_is_no_stranger_on_its_cpu(lab4: Path, judge: Judge) -> None:
    with FakeKernel(lab4, range(4), processes=[RX, ORDERBOOK]):
        plain = judge(lab4, {2, 3}, "test_threads.py")
        found = judge(lab4, {2, 3}, "test_threads.py", trading=(FEED, BOOK))
    moved = [f"check.movable_threads[{cpu}]" for cpu in (2, 3)]
    assert {plain[name].outcome for name in moved} == {Outcome.DRIFTED}
    assert {one.outcome for one in found.values()} == {Outcome.COMPLIANT}


def test_a_real_process_that_locked_its_memory(judge: Judge) -> None:
    if os.geteuid():
        pytest.skip("needs root, to lock memory")
    lock = "import ctypes, os, time; r = ctypes.CDLL(None).mlockall(3); os.write(1, b'%d' % r); time.sleep(60)"
    with subprocess.Popen(["tt-locker", "-c", lock], executable=sys.executable, stdout=subprocess.PIPE) as child:
        assert child.stdout
        assert child.stdout.read(1) == b"0"
        mine = Trading("locker", "", "tt-locker", "", 1, "other", 0, True, ())
        found = judge("/", {1}, CHECK, trading=(mine,))["check.trading_locked[locker]"]
        child.kill()
    assert found.outcome == Outcome.COMPLIANT, found


@pytest.mark.pins
def test_a_real_process_is_found_by_its_command_and_judged(judge: Judge) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU")
    pinned = "import os, time; os.sched_setaffinity(0, {1}); os.write(1, b'x'); time.sleep(60)"
    argv = ["tt-reader", "-c", pinned]
    with subprocess.Popen(argv, executable=sys.executable, stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.read(1)
        mine = Trading("reader", "", "tt-reader", "", 1, "other", 0, True, ())
        found = judge("/", {1}, CHECK, trading=(mine,), live_s=1.0)
        child.kill()
    assert found["check.trading_thread[reader]"].outcome == Outcome.COMPLIANT, found["check.trading_thread[reader]"]
    assert found["check.trading_locked[reader]"].outcome == Outcome.DRIFTED


IRQ_THREAD = Process(731, "irq/31-eth0-rx-0", cpu=2, allowed="2", flags=KTHREAD, policy=1, rt_priority=50)
OUTRANKS = "check.trading_outranks[rx]"
MOVED = "echo 0-1 | sudo tee /proc/irq/31/smp_affinity_list; sudo taskset -cp 0-1 731"


def _typed(finding: Finding) -> str:
    return "; ".join(map(str, finding.fix.commands))


def delivered(host: Path, cpus: str) -> Path:
    (quiet(host) / "proc/irq/31/effective_affinity_list").write_text(f"{cpus}\n")
    return host


def unpeopled(host: Path) -> None:
    """Without the kernel threads that were recorded: rcuop/2 among them."""
    for place in host.glob("proc/[0-9]*"):
        shutil.rmtree(place)


@pytest.mark.parametrize(
    ("priority", "thread", "fix"),
    [
        (50, 49, MOVED),
        (50, 50, MOVED),  # of two with one priority the first one stays
        (49, 50, ""),
        (98, 99, ""),
    ],
)
def test_a_thread_that_outranks_those_of_its_cards_interrupts(
    lab4: Path, judge: Judge, priority: int, thread: int, fix: str
) -> None:
    declared = FEED._replace(priority=priority)
    irq = replace(IRQ_THREAD, rt_priority=thread)
    own = replace(OWN, pid=20, policy=1, rt_priority=99)  # lab4 has a ksoftirqd/2 with this pid
    found = judge(delivered(lab4, "2"), {2, 3}, CHECK, trading=(declared,), processes=[irq, own, RX])[OUTRANKS]
    assert (found.outcome, _typed(found)) == (Outcome.DRIFTED if fix else Outcome.COMPLIANT, fix)
    assert f"irq/31-eth0-rx-0 (pid 731, fifo {thread})" in found.reason or not fix


def test_what_the_threads_of_interrupts_leave_is_the_cpus_own_to_do(lab4: Path, judge: Judge) -> None:
    """They are named only where a thread of the card's interrupts may run: each CPU has them."""
    own = [
        Process(741, "ktimers/2", cpu=2, allowed="2", flags=BOUND, policy=1, rt_priority=1),
        Process(742, "rcuc/2", cpu=2, allowed="2", flags=BOUND, policy=1, rt_priority=1),
        Process(743, "ktimers/3", cpu=3, allowed="3", flags=BOUND, policy=1, rt_priority=1),
    ]
    over = replace(IRQ_THREAD, rt_priority=60)
    unpeopled(lab4)
    found = found_on(delivered(lab4, "2"), judge, RX, ORDERBOOK, over, *own)[OUTRANKS]
    named = "ksoftirqd/2 (pid 710, other); ktimers/2 (pid 741, fifo 1); rcuc/2 (pid 742, fifo 1) never run"
    assert f"priority: {named}" in found.reason
    assert _typed(found) == MOVED
    offloaded = Process(744, "rcuop/2", cpu=0, allowed="0-1", flags=KTHREAD)
    found = found_on(lab4, judge, RX, ORDERBOOK, over, *own, offloaded)[OUTRANKS]
    assert "rcuc" not in found.reason


@pytest.mark.parametrize(
    "elsewhere",
    [
        replace(IRQ_THREAD, cpu=0, allowed="0-1"),
        replace(IRQ_THREAD, comm="irq/40-nvme0q1"),  # no card of its own
        replace(IRQ_THREAD, cpu=3, allowed="3"),
    ],
    ids=lambda one: f"{one.comm}-{one.allowed}",
)
def test_threads_of_interrupts_that_are_no_rivals_are_silent(lab4: Path, judge: Judge, elsewhere: Process) -> None:
    assert found_on(quiet(lab4), judge, RX, ORDERBOOK, elsewhere)[OUTRANKS].outcome == Outcome.COMPLIANT


def test_a_thread_left_behind_by_its_interrupt_is_moved_alone(lab4: Path, judge: Judge) -> None:
    """A cpuset partition that ends leaves it all CPUs; a managed interrupt's thread has a mask of its own."""
    wide = replace(IRQ_THREAD, cpu=0, allowed="0-3")
    assert _typed(found_on(quiet(lab4), judge, RX, ORDERBOOK, wide)[OUTRANKS]) == "sudo taskset -cp 0-1 731"
    (delivered(lab4, "2") / "proc/irq/31/smp_affinity_list").chmod(0o444)  # since 6.12 a managed one shows so
    assert _typed(found_on(lab4, judge, RX, ORDERBOOK, IRQ_THREAD)[OUTRANKS]) == "sudo taskset -cp 0-1 731"


def test_a_thread_comes_to_the_cpu_of_its_interrupt_with_the_next_one(lab4: Path, judge: Judge) -> None:
    """Before the session nothing came yet; that of a managed interrupt stays where somebody put it."""
    elsewhere = replace(IRQ_THREAD, cpu=0, allowed="0")
    found = found_on(delivered(lab4, "2"), judge, RX, ORDERBOOK, elsewhere)
    assert _typed(found[OUTRANKS]) == "echo 0-1 | sudo tee /proc/irq/31/smp_affinity_list"
    assert "irq/31-eth0-rx-0" in found["check.trading_fed[rx]"].reason
    (lab4 / "proc/irq/31/smp_affinity_list").chmod(0o444)
    found = found_on(lab4, judge, RX, ORDERBOOK, elsewhere)
    assert found[OUTRANKS].outcome == found["check.trading_fed[rx]"].outcome == Outcome.COMPLIANT


def test_who_is_no_fifo_thread_or_does_not_run_is_judged_by_its_declaration(lab4: Path, judge: Judge) -> None:
    found = found_on(delivered(lab4, "2"), judge, IRQ_THREAD, declared=(FEED, BOOK._replace(fed_by=("eth0",))))
    assert found[OUTRANKS].outcome == Outcome.DRIFTED
    assert found["check.trading_outranks[book]"].outcome == Outcome.COMPLIANT


def test_where_a_thread_may_run_is_read_or_unknown(lab4: Path, judge: Judge) -> None:
    hidden = replace(IRQ_THREAD, cpu=0, allowed="")
    found = found_on(quiet(lab4), judge, RX, ORDERBOOK, hidden)[OUTRANKS]
    assert found.outcome == Outcome.UNREADABLE
    assert "irq/31-eth0-rx-0 (pid 731, fifo 50)" in found.reason


def test_without_kernel_threads_in_sight_there_is_no_verdict(lab4: Path, judge: Judge) -> None:
    unpeopled(lab4)
    found = judge(delivered(lab4, "2"), {2, 3}, CHECK, trading=(FEED,), processes=[RX])[OUTRANKS]
    assert found.outcome == Outcome.UNSUPPORTED


@pytest.mark.parametrize(("priority", "named"), [(50, True), (51, False)])
def test_an_interrupt_with_a_thread_is_named_by_that(lab4: Path, judge: Judge, priority: int, named: bool) -> None:
    """The interrupt itself is not kept waiting then; a thread above the spinner is not either."""
    thread = replace(IRQ_THREAD, rt_priority=priority)
    found = found_on(delivered(lab4, "2"), judge, RX, ORDERBOOK, thread)["check.trading_fed[rx]"]
    assert "interrupt 31" not in found.reason
    assert found.outcome == (Outcome.DRIFTED if named else Outcome.COMPLIANT)
    assert ("irq/31-eth0-rx-0 (pid 731, fifo 50) of eth0" in found.reason) is named


def test_the_fix_of_a_thread_that_outranks_mends_it(lab4: Path, judge: Judge) -> None:
    """Typed on the fake host: the interrupt's files, and the mask that taskset sets."""
    thread = IRQ_THREAD
    found = found_on(delivered(lab4, "2"), judge, RX, ORDERBOOK, thread)[OUTRANKS]
    for step in steps(str(found.fix)):
        words = step.split()
        if "taskset" in words:
            thread = replace(thread, allowed=words[-2], cpu=0)
        else:
            (lab4 / words[words.index("tee") + 1].removeprefix("/")).write_text(f"{words[1]}\n")
            (lab4 / "proc/irq/31/effective_affinity_list").write_text("0\n")
    assert thread.allowed == "0-1"
    assert found_on(lab4, judge, RX, ORDERBOOK, thread)[OUTRANKS].outcome == Outcome.COMPLIANT
