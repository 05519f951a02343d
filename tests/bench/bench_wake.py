"""The wake probe beside the published benchmark: `python tests/bench/bench_wake.py PROGRAM [ROUNDS]`.

PROGRAM is `std` of https://github.com/felix-pb/sleeping_vs_spinning, built with `cargo build --release --bin std`.
Both run in turns: 99 messages, 100 ms apart, over a channel, TCP and UDP, received asleep and spinning. Printed is
the median of the rounds' medians.

The published one pins nothing, and where its threads meet decides what is measured: on one CPU a sleeper is woken
without an interrupt to another. So there are two comparisons, each like with like: its threads held to our two CPUs
from outside, and left alone, beside ours on two CPUs and (asleep) on one. The bar: no cell of ours slower than the
pinned one, and none of ours, in the better of the two places, slower than the free one. Take the machine to yourself.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

NATIVE = Path(__file__).parents[2] / "tunectl" / "probe" / "native"
MECHANISMS = {"mpsc": "channel", "tcp": "tcp", "udp": "udp"}
WAYS = {"block": "sleeping", "minimal": "spinning"}
UNITS_NS = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}
SECTION = re.compile(r"\[std \u2013 (\w+) \u2013 (\w+)\].*?mid = ([0-9.]+)(ns|µs|ms|s)\n", re.DOTALL)
COLUMNS = ("ours", "ours cold", "pinned", "ours 1 CPU", "free")
Cell = tuple[str, str]


def theirs(program: str, cpus: tuple[int, int] | None) -> dict[Cell, float]:
    """Each thread it makes is moved to its CPU within some ms: the main thread receives, the others send."""
    child = subprocess.Popen([program], stdout=subprocess.PIPE, text=True)
    while cpus and child.poll() is None:
        with suppress(OSError):
            for name in os.listdir(f"/proc/{child.pid}/task"):
                os.sched_setaffinity(int(name), {cpus[int(name) == child.pid]})
        time.sleep(0.02)
    said = child.communicate()[0]
    return {(MECHANISMS[kind], way): float(value) * UNITS_NS[unit] for kind, way, value, unit in SECTION.findall(said)}


def ours(probe: str, cpus: tuple[int, int], *more: str) -> dict[Cell, float]:
    argv = [probe, "wake", "--cpus", f"{cpus[0]},{cpus[1]}", "--mechanisms", ",".join(MECHANISMS.values())]
    argv += ["--waiting", "block" if cpus[0] == cpus[1] else ",".join(WAYS), "--idle-ms", "100", *more]
    cells = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)["cells"]
    return {(cell["mechanism"], WAYS[cell["way"]]): cell["percentiles_ns"]["50"] for cell in cells}


def one_round(probe: str, program: str, cpus: tuple[int, int]) -> dict[str, dict[Cell, float]]:
    return {
        "ours": ours(probe, cpus),
        "pinned": theirs(program, cpus),
        "ours 1 CPU": ours(probe, (cpus[1], cpus[1])),
        "free": theirs(program, None),
        "ours cold": ours(probe, cpus, "--cold-sender"),
    }


def main() -> int:
    cpus = sorted(os.sched_getaffinity(0))[-2:]
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK) or len(cpus) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    found: dict[Cell, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(["make", "-s", "-C", str(NATIVE), f"OUT={out}"], check=True, stdout=subprocess.DEVNULL)
        for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 3):
            for column, cells in one_round(f"{out}/tunectl-probe", sys.argv[1], (cpus[0], cpus[1])).items():
                for cell, median_ns in cells.items():
                    found[cell][column].append(median_ns)
    print(f"{'median, µs':20}" + "".join(f"{column:>12}" for column in COLUMNS))
    slower = 0
    for cell, columns in found.items():
        middle = {column: statistics.median(columns[column]) / 1e3 for column in COLUMNS if columns[column]}
        best = min(middle["ours"], middle.get("ours 1 CPU", middle["ours"]))
        slower += middle["ours"] > middle["pinned"] or best > middle["free"]
        shown = (f"{middle[column]:12.2f}" if column in middle else f"{'-':>12}" for column in COLUMNS)
        print(f"{cell[0]:8} {cell[1]:11}" + "".join(shown))
        for column in COLUMNS:
            print(f"    {column}: " + "  ".join(f"{value / 1e3:.2f}" for value in columns[column]))
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
