"""What `tunectl fleet report` of a folder costs: `python tests/bench/bench_fleet_report.py [--hosts 1000,10000]`.

The documents are docs/go.json and docs/no-go.json (a share of `--no-go` percent, all by default: the dearest), each
with a name, a boot and figures of its own, other numbers in its sentences, and listed gaps up to `--bytes`.
Nothing is asserted: times belong to a machine.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.fleet.cage import TUNECTL

DOCS = Path(__file__).parents[2] / "docs"
AT = "2026-11-28T05:30:00Z"
_A_GAP = 34  # bytes
_NUMBER = re.compile(r"\b[1-9][0-9]{1,4}\b")


def varied(template: str, name: str, number: int, size: int) -> dict[str, Any]:
    """A document of docs/ as that of another host, of about so many bytes."""
    rng = random.Random(number)
    made: dict[str, Any] = json.loads(template)
    boot = {"hostname": name, "boot_id": f"00000000-0000-4000-8000-{number:012}"}
    made["host"] |= boot
    made["at"] = AT
    made["hardware"]["product"] = f"R{number % 5}"
    made["reasons"] = [_NUMBER.sub(lambda found: str(int(found[0]) + rng.randrange(9)), one) for one in made["reasons"]]
    for finding in made["verify"]["findings"] + made["check"]["findings"]:
        finding["reason"] = _NUMBER.sub(lambda found: str(int(found[0]) + rng.randrange(9)), finding["reason"])
    probe = made["probe"]
    probe["host"] = probe["host"] | boot
    probe["at"] = AT
    listed = max(size - len(template), 0) // _A_GAP // len(probe["cpus"])
    for cpu in probe["cpus"]:
        starts = [cpu["tsc_start"] + 100_000 * place for place in range(min(listed, cpu["interruptions"]))]
        cpu["events"] = [[start, start + rng.randrange(3_000, 90_000), 0] for start in starts]
        cpu["events_lost"] = cpu["interruptions"] - len(starts)
    return made


def fill(place: Path, hosts: int, size: int, no_go: int) -> float:
    """So many hosts' documents; their mean size."""
    templates = [(DOCS / f"{name}.json").read_text() for name in ("go", "no-go")]
    written = 0
    for number in range(hosts):
        name = f"tx-{number:05}"
        made = varied(templates[number % 100 < no_go], name, number, size)
        written += (place / f"{name}.json").write_text(json.dumps(made, separators=(",", ":")))
    return written / hosts


def cost(words: list[str]) -> tuple[float, float, float, int]:
    """(seconds, CPU seconds, MiB, bytes printed) of one command."""
    starter = (
        "import resource,subprocess,sys,time; t=time.monotonic(); p=subprocess.Popen(sys.argv[1:],stdout=-1); "
        "n=sum(map(len,iter(lambda: p.stdout.read(65536),b''))); p.wait(); r=resource.getrusage(-1);"
        "print(time.monotonic()-t, r.ru_utime+r.ru_stime, r.ru_maxrss/1024, n)"
    )
    done = subprocess.run([sys.executable, "-c", starter, *words], stdout=subprocess.PIPE, text=True, check=True)
    wall, cpu, mib, size = done.stdout.split()
    return float(wall), float(cpu), float(mib), int(size)


def main() -> None:
    """Builds, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", default="1000,10000")
    parser.add_argument("--bytes", type=int, default=105_000)
    parser.add_argument("--no-go", type=int, default=100)
    options = parser.parse_args()
    print("hosts  bytes each  format   wall s   CPU s     MiB  printed")
    for hosts in map(int, options.hosts.split(",")):
        with tempfile.TemporaryDirectory() as place:
            size = fill(Path(place), hosts, options.bytes, options.no_go)
            for fmt in ("text", "json", "html"):
                words = [str(TUNECTL), "fleet", "report", place, "--format", fmt]
                wall, cpu, mib, printed = cost(words)
                print(f"{hosts:5}  {size:10.0f}  {fmt:6}  {wall:7.2f} {cpu:7.2f} {mib:7.1f} {printed:8,}", flush=True)


if __name__ == "__main__":
    main()
