"""The wake probe beside the published benchmark: `python tests/bench/bench_wake.py PROGRAM [ROUNDS]`.

PROGRAM is `std` of https://github.com/felix-pb/sleeping_vs_spinning, built with `cargo build --release --bin std`.
Both run in turns: 99 messages, 100 ms apart, over a channel, TCP and UDP, received asleep and spinning. Printed is
the median of the rounds' medians.

The published one pins nothing, and where its threads meet decides what is measured: on one CPU a sleeper is woken
without an interrupt to another. So there are two comparisons, each like with like: its threads held to our two CPUs
from outside, and left alone, beside ours on two CPUs and (asleep) on one. The bar: no cell of ours slower than the
pinned one, and none of ours, in the better of the two places, slower than the free one. Ours has a cold sender in
every cell that is compared, as theirs is; the warm one stands beside. A void cell has no figure. Take the machine to
yourself.
"""

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

from tunectl.experiments.wake import WakeRequest, run_wake

NATIVE = Path(__file__).parents[2] / "tunectl" / "probe" / "native"
MECHANISMS = {"mpsc": "channel", "tcp": "tcp", "udp": "udp"}
WAYS = {"block": "sleeping", "minimal": "spinning"}
UNITS_NS = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}
SECTION = re.compile(r"\[std \u2013 (\w+) \u2013 (\w+)\].*?mid = ([0-9.]+)(ns|µs|ms|s)\n", re.DOTALL)
COLUMNS = ("ours", "pinned", "ours 1 CPU", "free", "ours warm")
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


def ours(cpus: tuple[int, int], cold_sender: bool = False) -> dict[Cell, float]:
    ways = "block" if cpus[0] == cpus[1] else ",".join(WAYS)
    request = WakeRequest(
        cpus=f"{cpus[0]},{cpus[1]}",
        mechanisms=",".join(MECHANISMS.values()),
        waiting=ways,
        idle_ms="100",
        cold_sender=cold_sender,
    )
    cells = run_wake(request)["cells"]
    for cell in cells:
        if cell["is_void"]:
            print(f"{cell['mechanism']} {cell['way']}: {cell['reason']}", file=sys.stderr)
    return {(cell["mechanism"], WAYS[cell["way"]]): cell["percentiles_ns"]["50"] for cell in cells if cell["n"]}


def one_round(program: str, cpus: tuple[int, int]) -> dict[str, dict[Cell, float]]:
    return {
        "ours": ours(cpus, cold_sender=True),
        "pinned": theirs(program, cpus),
        "ours 1 CPU": ours((cpus[1], cpus[1]), cold_sender=True),
        "free": theirs(program, None),
        "ours warm": ours(cpus),
    }


def main() -> int:
    cpus = sorted(os.sched_getaffinity(0))[-2:]
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK) or len(cpus) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    found: dict[Cell, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(["make", "-s", "-C", str(NATIVE), f"OUT={out}"], check=True, stdout=subprocess.DEVNULL)
        os.environ["TUNECTL_PROBE"] = f"{out}/tunectl-probe"
        for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 3):
            for column, cells in one_round(sys.argv[1], (cpus[0], cpus[1])).items():
                for cell, median_ns in cells.items():
                    found[cell][column].append(median_ns)
    print(f"{'median, µs':20}" + "".join(f"{column:>12}" for column in COLUMNS))
    slower = 0
    for cell, columns in found.items():
        middle = {column: statistics.median(columns[column]) / 1e3 for column in COLUMNS if columns[column]}
        if "ours" in middle:
            best = min(middle["ours"], middle.get("ours 1 CPU", middle["ours"]))
            slower += middle["ours"] > middle["pinned"] or best > middle["free"]
        shown = (f"{middle[column]:12.2f}" if column in middle else f"{'-':>12}" for column in COLUMNS)
        print(f"{cell[0]:8} {cell[1]:11}" + "".join(shown))
        for column in COLUMNS:
            print(f"    {column}: " + "  ".join(f"{value / 1e3:.2f}" for value in columns[column]))
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
