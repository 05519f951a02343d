"""check.ipis: interrupts that other CPUs send to an isolated one, and who sends them."""

import errno
import os
import re
import runpy
from dataclasses import replace
from pathlib import Path

import pytest

from tests.checking.fake_kernel import FakeKernel, Process, Row
from tests.checks.conftest import Judge, scope_of
from tunectl.checking.ipis import PER_S, IpiTrace, Kind, Sent, trace_senders
from tunectl.checking.measure import measure
from tunectl.checking.outcomes import Settled
from tunectl.checking.runner import shipped_checks
from tunectl.checking.subject import Subject
from tunectl.fix import of_text
from tunectl.host.procs import read_thread
from tunectl.host.sysroot import Sysroot
from tunectl.model import Outcome

CHECK = "test_ipis.py"
CALLS = "Function call interrupts"
FLUSHES = "TLB shootdowns"
READER = Process(612, "rdmsr-loop", cpu=0, allowed="0-1", busy=0.5, opened=("/dev/null", "/dev/cpu/3/msr"))
HOME = Process(700, "engine", cpu=2, allowed="2", busy=1.0)
HELPER = Process(701, "alloc", cpu=1, allowed="0-1", busy=0.4, of=700)


def test_a_reader_of_msrs_is_named(lab4: Path, judge: Judge) -> None:
    found = judge(lab4, {2, 3}, CHECK, rows=[Row("CAL", CALLS, {0: 50.0, 3: 190.0})], processes=[READER])
    hit = found["check.ipis[3]"]
    assert hit.outcome == Outcome.DRIFTED
    assert "function calls" in hit.reason
    assert "rdmsr-loop (pid 612) has /dev/cpu/3/msr open" in hit.reason
    assert str(hit.fix) == "have it leave CPU 3 out, or end it: sudo kill 612"
    assert isinstance(hit.observed, float)
    assert 100 < hit.observed < 300
    assert found["check.ipis[2]"].outcome == Outcome.COMPLIANT


@pytest.mark.parametrize(("per_s", "outcome"), [(PER_S, Outcome.COMPLIANT), (PER_S + 1, Outcome.DRIFTED)])
def test_what_comes_less_often_than_ten_times_a_second_is_left_alone(
    lab4: Path, judge: Judge, per_s: float, outcome: Outcome
) -> None:
    """docs/isolation.md, "What an isolated CPU may take"."""
    found = judge(lab4, {2, 3}, CHECK, rows=[Row("CAL", CALLS, {3: per_s})], processes=[READER])
    assert found["check.ipis[3]"].outcome == outcome


def test_a_service_is_ended_by_its_unit(lab4: Path, judge: Judge) -> None:
    service = replace(READER, files={"cgroup": "0::/system.slice/turbostat.service\n"})
    found = judge(lab4, {2, 3}, CHECK, rows=[Row("CAL", CALLS, {3: 190.0})], processes=[service])
    assert str(found["check.ipis[3]"].fix).endswith("end it: sudo systemctl stop turbostat.service")


@pytest.mark.parametrize(
    ("row", "processes"),
    [
        (Row("CAL", CALLS, {0: 190.0, 3: 3.0}), [replace(READER, opened=("/dev/cpu/0/msr",))]),
        (Row("TLB", FLUSHES, {0: 500.0, 1: 500.0}), [HOME, HELPER]),
        # It sleeps, and each message wakes it by a reschedule: that is how it works.
        (
            Row("RES", "Rescheduling interrupts", {2: 390.0}),
            [Process(705, "feed", cpu=2, allowed="2", visits_per_s=400.0)],
        ),
    ],
    ids=["a reader of a housekeeping CPU", "threads on many CPUs", "a thread that is woken often"],
)
def test_what_disturbs_no_isolated_cpu_is_silent(lab4: Path, judge: Judge, row: Row, processes: list[Process]) -> None:
    found = judge(lab4, {2, 3}, CHECK, rows=[row], processes=processes)
    assert {one.outcome for one in found.values()} == {Outcome.COMPLIANT}


def test_shootdowns_name_the_process_that_shares_its_memory(lab4: Path, judge: Judge) -> None:
    rows = [Row("CAL", CALLS, {2: 80.0}), Row("TLB", FLUSHES, {2: 80.0})]
    found = judge(lab4, {2, 3}, CHECK, rows=rows, processes=[HOME, HELPER, replace(READER, opened=("/dev/cpu/2/msr",))])
    hit = found["check.ipis[2]"]
    assert "TLB shootdowns" in hit.reason
    assert "engine (pid 700) has a thread here and shares its memory with alloc (tid 701) on CPU 1" in hit.reason
    assert "rdmsr-loop" not in hit.reason  # there are no more calls than shootdowns
    assert "keep the other threads of engine (pid 700) from unmapping" in str(hit.fix)
    assert found["check.ipis[3]"].outcome == Outcome.COMPLIANT


@pytest.mark.parametrize(("calls_per_s", "named"), [(80.0 + PER_S, False), (80.0 + PER_S + 1, True)])
def test_a_reader_is_named_for_the_calls_that_were_no_shootdowns(
    lab4: Path, judge: Judge, calls_per_s: float, named: bool
) -> None:
    rows = [Row("CAL", CALLS, {2: calls_per_s}), Row("TLB", FLUSHES, {2: 80.0})]
    reader = replace(READER, opened=("/dev/cpu/2/msr",))
    hit = judge(lab4, {2, 3}, CHECK, rows=rows, processes=[HOME, HELPER, reader])["check.ipis[2]"]
    assert ("rdmsr-loop" in hit.reason) is named
    assert "alloc (tid 701)" in hit.reason


def test_irq_work_is_the_cpus_own_and_names_a_cpu_timer(lab4: Path, judge: Judge) -> None:
    """arch_irq_work_raise() interrupts the CPU that it is called on: no other CPU is to blame."""
    timed = replace(HOME, files={"timers": "ID: 0\nsignal: 14/0\nnotify: signal/pid.700\nClockID: -5598\n"})
    rows = [Row("IWI", "IRQ work interrupts", {2: 90.0, 3: 5.0})]
    for process, cause in ((HOME, "shows nowhere"), (timed, "engine (pid 700) has a POSIX CPU timer")):
        found = judge(lab4, {2, 3}, CHECK, rows=rows, processes=[process])
        hit = found["check.ipis[2]"]
        assert "CPU 2 interrupted itself" in hit.reason
        assert cause in hit.reason
        assert "other CPUs sent" not in hit.reason
        assert str(hit.fix).startswith("leave no POSIX CPU timer")
        assert found["check.ipis[3]"].outcome == Outcome.COMPLIANT


def test_an_arm_host_names_its_rows_otherwise(lab4: Path, judge: Judge) -> None:
    rows = [Row("IPI1", CALLS, {3: 190.0}), Row("IPI2", "CPU stop interrupts", {2: 190.0})]
    found = judge(lab4, {2, 3}, CHECK, rows=rows)
    assert found["check.ipis[3]"].outcome == Outcome.DRIFTED
    assert "who sends them shows nowhere" in found["check.ipis[3]"].reason
    assert found["check.ipis[2]"].outcome == Outcome.COMPLIANT


def named(
    host: Path | Sysroot, trace: IpiTrace, *processes: Process, kind: Kind = Kind.CALL
) -> tuple[list[str], list[str]]:
    """Who is named for 190 interrupts a second of a kind to CPU 3, and the fixes, with this trace of root's."""
    module, root = runpy.run_path(str(shipped_checks() / CHECK)), Sysroot(str(host)) if isinstance(host, Path) else host
    subject = Subject(root, scope_of(root, frozenset({2, 3})), 2.0, {}, print)
    vars(subject)["ipi_trace"] = trace
    with FakeKernel(Path(root.root), range(4), [Row("CAL", CALLS, {3: 190.0})], list(processes)):
        seen = measure(root, 2.0)
        names, fixes = module["_named"](3, [Sent(kind, 380, 2.0)], seen, subject)
    return names, list(map(str, fixes))


def test_nothing_is_traced_beside_a_declared_thread_that_sleeps() -> None:
    """Whatever the tests run on: to trace would interrupt each of its CPUs."""
    root, said = Sysroot(), list[str]()
    subject = Subject(root, scope_of(root, frozenset()), 2.0, {}, said.append)
    mine = read_thread(root, os.getpid(), os.getpid())
    vars(subject).update(hidden="", trading_threads={"rx": (mine,)}, window=Settled(Outcome.UNREADABLE, "not watched"))
    assert "nothing is traced" in subject.ipi_trace.lack
    assert said == []


def line(who: str, times: int) -> str:
    return f" {who} [001] d..1. 100.000001: ipi_send_cpu: cpu=3 callsite=one+0x3/0x9 callback=__rdmsr+0x0/0x5\n" * times


def test_senders_that_only_together_send_many_are_all_named(lab4: Path) -> None:
    """Each of them alone is one that a quiet CPU would let pass."""
    readers = [Process(pid, f"agent{pid}", cpu=0, allowed="0-1") for pid in (612, 613)]
    trace = IpiTrace(line("agent612-612", 4) + line("agent613-613", 3))
    names, fixes = named(lab4, trace, *readers)
    assert [name.partition(" sent ")[0] for name in names] == ["agent612 (pid 612)", "agent613 (pid 613)"]
    assert [fix.rpartition(": ")[2] for fix in fixes] == ["sudo kill 612", "sudo kill 613"]
    names, _ = named(lab4, IpiTrace(line("agent612-612", 3) + line("agent613-613", 2)), *readers)
    assert names == ["who sends them shows nowhere"]  # five in half a second are what is let pass


def test_a_sender_whose_name_the_trace_forgot_is_looked_up(lab4: Path) -> None:
    here = Process(612, "agent", cpu=0, allowed="0-1")
    names, fixes = named(lab4, IpiTrace(line("<...>-612", 9)), here)
    assert names[0].startswith("agent (pid 612) sent 9")
    assert fixes[0].startswith("have agent (pid 612) leave CPU 3 out")
    names, fixes = named(lab4, IpiTrace(line("<...>-613", 9)), here)
    assert names[0].startswith("a process that has ended (pid 613) sent 9")
    assert fixes == ["see who starts it: process 613 has ended"]


def test_who_cannot_be_named_is_said_with_why(lab4: Path) -> None:
    why = IpiTrace("", "this kernel has no tracepoints for what CPUs send each other", of_text("decide"))
    assert named(lab4, why) == ([f"who sends them shows nowhere, and {why.lack}"], ["decide"])
    assert trace_senders(Sysroot(str(lab4)), frozenset({0})).lack == "tracefs is not mounted, which names senders"
    place = lab4 / "sys/kernel/tracing"
    place.mkdir(parents=True)
    (place / "current_tracer").write_text("nop\n")
    assert trace_senders(Sysroot(str(lab4)), frozenset({0})).lack == why.lack


class Closed(Sysroot):
    """A host on which another user's open files may not be looked at."""

    def names(self, path: str) -> list[str]:
        if path.endswith("/fd"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return super().names(path)


@pytest.mark.parametrize("kind", [Kind.CALL, Kind.TLB, Kind.WAKE])
def test_what_only_root_sees_is_said(lab4: Path, kind: Kind) -> None:
    """Root's trace names the sender of each kind; whoever is not root hears that."""
    stranger = Process(612, "agent", cpu=0, allowed="0-1")
    names, fixes = named(Closed(str(lab4)), IpiTrace(""), stranger, kind=kind)
    (name,) = names
    assert re.fullmatch(r"who sends them shows nowhere, and the files of \d+ processes are root's to see", name)
    assert fixes == ["find the sender: as root, tunectl check"]
