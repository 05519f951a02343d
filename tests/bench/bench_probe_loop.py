"""What the probe's loop costs against a bare read-and-compare loop: `python tests/bench/bench_probe_loop.py`.

Both loops alternate within one process on one CPU; the median ratio of their rounds is printed. The bar is 1.05.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

NATIVE = Path(__file__).parents[2] / "tunectl" / "probe" / "native"
RUNS = 5
BAR = 1.05


def main() -> int:
    cpu = str(max(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory() as out:
        make = ["make", "-s", "-C", str(NATIVE), "bench", f"BUILD={out}"]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
        argv = [f"{out}/bench-loop", cpu]
        runs = [json.loads(subprocess.run(argv, check=True, capture_output=True).stdout) for _ in range(RUNS)]
    for run in runs:
        turns = f"bare loop {run['bare_ns']:.2f} ns, probe's loop {run['loop_ns']:.2f} ns a turn"
        print(f"{turns}: ratio {run['ratio']:.4f}")
    ratio = statistics.median(run["ratio"] for run in runs)
    print(f"probe loop / bare loop = {ratio:.3f} (median of {RUNS} runs; bar {BAR})")
    return 0 if ratio <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
