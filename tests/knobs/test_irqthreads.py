"""Threads of interrupts: the boot argument that makes them, and the priority that the host file gives a card's."""

import errno
import os
import shutil
import subprocess
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from tests.fake_kernel import KernelRoot, Manners
from tests.hosts.tree import Tree
from tests.hosts.user_files import write_irq_thread
from tests.trees import write
from tests.tuned import apply, inspection_on, judged, restore, results
from tunectl.errors import UsageError
from tunectl.host.scheduling import read_scheduling, set_scheduling
from tunectl.host.sysroot import Sysroot
from tunectl.knobs.drivers.confined import confined
from tunectl.model import Finding
from tunectl.tuning.restore import Restored


def finding(root: Path, target: str) -> Finding:
    return judged(root, target.partition("[")[0])[target]


def threaded(host: Path, *words: str) -> Path:
    """A host file that asks for threads, on a boot with these words."""
    line = host / "proc/cmdline"
    line.write_text(" ".join([line.read_text().rstrip(), *words]) + "\n")
    host_file = host / "etc/tunectl/host.toml"
    host_file.write_text(f'{host_file.read_text()}[knobs]\n"boot.threadirqs" = true\n')
    apply(host)
    return host


def test_threadirqs_shows_as_threads_of_interrupts(lab4: Path) -> None:
    threaded(lab4, "threadirqs")
    found = finding(lab4, "boot.threadirqs")
    assert (found.outcome, found.observed) == ("drifted", "0 threads of interrupts")
    assert str(found.fix) == "the kernel was built without CONFIG_IRQ_FORCED_THREADING (dmesg names the cause)"
    write_irq_thread(Tree(lab4), 900, "irq/30-eth0-rx-0", "0")
    found = finding(lab4, "boot.threadirqs")
    assert (found.outcome, found.observed) == ("compliant", "present")
    assert found.points
    assert found.points["kernel"] == "1 thread of interrupts"


def test_a_process_with_the_name_of_such_a_thread_proves_nothing(lab4: Path) -> None:
    threaded(lab4, "threadirqs")
    write_irq_thread(Tree(lab4), 900, "irq/30-a", "0")
    stat = lab4 / "proc/900/stat"
    stat.write_text(stat.read_text().replace(f" {0x00200000} ", " 4194560 "))  # of user space
    assert finding(lab4, "boot.threadirqs").observed == "0 threads of interrupts"


def test_threads_of_some_drivers_are_not_threadirqs(lab4: Path) -> None:
    threaded(lab4)
    write_irq_thread(Tree(lab4), 900, "irq/30-eth0-rx-0", "0")
    assert finding(lab4, "boot.threadirqs").outcome == "pending-reboot"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("sys/kernel/realtime", "1\n"),
        ("proc/version", "Linux version 6.12.1-rt-amd64 (gcc) #1 SMP PREEMPT_RT Debian 6.12.1-1 (2026-01-01)\n"),
    ],
)
def test_preempt_rt_has_threads_of_interrupts_whatever_its_command_line_says(lab4: Path, path: str, text: str) -> None:
    write(lab4, path, text)
    threaded(lab4)
    found = finding(lab4, "boot.threadirqs")
    assert (found.outcome, found.observed) == ("compliant", "always")
    assert found.reason.startswith("PREEMPT_RT runs every interrupt in a thread")


THREAD, STAT = "irq/31-virtio0-input.0", "proc/931/stat"
TARGET = "irq.thread_priority[31]"


def asked(host: Path, priority: int = 60, pid: int = 931) -> Path:
    """A host file for eth0, whose interrupt 31 has a thread."""
    write_irq_thread(Tree(host), pid, THREAD, "0")
    host_file = host / "etc/tunectl/host.toml"
    more = f'[network]\ninterfaces = ["eth0"]\n[knobs]\n"irq.thread_priority" = {priority}\n'
    host_file.write_text(f"{host_file.read_text()}{more}")
    return host


def gone(host: Path, pid: int = 931) -> None:
    shutil.rmtree(host / f"proc/{pid}")


def scheduled(host: Path, path: str = STAT) -> str | None:
    return read_scheduling(Sysroot(str(host)), path)


def undone(host: Path, path: str = STAT) -> Restored:
    return next(one for one in restore(host).outcome.results if one.path == f"/{path}")


def test_a_cards_threads_get_their_priority_and_have_it_back(lab4: Path) -> None:
    before = (asked(lab4) / STAT).read_bytes()
    found = finding(lab4, TARGET)
    assert (found.outcome, found.observed, found.desired) == ("drifted", "fifo 50", "fifo 60")
    assert found.reason == f"{THREAD} (pid 931), the thread of interrupt 31 of eth0, runs as fifo 50"
    apply(lab4)
    assert scheduled(lab4) == scheduled(lab4, "proc/931/task/931/stat") == f"fifo:60 100 {THREAD}"
    assert finding(lab4, TARGET).outcome == "compliant"
    assert undone(lab4).result == "restored"
    assert (lab4 / STAT).read_bytes() == before


def test_both_threads_of_one_interrupt_count(lab4: Path) -> None:
    """A driver with a thread of its own has a second one, once all are forced into threads."""
    write_irq_thread(Tree(asked(lab4)), 950, "irq/31-s-virtio0-input.0", "0", priority=60)
    assert "(pid 931)" in finding(lab4, TARGET).reason
    apply(lab4)
    assert finding(lab4, TARGET).outcome == "compliant"
    write_irq_thread(Tree(lab4), 950, "irq/31-s-virtio0-input.0", "0", priority=50)
    assert "(pid 950)" in finding(lab4, TARGET).reason


def test_what_has_no_thread_is_not_there_to_be_set(lab4: Path) -> None:
    asked(lab4)
    gone(lab4)
    found = finding(lab4, TARGET)
    assert found.outcome == "unsupported"
    assert "interrupt 31 of eth0 has no thread: the kernel runs it at once" in found.reason
    for irq in (30, 31, 32):
        write(lab4, f"sys/kernel/irq/{irq}/actions", "\n")
    assert "uses no interrupt" in finding(lab4, "irq.thread_priority[eth0]").reason
    for place in lab4.glob("proc/[0-9]*"):
        shutil.rmtree(place)
    assert "no kernel threads can be seen" in finding(lab4, "irq.thread_priority[eth0]").reason


def test_threads_that_are_lost_are_named(lab4: Path) -> None:
    """The next boot had no threadirqs: what was in force is not."""
    apply(asked(lab4))
    gone(lab4)
    found = finding(lab4, TARGET)
    assert found.outcome == "drifted"
    assert "tunectl had it in force" in found.reason


def test_an_interrupt_that_is_requested_again_has_a_new_thread(lab4: Path) -> None:
    """The interface went down and up: the kernel starts the new one as it starts all."""
    apply(asked(lab4))
    gone(lab4)
    write_irq_thread(Tree(lab4), 970, THREAD, "0")
    assert "(pid 970)" in finding(lab4, TARGET).reason
    found = undone(lab4)
    assert found.result == "gone"
    assert found.message == (
        f"the thread has ended: {THREAD}, fifo 50 before apply; another thread has its name now (pid 970, fifo 50)"
    )


def test_each_of_both_threads_is_brought_back_to_its_own(lab4: Path) -> None:
    apply(asked(lab4))
    gone(lab4)
    write_irq_thread(Tree(lab4), 970, THREAD, "0", priority=40)
    apply(lab4)
    assert scheduled(lab4, "proc/970/stat") == f"fifo:60 100 {THREAD}"
    results = {one.path: one.result for one in restore(lab4).outcome.results if one.path.endswith("0/stat")}
    assert results == {"/proc/970/stat": "restored", "/proc/970/task/970/stat": "restored"}
    assert scheduled(lab4, "proc/970/stat") == f"fifo:40 100 {THREAD}"


@pytest.mark.parametrize("other", [("bash", "100"), (THREAD, "7777")])
def test_another_thread_with_the_same_number_is_left_alone(lab4: Path, other: tuple[str, str]) -> None:
    apply(asked(lab4))
    for place in (STAT, "proc/931/task/931/stat"):
        text = (lab4 / place).read_text()
        comm, began = other
        (lab4 / place).write_text(text.replace(THREAD, comm).replace(" 1 0 100 0 0 ", f" 1 0 {began} 0 0 "))
    before = (lab4 / STAT).read_bytes()
    assert undone(lab4).result == "gone"
    assert (lab4 / STAT).read_bytes() == before


def test_a_number_that_is_used_again_is_restored_to_what_its_own_thread_had(lab4: Path) -> None:
    apply(asked(lab4))
    gone(lab4)
    write_irq_thread(Tree(lab4), 931, THREAD, "0", priority=40)
    for place in (STAT, "proc/931/task/931/stat"):
        cut = (lab4 / place).read_text()
        (lab4 / place).write_text(cut.replace(" 1 0 100 0 0 ", " 1 0 7777 0 0 "))
    apply(lab4)
    assert scheduled(lab4) == f"fifo:60 7777 {THREAD}"
    assert undone(lab4).result == "restored"
    assert scheduled(lab4) == f"fifo:40 7777 {THREAD}"


def test_what_somebody_changed_since_is_left_alone(lab4: Path) -> None:
    apply(asked(lab4))
    write_irq_thread(Tree(lab4), 931, THREAD, "0", priority=70)
    assert undone(lab4).result == "changed-since"
    assert scheduled(lab4) == f"fifo:70 100 {THREAD}"


def test_a_deadline_thread_is_not_written(lab4: Path) -> None:
    """Its runtime and its deadline do not stand in the stat file: restore could not bring them back."""
    asked(lab4)
    for place in (STAT, "proc/931/task/931/stat"):
        (lab4 / place).write_text((lab4 / place).read_text().replace(" 50 1 ", " 0 6 "))
    before = (lab4 / STAT).read_bytes()
    apply(lab4)
    found = finding(lab4, TARGET)
    assert (found.outcome, found.observed) == ("drifted", "deadline")
    assert "restore could not bring back" in found.reason
    assert (lab4 / STAT).read_bytes() == before


@pytest.mark.parametrize("number", [errno.EPERM, errno.ESRCH])
def test_a_call_that_is_refused_changes_nothing(lab4: Path, number: int) -> None:
    root = KernelRoot(asked(lab4), Manners(errors={STAT: number}))
    done = results(apply(root))
    assert done[TARGET] == "failed"
    assert scheduled(lab4) == f"fifo:50 100 {THREAD}"
    assert all(one.path != f"/{STAT}" for one in restore(lab4).outcome.results)


@pytest.mark.parametrize(
    ("value", "ends"),
    [
        *((value, nullcontext()) for value in ("1", "99")),
        *((value, pytest.raises(UsageError, match=r"irq\.thread_priority.*1 to 99")) for value in ("0", "100", "true")),
    ],
)
def test_the_limits_of_a_priority(lab4: Path, value: str, ends: AbstractContextManager[object]) -> None:
    host_file = lab4 / "etc/tunectl/host.toml"
    host_file.write_text(f'{host_file.read_text()}[knobs]\n"irq.thread_priority" = {value}\n')
    with ends:
        inspection_on(lab4)


def test_a_real_thread_is_scheduled_and_known_again() -> None:
    """sched_setscheduler(2) itself, on a process of this machine."""
    if os.geteuid():
        pytest.skip("needs root, for SCHED_FIFO")
    with subprocess.Popen(["sleep", "60"]) as child:
        path = f"proc/{child.pid}/stat"
        before = read_scheduling(Sysroot("/"), path)
        assert before
        assert before.startswith("other:0 ")
        wanted = before.replace("other:0", "fifo:7")
        set_scheduling(path, wanted)
        assert read_scheduling(Sysroot("/"), path) == wanted
        assert os.sched_getscheduler(child.pid) == os.SCHED_FIFO
        with pytest.raises(ProcessLookupError):
            set_scheduling(path, f"{wanted}-of-another-name")
        set_scheduling(path, before)
        assert read_scheduling(Sysroot("/"), path) == before
        child.kill()
    assert read_scheduling(Sysroot("/"), path) is None


def test_the_units_that_run_apply_may_set_a_priority() -> None:
    """Seen in the lab: RestrictRealtime=yes refuses sched_setscheduler(2) with EPERM for the threads of others, too."""
    assert "RestrictRealtime" not in confined(("/usr/bin/tunectl",))
