"""The installed `tunectl monitor` as a process: what it prints, what it tells systemd, how it ends."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.places import PROGRAM, environment

HOST_FILE = 'profile = "low-latency"\nisolated = "2-3"\n[monitor]\nlog = "none"\ninterval_s = 0.1\n'


class Systemd:
    """The socket that NOTIFY_SOCKET names, and what came."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(str(path))
        self.sock.setblocking(False)
        self.got: list[str] = []

    def read(self) -> list[str]:
        """Every datagram so far."""
        try:
            while True:
                self.got.append(self.sock.recv(65536).decode())
        except BlockingIOError:
            return self.got

    def has(self, start: str, count: int = 1) -> bool:
        """Did so many datagrams with this beginning come?"""
        return sum(one.startswith(start) for one in self.read()) >= count


class Monitor:
    """A running `tunectl monitor --format json`, its output in files."""

    def __init__(
        self, root: Path, place: Path, *words: str, env: dict[str, str] | None = None, wrapped: Sequence[str] = ()
    ) -> None:
        place.mkdir(exist_ok=True)
        self.out, self.err = place / "out", place / "err"
        with open(self.out, "ab") as out, open(self.err, "ab") as err:
            self.process = subprocess.Popen(
                [*wrapped, *PROGRAM, "monitor", "--format", "json", "--root", str(root), *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=environment(env),
            )

    def transitions(self) -> list[tuple[str, str]]:
        """(status, identity) of every alert it told of, the earlier runs' of the same place too.

        A line that is still being written is none yet: a write over the end of a page is seen in parts.
        """
        whole = self.out.read_text().rpartition("\n")[0]
        made: list[dict[str, Any]] = [json.loads(line) for line in whole.splitlines()]
        return [(one["status"], f"{one['rule']}[{one['subject']}]") for one in made]

    def said(self) -> list[str]:
        """The lines of stderr."""
        return self.err.read_text().splitlines()

    def wait_for(self, what: Callable[[], bool], seconds: float = 60) -> None:
        """Until it is so; an assertion otherwise, with all it said."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ended = self.process.poll()  # first: what it did before it ended is still seen
            if what():
                return
            assert ended is None, (ended, self.said())
            time.sleep(0.02)
        raise AssertionError((self.transitions(), self.said()))

    def end(self, number: int = signal.SIGTERM, systemd: Systemd | None = None) -> int:
        """Sends the signal and waits: the exit code.

        `systemd` hears meanwhile: its socket holds ten datagrams, and who sends one waits a second for its place.
        """
        self.process.send_signal(number)
        if systemd:
            self.wait_for(lambda: systemd.has("STOPPING=1"))
        return self.process.wait(60)


@contextmanager
def running(
    root: Path, place: Path, *words: str, env: dict[str, str] | None = None, wrapped: Sequence[str] = ()
) -> Iterator[Monitor]:
    """A monitor that does not outlive the block, and never said a traceback. `wrapped` execs it in another place."""
    monitor = Monitor(root, place, *words, env=env, wrapped=wrapped)
    try:
        yield monitor
    finally:
        if monitor.process.poll() is None:
            monitor.process.kill()
            monitor.process.wait()
    assert "Traceback" not in monitor.err.read_text(), monitor.err.read_text()


def limit_of(root: Path, cpu: int) -> Path:
    """The file in which a host caps a CPU."""
    return root / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_max_freq"


def notified(systemd: Systemd, watchdog_s: float) -> dict[str, str]:
    """The environment that systemd would give."""
    return {"NOTIFY_SOCKET": str(systemd.path), "WATCHDOG_USEC": str(int(watchdog_s * 1e6)), "PATH": os.environ["PATH"]}
