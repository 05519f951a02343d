"""The wake probe beside the published benchmark: `python tests/bench/bench_wake.py PROGRAM [ROUNDS]`.

PROGRAM is `std` of https://github.com/felix-pb/sleeping_vs_spinning, built with `cargo build --release --bin std`. Both run in
turns: 99 messages, 100 ms apart, over a channel, TCP and UDP, received asleep and spinning. Printed is the median of the
rounds' medians, and who was faster. The bar: no cell of ours slower. Take the machine to yourself.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

NATIVE = Path(__file__).parents[2] / "tunectl" / "probe" / "native"
MECHANISMS = {"mpsc": "channel", "tcp": "tcp", "udp": "udp"}
WAYS = {"block": "sleeping", "minimal": "spinning"}
UNITS_NS = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}
SECTION = re.compile(r"\[std – (\w+) – (\w+)\].*?mid = ([0-9.]+)(ns|µs|ms|s)\n", re.DOTALL)
Medians = dict[tuple[str, str], float]


def theirs(program: str) -> Medians:
    said = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {(MECHANISMS[kind], way): float(value) * UNITS_NS[unit] for kind, way, value, unit in SECTION.findall(said)}


def ours(probe: str) -> Medians:
    argv = [probe, "wake", "--mechanisms", ",".join(MECHANISMS.values()), "--waiting", ",".join(WAYS), "--idle-ms", "100"]
    cells = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)["cells"]
    return {(cell["mechanism"], WAYS[cell["way"]]): cell["percentiles_ns"]["50"] for cell in cells}


def main() -> int:
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        print(__doc__, file=sys.stderr)
        return 2
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(["make", "-s", "-C", str(NATIVE), f"OUT={out}"], check=True, stdout=subprocess.DEVNULL)
        for _ in range(rounds):
            own, other = ours(f"{out}/tunectl-probe"), theirs(sys.argv[1])
            for cell in own:
                found[cell].append((own[cell], other[cell]))
    slower = 0
    for (mechanism, waiting), pairs in found.items():
        own_ns, other_ns = (statistics.median(column) for column in zip(*pairs, strict=True))
        slower += own_ns > other_ns
        each = "  ".join(f"{own:.0f}/{other:.0f}" for own, other in pairs)
        print(f"{mechanism:8} {waiting:9} tunectl {own_ns:8.0f} ns, published {other_ns:8.0f} ns   rounds {each}", flush=True)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
