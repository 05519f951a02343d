"""Which process is ours: a pid alone is not proof, since the kernel hands it out again."""

import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Owned:
    """A process this lab started: its pid and its start time (clock ticks since boot, /proc/PID/stat)."""

    pid: int
    start_ticks: int

    def alive(self) -> bool:
        """Whether that very process still runs; a zombie does not."""
        return _stat(self.pid) == ("running", self.start_ticks)

    def cpu_s(self) -> float:
        """CPU seconds that it has used, user and system; 0 once it has ended."""
        try:
            user, system = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        except OSError:
            return 0.0
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") if self.alive() else 0.0

    def waited_s(self) -> float:
        """Seconds for which the one of its threads that waited longest has waited for a CPU."""
        waits = [0]
        with suppress(OSError):
            for task in os.listdir(f"/proc/{self.pid}/task"):
                with suppress(OSError):  # a thread may end meanwhile
                    waits.append(int(Path(f"/proc/{self.pid}/task/{task}/schedstat").read_text().split()[1]))
        return max(waits) / 1e9

    def kill(self, timeout: float = 30) -> None:
        """End it at once, without a chance to write anything more, and wait until it is gone."""
        if not self.alive():
            return
        with suppress(ProcessLookupError):  # it may end by itself meanwhile
            os.kill(self.pid, signal.SIGKILL)
        self.wait(timeout)

    def wait(self, timeout: float) -> bool:
        """Wait until it has ended; False if it still runs after timeout seconds."""
        deadline = time.monotonic() + timeout
        while self.alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True


def claim(pid: int, expected_word: str) -> Owned | None:
    """Take ownership of a process just started, if its command line holds the expected word."""
    state = _stat(pid)
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    return Owned(pid, state[1]) if state and expected_word.encode() in words else None


def save(process: Owned, path: Path) -> None:
    """Remember a process across invocations of this program."""
    path.write_text(json.dumps(asdict(process)))


def load(path: Path) -> Owned | None:
    """The process remembered there, or None."""
    try:
        return Owned(**json.loads(path.read_text()))
    except FileNotFoundError:
        return None


def _stat(pid: int) -> tuple[str, int] | None:
    """("running" or "zombie", start time) from /proc/PID/stat; None if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The second field is the program's name in brackets and may hold spaces and brackets itself.
    fields = text.rpartition(")")[2].split()
    return ("zombie" if fields[0] in "ZX" else "running", int(fields[19]))
