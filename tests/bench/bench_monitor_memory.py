"""Does the monitor's memory stay flat? Cycles as fast as they go, with alerts that come and go, and the store.

    python tests/bench/bench_monitor_memory.py [CYCLES]        # 100000: a day at 1 Hz

Prints the resident size as it goes. The test in tests/monitor/test_memory.py runs the same for fewer cycles.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

from tests.hosts.builder import build_named
from tests.monitor.process import HOST_FILE, limit_of
from tunectl.host.sysroot import Sysroot
from tunectl.monitor.assembly import Places, opener_of
from tunectl.monitor.store import Store
from tunectl.monitor.watched_host import Lasting
from tunectl.tuning.inspection import open_inspection

TOGGLE = 20  # cycles between a cap and its end
PAGE = resource.getpagesize()


def prepared(place: Path) -> Path:
    """lab4, booted with CPUs 2-3 isolated, with a textfile and a log that nobody listens to."""
    root = build_named(place / "host", "lab4", tuned_boot=frozenset({2, 3}))
    path = root / "etc/tunectl/host.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HOST_FILE + f'[monitor.prometheus]\ntextfile = "{place}/tunectl.prom"\n')
    return root


def cycles(place: Path, count: int) -> Generator[int, None, None]:
    """Runs them, at one a second of a clock of our own, and yields how many edges there were so far."""
    root = prepared(place)
    clock = iter(range(1, count + 10))
    inspection = open_inspection(
        Sysroot(str(root)), f"{root}/etc/tunectl/host.toml", f"{root}/state", ("tunectl",), "2026-11-21"
    )
    store = Store(str(place / "state/monitor"))
    store.open()
    places = Places(store, Lasting())
    watch = opener_of(
        inspection, places, lambda watcher: setattr(watcher.watched_host, "now", lambda: float(next(clock)))
    )({})
    limit, transitions = limit_of(root, 2), 0
    before = limit.read_text()
    for number in range(count):
        if number % TOGGLE == 0:
            limit.write_text(before if number // TOGGLE % 2 else "1200000\n")
        status, fired = watch.cycle.step()
        for show in watch.shows.values():
            show(status)
        if fired:
            watch.notify(fired)
        transitions += len(fired)
        yield transitions
    watch.close()
    store.close()


def resident() -> int:
    """Bytes. /proc/self/statm"""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def main() -> None:
    """The long run."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as place:
        began, transitions = time.process_time(), 0
        for number, transitions in enumerate(cycles(Path(place), count)):
            if number % (count // 20) == count // 20 - 1 or number in (10, 100, 1000):
                print(f"{number + 1:>7} cycles  {resident() / 1e6:7.2f} MB  {transitions} edges", flush=True)
        print(f"{(time.process_time() - began) / count * 1e3:.2f} ms of CPU a cycle")


if __name__ == "__main__":
    main()
