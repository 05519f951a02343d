"""What the receiver of `probe feed` costs by itself: `python tests/bench/bench_feed.py`.

Framing, parsing and the book, each over 100,000 messages in one timed loop. The bars: 50 ns to frame a message, 4 ns a
byte to parse it.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

NATIVE = Path(__file__).parents[2] / "tunectl" / "probe" / "native"
BARS = {"frame_ns": 50.0, "parse_ns_per_byte": 4.0}


def main() -> int:
    with tempfile.TemporaryDirectory() as out:
        make = ["make", "-s", "-C", str(NATIVE), "bench-feed", f"BUILD={out}"]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
        argv = [f"{out}/bench-feed", str(max(os.sched_getaffinity(0)))]
        found = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)
    for name, value in found.items():
        print(f"{name} {value}{f' (bar {BARS[name]:g})' if name in BARS else ''}")
    return 0 if all(found[name] <= bar for name, bar in BARS.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
