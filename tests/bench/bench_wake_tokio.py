"""The event loop of `probe wake` beside tokio's: `python -m tests.bench.bench_wake_tokio [ROUNDS]`, as root, two CPUs.

tests/bench/tokio is a task that waits for a channel's messages in a runtime of one thread, asleep or asking again in
each turn; cargo builds it with the tokio that it fetches. Both have a thread that sends 99 messages, 10 ms apart, to
another CPU, under SCHED_FIFO, in turns. The bar: our median is no longer than tokio's, asleep and spinning. Without
cargo, or where it fetches nothing, that is said and nothing is compared.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.bench.pairs import measure_in_turns, median_of, ratio_of, run_json

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "tunectl" / "probe" / "native"
BAR = 1.0
IDLE_MS, PRIORITY = 10, 5
WAYS = {"asleep": ("epoll", "0"), "spinning": ("epoll0", "1")}  # our wait method; does tokio's task spin?


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    sender, receiver = sorted(os.sched_getaffinity(0))[-2:]
    if not shutil.which("cargo"):
        print("skipped: there is no cargo")
        return 0
    with tempfile.TemporaryDirectory() as out:
        crate = shutil.copytree(HERE / "tokio", Path(out) / "crate")
        built = subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=crate, capture_output=True, text=True)
        if built.returncode:
            print(f"skipped: cargo cannot build it: {built.stderr.strip().splitlines()[-1]}")
            return 0
        subprocess.run(["make", "-s", "-C", str(NATIVE), f"OUT={out}"], check=True, stdout=subprocess.DEVNULL)
        probe = [f"{out}/tunectl-probe", "wake", "--intrude", "--cold-sender", "--fifo", str(PRIORITY)]
        probe += ["--cpus", f"{sender},{receiver}", "--messages", "99"]
        tokio = ["chrt", "-f", str(PRIORITY), str(crate / "target/release/wake-tokio")]
        tokio += [str(sender), str(receiver), str(IDLE_MS)]
        is_within = True
        for name, (way, spins) in WAYS.items():
            case = [*probe, "--case", f"eventloop:{way}:{IDLE_MS}"]
            pairs = measure_in_turns(rounds, partial(ours, case), partial(theirs, [*tokio, spins]))
            ratio = ratio_of(pairs)
            is_within &= ratio.value <= BAR
            print(f"{name}: {ratio} of tokio's median (bar {BAR:g})")
    return 0 if is_within else 1


def ours(argv: list[str]) -> float:
    """In ns. The document as it is counted: on a CPU that others want, too, both medians are of the same kind."""
    document = run_json(argv)
    return median_of(document["cells"][0]["delay"]) / float(document["clock"]["hz"]) * 1e9


def theirs(argv: list[str]) -> float:
    return float(subprocess.run(argv, check=True, capture_output=True).stdout)


if __name__ == "__main__":
    sys.exit(main())
