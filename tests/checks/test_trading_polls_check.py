"""check.trading_polls on real processes, which set SO_BUSY_POLL themselves: no file of a host has it."""

import os
from contextlib import ExitStack

import pytest

from tests.checks.conftest import Judge
from tests.host.test_busypoll import POLLED, running
from tunectl.model import Finding, Outcome, Trading

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="to poll for longer than the default needs root"),
]

CHECK = "test_trading_window.py"
WINDOW_S = 1.0  # the least that the check asks for
SECOND = "b = socket.socket(*U); b.setsockopt(socket.SOL_SOCKET, 46, 77)"
NAMED = "open('/proc/self/comm', 'w').write('{}')"
CPU = max(os.sched_getaffinity(0))
PINNED = f"os.sched_setaffinity(0, {{{CPU}}})"


def polls(judge: Judge, **scripts: str) -> dict[str, Finding]:
    """The findings of processes that each ran a script, and are declared under its name."""
    with ExitStack() as stack:
        for name, script in scripts.items():
            stack.enter_context(running(f"{script}\n{NAMED.format(f'tt-{name}')}"))
        declared = [Trading(name, "", f"tt-{name}", "", CPU, "other", 0, False, ()) for name in scripts]
        found = judge("/", {CPU}, CHECK, trading=declared, live_s=WINDOW_S)
    return {name: found[f"check.trading_polls[{name}]"] for name in scripts}


def test_one_cpu_for_each_socket(judge: Judge) -> None:
    found = polls(
        judge,
        one=POLLED,
        two=f"{POLLED}; {SECOND}",
        waits=f"{POLLED}; {SECOND}; e = select.epoll(); e.register(a); e.register(b)",
        none="a = socket.socket(*U)",
    )
    assert {name: one.outcome for name, one in found.items()} == {
        "one": Outcome.COMPLIANT,
        "two": Outcome.UNREADABLE,
        "waits": Outcome.UNREADABLE,
        "none": Outcome.UNSUPPORTED,
    }
    assert "busy-polls 2 sockets; its 1 thread can be on 1 CPU at once" in found["two"].reason
    assert "which thread polls which shows nowhere" in found["two"].reason


@pytest.mark.pins
def test_two_processes_that_poll_on_one_cpu(judge: Judge) -> None:
    found = polls(judge, left=f"{POLLED}; {PINNED}", right=f"{POLLED}; {PINNED}", still=PINNED)
    assert found["left"].outcome == Outcome.DRIFTED
    assert f"left polls on CPU {CPU} (SO_BUSY_POLL or epoll, 77 us), and so does right" in found["left"].reason
    assert found["still"].outcome == Outcome.UNSUPPORTED
