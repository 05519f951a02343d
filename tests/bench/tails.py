"""The sources of tail latency, each induced and measured beside its own absence: `python -m tests.bench tails`.

A row is a source of docs/tail-latency.md that this machine can show: what is measured with it and without, in turns, so
that both meet the same machine. The ratio is the middle one of those of the pairs; its bounds are the least and the
greatest of six, which hold the true middle one with 97 %. The document is docs/tail-latency.json, and the page's
figures are written from it (`--page`: without measuring). Run it as root, on two CPUs; what measures is SCHED_FIFO,
or, where the source is about ordinary threads, of nice -20, for about a second at a time: others wait so long.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import accumulate
from multiprocessing import Process, RawArray, RawValue
from pathlib import Path
from typing import Any, NamedTuple

from tunectl.experiments.contention_cells import explained_contention
from tunectl.experiments.hedge_cells import explained_hedge
from tunectl.probe.explain import explained
from tunectl.wording import nanoseconds

ROOT = Path(__file__).parents[2]
NATIVE, COLLECTORS = ROOT / "tunectl/probe/native", Path(__file__).parent / "collectors"
PAGE, DOCUMENT = ROOT / "docs/tail-latency.md", ROOT / "docs/tail-latency.json"
ROUNDS = 6
OTHER, OURS = sorted(os.sched_getaffinity(0))[-2:] if len(os.sched_getaffinity(0)) > 1 else (0, 0)
POOL = ("--buffers", "pool", "--hand-over")
RUN_MS = 800  # of a program with a collector
MOVED_AGAIN_S = 0.02
SHORTEST_GAP_NS = 2000.0  # that it tells


class Row(NamedTuple):
    """A source: how the page's row begins, what is measured, with what and without; ns of one run, by which it is."""

    source: str
    figure: str
    induced: str
    absent: str
    measure: Callable[[Path, bool], float]


# ---- with the probe


def probe(work: Path, *words: object) -> dict[str, Any]:
    """What the native program wrote."""
    command = [f"{work}/tunectl-probe", *map(str, words)]
    done = subprocess.run(command, capture_output=True, check=True, preexec_fn=push)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def waited(work: Path, percentile: str, *words: object) -> float:
    """A percentile of what a message at a random moment waits on our CPU; at least a turn of the loop."""
    (cpu,) = explained(probe(work, "jitter", "--intrude", "--cpus", OURS, "--fifo", 1, *words))["cpus"]
    return float(max(cpu["arrival_ns"][percentile], cpu["loop_ns"]["mean"]))


def other_thread(work: Path, is_induced: bool) -> float:
    with spinning(0.001, 0.009) if is_induced else nobody():
        return waited(work, "99.9", "--duration", 0.5)


def interrupts(work: Path, is_induced: bool) -> float:
    return waited(work, "99", *(("--inject", "ipi,2000,1,100000") if is_induced else ("--duration", 0.5)))


def contended(
    step: str, percentile: str, induced: Sequence[str], absent: Sequence[str]
) -> Callable[[Path, bool], float]:
    """A percentile of a step of `contention`, of these words or those."""

    def measure(work: Path, is_induced: bool) -> float:
        words = ("--intrude", "--fifo", 1, "--cpus", f"{OTHER},{OURS}", "--duration", 0.6)
        raw = probe(work, "contention", *words, *(induced if is_induced else absent))
        return figure(explained_contention(raw)["cells"][0], step, percentile)

    return measure


def hedged(stall: str) -> Callable[[Path, bool], float]:
    """P99.9 without a second copy (the source), and with one at once; another seed each time."""

    def measure(work: Path, is_induced: bool) -> float:
        seed = time.time_ns() % 1_000_000
        words = ("--simulate", "--stall", stall, "--load", 0.1, "--duration", 2, "--seed", seed)
        raw = probe(work, "hedge", *words, "--delay", "none" if is_induced else "0")
        return figure(explained_hedge(raw)["cells"][0], "percentiles_ns", "99.9")

    return measure


def figure(cell: Mapping[str, Any], name: str, percentile: str) -> float:
    if cell[name] is None or cell[name][percentile] is None:
        raise RuntimeError(cell["reason"] or f"too few for P{percentile}")
    return float(cell[name][percentile])


# ---- with processes of this program


@contextmanager
def nobody() -> Iterator[None]:
    yield


@contextmanager
def spinning(busy_s: float, idle_s: float, priority: int = 2) -> Iterator[None]:
    """Another thread on our CPU that has it for so long, again and again; priority 0: an ordinary one of nice -20."""

    def turn() -> None:
        settle(OURS, priority)
        while True:
            until = time.monotonic() + busy_s
            while time.monotonic() < until:
                pass
            time.sleep(idle_s)

    child = Process(target=turn, daemon=True)
    child.start()
    try:
        yield
    finally:
        child.kill()
        child.join()


def settle(cpu: int, priority: int) -> None:
    os.sched_setaffinity(0, {cpu})
    if priority:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    else:
        push()


def push() -> None:
    """Before other ordinary threads. With sched_autogroup_enabled sessions share the CPU, and the session counts."""
    os.setsid()
    os.nice(-20)
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text("-20")


def expired(work: Path, is_induced: bool) -> float:
    """P99 of how late a FIFO thread is that sleeps until each ms, or that spins."""
    late = RawArray("q", 500)

    def wait() -> None:
        settle(OURS, 1)
        start = time.monotonic_ns() + 1_000_000
        for at in range(len(late)):
            due = start + at * 1_000_000
            if is_induced:
                time.sleep(max(due - time.monotonic_ns(), 0) / 1e9)
            while (now := time.monotonic_ns()) < due:
                pass
            late[at] = now - due

    child = Process(target=wait, daemon=True)
    child.start()
    child.join()
    return float(sorted(late)[494])


def delivered(feeder: tuple[int, int], poller: int, n: int, period_s: float) -> list[int]:
    """From when each message was due until the poller on our CPU had it, in ns, ascending; -1 is none of them.

    `feeder` is its CPU and priority, and `poller` a priority. The poller gives up a second after the last was due.
    """
    sent, start, had = RawValue("q", 0), time.monotonic_ns() + 100_000_000, RawArray("q", n)
    period_ns = round(period_s * 1e9)
    over = start + n * period_ns + 1_000_000_000

    def feed() -> None:
        settle(*feeder)
        for at in range(n):
            time.sleep(max(start + at * period_ns - time.monotonic_ns(), 0) / 1e9)
            sent.value = at + 1

    def poll() -> None:
        settle(OURS, poller)
        seen = 0
        while seen < n and (now := time.monotonic_ns()) < over:
            for at in range(seen, sent.value):
                had[at] = now - (start + at * period_ns)
                seen = at + 1

    children = [Process(target=step, daemon=True) for step in (feed, poll)]
    for child in children:
        child.start()
    for child in reversed(children):
        child.join()
    return sorted(ns or over - (start + at * period_ns) for at, ns in enumerate(had))


def starved(work: Path, is_induced: bool) -> float:
    """The feeder an ordinary thread on the consumer's CPU, or on another."""
    return float(delivered((OURS if is_induced else OTHER, 0), poller=1, n=100, period_s=0.01)[98])


def shared_by_pollers(work: Path, is_induced: bool) -> float:
    with spinning(60, 0, priority=0) if is_induced else nobody():
        return float(delivered((OTHER, 2), poller=0, n=300, period_s=0.003)[269])


# ---- with a collector


def go(work: Path, is_induced: bool) -> float:
    """In Go any thread may collect: those of the process are on the other CPU, or on ours."""
    binary = work / "collecting"
    if not binary.exists():
        build = ["go", "build", "-o", str(binary), str(COLLECTORS / "trading.go")]
        subprocess.run(build, check=True, env=os.environ | {"GOCACHE": str(work / "cache")})
    return beside_a_collector(work, [str(binary), str(RUN_MS)], is_induced)


def java(work: Path, is_induced: bool) -> float:
    """The collector's own threads on the other CPU, or on ours; those that make garbage on the other in any case."""
    if not (work / "Trading.class").exists():
        subprocess.run(["javac", "-d", str(work), str(COLLECTORS / "Trading.java")], check=True)
    command = ["java", "-Xmx256m", "-XX:+UseZGC", "-cp", str(work), "Trading", str(RUN_MS)]
    return beside_a_collector(work, command, is_induced)


def beside_a_collector(work: Path, command: Sequence[str], is_induced: bool) -> float:
    """P99 of what a message at a random moment waits for the program's trading thread, which has our CPU."""
    with (work / "gaps").open("w+") as said:
        with subprocess.Popen(command, stdout=said, preexec_fn=push) as child:
            while child.poll() is None:
                move_threads(child.pid, {OURS} if is_induced else {OTHER})
                time.sleep(MOVED_AGAIN_S)
        said.seek(0)
        return wait_of([int(line) for line in said], RUN_MS * 1e6, 0.01)


def move_threads(pid: int, collector: set[int]) -> None:
    """Each to where it belongs."""
    places = {"trading": {OURS}, "allocating": {OTHER}, "java": {OTHER}}
    with suppress(OSError):
        for tid in map(int, os.listdir(f"/proc/{pid}/task")):
            name = Path(f"/proc/{pid}/task/{tid}/comm").read_text().strip()
            os.sched_setaffinity(tid, places.get(name, collector))


def wait_of(gaps: Sequence[int], ns: float, share: float) -> float:
    """What a message at a random moment waits or longer, in this share of cases: the rest of the gap that it meets."""
    longest = [*sorted(gaps, reverse=True), 0]
    for n, (sum_ns, following) in enumerate(zip(accumulate(longest), longest[1:], strict=False), 1):
        if sum_ns - n * following >= share * ns:
            return (sum_ns - share * ns) / n
    return SHORTEST_GAP_NS


# ---- the table

_WAITS = " of what a message at a random moment waits"
ROWS: tuple[Row, ...] = (
    Row(
        "**scheduler**: another thread's turn",
        f"P99.9{_WAITS}",
        "beside a thread that takes 1 ms of each 10",
        "alone",
        other_thread,
    ),
    Row(
        "**scheduler**: a thread that sleeps",
        "P99 of a hand-over",
        "to a sleeper in a futex",
        "to a spinner on a ring",
        contended("handing_ns", "99", (*POOL, "futex"), (*POOL, "ring")),
    ),
    Row(
        "**scheduler**: a FIFO thread starves",
        "P99 from due to had",
        "the feeder on the consumer's CPU",
        "on another",
        starved,
    ),
    Row(
        "**timers**: a sleep until",
        "P99 of how late a period of 1 ms ends",
        "asleep in `clock_nanosleep`",
        "spinning until then",
        expired,
    ),
    Row(
        "**interrupts**",
        f"P99{_WAITS}",
        "beside an interrupt from another CPU each 100 µs",
        "without",
        interrupts,
    ),
    Row(
        "**GC**",
        f"P99{_WAITS}, Go",
        "the process on the trading thread's CPU",
        "all but that thread on the other",
        go,
    ),
    Row(
        "**GC**",
        f"P99{_WAITS}, Java (ZGC)",
        "the collector on the trading thread's CPU",
        "on the other",
        java,
    ),
    Row(
        "**locks**",
        "P99 of a hand-over",
        "through a mutex",
        "through a ring",
        contended("handing_ns", "99", (*POOL, "mutex"), (*POOL, "ring")),
    ),
    Row(
        "**allocator**",
        "P99.9 of taking a buffer",
        "from malloc",
        "from a pool",
        contended("taking_ns", "99.9", ("--hand-over", "ring"), (*POOL, "ring")),
    ),
    Row(
        "**busy polling**",
        "P90 from due to had",
        "beside another thread that polls there",
        "alone",
        shared_by_pollers,
    ),
    Row(
        "**one slow server**",
        "P99.9 at load 0.1, simulated",
        "without a second copy",
        "with one at once",
        hedged("a"),
    ),
    Row(
        "**both servers at once**",
        "P99.9 at load 0.1, simulated",
        "without a second copy",
        "with one at once",
        hedged("common"),
    ),
)  # fmt: skip


def measured(row: Row, work: Path, rounds: int) -> dict[str, Any]:
    """The row of the document: each run, and the ratio of the pairs with its bounds; or why there is none."""
    runs: list[list[float]] = []
    named = {"source": row.source, "figure": row.figure, "induced": row.induced, "absent": row.absent}
    try:
        for _ in range(rounds):
            runs.append([row.measure(work, is_induced) for is_induced in (True, False)])
    except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
        return named | {"reason": str(error)}
    ratios = sorted(induced / absent for induced, absent in runs)
    ratio = {"value": statistics.median(ratios), "low": ratios[0], "high": ratios[-1]}
    middle = [statistics.median(column) for column in zip(*runs, strict=True)]
    return named | {"ratio": ratio, "induced_ns": middle[0], "absent_ns": middle[1], "runs_ns": runs, "reason": ""}


def document(rounds: int) -> dict[str, Any]:
    """All rows, measured on this machine; a line for each on stderr."""
    made = []
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        subprocess.run(["make", "-s", "-C", str(NATIVE), f"OUT={work}"], check=True, stdout=subprocess.DEVNULL)
        for row in ROWS:
            made.append(measured(row, work, rounds))
            print(f"{row.source}: {shown(made[-1])}", file=sys.stderr)
    host = {"kernel": platform.release(), "machine": platform.machine(), "cpus": os.cpu_count()}
    return {"at": datetime.now(UTC).strftime("%Y-%m-%d"), "host": host, "rounds": rounds, "rows": made}


def shown(row: Mapping[str, Any]) -> str:
    """A row's figures as the page has them."""
    if row["reason"]:
        return f"{row['figure']}: not measured: {row['reason']}"
    ratio = row["ratio"]
    times = f"{times_of(ratio['value'])} times ({times_of(ratio['low'])} to {times_of(ratio['high'])})"
    induced = f"{nanoseconds(row['induced_ns'])} {row['induced']}"
    return f"{times}: {row['figure']}, {induced}, {nanoseconds(row['absent_ns'])} {row['absent']}"


def times_of(ratio: float) -> str:
    """Three digits."""
    return f"{ratio:,.0f}" if ratio >= 99.95 else f"{ratio:.3g}"


def page_of(text: str, document: Mapping[str, Any]) -> str:
    """The page with the figures of the document in the last column of their rows."""
    lines = []
    for line in text.splitlines():
        found = [shown(row) for row in document["rows"] if line.startswith(f"| {row['source']}") and not row["reason"]]
        cells = line.split(" | ")
        lines.append(" | ".join([*cells[:-1], f"{'; '.join(found)} |"]) if found else line)
    return "\n".join([*lines, ""])


def main(words: Sequence[str]) -> int:
    """Measures and writes both files; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench tails", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--page", action="store_true", help="write the page from the document that is there")
    asked = parser.parse_args(words)
    if not asked.page and (os.geteuid() or OTHER == OURS):
        parser.error("it needs root and two CPUs")
    made = json.loads(DOCUMENT.read_text()) if asked.page else document(asked.rounds)
    DOCUMENT.write_text(json.dumps(made, indent=1) + "\n")
    PAGE.write_text(page_of(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
    return 0
