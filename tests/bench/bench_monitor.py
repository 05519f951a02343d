"""What one look of the monitor costs, against the bare reads in C: `python tests/bench/bench_monitor.py`.

On a generated recorded host with 256 CPUs (248 of them isolated) and 4,096 interrupts. The reads of ten looks, one
round of drift, are recorded, and a C program makes the same ones, the table of interrupts in pieces of the same size:
once opening and closing every file, as verify's benchmark does, and once with the same files held open that the
monitor holds open. CPU time, taken in turns. Between looks the table changes as a working host's does: ticks
everywhere, a few hundred rows on housekeeping CPUs. Held files are read as on a live host, without the check that a
recorded host's file was not replaced. Nothing is asserted.
"""

import argparse
import dataclasses
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.hosts.builder import build, generated
from tests.monitor.watched import CPU, Watched
from tunectl.cpulist import format_cpulist
from tunectl.monitor import open_files
from tunectl.monitor.interrupt_table import InterruptTable
from tunectl.monitor.sources import take_snapshot

ROUND = 10  # looks; one round of drift
READER = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct step { char kind; int fd; char *path; };

static double cpu_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    static char line[4096], buffer[1 << 17];
    static struct step steps[1 << 16];
    size_t count = 0;
    FILE *list = fopen(argv[1], "r");
    (void)argc;
    while (list && fgets(line, sizeof line, list)) {
        line[strcspn(line, "\n")] = 0;
        steps[count].kind = line[0];
        steps[count].path = strdup(line + 2);
        steps[count].fd = line[0] == 'O' ? -1 : open(line + 2, O_RDONLY);
        count++;
    }
    while (fgets(line, sizeof line, stdin)) {
        double start = cpu_s();
        for (size_t i = 0; i < count; i++) {
            int fd = steps[i].fd;
            if (steps[i].kind == 'H' && line[0] == 'h') {
                if (pread(fd, buffer, 4096, 0) < 0) continue;
            } else if (steps[i].kind == 'T') {
                lseek(fd, 0, SEEK_SET);
                while (read(fd, buffer, sizeof buffer) > 0) { }
            } else if ((fd = open(steps[i].path, O_RDONLY | O_CLOEXEC)) >= 0) {
                if (read(fd, buffer, 4096) < 0) continue;
                close(fd);
            }
        }
        printf("%.9f\n", cpu_s() - start);
        fflush(stdout);
    }
    return 0;
}
"""


def main() -> None:
    """Builds, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpus", type=int, default=256)
    parser.add_argument("--irqs", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        open_files._pread_recorded = os.pread  # type: ignore[assignment]
        host = prepare(work / "host", options.cpus, options.irqs)
        restless = Restless(host)
        start = time.thread_time()
        samples = len(host.look().samples)
        print(f"the first look {1e3 * (time.thread_time() - start):.0f} ms, {samples} samples")
        for _ in range(2 * ROUND):
            restless.move()
            host.look()
        steps = record(host, restless)
        reader = start_reader(work, steps)
        snapshots, c_open, c_held = measure(host, restless, reader, options.rounds)
    kinds = {kind: sum(step[0] == kind for step in steps) / ROUND for kind in "HOT"}
    print(
        f"{options.cpus} CPUs, {len(host.watched_host.isolated)} isolated, {options.irqs} interrupts; in one look "
        f"{kinds['H']:.0f} held files, {kinds['O']:.0f} opened, the table {kinds['T']:.1f} times"
    )
    look_ms, mean_ms = 1e3 * statistics.median(snapshots), 1e3 * statistics.mean(snapshots)
    print(f"one look      {look_ms:6.2f} ms (median)  {mean_ms:6.2f} (mean)  {1e3 * max(snapshots):6.2f} (largest)")
    for what, taken in (("every file opened", c_open), ("files held", c_held)):
        c_ms = 1e3 * statistics.mean(taken) / ROUND
        print(f"the same in C {c_ms:6.2f} ms  ratio {mean_ms / c_ms:.2f}  ({what})")
    print(f"at 1 Hz       {mean_ms / 10:6.2f} % of one CPU, drift every {ROUND} s and the audit included")


def prepare(root: Path, cpus: int, irqs: int) -> Watched:
    """The host: all but eight CPUs isolated (two cores a package stay), governor performance, limits by firmware."""
    keep = {*range(2), *range(cpus // 4, cpus // 4 + 2)}
    keep |= {cpu + cpus // 2 for cpu in keep}
    isolated = frozenset(range(cpus)) - keep
    spec = dataclasses.replace(generated(cpus, irqs), tuned_boot=isolated)
    assert spec.frequency
    frequency = dataclasses.replace(spec.frequency, governor="performance", bios_limit=True)
    print(f"isolated {format_cpulist(isolated)}")
    return Watched(build(root, dataclasses.replace(spec, frequency=frequency)), isolated)


class Restless:
    """What moves between looks, in place: the file stays the same one."""

    def __init__(self, host: Watched) -> None:
        self._host = host
        self._random = random.Random(1)
        text = (host.root / "proc/interrupts").read_bytes()
        self._text = bytearray(text)
        self._columns = {cpu: index for index, cpu in enumerate(sorted(host.watched_host.online))}
        lines, offset = [], 0
        for line in text.split(b"\n"):
            lines.append((line.partition(b":")[0].strip(), offset + line.find(b":") + 1))
            offset += len(line) + 1
        self._local = [start for label, start in lines if label in (b"LOC", b"CAL", b"RES", b"TLB")]
        self._device = [start for label, start in lines if label.isdigit()]

    def move(self) -> None:
        """A second passes."""
        housekeeping = sorted(self._host.watched_host.online - self._host.watched_host.isolated)
        for row in self._local:
            for cpu, column in self._columns.items():
                if cpu in housekeeping or self._random.random() < 0.1:  # an isolated CPU is not for ever alone
                    self._add(row, column, 250 if cpu in housekeeping else 1)
        for row in self._random.sample(self._device, min(300, len(self._device))):
            self._add(row, self._columns[self._random.choice(housekeeping)], 1)
        with open(self._host.root / "proc/interrupts", "r+b") as table:
            table.write(self._text)
        for cpu in housekeeping:
            khz = 3900000 + self._random.randrange(1, 1000)
            self._host.write(f"{CPU}/cpufreq/policy{cpu}/scaling_cur_freq", khz)

    def _add(self, row: int, column: int, more: int) -> None:
        start = row + 11 * column
        self._text[start : start + 11] = b" %10d" % (int(self._text[start : start + 11]) + more)


def record(host: Watched, restless: Restless) -> list[str]:
    """The reads of one round of looks, in their order."""
    steps: list[str] = []
    pread, really_open, read = os.pread, os.open, InterruptTable.read

    def spied_pread(fd: int, *rest: Any) -> bytes:
        steps.append(f"H {os.readlink(f'/proc/self/fd/{fd}')}")
        return pread(fd, *rest)

    def spied_open(path: Any, *rest: Any, **more: Any) -> int:
        below = os.readlink(f"/proc/self/fd/{more['dir_fd']}") + "/" if "dir_fd" in more else ""
        if not os.path.isdir(below + path):
            steps.append(f"O {below}{path}")
        return really_open(path, *rest, **more)

    def spied_table(table: InterruptTable) -> None:
        steps.append(f"T {host.root}/proc/interrupts")
        read(table)

    for files in held_files(host):
        files._read = spied_pread
    os.open, InterruptTable.read = spied_open, spied_table  # type: ignore[assignment, method-assign]
    try:
        for _ in range(ROUND):
            restless.move()
            host.look()
    finally:
        os.open, InterruptTable.read = really_open, read  # type: ignore[method-assign]
        for files in held_files(host):
            files._read = pread
    return steps


def held_files(host: Watched) -> list[Any]:
    """The groups of files the sources hold open."""
    kept = host.watched_host._kept
    numbers = [one.numbers for one in kept.values() if isinstance(getattr(one, "numbers", None), open_files.Numbers)]
    return [*numbers, kept["drift"].knobs._held]


def start_reader(work: Path, steps: list[str]) -> subprocess.Popen[str]:
    """The C program, waiting for its turns."""
    (work / "steps").write_text("".join(f"{step}\n" for step in steps))
    (work / "reader.c").write_text(READER)
    subprocess.run(["cc", "-O2", "-o", str(work / "reader"), str(work / "reader.c")], check=True)
    return subprocess.Popen(
        [str(work / "reader"), str(work / "steps")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )


def measure(
    host: Watched, restless: Restless, reader: subprocess.Popen[str], rounds: int
) -> tuple[list[float], list[float], list[float]]:
    """CPU seconds of each look, and of each round in C, both ways."""
    snapshots: list[float] = []
    c_open: list[float] = []
    c_held: list[float] = []
    assert reader.stdin
    assert reader.stdout
    with reader:
        for number in range(rounds + 1):
            taken = []
            for _ in range(ROUND):
                restless.move()
                host.clock += 1
                start = time.thread_time()
                take_snapshot(host.watched_host)
                taken.append(time.thread_time() - start)
            for way, in_c in (("open", c_open), ("held", c_held)):
                reader.stdin.write(f"{way}\n")
                in_c.append(float(reader.stdout.readline()))
            if number:  # the first fills the caches
                snapshots += taken
        reader.stdin.close()
    return snapshots, c_open[1:], c_held[1:]


if __name__ == "__main__":
    main()
