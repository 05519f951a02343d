"""Is each gap named after what made it? `python -m tests.bench.bench_causes [WAY ...]`, as root, on this kernel.

`causes.c` is tunectl-probe with a thread more, which interrupts the measured CPU in one known way some 200 times, and
stamps each. The gap at that time must have the name. `tests/lab/test_causes_lab.py` plays the same on kernels of
Debian. A new way is a row here, and one in `causes.c`. The bar: 95 % of each way.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from tests.artefacts import NATIVE

BAR = 0.95
DURATION_S = 5.0  # what a trace of more holds is parsed for minutes on an emulated kernel
PAUSE_MS = 20
WANTED = 200  # injected while it was measured, in as many runs as that takes
MOST_RUNS = 40
NO_GAP = "no gap"

Shell = Callable[[str], str]  # a command to what it wrote


class Row(NamedTuple):
    """One way to interrupt a CPU, and what the gap has to say of it."""

    way: str
    name: str
    needs_guest: bool = False  # it writes to the machine's console


ROWS = (
    Row("membarrier", "function call IPI"),
    Row("mprotect", "TLB shootdown"),
    Row("munmap", "TLB shootdown"),
    Row("fault", "page fault"),
    Row("rcu", "softirq RCU"),
    Row("work", "work refresh_vm_stats"),
    Row("perf", "function call IPI"),
    Row("overflow", "irq_work"),
    Row("nmi", "NMI nmi_cpu_backtrace_handler", needs_guest=True),
    Row("timer", "local timer"),
    Row("irq", "ttyS0", needs_guest=True),
    Row("thread", "thread causes"),
)


class Score(NamedTuple):
    """What the gaps at the times of the injections say."""

    injected: int
    named: int
    others: Counter[str]  # what stands instead

    @property
    def is_right(self) -> bool:
        """Were there enough, and were they named?"""
        return self.injected >= WANTED and self.named >= BAR * self.injected

    def with_another(self, other: "Score") -> "Score":
        """This run and another of the same way."""
        return Score(self.injected + other.injected, self.named + other.named, self.others + other.others)

    def __str__(self) -> str:
        return f"{self.named} of {self.injected} {dict(self.others.most_common(3)) or ''}"


def judge(document: Any, stamps: Sequence[tuple[int, int]], row: Row) -> Score:
    """Each injection of the probe itself, as long as every gap is listed, against those that have any of its time."""
    (cpu,), labels = document["cpus"], document["labels"]
    gaps, until = cpu["events"], cpu["events"][-1][1]
    if cpu.get("complete_until_ns") is not None:  # the list was full, and has only long ones of what followed
        until = cpu["tsc_start"] + cpu["complete_until_ns"] * document["clock"]["hz"] // 1_000_000_000
    injected = [(start, end) for start, end in stamps if gaps[0][0] < start and end < until]
    told = [_told(gaps, labels, start, end) for start, end in injected]
    told = [here for here in told if any(row.name in label for label in here) or not _is_beside(here)]
    others = Counter(" | ".join(here) or NO_GAP for here in told if not any(row.name in label for label in here))
    return Score(len(told), len(told) - others.total(), others)


def _told(gaps: Sequence[Any], labels: Sequence[str], start: int, end: int) -> list[str]:
    at = bisect_left(gaps, start, key=itemgetter(1))
    upto = bisect_left(gaps, end + 1, key=itemgetter(0))
    return [labels[cause] for _, _, cause in gaps[at:upto]]


def _is_beside(here: Sequence[str]) -> bool:
    """Was another thread interrupted, and not the probe? Or was so much pending that the label ends in "more"?"""
    return any("thread " in label or label.endswith("+ more") for label in here)


def build(folder: Path) -> Path:
    """The program, of this tree's sources."""
    program = folder / "causes"
    words = ("-std=c11", "-O2", "-static", "-D_GNU_SOURCE", '-DTUNECTL_VERSION="bench"', f"-I{NATIVE}/src", "-pthread")
    sources = [Path(__file__).with_name("causes.c"), *sorted(NATIVE.glob("src/*/*.c"))]
    subprocess.run(["gcc", *words, "-o", program, *sources], check=True)
    return program


def injected(shell: Shell, program: str, tunectl: str, cpu: int, row: Row) -> Score:
    """One way, played where `shell` is, until there are enough of it: an emulated kernel is slow to interrupt."""
    score, runs = Score(0, 0, Counter()), 0
    while score.injected < WANTED and runs < MOST_RUNS:
        score, runs = score.with_another(_one_run(shell, program, tunectl, cpu, row)), runs + 1
    return score


def _one_run(shell: Shell, program: str, tunectl: str, cpu: int, row: Row) -> Score:
    script, stamps = f"{program}-probe", f"{program}-stamps"
    text = f'#!/bin/sh\nexec {program} {row.way} {cpu} {PAUSE_MS * 1_000_000} {stamps} "$@"\n'
    shell(f"printf %s {shlex.quote(text)} > {script}; chmod +x {script}")
    words = f"--attribute --intrude --format json --cpus {cpu} --duration {DURATION_S}"
    document = shell(f"TUNECTL_PROBE={script} {tunectl} probe jitter {words}")
    lines = shell(f"cat {stamps}").splitlines()
    return judge(json.loads(document), [(int(start), int(end)) for start, end in map(str.split, lines)], row)


def _here(command: str) -> str:
    """In a mount namespace of its own, with tracefs."""
    script = f"mount -t tracefs nodev /sys/kernel/tracing; {command}"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    sys.stderr.write(done.stderr)
    return done.stdout


def main() -> int:
    wanted = sys.argv[1:] or [row.way for row in ROWS if not row.needs_guest]
    cpu, right = max(os.sched_getaffinity(0)), True
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        for row in (row for row in ROWS if row.way in wanted):
            score = injected(_here, str(program), f"{Path(sys.executable).parent}/tunectl", cpu, row)
            print(f"{row.way:12} {row.name:30} {score}", flush=True)
            right &= score.is_right
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
