"""Real runs of `tunectl-probe wake` on this machine: what must hold on any, however loaded."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from .conftest import Probe
from .running import until_named

pytestmark = [pytest.mark.slow, pytest.mark.pins]

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schema" / "tunectl.probe.wake-1.json").read_text())
MECHANISMS = ("channel", "eventfd", "pipe", "unix", "tcp", "udp")
WAYS = ("block", "poll", "epoll", "poll0", "epoll0", "nonblock", "minimal", "busy-poll")
PERCENTILES = ("50", "90", "95", "99", "99.9", "99.99")
QUICK = ("--idle-ms", "0", "--messages", 5)


@pytest.fixture
def pair() -> str:
    """Two CPUs this process may use, or twice the only one."""
    cpus = sorted(os.sched_getaffinity(0))
    return f"{cpus[0]},{cpus[-1]}"


def document_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(document, SCHEMA, format_checker=jsonschema.FormatChecker())
    return document


def wake(probe: Probe, *arguments: object) -> dict[str, Any]:
    done = probe("wake", *arguments)
    assert done.stderr == ""
    return document_of(done)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_cell_is_there_with_figures_or_with_a_reason(probe: Probe, pair: str) -> None:
    document = wake(probe, "--cpus", pair, "--idle-ms", "0,1", "--messages", 9)
    cells = document["cells"]
    found = [(cell["mechanism"], cell["way"], cell["idle_ms"]) for cell in cells]
    assert found == list(itertools.product(MECHANISMS, WAYS, (0, 1)))
    for cell in cells:
        assert bool(cell["reason"]) is (cell["n"] == 0), cell
        assert cell["cpus"] == [int(cpu) for cpu in pair.split(",")]
    silent = {(cell["mechanism"], cell["way"]) for cell in cells if not cell["n"]}
    unpollable = {("channel", way) for way in ("poll", "epoll", "poll0", "epoll0")}
    assert silent == unpollable | {(mechanism, "busy-poll") for mechanism in MECHANISMS}
    assert document["interrupted"] is False
    assert document["peer"] is None


@pytest.mark.slow
def test_figures_agree_with_each_other(probe: Probe, pair: str) -> None:
    document = wake(probe, "--cpus", pair, "--idle-ms", "0,2", "--messages", 20)
    for cell in document["cells"]:
        if not cell["n"]:
            continue
        assert cell["sent"] == 20
        assert cell["n"] + cell["lost"] <= 20
        figures = [cell["min_ns"], *(cell["percentiles_ns"][name] for name in PERCENTILES), cell["max_ns"]]
        assert figures == sorted(figures)
        assert cell["min_ns"] <= cell["mean_ns"] <= cell["max_ns"] + 1
        assert sum(count for _, _, count in cell["histogram"]) == cell["n"]
        assert all(low < high for low, high, _ in cell["histogram"])
        assert cell["histogram"][0][0] <= cell["min_ns"] <= cell["histogram"][0][1]  # whole ns, rounded down
        assert cell["after_send_ns"]["max"] <= cell["max_ns"]
        assert cell["late_ns"]["min"] >= 0
        if cell["idle_ms"]:
            assert cell["period_ns"] == pytest.approx(cell["idle_ms"] * 1e6, rel=1e-3)
        else:
            assert 9_000 <= cell["period_ns"] <= 1_001_000


def test_speedups_are_the_ratios_of_the_cells(probe: Probe, pair: str) -> None:
    document = wake(probe, "--cpus", pair, "--mechanisms", "pipe", "--waiting", "epoll,poll0,minimal", *QUICK)
    sleeping, *spinning = document["cells"]
    assert [one["way"] for one in document["speedups"]] == ["poll0", "minimal"]
    for one, cell in zip(document["speedups"], spinning, strict=True):
        assert one["over"] == "epoll"
        ratio = sleeping["percentiles_ns"]["50"] / cell["percentiles_ns"]["50"]
        assert one["percentiles"]["50"] == pytest.approx(ratio, rel=0.02, abs=0.0006)  # written with three decimals


def test_busy_polling_is_not_claimed_on_loopback(probe: Probe, pair: str) -> None:
    document = wake(probe, "--cpus", pair, "--mechanisms", "tcp,udp", "--waiting", "busy-poll", *QUICK)
    for cell in document["cells"]:
        assert (cell["n"], cell["napi_id"]) == (0, 0)
        # before Linux 6.12, to set SO_BUSY_POLL at all needs CAP_NET_ADMIN
        assert "NAPI id is 0" in cell["reason"] or "Operation not permitted" in cell["reason"]
    assert document["speedups"] == []


def test_a_spinner_uses_its_cpu_and_a_sleeper_does_not(probe: Probe, pair: str) -> None:
    arguments = ("--mechanisms", "pipe", "--waiting", "block,minimal", "--idle-ms", "20", "--messages", 20)
    block, minimal = wake(probe, "--cpus", pair, *arguments)["cells"]
    assert block["receiver_cpu_percent"] < minimal["receiver_cpu_percent"]
    assert block["receiver_cpu_percent"] < 20


def test_udp_that_is_lost_is_counted(probe: Probe, pair: str) -> None:
    # stopped while the schedule runs on, the process then floods itself; what the socket cannot hold is lost
    document = wake(
        probe, "--cpus", pair, "--mechanisms", "udp", "--waiting", "block", "--idle-ms", "0", "--messages", 300
    )
    (cell,) = document["cells"]
    assert cell["n"] + cell["lost"] == cell["sent"] == 300


def recorded(root: Path, siblings: bool = False, isolated: str = "") -> list[int]:
    """A host below `root` with this machine's CPUs; returns two of them."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("one CPU only")
    directory = root / "sys/devices/system/cpu"
    directory.mkdir(parents=True)
    listed = ",".join(map(str, cpus))
    (directory / "online").write_text(f"{listed}\n")
    (directory / "isolated").write_text(f"{isolated or ''}\n")
    for cpu in cpus:
        (directory / f"cpu{cpu}/topology").mkdir(parents=True)
        (directory / f"cpu{cpu}/topology/thread_siblings_list").write_text(f"{listed if siblings else cpu}\n")
        (directory / f"cpu{cpu}/cpufreq").mkdir()
        (directory / f"cpu{cpu}/cpufreq/scaling_governor").write_text("powersave\n")
    return cpus


def test_sharing_a_core_is_warned_of_and_two_spinners_are(probe: Probe, tmp_path: Path) -> None:
    cpus = recorded(tmp_path, siblings=True)
    arguments = ("--cpus", f"{cpus[0]},{cpus[1]}", "--root", tmp_path, "--mechanisms", "channel")
    text = "\n".join(wake(probe, *arguments, "--waiting", "minimal", *QUICK)["warnings"])
    assert "share a physical core: they slow each other" in text
    assert "two spinners share a physical core" in text
    assert "governor is not performance" in text
    text = "\n".join(wake(probe, *arguments, "--waiting", "block", *QUICK)["warnings"])
    assert "share a physical core: they slow each other" in text
    assert "two spinners" not in text


def test_sharing_a_cpu_is_warned_of(probe: Probe, cpu: int) -> None:
    document = wake(probe, "--cpus", f"{cpu},{cpu}", "--mechanisms", "pipe", "--waiting", "block", *QUICK)
    assert document["cells"][0]["n"] == 5
    assert any(f"share CPU {cpu}" in text for text in document["warnings"])


def test_a_fifo_spinner_does_not_starve_its_feeder(probe: Probe, cpu: int) -> None:
    arguments = ("--cpus", f"{cpu},{cpu}", "--mechanisms", "pipe", "--waiting", "block,minimal", *QUICK)
    done = probe("wake", *arguments, "--fifo", 1)
    if done.returncode == 1 and "SCHED_FIFO" in done.stderr:
        pytest.skip("SCHED_FIFO is not allowed here")
    document = document_of(done)
    block, minimal = document["cells"]
    assert block["n"] == 5
    assert minimal["n"] == 0
    assert "would starve the sender" in minimal["reason"]
    assert any("would starve the sender" in text for text in document["warnings"])


def test_without_two_isolated_cpus_the_allowed_ones_are_taken_and_said(probe: Probe, tmp_path: Path) -> None:
    cpus = recorded(tmp_path)
    document = wake(probe, "--root", tmp_path, "--mechanisms", "channel", "--waiting", "block", *QUICK)
    assert document["cells"][0]["cpus"][1] == cpus[-1]
    assert any("no two CPUs are isolated" in text for text in document["warnings"])


def test_the_isolated_cpus_are_the_default(probe: Probe, tmp_path: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))[-2:]
    recorded(tmp_path, isolated=",".join(map(str, cpus)))
    document = wake(probe, "--root", tmp_path, "--mechanisms", "channel", "--waiting", "block", *QUICK)
    assert document["cells"][0]["cpus"] == cpus
    assert not any("isolated" in text for text in document["warnings"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--bogus"], "--bogus is no option here"),
        (["--cpus"], "--cpus needs a value"),
        (["--cpus", "1"], "the sender's CPU and the receiver's, like 2,3"),
        (["--cpus", "0-1"], "the sender's CPU and the receiver's, like 2,3"),
        (["--cpus", "0,1,2"], "the sender's CPU and the receiver's, like 2,3"),
        (["--cpus", "0,60000"], "CPU 60000 is not online"),
        (["--cpus", "0,99999999999999999999"], "like 2,3"),
        (["--among", "x"], "--among x is not a CPU list"),
        (["--among", "60000"], "none of the CPUs --among 60000 is online"),
        (["--cpus", "0,0", "--among", "0"], "--cpus and --among"),
        (["--mechanisms", "tpc"], "there is no 'tpc'"),
        (["--mechanisms", ""], "there is no ''"),
        (["--waiting", "sleeping,snoring"], "there is no 'snoring'"),
        (["--idle-ms", "1,x"], "--idle-ms 1,x: expected milliseconds"),
        (["--idle-ms", "inf"], "--idle-ms inf"),
        (["--idle-ms", "-1"], "--idle-ms -1"),
        (["--messages", "0"], "--messages 0"),
        (["--messages", "99999999999"], "--messages 99999999999"),
        (["--busy-poll-us", "x"], "--busy-poll-us x"),
        (["--fifo", "0"], "--fifo 0"),
        (["--listen", "127.0.0.1:1", "--connect", "127.0.0.1:1"], "--listen and --connect"),
        (["--connect", "127.0.0.1:1", "--mechanisms", "tcp,pipe"], "only tcp and udp"),
        (["more"], "more is one argument too many"),
    ],
)
def test_usage_errors(probe: Probe, arguments: list[str], said: str) -> None:
    done = probe("wake", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("tunectl-probe: ")
    assert said in done.stderr


@pytest.mark.parametrize("address", ["127.0.0.1", ":1", "[::1:1", "127.0.0.1:port"])
@pytest.mark.parametrize("option", ["--listen", "--connect"])
def test_an_address_that_is_none(probe: Probe, option: str, address: str) -> None:
    done = probe("wake", option, address)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{option} {address}: expected ADDRESS:PORT" in done.stderr
    assert done.stderr.count("\n") == 1


def test_help(probe: Probe) -> None:
    done = probe("wake", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(name in done.stdout for name in (*MECHANISMS, *WAYS))
    assert "wake" in probe("--help").stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("way", ["epoll", "minimal"])
def test_a_signal_ends_the_run_and_still_gives_the_result(
    program: Path, pair: str, number: signal.Signals, way: str
) -> None:
    argv = [program, "wake", "--cpus", pair, "--mechanisms", "udp", "--waiting", way, "--idle-ms", "20,60000"]
    child = subprocess.Popen([*map(str, argv), "--messages", "5000"], stdout=subprocess.PIPE, text=True)
    until_named(child.pid, "wake-sender", "wake-receiver")
    time.sleep(0.2)  # some messages may go; a busy machine sends none, and that is right as well
    child.send_signal(number)
    child.send_signal(number)
    document = json.loads(child.communicate(timeout=30)[0])
    assert child.returncode == 0
    jsonschema.validate(document, SCHEMA)
    assert document["interrupted"] is True
    assert any("signal ended the run early" in text for text in document["warnings"])
    first, second = document["cells"]
    assert first["n"] < 5000
    assert first["n"] == 0 or any("messages were sent" in text for text in first["warnings"])
    assert (second["n"], second["reason"]) == (0, "interrupted before it was measured")


def test_a_pause_before_the_first_message_can_be_interrupted(program: Path, pair: str) -> None:
    words = ["wake", "--cpus", pair, "--mechanisms", "channel", "--waiting", "block", "--idle-ms", "60000"]
    argv = [str(program), *words, "--progress"]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    assert child.stderr.readline().startswith("channel, block")  # the case has begun
    child.terminate()
    (cell,) = json.loads(child.communicate(timeout=30)[0])["cells"]
    assert (cell["n"], cell["reason"]) == (0, "interrupted before the first message")


def test_progress_is_a_line_for_each_case(probe: Probe, pair: str) -> None:
    done = probe("wake", "--cpus", pair, "--mechanisms", "pipe", "--waiting", "block,poll", *QUICK, "--progress")
    assert re.fullmatch(r"(pipe, (block|poll), 0 ms: case [12] of 2, 0 s left\n){2}", done.stderr)
    document_of(done)


@contextmanager
def listening(program: Path, pair: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    argv = [str(program), "wake", "--listen", "127.0.0.1:0", "--cpus", pair]
    server = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        said = re.search(r":(\d+), CPU \d+$", server.stderr.readline().strip())
        assert said is not None
        yield server, int(said[1])
    finally:
        server.kill()
        server.communicate()


@pytest.mark.slow
def test_two_hosts(program: Path, probe: Probe, pair: str) -> None:
    with listening(program, pair) as (server, port):
        address = f"127.0.0.1:{port}"
        for idle_ms in ("0,1", "0"):  # it serves one after the other
            arguments = ("--connect", address, "--cpus", pair, "--idle-ms", idle_ms, "--messages", 5)
            document = wake(probe, *arguments)
            assert document["peer"]["address"] == address
            cells = document["cells"]
            assert {cell["mechanism"] for cell in cells} == {"tcp", "udp"}
            measured = [cell for cell in cells if cell["n"]]
            assert {cell["way"] for cell in measured} == {*WAYS} - {"busy-poll"}
            for cell in measured:
                assert cell["is_round_trip"] is True
                assert 0 <= cell["one_way_estimate_ns"]["min"] <= cell["min_ns"] // 2 + 1
                assert cell["far_ns"]["min"] >= 0
        server.terminate()
        assert server.wait(timeout=10) == 0


@pytest.mark.slow
def test_a_listener_survives_whoever_comes(program: Path, probe: Probe, pair: str) -> None:
    lines = [
        b"",
        b"GET / HTTP/1.0\r\n\r\n",
        b"x" * 5000,
        b"tunectl-wake 1\nopen pipe block 1 1\nopen tcp nothing 1 1\nopen\n",
        b"tunectl-wake 1\nopen tcp block 1 5\n",
        b"tunectl-wake 1\nclose\nclose\n\xff\n",
    ]
    with listening(program, pair) as (_, port):
        for said in lines:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as other:
                other.sendall(said)
        address = f"127.0.0.1:{port}"
        arguments = ("--connect", address, "--cpus", pair, "--mechanisms", "tcp", "--waiting", "block", *QUICK)
        assert wake(probe, *arguments)["cells"][0]["n"] == 5


def test_a_host_that_goes_away_ends_the_run(program: Path, pair: str) -> None:
    with listening(program, pair) as (server, port):
        argv = [
            program,
            "wake",
            "--connect",
            f"127.0.0.1:{port}",
            "--cpus",
            pair,
            "--idle-ms",
            "20",
            "--messages",
            5000,
        ]
        child = subprocess.Popen(
            [*map(str, argv), "--waiting", "block,minimal"], stdout=subprocess.PIPE, text=True, stderr=subprocess.PIPE
        )
        until_named(child.pid, "wake-sender", "wake-receiver")
        time.sleep(0.2)
        server.kill()
        out, err = child.communicate(timeout=50)
    assert (child.returncode, err) == (0, "")
    document = json.loads(out)
    jsonschema.validate(document, SCHEMA)
    assert document["cells"][-1]["reason"]


def test_nobody_listens(probe: Probe) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        done = probe("wake", "--connect", f"127.0.0.1:{taken.getsockname()[1]}")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Connection refused" in done.stderr
    assert done.stderr.count("\n") == 1


# Ends the process when one of the measuring threads allocates: they have their names since they were prepared.
MALLOC_SPY = r"""
#define _GNU_SOURCE
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
static void look(void)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    if (strncmp(name, "wake-", 5) == 0)
        _exit(77);
}
void *malloc(size_t n) { look(); return __libc_malloc(n); }
void *calloc(size_t n, size_t m) { look(); return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { look(); return __libc_realloc(p, n); }
"""


def test_the_measuring_threads_allocate_nothing(program: Path, pair: str, tmp_path: Path) -> None:
    source, library = tmp_path / "spy.c", tmp_path / "spy.so"
    source.write_text(MALLOC_SPY)
    if subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], capture_output=True).returncode:
        pytest.skip("needs a C library with __libc_malloc")
    argv = [program, "wake", "--cpus", pair, "--idle-ms", "0,1", "--messages", 5]
    env = {**os.environ, "LD_PRELOAD": str(library)}
    done = subprocess.run([*map(str, argv)], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert sum(cell["n"] > 0 for cell in json.loads(done.stdout)["cells"]) >= 70


def test_it_needs_no_privilege(program: Path, pair: str) -> None:
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root without setpriv")
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"] * (os.geteuid() == 0)
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)  # pytest's own temporary directory is closed to others
        copy = shutil.copy(program, place)
        argv = [*drop, copy, "wake", "--cpus", pair, *map(str, QUICK)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    document = document_of(done)
    assert {cell["mechanism"] for cell in document["cells"] if cell["n"]} == {*MECHANISMS}
