"""`python -m tests.bench tails`: the sources of tail latency, each induced and measured beside its own absence."""

import sys

from tests.bench.tails import main

if __name__ == "__main__":
    if sys.argv[1:2] != ["tails"]:
        sys.exit(f"{__doc__}\nThe other measurements of this folder are programs of their own.")
    sys.exit(main(sys.argv[2:]))
