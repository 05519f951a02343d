"""The monitor's daemon beside node_exporter: `python -m tests.bench.bench_monitor_daemon [SECONDS]`, as root.

Both watch this machine for as long, at the same time, and are asked for their metrics once a second. The bars: no more
CPU time than node_exporter, and 1.5 of its resident memory. Without node_exporter (Debian's prometheus-node-exporter)
there is nothing to compare with, and that is said. Both have served for a round of drift before the time begins. Ours
is started as its unit starts it, from bytecode as pip leaves it: what had to compile itself keeps 2 MB more.
"""

import compileall
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import tunectl
from tests.bench.pairs import ratio_of
from tests.conftest import TUNECTL
from tunectl.installed import isolating

BARS = {"CPU time": 1.0, "resident": 1.5}
SETTLED_S = 10
PART_S = 5  # of which each is a pair
HOST_FILE = """profile = "low-latency"
isolated = "{last}"
[monitor]
log = "none"
[monitor.prometheus]
listen = "{address}"
"""


class Exporter(NamedTuple):
    """A running process that is asked at an address."""

    pid: int
    address: str

    def cpu_s(self) -> float:
        """Of all its threads; the process's CPU clock, clock_getcpuclockid(3)."""
        return time.clock_gettime(~self.pid << 3 | 2)

    def resident(self) -> int:
        """kB. /proc/PID/status"""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    def scrape(self) -> int:
        """Bytes of its metrics; 0 while it does not answer yet."""
        try:
            with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=5) as answer:
                return len(answer.read())
        except OSError:
            return 0


def main() -> int:
    program = shutil.which("prometheus-node-exporter") or shutil.which("node_exporter")
    if not program:
        print("skipped: there is no node_exporter (Debian: prometheus-node-exporter)")
        return 0
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    compileall.compile_dir(os.path.dirname(tunectl.__file__), quiet=1)
    with tempfile.TemporaryDirectory() as place, monitor(Path(place)) as ours, node_exporter(program) as theirs:
        scrape(SETTLED_S, ours, theirs)
        cpu_ms, kib = [], []
        for _ in range(seconds // PART_S):
            before = ours.cpu_s(), theirs.cpu_s()
            scrape(PART_S, ours, theirs)
            after = ours.cpu_s(), theirs.cpu_s()
            cpu_ms.append(tuple(1e3 * (then - now) / PART_S for then, now in zip(after, before, strict=True)))
            kib.append((float(ours.resident()), float(theirs.resident())))
    ratios = {"CPU time": ratio_of([(a, b) for a, b in cpu_ms]), "resident": ratio_of(kib)}
    print(f"CPU time a second, ms: ours {mean(cpu_ms, 0):.2f}, node_exporter's {mean(cpu_ms, 1):.2f}")
    print(f"resident, MB: ours {kib[-1][0] / 1e3:.1f}, node_exporter's {kib[-1][1] / 1e3:.1f}")
    for what, ratio in ratios.items():
        print(f"{what}: {ratio} (bar {BARS[what]:g})")
    return 0 if all(ratio.value <= BARS[what] for what, ratio in ratios.items()) else 1


def mean(rows: list[tuple[float, ...]], column: int) -> float:
    return sum(row[column] for row in rows) / len(rows)


def scrape(seconds: int, *exporters: Exporter) -> None:
    """Once a second each; SystemExit for one that does not answer."""
    for _ in range(seconds):
        due = time.monotonic() + 1
        if not all(exporter.scrape() for exporter in exporters):
            raise SystemExit("one of them does not answer")
        time.sleep(max(0.0, due - time.monotonic()))


def free_address() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def monitor(place: Path) -> Iterator[Exporter]:
    address = free_address()
    host_file = place / "host.toml"
    host_file.write_text(HOST_FILE.format(last=max(os.sched_getaffinity(0)), address=address))
    words = ["monitor", "--host", str(host_file), "--state", str(place / "state"), "--daemon"]
    with running([sys.executable, isolating(), str(TUNECTL), *words], address) as exporter:
        yield exporter


@contextmanager
def node_exporter(program: str) -> Iterator[Exporter]:
    address = free_address()
    with running([program, f"--web.listen-address={address}"], address) as exporter:
        yield exporter


@contextmanager
def running(words: list[str], address: str) -> Iterator[Exporter]:
    """From its first answer on."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        exporter, end = Exporter(process.pid, address), time.monotonic() + 20
        while not exporter.scrape():
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{words[0]} does not answer at {address}")
            time.sleep(0.2)
        yield exporter
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
