"""`tunectl probe feed` between two hosts: two network namespaces of this one, with a cable (veth) between them."""

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.places import PROGRAM, code_of_cases, environment
from tests.probe.running import until_child
from tests.schemas import fits

pytestmark = [
    pytest.mark.slow,
    pytest.mark.pins,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="feed spins on two CPUs, and here is one"),
]

NEAR, FAR = (f"tunectl-{os.getpid()}-{side}" for side in ("near", "far"))
FAR_ADDRESS = "10.98.0.2"
CABLE = f"""
ip netns add {NEAR}
ip netns add {FAR}
ip link add near0 netns {NEAR} type veth peer name far0 netns {FAR}
ip -n {NEAR} addr add 10.98.0.1/24 dev near0
ip -n {FAR} addr add {FAR_ADDRESS}/24 dev far0
for name in {NEAR} {FAR}; do ip -n $name link set lo up; done
ip -n {NEAR} link set near0 up
ip -n {FAR} link set far0 up
"""
# The other host's thread has the sender's CPU, which spins: it must sleep to be given any time.
QUICK = ("--waiting", "poll", "--rate", "500", "--duration", "0.2", "--format", "json")


@pytest.fixture(scope="module")
def hosts() -> Iterator[None]:
    """Both namespaces."""
    made = subprocess.run(["sh", "-ec", CABLE], capture_output=True, text=True)
    try:
        if made.returncode:
            pytest.skip(f"needs root, ip(8) and veth, for two network namespaces: {made.stderr.strip()}")
        yield
    finally:
        for name in (NEAR, FAR):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def command(host: str, program: Path, experiment: str, *words: str) -> tuple[list[str], dict[str, str]]:
    inside = ["ip", "netns", "exec", host] if host else []
    return [*inside, *PROGRAM, "probe", experiment, "--intrude", *words], environment({"TUNECTL_PROBE": str(program)})


@contextmanager
def listening(
    program: Path, pair: str, host: str = FAR, address: str = FAR_ADDRESS, experiment: str = "feed"
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The other host, and its address."""
    sender, receiver = pair.split(",")
    words = ("--listen", f"{address}:0", "--cpus", f"{receiver},{sender}")
    argv, env = command(host, program, experiment, *words)
    server = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=env)
    try:
        assert server.stderr is not None
        said = re.search(r":(\d+), CPU \d+$", server.stderr.readline().strip())
        assert said is not None
        yield server, f"{address}:{said[1]}"
    finally:
        server.terminate()
        server.communicate(timeout=60)


def connect(
    program: Path, pair: str, address: str, *words: str, host: str = NEAR, experiment: str = "feed"
) -> subprocess.CompletedProcess[str]:
    argv, env = command(host, program, experiment, "--connect", address, "--cpus", pair, *words)
    return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=120)


def document(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    made: dict[str, object] = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (code_of_cases(made), "")
    fits("probe.feed", made)
    return made


def cells_of(made: dict[str, object]) -> Sequence[dict[str, object]]:
    cells = made["cells"]
    assert isinstance(cells, list)
    return cells


def complaint(done: subprocess.CompletedProcess[str], status: int) -> str:
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (status, "", 1), done.stderr
    return done.stderr


def test_messages_go_there_and_back(hosts: None, program: Path, pair: str) -> None:
    with listening(program, pair) as (server, address):
        for words in (("--message-format", "ws-json"), ("--transport", "tcp,udp", "--message-format", "json,binary")):
            made = document(connect(program, pair, address, *QUICK, *words))  # it serves one after the other
            peer = made["peer"]
            assert isinstance(peer, dict)
            assert (peer["address"], made["interface"]) == (address, "near0")
            for cell in cells_of(made):
                assert (cell["is_round_trip"], cell["due"], cell["strangers"]) == (True, 100, 0)
                assert cell["transport"] == "udp" or cell["lost"] == 0
                drops, stamps = cell["drops"], cell["stamps"]
                assert isinstance(drops, dict)
                assert isinstance(stamps, dict)
                assert drops["nic"] >= 0
                assert (stamps["asked"], stamps["kind"]) == ("sw", "sw")  # a cable of this kind has no clock
                assert not [text for text in made["warnings"] if "stamps" in text]  # type: ignore[attr-defined]
        server.terminate()
        assert server.wait(timeout=60) == 0


def test_on_loopback_there_is_no_card(program: Path, pair: str) -> None:
    with listening(program, pair, host="", address="127.0.0.1") as (_, address):
        made = document(connect(program, pair, address, *QUICK, host=""))
        (cell,) = cells_of(made)
        assert (made["interface"], cell["drops"]) == ("lo", {"socket": 0, "softnet": 0, "nic": None})
        said = complaint(connect(program, pair, address, *QUICK, "--stamps", "hw", host=""), 1)
        assert said.startswith("tunectl: --stamps hw: lo has no clock (PHC) that could stamp packets")


def test_what_cannot_be_measured_is_one_line(hosts: None, program: Path, pair: str) -> None:
    with listening(program, pair) as (_, address):
        said = complaint(connect(program, pair, address, "--stamps", "hw"), 1)
        assert said.startswith("tunectl: --stamps hw: near0 has no clock (PHC) that could stamp packets")
        said = complaint(connect(program, pair, address, "--transport", "multicast", "--message-format", "json"), 2)
        assert "only tcp and udp lead to the host of --connect" in said
        said = complaint(connect(program, pair, address, experiment="wake"), 1)
        assert f"{address}: `tunectl probe feed --listen` answers there, and not `tunectl probe wake --listen`" in said
        said = complaint(connect(program, pair, "10.97.0.1:7000"), 1)
        assert said == "tunectl: --connect 10.97.0.1:7000: Network is unreachable\n"
        said = complaint(connect(program, pair, "10.98.0.1:7"), 1)
        assert said == "tunectl: --connect 10.98.0.1:7: Connection refused\n"
        both = ("--listen", "127.0.0.1:0")
        assert "this host is one or the other" in complaint(connect(program, pair, address, *both), 2)


def test_ktls_there_and_back_is_measured_or_says_why_not(hosts: None, program: Path, pair: str) -> None:
    with listening(program, pair) as (_, address):
        done = connect(program, pair, address, *QUICK, "--tls", "off,ktls")
        plain, encrypted = cells_of(document(done))
    assert plain["due"] == 100
    if encrypted["due"] == 0:
        assert str(encrypted["reason"]).startswith("cannot use the kernel's TLS (module tls: ")
        pytest.skip(str(encrypted["reason"]))
    assert (encrypted["due"], encrypted["lost"], encrypted["close_code"]) == (100, 0, 0)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_program_that_dies_there_ends_its_case_alone(hosts: None, program: Path, pair: str, transport: str) -> None:
    words = ("--waiting", "poll", "--rate", "500", "--duration", "60", "--symbols", "1", "--transport", transport)
    with listening(program, pair) as (server, address):
        argv, env = command(NEAR, program, "feed", "--connect", address, "--cpus", pair, *words)
        argv += ["--message-format", "binary", "--format", "json", "--stamps", "off"]
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env)
        reflector = until_child(server.pid)
        time.sleep(1)  # some messages come back
        begun = time.monotonic()
        os.kill(reflector, 9)
        out, _ = child.communicate(timeout=120)
        assert time.monotonic() - begun < 45
        (cell,) = json.loads(out)["cells"]
        assert int(cell["due"]) < 30_000
        assert any("failed before the last message: " in text for text in cell["warnings"]) or cell["n"] == 0
        (again,) = cells_of(document(connect(program, pair, address, *QUICK)))
        assert again["due"] == 100


def test_a_host_that_dies_ends_the_run(hosts: None, program: Path, pair: str) -> None:
    words = ("--waiting", "poll", "--rate", "500", "--duration", "3", "--symbols", "1,2", "--format", "json")
    with listening(program, pair) as (server, address):
        argv, env = command(NEAR, program, "feed", "--connect", address, "--cpus", pair, *words)
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        until_child(server.pid)
        time.sleep(1)
        server.kill()
        out, err = child.communicate(timeout=60)
    if child.returncode and not out:  # it was so busy that nothing had come
        assert err.count("\n") == 1
        assert err.startswith("tunectl: nothing was measured: ")
        return
    made = json.loads(out)
    assert (child.returncode, err) == (code_of_cases(made), "")
    assert made["cells"][-1]["reason"] == "the other host went away"
