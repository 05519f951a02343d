"""From a frequency that drops to the webhook that hears of it: `python -m tests.bench.bench_monitor_alert [DROPS]`.

The daemon as it is shipped, one look a second, on a recorded host whose limits are files. Each drop comes at another
moment between two looks: half of them of every CPU, half of one alone, which a second look has to confirm. The bar: 2 s
in every one. Nothing is measured of a sensor or of a network.
"""

import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from tests.hosts.builder import build_named
from tests.monitor.process import limit_of, running

BAR_S = 2.0
LOW, HIGH = "1200000\n", "3500000\n"
CPUS = {"every CPU": range(4), "one alone": range(2, 3)}
HOST_FILE = 'profile = "low-latency"\nisolated = "2-3"\n[monitor]\nlog = "none"\n[[monitor.webhooks]]\nurl = "{url}"\n'


class Heard:
    """What came to the webhook about FrequencyDrop, and when."""

    def __init__(self) -> None:
        self.came: list[tuple[str, float]] = []  # status, time.monotonic()
        self._news = threading.Condition()

    def add(self, document: dict[str, str]) -> None:
        with self._news:
            if document["rule"] == "FrequencyDrop":
                self.came.append((document["status"], time.monotonic()))
                self._news.notify()

    def wait(self, status: str, after: float, patience_s: float = 20) -> float:
        """When the first such transition after this moment came; SystemExit where none does."""

        def times() -> list[float]:
            return [at for what, at in self.came if what == status and at >= after]

        with self._news:
            if not self._news.wait_for(times, patience_s):
                raise SystemExit(f"nothing was {status} within {patience_s} s")
            return times()[0]


@contextmanager
def webhook(heard: Heard) -> Iterator[str]:
    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.add(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is printed of a request."""

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def main() -> int:
    drops = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    heard, chance, delays = Heard(), random.Random(1), {what: list[float]() for what in CPUS}
    with tempfile.TemporaryDirectory() as place, webhook(heard) as url:
        root = build_named(Path(place) / "host", "lab4", tuned_boot=frozenset({2, 3}))
        for cpu in range(4):
            limit_of(root, cpu).write_text(HIGH)
        host_file = Path(place) / "host.toml"
        host_file.write_text(HOST_FILE.format(url=url))
        words = ["--host", str(host_file), "--state", f"{place}/state"]
        with running(root, Path(place) / "out", *words):
            time.sleep(5)
            for number in range(drops):
                what = list(CPUS)[number % len(CPUS)]
                time.sleep(chance.random())
                delays[what].append(drop(root, CPUS[what], heard))
    for what, seconds in delays.items():
        print(f"{what}: " + " ".join(f"{delay:.2f}" for delay in sorted(seconds)))
    within = sum(delay <= BAR_S for seconds in delays.values() for delay in seconds)
    print(f"{within} of {drops} within {BAR_S:g} s")
    return 0 if within == drops else 1


def drop(root: Path, cpus: range, heard: Heard) -> float:
    """Lowers the limits, waits until that is told, and until its end is."""
    began = time.monotonic()
    for cpu in cpus:
        limit_of(root, cpu).write_text(LOW)
    delay = heard.wait("firing", began) - began
    risen = time.monotonic()
    for cpu in cpus:
        limit_of(root, cpu).write_text(HIGH)
    heard.wait("resolved", risen)
    return delay


if __name__ == "__main__":
    sys.exit(main())
