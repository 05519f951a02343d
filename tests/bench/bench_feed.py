"""What the receiver of `probe feed` costs: `python -m tests.bench.bench_feed [ROUNDS]`, as root, on two CPUs.

By itself: framing, parsing and the book, each over 100,000 messages in one timed loop. The bars: 50 ns to frame a
message, 4 ns a byte to parse it.

Beside a plain receiver, which stands in the probe's place: the same sender, schedule, parser and book, and no stage
is noted. Unstamped UDP, 10,000 messages a second; the median from due to book, in turns. The bar: 1.1 of one that
waits as the probe does (poll0). Beyond that, one that spins on its receive saves poll(2), the call that poll0 is.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.pairs import measure_in_turns, median_of, ratio_of, run_json

NATIVE = Path(__file__).parents[2] / "tunectl" / "probe" / "native"
BARS = {"frame_ns": 50.0, "parse_ns_per_byte": 4.0}
BAR = 1.1
WORDS = ["--intrude", "--transport", "udp", "--format", "json", "--stamps", "off", "--duration", "0.2", "--fifo", "5"]


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    cpus = sorted(os.sched_getaffinity(0))[-2:]
    with tempfile.TemporaryDirectory() as out:
        make = ["make", "-s", "-C", str(NATIVE), "all", "bench-feed", "bench-receiver", f"OUT={out}"]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
        alone = run_json([f"{out}/bench-feed", str(cpus[-1])])
        words = [*WORDS, "--cpus", ",".join(map(str, cpus))]
        ours, plain = [f"{out}/tunectl-probe", "feed", *words], [f"{out}/bench-receiver", *words]
        polling = ratio_of(measure_in_turns(rounds, lambda: median(ours), lambda: median(plain)))
        spinning = ratio_of(measure_in_turns(rounds, lambda: median(ours), lambda: median(plain, SPINS="1")))
    for name, value in alone.items():
        print(f"{name} {value}{f' (bar {BARS[name]:g})' if name in BARS else ''}")
    print(f"beside a plain receiver that polls {polling} (bar {BAR:g}), that spins on its receive {spinning}")
    return 0 if all(alone[name] <= bar for name, bar in BARS.items()) and polling.value <= BAR else 1


def median(argv: list[str], **more: str) -> float:
    """From due to book, in ticks."""
    return median_of(run_json(argv, **more)["cells"][0]["total"])


if __name__ == "__main__":
    sys.exit(main())
