"""What declared threads did in the window, on a fake host that runs, and the runtimes of real processes."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests import artefacts
from tests.checking.fake_kernel import KTHREAD, Process
from tests.checks.conftest import Judge
from tests.checks.test_trading_check import BOOK, FEED, ORDERBOOK, RX, found_on, quiet
from tests.cli.places import wait_until_it_waits
from tunectl.checking.traders import Trader, dropped
from tunectl.checking.window import Counters, Window
from tunectl.host.interrupts import parse_interrupts
from tunectl.host.openfiles import Socket, parse_udp
from tunectl.host.procs import Thread
from tunectl.host.runtimes import Runtime, read_runtimes, settings_of
from tunectl.host.sysroot import Sysroot
from tunectl.model import Finding, Outcome, Trading

pytestmark = pytest.mark.slow

CHECK = "test_trading_window.py"
SPINNER = FEED._replace(spins=True)


def seen(
    host: Path, judge: Judge, *processes: Process, declared: tuple[Trading, ...] = (SPINNER,)
) -> dict[str, Finding]:
    return judge(host, {2, 3}, CHECK, trading=declared, processes=list(processes))


@pytest.mark.parametrize(
    ("processes", "spins", "outcome"),
    [
        ([RX], True, "compliant"),
        ([replace(RX, slept_per_s=0.7)], True, "drifted"),
        ([replace(RX, slept_per_s=50)], False, "unsupported"),  # who is not declared to spin may sleep
        ([replace(RX, busy=0.0)], True, "drifted"),  # asleep from end to end: no switch in between
        ([replace(RX, state="T")], True, "unreadable"),  # stopped
        ([replace(RX, ends_s=1.0)], True, "unreadable"),  # another one of that number
        ([RX, replace(RX, pid=702)], True, "unreadable"),  # two matches
    ],
)
def test_a_declared_spinner(lab4: Path, judge: Judge, processes: list[Process], spins: bool, outcome: str) -> None:
    found = seen(lab4, judge, *processes, declared=(FEED._replace(spins=spins),))
    assert found["check.trading_spins[rx]"].outcome == outcome


@pytest.mark.parametrize(
    ("minor", "major", "outcome"), [(10, 0, "compliant"), (10.5, 0, "drifted"), (0, 0.5, "drifted")]
)
def test_page_faults(lab4: Path, judge: Judge, minor: float, major: float, outcome: str) -> None:
    found = seen(lab4, judge, replace(RX, minor_per_s=minor, major_per_s=major))["check.trading_faults[rx]"]
    assert found.outcome == outcome
    assert (outcome == "compliant") or "mlockall" in str(found.fix)


IRQ = Process(44, "irq/31-eth0", cpu=2, allowed="0-3", flags=KTHREAD)


@pytest.mark.parametrize(
    ("feeder", "outcome"),
    [
        (replace(IRQ, waits=0.0099), "compliant"),
        (replace(IRQ, waits=0.011), "drifted"),
        (replace(IRQ, state="R"), "drifted"),  # it never ran: no wait has ended
        (replace(IRQ, state="R", policy=1, rt_priority=50), "drifted"),  # nor before one of its own priority
        (replace(IRQ, state="R", policy=1, rt_priority=51), "compliant"),  # the kernel puts it before the spinner
        (replace(IRQ, cpu=1, waits=0.5), "compliant"),  # elsewhere it waits for somebody else
    ],
)
def test_what_feeds_a_fifo_thread_waits_for_its_cpu(lab4: Path, judge: Judge, feeder: Process, outcome: str) -> None:
    found = found_on(quiet(lab4), judge, RX, feeder, declared=(FEED,))["check.trading_fed[rx]"]
    assert found.outcome == outcome


def test_a_threaded_interrupt_of_its_card_waits(lab4: Path, judge: Judge) -> None:
    thread = Process(44, "irq/31-eth0", cpu=2, allowed="0-3", flags=KTHREAD, state="R")
    found = judge(quiet(lab4), {2, 3}, "test_trading.py", trading=(FEED,), processes=[RX, thread])
    assert "irq/31-eth0 (tid 44) waited 2 s" in found["check.trading_fed[rx]"].reason


UDP = "sl local_address rem_address st queues tr retrnsmt uid timeout inode ref pointer drops\n"


def test_two_pollers_on_one_cpu(lab4: Path, judge: Judge) -> None:
    """A recorded host has no options of sockets: that two threads poll by default is all that it shows."""
    place = lab4 / "proc/sys/net/core/busy_read"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("50\n")
    both = (FEED, BOOK._replace(fed_by=()))
    opened = replace(RX, opened=("socket:[5]",))
    apart = seen(lab4, judge, opened, ORDERBOOK, declared=both)["check.trading_polls[rx]"]
    assert apart.outcome == Outcome.UNREADABLE
    assert "what process 700 busy-polls cannot be seen: a recorded host has no options of sockets" in apart.reason
    found = seen(lab4, judge, opened, replace(ORDERBOOK, cpu=2, allowed="2"), declared=both)["check.trading_polls[rx]"]
    assert "polls on CPU 2 (busy_read=50), and so does book" in found.reason
    assert str(*found.fix.commands) == "sudo taskset -cp 3 701"
    place.write_text("0\n")
    assert seen(lab4, judge, opened)["check.trading_polls[rx]"].outcome == Outcome.UNREADABLE


def test_a_process_without_sockets_polls_nothing(lab4: Path, judge: Judge) -> None:
    found = seen(lab4, judge, replace(RX, opened=("pipe:[5]",)))["check.trading_polls[rx]"]
    assert found.outcome == Outcome.UNSUPPORTED
    assert "process 700 busy-polls nothing" in found.reason


@pytest.mark.parametrize(("backlog", "socket"), [(0, 0), (1, 0), (0, 1)])
def test_what_was_dropped_for_a_fifo_thread(backlog: int, socket: int) -> None:
    """On its own CPU and at its own socket; what another CPU dropped is not its affair."""

    def at(when: float, backlog: int, socket: int) -> Counters:
        sockets = {(700, 5): Socket(5, 2345, 7 + socket)}
        drops = {2: 3 + backlog, 3: 3 + int(when)}
        return Counters(when, parse_interrupts(""), {}, {}, "tsc", drops, sockets)

    rx = Trader(FEED, (Thread(700, 700, "rx", "R", 0, 2, 0.0, 0.0, 1, frozenset({2})),))
    said = dropped(Window(at(0.0, 0, 0), at(2.0, backlog, socket)), rx, [rx])
    wanted = ["the backlog of CPU 2 dropped 1 packets"] * backlog
    assert said == wanted + ["UDP port 2345 of rx (pid 700) dropped 1 datagrams"] * socket


def test_udp_rows() -> None:
    row = "  1: 0100007F:0929 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 77 2 0000 13\n"
    assert parse_udp(UDP + row + "odd\n") == [(77, 0x929, 13)]


JAVA = (
    "public class Hold { public static void main(String[] a) throws Exception "
    '{ System.out.print("x"); System.out.flush(); Thread.sleep(60000); } }'
)
# Of the standard library the little that it needs: go compiles what it has not compiled before.
GO = (
    'package main\nimport ("syscall"; "time")\nfunc main() { syscall.Write(1, []byte("x")); time.Sleep(time.Minute) }\n'
)


def started(name: str, tmp_path: Path) -> tuple[Sequence[str], dict[str, str]]:
    """The command of a program that waits, and its environment."""
    if name == "node":
        return ["node", "--max-old-space-size=64", "-e", 'process.stdout.write("x");setTimeout(()=>{},60000)'], {}
    if name == "java":
        (tmp_path / "Hold.java").write_text(JAVA)
        argv = ["java", "-XX:+UseSerialGC", "-Dsecret=1", str(tmp_path / "Hold.java")]
        return argv, {"JAVA_TOOL_OPTIONS": "-Xmx64m -Dpw=1"}
    (tmp_path / "hold.go").write_text(GO)
    env = {**os.environ, "GOCACHE": str(artefacts.cache() / "go"), "GOFLAGS": "-mod=mod", "GO111MODULE": "off"}
    built = ["go", "build", "-ldflags=-s -w", "-o", str(tmp_path / "hold"), str(tmp_path / "hold.go")]
    subprocess.run(built, check=True, env=env, cwd=tmp_path)
    return [str(tmp_path / "hold")], {"GOGC": "50"}


@pytest.mark.parametrize(
    ("name", "runtime", "words"),
    [
        ("node", Runtime.NODE, {"--max-old-space-size=64"}),
        ("java", Runtime.JVM, {"-XX:+UseSerialGC", "-Xmx64m"}),
        ("go", Runtime.GO, {"GOGC=50"}),
    ],
)
def test_a_real_runtime_is_told_and_judged(
    tmp_path: Path, judge: Judge, name: str, runtime: Runtime, words: set[str]
) -> None:
    if not shutil.which(name):
        pytest.skip(f"no {name} on this machine")
    argv, env = started(name, tmp_path)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env={**os.environ, **env}, stderr=subprocess.DEVNULL) as child:
        assert child.stdout
        assert child.stdout.read(1) == b"x"
        wait_until_it_waits(child)
        root = Sysroot()
        assert read_runtimes(root, child.pid) == (runtime,)
        assert set(settings_of(root, child.pid, runtime)[0]) == words
        command = Path(argv[0]).name
        # No thread of it may run on CPU 900, and each may run on CPU 0.
        mine = Trading("mine", "", command, "", 0, "other", 0, False, ())
        found = judge("/", {0}, CHECK, trading=(mine,))["check.trading_collector[mine]"]
        child.kill()
    assert found.outcome == Outcome.DRIFTED, found
    assert runtime.value in found.reason


def test_a_program_without_a_collector_is_silent(judge: Judge) -> None:
    with subprocess.Popen(["tt-plain", "60"], executable="/bin/sleep") as child:
        wait_until_it_waits(child)
        mine = Trading("mine", "", "tt-plain", "", 0, "other", 0, False, ())
        found = judge("/", {0}, CHECK, trading=(mine,))["check.trading_collector[mine]"]
        child.kill()
    assert found.outcome == Outcome.COMPLIANT, found


def test_dotnet_is_told_by_its_library(lab4: Path, judge: Judge) -> None:
    """As /proc shows a .NET 8 service: its own thread elsewhere, the server's collector on an isolated CPU."""
    maps = "7f00-7f10 r-xp 00000000 08:01 7 /usr/share/dotnet/shared/Microsoft.NETCore.App/8.0.1/libcoreclr.so\n"
    files = {**RX.files, "maps": maps, "cmdline": "feed\0", "environ": "DOTNET_gcServer=1\0PW=1\0"}
    exe = lab4 / "proc/700/exe"
    exe.parent.mkdir(parents=True, exist_ok=True)
    exe.write_bytes(Path(os.path.realpath(sys.executable)).read_bytes()[: 64 << 20])
    collector = Process(703, ".NET Server GC", cpu=0, allowed="0-1", of=700)
    right = seen(lab4, judge, replace(RX, files=files), collector)["check.trading_collector[rx]"]
    assert (right.outcome, "PW" in right.reason) == (Outcome.COMPLIANT, False)
    assert ".NET: DOTNET_gcServer=1" in right.reason
    astray = replace(collector, allowed="0-3")
    wrong = seen(lab4, judge, replace(RX, files=files), astray)["check.trading_collector[rx]"]
    assert wrong.outcome == Outcome.DRIFTED
    assert "'.NET Server GC' (tid 703) on CPUs 0-3" in wrong.reason


# Starts CoreCLR in a process that has no managed program: hostfxr's own interface for that (hostfxr.h).
CORECLR = """
import ctypes, glob, json, os, sys, tempfile, time
root, = sys.argv[1:]
fxr, = glob.glob(f"{root}/host/fxr/*/libhostfxr.so")
wanted = {"name": "Microsoft.NETCore.App", "version": fxr.split("/")[-2]}
with tempfile.NamedTemporaryFile("w", suffix=".runtimeconfig.json") as config:
    json.dump({"runtimeOptions": {"framework": wanted}}, config)
    config.flush()
    class Parameters(ctypes.Structure):
        _fields_ = [("size", ctypes.c_size_t), ("host", ctypes.c_char_p), ("root", ctypes.c_char_p)]
    library, handle, found = ctypes.CDLL(fxr), ctypes.c_void_p(), ctypes.c_void_p()
    told = Parameters(ctypes.sizeof(Parameters), b"", root.encode())
    words = (config.name.encode(), ctypes.byref(told), ctypes.byref(handle))
    assert library.hostfxr_initialize_for_runtime_config(*words) == 0
    assert library.hostfxr_get_runtime_delegate(handle, 5, ctypes.byref(found)) == 0
os.write(1, b"x")
time.sleep(60)
"""


def test_a_real_dotnet_is_told_and_judged(judge: Judge) -> None:
    """Of 3.1, whose threads have no names of their own: each of them may be the collector."""
    package = importlib.util.find_spec("dotnetcore2")
    if not package or not package.origin:
        pytest.skip("no .NET here: pip install dotnetcore2, which has .NET Core 3.1 for x86-64")
    argv = ["tt-dotnet", "-c", CORECLR, str(Path(package.origin).parent / "bin")]
    env = {**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1", "COMPlus_gcServer": "1"}
    with subprocess.Popen(argv, executable=sys.executable, stdout=subprocess.PIPE, env=env) as child:
        assert child.stdout
        assert child.stdout.read(1) == b"x"
        assert read_runtimes(Sysroot(), child.pid) == (Runtime.DOTNET,)
        mine = Trading("mine", "", "tt-dotnet", "", 0, "other", 0, False, ())
        found = judge("/", {0}, CHECK, trading=(mine,))["check.trading_collector[mine]"]
        child.kill()
    assert found.outcome == Outcome.DRIFTED, found
    assert ".NET: COMPlus_gcServer=1" in found.reason


def test_what_cannot_be_read_is_unknown(lab4: Path, judge: Judge) -> None:
    assert seen(lab4, judge, RX)["check.trading_collector[rx]"].outcome == Outcome.UNREADABLE
