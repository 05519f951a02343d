"""What the fleet's store costs: `python tests/bench/bench_fleet_store.py [--hosts 10000] [--sessions 20] [--large]`.

The documents are those of bench_fleet_report, half of them NO-GO, each with a histogram and figures of its own; small
ones, of about 24 kB, have the first buckets of each histogram and every other finding. Each session is the same folder
under another name. Nothing is asserted: times belong to a machine.
"""

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.bench.bench_fleet_report import DOCS, cost, varied
from tests.fleet.cage import TUNECTL

_BUCKETS = 40


def cut(made: dict[str, Any]) -> dict[str, Any]:
    """The same document, of a host with fewer CPUs and NICs whose isolated CPUs were nearly left alone."""
    for part in ("verify", "check"):
        made[part]["findings"] = made[part]["findings"][::2]
    for key in ("reasons", "reasons_about"):
        made[key] = made[key][::4]
    for cpu in made["probe"]["cpus"]:
        cpu["histogram"] = cpu["histogram"][:_BUCKETS]
        cpu["interruptions"] = cpu["events_lost"] = sum(count for _, _, count in cpu["histogram"])
        cpu["events"] = []
        cpu["series"] = None
    return made


def with_own_figures(made: dict[str, Any], number: int) -> dict[str, Any]:
    """Gaps and figures of this host alone."""
    rng = random.Random(number)
    for cpu in made["probe"]["cpus"]:
        longer = rng.lognormvariate(0, 0.1)
        cpu["histogram"] = [[low, high, count + rng.randrange(3)] for low, high, count in cpu["histogram"]]
        more = sum(count for _, _, count in cpu["histogram"]) - cpu["interruptions"]
        cpu["interruptions"], cpu["events_lost"] = cpu["interruptions"] + more, cpu["events_lost"] + more
        cpu["max_ns"] = round(cpu["max_ns"] * longer)
        cpu["arrival_ns"] = {key: round(value * longer) for key, value in cpu["arrival_ns"].items()}
        cpu["loop_ns"]["mean"] = round((cpu["loop_ns"]["mean"] or 10.0) * rng.lognormvariate(0, 0.01), 3)
    return made


def fill(place: Path, hosts: int, *, large: bool) -> float:
    """So many hosts' documents; their mean size."""
    place.mkdir(parents=True)
    whole = [json.loads((DOCS / f"{name}.json").read_text()) for name in ("go", "no-go")]
    templates = [json.dumps(made if large else cut(made)) for made in whole]
    written = 0
    for number in range(hosts):
        name = f"tx-{number:05}"
        made = with_own_figures(varied(templates[number % 2], name, number, 105_000 if large else 0), number)
        written += (place / f"{name}.json").write_text(json.dumps(made, separators=(",", ":")))
    return written / hosts


def main() -> None:
    """Builds, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder, store = Path(place) / "documents", Path(place) / "store"
        size = fill(folder, options.hosts, large=options.large)
        names = [f"session-{number:02}" for number in range(options.sessions)]
        for name in names:
            (Path(place) / name).symlink_to(folder)
        tunectl = [str(TUNECTL), "fleet"]
        wall, cpu, mib, _ = cost([*tunectl, "keep", *(f"{place}/{name}" for name in names), "--store", str(store)])
        documents = options.hosts * options.sessions
        kept = sum(path.stat().st_size for path in store.rglob("*.parquet")) / documents
        print(f"{documents:,} documents of {size:,.0f} bytes taken in: {documents / wall:,.0f} a second", end=", ")
        print(f"{cpu / documents * 1e3:.2f} ms of CPU and {kept:,.0f} bytes each, {mib:.0f} MiB", flush=True)
        asked = {
            "report": ["report", names[-1]],
            "report --format json": ["report", names[-1], "--format", "json"],
            "history --knob": ["history", "--knob", "mm.swappiness"],
            "history HOST": ["history", "tx-00001"],
            "diff": ["diff", names[0], names[-1]],
        }
        for what, words in asked.items():
            wall, cpu, mib, printed = cost([*tunectl, *words, "--store", str(store)])
            print(f"{what:22} {wall:6.2f} s {cpu:6.2f} s of CPU {mib:6.0f} MiB {printed:12,} bytes", flush=True)


if __name__ == "__main__":
    main()
