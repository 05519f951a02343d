"""What irqbalance bans now, asked at its own socket: a server here answers as irqbalance 1.9.2 does."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.nobody import needs_root
from tunectl.cpulist import CpuSet
from tunectl.host.cpusets import CpuFacts
from tunectl.host.irqbalance import Answer, Ban, ask, parse_answer, read_running_ban, shows_empty_is_unset
from tunectl.host.sysroot import Sysroot
from tunectl.tuners.conflicts import FoundTuner, objection

HOST = Sysroot("/")


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("SLEEP 10 BANNED 00000002", {1}),  # what Debian's 1.9.2 sent
        ("SLEEP 10 IRQ 33 LOAD 0 DIFF 0 CLASS 0 BANNED 00000001,0000000c", {2, 3, 32}),
        ("SLEEP 10 BANNED 00000000", set()),
        ("SLEEP 10 BANNED", None),
        ("SLEEP 10 BANNED rubbish", None),
        ("", None),
    ],
)
def test_an_answer(text: str, cpus: set[int] | None) -> None:
    assert parse_answer(text) == cpus


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is a thread here, and answers when a busy machine lets it."""
    monkeypatch.setattr("tunectl.host.irqbalance._TIMEOUT_S", 60.0)


@contextmanager
def balancer(answer: bytes, pid: int | None = None) -> Iterator[list[bytes]]:
    """Listens as the irqbalance of this process (or of another pid), for one question; what it was asked."""
    asked: list[bytes] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(f"\0irqbalance{pid or os.getpid()}.sock")
        listening.listen(1)

        def serve() -> None:
            there, _ = listening.accept()
            with there, suppress(OSError):  # who is not believed is not listened to
                asked.append(there.recv(500))
                there.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield asked
        thread.join(5)


@needs_root
def test_what_was_changed_while_it_runs_is_what_counts() -> None:
    """The environment of this process says nothing of a ban; its socket does."""
    with balancer(b"SLEEP 10 BANNED 0000000c") as asked:
        ban = read_running_ban(HOST, os.getpid())
    assert asked == [b"setup"]
    assert ban is not None
    assert ban.cpus == frozenset({2, 3})
    assert (ban.source, ban.unasked) == (f"process {os.getpid()} says so", "")


@needs_root
def test_a_balancer_that_does_not_say_is_not_known() -> None:
    with balancer(b""):
        answer = ask(HOST, os.getpid())
    assert answer.cpus is None
    assert "did not say at its socket @irqbalance" in answer.unasked


@needs_root
def test_whoever_takes_the_name_of_another_process_is_not_believed() -> None:
    with balancer(b"SLEEP 10 BANNED 0000000c", pid=1):
        assert ask(HOST, 1).cpus is None


def test_without_a_socket_nobody_can_change_it() -> None:
    assert ask(HOST, os.getpid()) == Answer(None)


@pytest.mark.parametrize(
    ("environ", "bans", "shown"),
    [
        ("HOME=/\0IRQBALANCE_BANNED_CPULIST=\0", {2, 3}, True),  # a newer one: empty is as unset
        ("IRQBALANCE_BANNED_CPULIST=\0IRQBALANCE_BANNED_CPUS=\0", {2, 3}, True),
        ("IRQBALANCE_BANNED_CPULIST=\0", set(), False),  # an older one
        ("IRQBALANCE_BANNED_CPULIST=\0", {3}, False),  # somebody changed its list
        ("IRQBALANCE_BANNED_CPULIST=\0", None, False),
        ("IRQBALANCE_BANNED_CPULIST=2-3\0", {2, 3}, False),  # its own list: nothing is shown
        ("IRQBALANCE_BANNED_CPULIST=\0IRQBALANCE_BANNED_CPUS=c\0", {2, 3}, False),
        ("HOME=/\0", {2, 3}, False),
    ],
)
def test_a_running_one_shows_what_it_makes_of_an_empty_list(environ: str, bans: set[int] | None, shown: bool) -> None:
    said = None if bans is None else frozenset(bans)
    assert shows_empty_is_unset(environ, said, frozenset({2, 3})) == shown


def tuner(*running: Ban, configured: CpuSet) -> FoundTuner:
    ban = Ban(configured, "/etc/default/irqbalance:1")
    return FoundTuner("irqbalance", True, True, True, (), (), ban=ban, running_bans=running)


@pytest.mark.parametrize(("now", "blamed"), [({2, 3}, False), ({1, 2, 3}, False), ({2}, True), (set(), True)])
def test_it_is_judged_by_what_it_does_and_a_restart_gives_it_its_configuration(now: set[int], blamed: bool) -> None:
    all_cpus = frozenset(range(4))
    facts = CpuFacts(all_cpus, all_cpus, 4, frozenset(), frozenset(), {})
    isolated = frozenset({2, 3})
    found = objection(tuner(Ban(frozenset(now), "process 9 says so"), configured=isolated), {}, isolated, facts)
    assert (found is not None) == blamed
    assert found is None or str(found.fix).startswith(
        "sudo systemctl restart irqbalance; its configuration has the ban"
    )
