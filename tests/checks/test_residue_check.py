"""check.tracing: what was left on in the kernel's tracing."""

import os
import sys
from pathlib import Path
from subprocess import run
from tempfile import TemporaryDirectory

import pytest

from tests.checks.conftest import Judge
from tests.trees import write
from tunectl.model import Finding, Outcome

CHECK = "test_residue.py"
AT = "sys/kernel/tracing"


@pytest.fixture
def quiet(lab4: Path) -> Path:
    """A host with tracefs, as it is after boot."""
    for name, text in {
        "current_tracer": "nop\n",
        "set_event": "",
        "kprobe_events": "",
        "uprobe_events": "",
        "function_profile_enabled": "0\n",
        "tracing_on": "1\n",
    }.items():
        write(lab4, f"{AT}/{name}", text)
    write(lab4, "proc/sys/kernel/stack_tracer_enabled", "0\n")
    write(lab4, "sys/kernel/debug/kprobes/list", "")
    return lab4


def tracing(host: Path, judge: Judge) -> Finding:
    return judge(host, {2, 3}, CHECK)["check.tracing"]


def test_a_host_that_traces_nothing_is_silent(quiet: Path, judge: Judge) -> None:
    assert tracing(quiet, judge).outcome == Outcome.COMPLIANT


@pytest.mark.parametrize(
    ("file", "text", "reason", "off"),
    [
        ("current_tracer", "function\n", "the tracer function", "echo nop"),
        ("set_event", "a:b\nirq:irq_handler_entry\n", "events a:b; irq:irq_handler_entry", "echo"),
        ("function_profile_enabled", "1\n", "every kernel function is timed", "echo 0"),
    ],
)
def test_what_is_left_on_is_named(quiet: Path, judge: Judge, file: str, text: str, reason: str, off: str) -> None:
    write(quiet, f"{AT}/{file}", text)
    found = tracing(quiet, judge)
    assert found.outcome == Outcome.DRIFTED
    assert reason in found.reason
    assert str(found.fix) == f"{off} | sudo tee /{AT}/{file}"


def test_a_probe_that_is_on_is_named_and_taken_away(quiet: Path, judge: Judge) -> None:
    """The event has to go off first: the kernel refuses to take away a probe that is on."""
    write(quiet, f"{AT}/kprobe_events", "p:kprobes/mine do_nanosleep\nr4:kprobes/back do_exit\n")
    write(quiet, f"{AT}/set_event", "kprobes:mine\n")
    write(quiet, "sys/kernel/debug/kprobes/list", "ffffffff8111  k  do_nanosleep+0x0    [FTRACE]\n")
    found = tracing(quiet, judge)
    assert "probes of kprobe_events: kprobes:mine" in found.reason
    events, kprobes = "/sys/kernel/tracing/set_event", "/sys/kernel/tracing/kprobe_events"
    assert str(found.fix) == f"echo | sudo tee {events}; echo -:kprobes/mine | sudo tee -a {kprobes}"
    assert "perf or BPF" not in found.reason


def test_a_probe_that_is_defined_and_off_costs_nothing(quiet: Path, judge: Judge) -> None:
    write(quiet, f"{AT}/kprobe_events", "p:probe/do_nanosleep _text+12345\n")
    write(quiet, "sys/kernel/debug/kprobes/list", "ffffffff8111  k  do_nanosleep+0x0    [DISABLED][FTRACE]\n")
    found = tracing(quiet, judge)
    assert found.outcome == Outcome.COMPLIANT
    assert "probe probe:do_nanosleep is defined and off" in found.reason


def test_a_kprobe_of_a_program_names_who_holds_it(quiet: Path, judge: Judge) -> None:
    write(quiet, "sys/kernel/debug/kprobes/list", "ffffffff8111  k  do_nanosleep+0x0    [FTRACE]\n")
    held(quiet, 900, "bpftrace", PERF)
    found = tracing(quiet, judge)
    assert "kprobes of a program, by perf or BPF, on do_nanosleep, held by bpftrace (pid 900)" in found.reason
    assert str(found.fix) == "end the program that holds them: sudo kill 900"


def held(host: Path, pid: int, comm: str, *descriptors: tuple[str, str]) -> None:
    """A process of one thread with these descriptors: (what it is, its fdinfo)."""
    write(host, f"proc/{pid}/comm", f"{comm}\n")
    write(host, f"proc/{pid}/stat", f"{pid} ({comm}) S 1\n")
    (host / f"proc/{pid}/task/{pid}").mkdir(parents=True)
    (host / f"proc/{pid}/fd").mkdir()
    for number, (link, info) in enumerate(descriptors, 3):
        (host / f"proc/{pid}/fd/{number}").symlink_to(link)
        write(host, f"proc/{pid}/fdinfo/{number}", f"pos:\t0\nflags:\t02000000\n{info}")


PERF = ("anon_inode:[perf_event]", "")


@pytest.mark.parametrize(
    ("descriptors", "what"),
    [
        ([("anon_inode:bpf_link", "link_type:\traw_tracepoint\ntp_name:\ta\n")], "raw_tracepoint a"),
        ([("anon_inode:[bpf_link]", "link_type:\ttracing\nattach_type:\t24\n")], "tracing"),
        ([("anon_inode:bpf-raw-tracepoint", "tp_name:\tsys_enter\n")], "raw_tracepoint sys_enter"),
        ([("anon_inode:bpf-prog", "prog_type:\t5\n"), PERF], "a tracepoint program and 1 perf event"),
        ([PERF] * 4, "4 perf events"),
    ],
    ids=["raw tracepoint", "fentry", "older", "tracepoint", "perf on every CPU"],
)
def test_an_observer_is_named_by_what_it_holds(
    quiet: Path, judge: Judge, descriptors: list[tuple[str, str]], what: str
) -> None:
    held(quiet, 900, "watcher", *descriptors)
    found = tracing(quiet, judge)
    assert found.outcome == Outcome.DRIFTED
    assert "watcher (pid 900)" in found.reason
    assert what in found.reason
    assert "sudo kill 900" in str(found.fix)


def test_programs_that_watch_nothing_are_silent(quiet: Path, judge: Judge) -> None:
    """systemd holds programs of control groups, and rules of access to file systems; a program alone runs nowhere."""
    programs = [("anon_inode:bpf-prog", f"prog_type:\t{kind}\n") for kind in (15, 5)]
    links = [
        ("anon_inode:bpf_link", f"link_type:\t{kind}\n")
        for kind in ("cgroup\nattach_type:\t6", "tracing\nattach_type:\t27")
    ]
    held(quiet, 900, "systemd", *programs, *links)
    assert tracing(quiet, judge).outcome == Outcome.COMPLIANT


def test_perf_events_that_may_be_of_one_thread_are_not_known(quiet: Path, judge: Judge) -> None:
    held(quiet, 900, "engine", PERF)
    found = tracing(quiet, judge)
    assert found.outcome == Outcome.UNREADABLE
    assert "engine (pid 900)" in found.reason


def test_an_instance_without_an_owner_is_taken_away(quiet: Path, judge: Judge) -> None:
    write(quiet, f"{AT}/instances/left/current_tracer", "nop\n")
    write(quiet, f"{AT}/instances/left/set_event", "sched:sched_waking\n")
    found = tracing(quiet, judge)
    assert "instance left: events sched:sched_waking" in found.reason
    assert str(found.fix) == "sudo rmdir /sys/kernel/tracing/instances/left"


def test_an_instance_in_use_is_no_residue(quiet: Path, judge: Judge) -> None:
    """rasdaemon has one for as long as it runs."""
    write(quiet, f"{AT}/instances/rasdaemon/current_tracer", "nop\n")
    write(quiet, f"{AT}/instances/rasdaemon/set_event", "ras:mc_event\n")
    held(quiet, 901, "rasdaemon", ("/sys/kernel/debug/tracing/instances/rasdaemon/per_cpu/cpu0/trace_pipe_raw", ""))
    found = tracing(quiet, judge)
    assert found.outcome == Outcome.COMPLIANT
    assert "rasdaemon (pid 901) uses instance rasdaemon" in found.reason


@pytest.mark.parametrize(("start", "outcome"), [(4711, Outcome.COMPLIANT), (4712, Outcome.DRIFTED)])
def test_our_own_instance_is_ours_while_its_process_runs(
    quiet: Path, judge: Judge, start: int, outcome: Outcome
) -> None:
    """Its name says whose it is: the number of the process and when that started."""
    write(quiet, "proc/77/stat", f"77 (tunectl-probe) S {' '.join(['0'] * 18)} 4711 0\n")
    write(quiet, f"{AT}/instances/tunectl-77-{start}/current_tracer", "nop\n")
    write(quiet, f"{AT}/instances/tunectl-77-{start}/set_event", "irq:irq_handler_entry\n")
    assert tracing(quiet, judge).outcome == outcome


def test_without_tracefs_there_is_nothing_to_look_at(lab4: Path, judge: Judge) -> None:
    assert tracing(lab4, judge).outcome == Outcome.UNSUPPORTED


_UNPRIVILEGED = """
import sys
from tunectl.host.sysroot import Sysroot
from tunectl.host.tracefs import read_tracing
try:
    read_tracing(Sysroot(sys.argv[1]))
except PermissionError:
    print("refused")
"""


def test_what_only_root_may_see_is_not_known() -> None:
    """tracefs is mounted with mode 0700: whoever is not root sees that it is there, and nothing in it."""
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] * (os.geteuid() == 0)
    with TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        write(Path(folder), "proc/mounts", "tracefs /sys/kernel/tracing tracefs rw 0 0\n")
        write(Path(folder), f"{AT}/current_tracer", "function\n")
        os.chmod(f"{folder}/{AT}", 0o000)
        done = run([*drop, sys.executable, "-c", _UNPRIVILEGED, folder], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"
