"""Real runs of `tunectl-probe wake` on this machine: what must hold on any, however loaded."""

import itertools
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.places import PROGRAM, environment
from tests.experiments import native, test_feed_hosts
from tests.probe.conftest import Probe
from tests.probe.running import ENDED_BY_TEST_S, links, stop_for, until_child, until_named
from tests.probe.spy import spying_on
from tests.schemas import fits
from tunectl.errors import TunectlError, UsageError
from tunectl.experiments.link import split_address
from tunectl.experiments.wake import WakeRequest, run_wake
from tunectl.experiments.wake_cells import explained_wake
from tunectl.work import Work

pytestmark = [pytest.mark.slow, pytest.mark.pins]

MECHANISMS = ("channel", "eventfd", "pipe", "unix", "tcp", "udp")
WAYS = ("block", "poll", "epoll", "poll0", "epoll0", "nonblock", "minimal", "busy-poll")
PERCENTILES = ("50", "90", "95", "99", "99.9", "99.99")
QUICK: dict[str, Any] = {"idle_ms": "0", "messages": 5}
POLLING = ("poll", "epoll", "poll0", "epoll0")


def checked(document: dict[str, Any]) -> dict[str, Any]:
    fits("probe.wake", document)
    return document


def explained(written: str) -> dict[str, Any]:
    raw = json.loads(written)
    fits("probe.wake.raw", raw)
    return checked(explained_wake(raw))


def one(probe: Probe, case: str, *arguments: object, messages: int = 5) -> dict[str, Any]:
    """The document of a case that the program measures by itself."""
    done = probe("wake", "--intrude", "--case", case, "--messages", messages, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return explained(done.stdout)


def words(program: Path, pair: str, case: str, **options: object) -> list[str]:
    return native.words(program, "wake", "intrude", cpus=pair, case=case, **options)


def wake(pair: str, **asked: Any) -> dict[str, Any]:
    """The document of a whole run."""
    return checked(run_wake(WakeRequest(cpus=pair, intrude=True, **QUICK | asked)))


def test_every_cell_is_there_with_figures_or_with_a_reason(installed: Path, pair: str) -> None:
    document = wake(pair, idle_ms="0,1", messages=9)
    cells = document["cells"]
    found = [(cell["mechanism"], cell["way"], cell["idle_ms"]) for cell in cells]
    assert found == list(itertools.product(MECHANISMS, WAYS, (0, 1)))
    for cell in cells:
        assert bool(cell["reason"]) is (cell["n"] == 0), cell
        assert cell["cpus"] == [int(cpu) for cpu in pair.split(",")]
    silent = {(cell["mechanism"], cell["way"]) for cell in cells if not cell["n"] and not cell["is_void"]}
    assert silent == {("channel", way) for way in POLLING} | {(mechanism, "busy-poll") for mechanism in MECHANISMS}
    assert (document["interrupted"], document["peer"]) == (False, None)
    for cell in cells:
        if cell["n"]:
            figures_agree(cell)


def figures_agree(cell: dict[str, Any]) -> None:
    assert cell["n"] + cell["lost"] <= cell["sent"] == 9
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


def test_speedups_are_of_cells_that_have_figures(installed: Path, pair: str) -> None:
    document = wake(pair, mechanisms="pipe", waiting="epoll,poll0,minimal")
    sleeping, *spinning = document["cells"]
    assert [found["way"] for found in document["speedups"]] == [
        cell["way"] for cell in spinning if cell["n"] and sleeping["n"]
    ]
    assert {found["over"] for found in document["speedups"]} <= {"epoll"}


def test_busy_polling_is_not_claimed_on_loopback(installed: Path, pair: str) -> None:
    document = wake(pair, mechanisms="tcp,udp", waiting="busy-poll")
    for cell in document["cells"]:
        assert (cell["n"], cell["napi_id"]) == (0, 0)
        # before Linux 6.12, to set SO_BUSY_POLL at all needs CAP_NET_ADMIN
        assert "NAPI id is 0" in cell["reason"] or "Operation not permitted" in cell["reason"]
    assert document["speedups"] == []


def test_a_spinner_uses_its_cpu_and_a_sleeper_does_not(probe: Probe, pair: str) -> None:
    for _ in range(5):  # what a hypervisor takes may count as its time, too
        block, minimal = (
            one(probe, f"pipe:{way}:20", "--cpus", pair, messages=20)["cells"][0]["receiver_cpu_percent"]
            for way in ("block", "minimal")
        )
        if block < min(minimal, 20):
            break
    assert block < min(minimal, 20)


def test_udp_that_is_lost_is_counted(probe: Probe, pair: str) -> None:
    # stopped while the schedule runs on, the process then floods itself; what the socket cannot hold is lost
    (cell,) = one(probe, "udp:block:0", "--cpus", pair, messages=300)["cells"]
    assert cell["sent"] == 300
    assert cell["is_void"] or cell["n"] + cell["lost"] == 300


@pytest.mark.parametrize("case", ["timerfd:block:5", "timerfd:poll:5", "timerfd:minimal:5", "clock_nanosleep:block:5"])
def test_a_timer_is_measured_from_when_it_was_due(probe: Probe, pair: str, case: str) -> None:
    done = probe("wake", "--intrude", "--case", case, "--cpus", pair, "--messages", 20)
    raw = json.loads(done.stdout)
    document = explained(done.stdout)
    (cell,) = document["cells"]
    assert raw["facts"]["timer_slack_ns"] == document["timer_slack_ns"] == 1
    assert (cell["sent"], cell["lost"], raw["cells"][0]["negative"]) == (20, 0, 0)
    assert cell["period_ns"] == pytest.approx(5e6, rel=1e-3)
    assert not {"late", "after_send", "send_call"} & raw["cells"][0].keys()
    # By its own clock 20 expirations take 95 ms; the first is one period behind the warm-up.
    hz = raw["clock"]["hz"]
    least_ns, longest_ns = 95e6, raw["cells"][0]["delay"][-2] * 1e9 / hz
    assert least_ns <= raw["cells"][0]["receiver_ticks"] * 1e9 / hz + longest_ns


def test_a_stopped_timer_has_late_expirations_and_says_so(program: Path, pair: str) -> None:
    argv = words(program, pair, "timerfd:block:2", messages=ENDED_BY_TEST_S * 500)
    late = 0
    for past_s in (0.2, 0.4, 0.8, 1.6, 3.2):  # on a busy machine it may be stopped before its first message
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as child:
            until_named(child.pid, "wake-sender", "wake-receiver")
            time.sleep(past_s)
            stop_for(child, 0.1)
            child.terminate()
            written = child.communicate(timeout=60)[0]
        (raw,) = json.loads(written)["cells"]
        assert raw["arrived"] == raw["sent"]
        explained(written)
        late = max(late, raw["late_expirations"])
        if late >= 40:
            break
    assert late >= 40


def test_an_event_loop_is_woken_only_where_it_sleeps(probe: Probe, pair: str) -> None:
    for case in ("eventloop:epoll:1", "eventloop:epoll0:0"):
        (cell,) = one(probe, case, "--cpus", pair, "--fds", 200, messages=50)["cells"]
        assert (cell["sent"], cell["lost"]) == (50, 0)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_message_has_as_many_bytes_as_were_asked_for(program: Path, pair: str, mechanism: str) -> None:
    argv = words(program, pair, f"{mechanism}:block:1", messages=9, bytes=1400)
    document = explained(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    assert (document["bytes"], document["cells"][0]["sent"], document["cells"][0]["lost"]) == (1400, 9, 0)


def has_vsock_loopback() -> bool:
    try:
        with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM) as bound:
            bound.bind((1, socket.VMADDR_PORT_ANY))  # VMADDR_CID_LOCAL has no name before Python 3.14
    except OSError:
        return False
    return True


@pytest.mark.skipif("not has_vsock_loopback()", reason="this kernel has no vsock_loopback, or it is not loaded")
@pytest.mark.parametrize("way", ["block", "epoll", "minimal"])
def test_vsock_carries_every_message(installed: Path, pair: str, way: str) -> None:
    (cell,) = wake(pair, mechanisms="vsock", waiting=way, message_bytes=1400)["cells"]
    assert (cell["sent"], cell["lost"]) == (5, 0)


@pytest.mark.skipif("has_vsock_loopback()", reason="this kernel has vsock_loopback")
def test_without_vsock_loopback_its_module_is_named(installed: Path, pair: str) -> None:
    with pytest.raises(TunectlError, match="module vsock_loopback"):
        wake(pair, mechanisms="vsock", waiting="block")


def test_all_descriptors_of_a_set_are_there(program: Path, pair: str) -> None:
    argv = words(program, pair, "pipe:epoll:60000", fds=50)
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    until_named(child.pid, "wake-sender", "wake-receiver")
    inside = links(child.pid)
    (loop,) = (number for number, name in inside.items() if "eventpoll" in name)
    watched = Path(f"/proc/{child.pid}/fdinfo/{loop}").read_text().count("tfd:")
    child.terminate()
    child.communicate(timeout=30)
    assert (watched, sum("eventfd" in name for name in inside.values())) == (50, 49)


def test_a_working_set_is_written_to_between_messages(probe: Probe, pair: str) -> None:
    asked = ("wake", "--intrude", "--case", "pipe:block:20", "--cpus", pair, "--messages", 20)
    for _ in range(5):  # what a hypervisor takes may count as its time, too
        dirty, clean = (json.loads(probe(*asked, *more).stdout)["cells"][0] for more in (("--dirty-kib", 4096), ()))
        if dirty["receiver_ns"] > 20 * 64 * 1024 * 0.1 + clean["receiver_ns"]:  # 65,536 lines, at 0.1 ns or more each
            return
    raise AssertionError((dirty["receiver_ns"], clean["receiver_ns"]))


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
    arguments = ("--cpus", f"{cpus[0]},{cpus[1]}", "--root", tmp_path)
    text = "\n".join(one(probe, "channel:minimal:0", *arguments)["warnings"])
    assert "share a physical core: they slow each other" in text
    assert "two spinners share a physical core" in text
    assert "governor is not performance" in text
    text = "\n".join(one(probe, "channel:block:0", *arguments)["warnings"])
    assert "share a physical core: they slow each other" in text
    assert "two spinners" not in text


def test_sharing_a_cpu_is_warned_of(probe: Probe, cpu: int) -> None:
    document = one(probe, "pipe:block:0", "--cpus", f"{cpu},{cpu}")
    assert (document["cells"][0]["sent"], document["cells"][0]["lost"]) == (5, 0)
    assert any(f"share CPU {cpu}" in text for text in document["warnings"])


def test_a_fifo_spinner_does_not_starve_its_feeder(installed: Path, probe: Probe, cpu: int) -> None:
    done = probe("wake", "--intrude", "--case", "pipe:minimal:0", "--cpus", f"{cpu},{cpu}", "--fifo", 1)
    assert (done.returncode, "would starve the sender" in done.stderr) == (2, True)
    if probe("wake", "--intrude", "--case", "pipe:block:0", "--cpus", f"{cpu},{cpu}", "--fifo", 1).returncode:
        pytest.skip("SCHED_FIFO is not allowed here")
    document = wake(f"{cpu},{cpu}", mechanisms="pipe", waiting="block,minimal", fifo=1)
    block, minimal = document["cells"]
    assert (block["sent"], block["lost"]) == (5, 0)
    assert minimal["sent"] == 0
    assert "would starve the sender" in minimal["reason"]
    assert any("would starve the sender" in text for text in document["warnings"])


def test_by_hand_the_last_two_isolated_or_allowed_cpus_are_taken(probe: Probe, tmp_path: Path) -> None:
    cpus = recorded(tmp_path)
    document = one(probe, "channel:block:0", "--root", tmp_path)
    assert document["cells"][0]["cpus"] == cpus[-2:]
    assert any("not isolated" in text for text in document["warnings"])
    (tmp_path / "sys/devices/system/cpu/isolated").write_text(",".join(map(str, cpus[:2])))
    document = one(probe, "channel:block:0", "--root", tmp_path)
    assert document["cells"][0]["cpus"] == cpus[:2]
    assert not any("isolated" in text for text in document["warnings"])


def test_too_many_descriptors_are_an_error_that_names_the_limit(installed: Path, pair: str) -> None:
    asked = ["--cpus", pair, "--mechanisms", "eventfd", "--waiting", "poll", "--idle-ms", "0", "--fds", "300"]
    command = [*PROGRAM, "probe", "wake", "--intrude", *asked]
    # Of its own: this process may hold more files than that.
    limited = ["sh", "-c", 'ulimit -n 256 && exec "$@"', "sh", *command]
    done = subprocess.run(limited, capture_output=True, text=True, env=environment())
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"tunectl: nothing was measured: cannot be set up: .*\(ulimit -n\)\n", done.stderr)


@pytest.mark.parametrize("address", ["127.0.0.1", ":1", "[::1:1", "127.0.0.1:port", "127.0.0.1:65536", "[]:1"])
def test_an_address_that_is_none(installed: Path, address: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"--connect {address}: expected ADDRESS:PORT")):
        run_wake(WakeRequest(connect=address))


def test_help(probe: Probe) -> None:
    done = probe("wake", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(name in done.stdout for name in (*MECHANISMS, *WAYS))
    assert "wake" in probe("--help").stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "case",
    ["udp:epoll:20", "udp:minimal:20", "channel:block:60000", "timerfd:epoll:60000", "clock_nanosleep:block:60000"],
)
def test_a_signal_ends_the_run_and_still_gives_the_result(
    program: Path, pair: str, number: signal.Signals, case: str
) -> None:
    argv = words(program, pair, case, messages=5000)
    document = explained(json.dumps(native.ended_by(number, argv, ("wake-sender", "wake-receiver"), after_s=0.2)))
    assert any("signal ended the run early" in text for text in document["warnings"])
    (cell,) = document["cells"]
    assert cell["n"] < 5000
    if not cell["sent"]:
        assert cell["reason"] == "interrupted before the first message"
    elif not cell["is_void"]:
        assert any("messages were sent" in text for text in cell["warnings"])


def test_progress_is_a_line_for_each_case_and_ctrl_c_leaves_out_the_rest(installed: Path, pair: str) -> None:
    said: list[Work] = []

    def hear(work: Work) -> None:
        said.append(work)
        if len(said) == 2:
            raise KeyboardInterrupt

    asked = {"mechanisms": "pipe", "waiting": "block,poll,epoll"}
    document = checked(run_wake(WakeRequest(cpus=pair, intrude=True, **QUICK | asked), hear))
    assert [work.now for work in said] == ["pipe block 0 ms: case 1 of 3", "pipe poll 0 ms: case 2 of 3"]
    first, second = (work.left_s or 0.0 for work in said)
    assert first / 3 == pytest.approx(second / 2)  # the time left is that of all cases
    assert document["interrupted"] is True
    assert document["cells"][0]["sent"] == 5
    assert {cell["reason"] for cell in document["cells"][1:]} == {"interrupted before it was measured"}


def listening(program: Path, pair: str) -> AbstractContextManager[tuple[subprocess.Popen[str], str]]:
    """The other host, on this one, and its address."""
    return test_feed_hosts.listening(program, pair, host="", address="127.0.0.1", experiment="wake")


def between(pair: str, address: str, **asked: Any) -> dict[str, Any]:
    """A run to the host that listens there."""
    return checked(run_wake(WakeRequest(cpus=pair, connect=address, messages=5, intrude=True, **asked)))


@pytest.mark.slow
def test_two_hosts(installed: Path, pair: str) -> None:
    with listening(installed, pair) as (server, address):
        for idle_ms in ("0,1", "0"):  # it serves one after the other
            ways = "block,epoll,poll0,minimal,busy-poll"
            size = 64 if idle_ms == "0" else None
            document = between(pair, address, idle_ms=idle_ms, waiting=ways, message_bytes=size)
            assert document["peer"]["address"] == address
            cells = document["cells"]
            assert {cell["mechanism"] for cell in cells} == {"tcp", "udp"}
            tried = [cell for cell in cells if cell["n"] or cell["is_void"]]
            assert {cell["way"] for cell in tried} == {"block", "epoll", "poll0", "minimal"}
            assert {cell["is_round_trip"] for cell in cells} == {True}
            for cell in (cell for cell in tried if cell["n"]):
                assert 0 <= cell["one_way_estimate_ns"]["min"] <= cell["min_ns"] // 2 + 1
                assert cell["far_ns"]["min"] >= 0
        server.terminate()
        assert server.wait(timeout=60) == 0


@pytest.mark.slow
def test_a_listener_survives_whoever_comes(installed: Path, pair: str) -> None:
    lines = [
        b"",
        b"GET / HTTP/1.0\r\n\r\n",
        b"x" * 5000,
        b"tunectl-wake 4\nopen pipe 32 1 pipe block 1 32 1\nopen tcp 32\nopen\n",
        b"tunectl-wake 4\nopen tcp 32 1 tcp block x 32 1\n",
        b"tunectl-wake 4\nclose\nclose\n\xff\n",
    ]
    with listening(installed, pair) as (_, address):
        for said in lines:
            with socket.create_connection(split_address("", address), timeout=60) as other:
                other.sendall(said)
        (cell,) = between(pair, address, mechanisms="tcp", waiting="block", idle_ms="0")["cells"]
        assert (cell["sent"], cell["lost"]) == (5, 0)


@pytest.mark.slow
def test_a_host_that_goes_away_ends_the_run(installed: Path, pair: str) -> None:
    with listening(installed, pair) as (server, address):

        def leave() -> None:
            until_child(server.pid)  # it serves the run
            time.sleep(0.6)
            server.kill()

        leaving = threading.Thread(target=leave)
        leaving.start()
        document = between(pair, address, idle_ms="200,201,202,203", waiting="block,epoll,poll0,minimal")
        leaving.join()
    assert document["cells"][-1]["reason"] == "the other host went away"


def test_nobody_listens(installed: Path, pair: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(TunectlError, match="Connection refused"):
            run_wake(WakeRequest(cpus=pair, connect=f"127.0.0.1:{taken.getsockname()[1]}"))


# Ends the process when one of the measuring threads allocates: they have their names since they were prepared.
def test_the_measuring_threads_allocate_nothing(program: Path, pair: str, tmp_path: Path) -> None:
    env = spying_on("wake-", tmp_path)
    for mechanism, way in itertools.product((*MECHANISMS, "eventloop", "timerfd", "clock_nanosleep"), WAYS):
        argv = words(program, pair, f"{mechanism}:{way}:1", messages=5, dirty_kib=4)
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 or "there is no such case" in done.stderr
