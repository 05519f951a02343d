"""A place for golden cases: recorded hosts by name, result files, and the program, run as a user runs it.

The place's path always has the same length: text output is wrapped by length.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.cli.places import environment
from tests.compare.feeds import feed_document
from tests.compare.hedges import hedge_document
from tests.compare.runs import cpu_of, document, steady
from tests.compare.wakes import cell, wake_document
from tests.conftest import LOW_LATENCY, TUNECTL, write_host_file
from tests.experiments.contentions import case as contention_case
from tests.experiments.contentions import contention_document
from tests.experiments.feeds import case, lossy, tail
from tests.experiments.hedges import case as hedge_case
from tests.experiments.hedges import tail as answers
from tests.fleet.made import preflight
from tests.golden.once import short_journal, short_json
from tests.hosts.builder import build_named
from tests.ran import Ran
from tests.starter import Starter
from tests.trees import picture

Seen = tuple[str, int, bytes | str]  # kind, mode, content
_SPLIT = "allow_split_siblings = true\n"
_CPUS_2_3 = frozenset({2, 3})


class Host(NamedTuple):
    """A recorded host: its name in the catalogue, its host file, the CPUs that this boot isolates."""

    name: str
    host_file: str = ""
    tuned_boot: frozenset[int] = frozenset()


# Fields of a command's document of which every wording is shown.
_IN_FULL = {"check": ("reason",), "compare": ("reason",)}
CLOUDS = ("aws", "awslarge", "gcp", "azure", "kvm")
HOSTS = {
    "lab4": Host("lab4", LOW_LATENCY),
    "tuned4": Host("lab4", LOW_LATENCY, _CPUS_2_3),
    "runtime4": Host("lab4", LOW_LATENCY + 'isolation = "runtime"\n'),
    "bare4": Host("lab4"),
    "vm2": Host("vm2", f'profile = "balanced-latency"\nisolated = "1"\n{_SPLIT}'),
    "xeon2s": Host("xeon2s", 'profile = "low-latency"\nisolated = "2-3,18-19"\n[network]\ninterfaces = ["ens2f0"]\n'),
    "sparse": Host("sparse", f'profile = "low-latency"\nisolated = "9"\n{_SPLIT}'),
    **{name: Host(name, LOW_LATENCY) for name in CLOUDS},
    **{
        name: Host(name, f'profile = "low-latency"\nisolated = "3"\n{_SPLIT}')
        for name in ("arm64", "epyc", "hybrid", "intelpassive", "intelnohwp", "amdacpi", "amdpassive", "amdguided")
    },
}


def _results() -> dict[str, dict[str, object]]:
    before = cpu_of(steady(4_000_000, 9_000, 2.0), 2.0, counters={**_COUNTERS, "irq": {"33": 7, "LOC": 9}})
    after = cpu_of(steady(50_000_000, 3_000, 2.0), 2.0, counters={**_COUNTERS, "irq": {"LOC": 1}})
    names = {"33": "nvme0q1", "LOC": "Local timer interrupts"}
    cells = (cell("futex", "sleeping", 1), cell("tcp", "sleeping", 1, 2.0), cell("tcp", "spinning", 1, 0.1))
    tables = {
        "wake": wake_document(*cells),
        "feed": feed_document(case(tail(20_000)), lossy(tail(990), 10, transport="udp", format="binary")),
        "contention": contention_document(
            contention_case([400] * 20_000), contention_case([80] * 20_000, buffers="pool")
        ),
        "hedge": hedge_document(
            *(hedge_case(answers(20_000), load=load) for load in (0.1, 0.85)),
            hedge_case(answers(20_000, 8_000), won=[8_000] * 200, hedged=1_000, delay="p95"),
            hedge_case(answers(9_000), load=0.85, hedged=900, delay="p95", unanswered=1_000),
        ),
    }
    return {
        "before.json": document(before, seconds=2.0, irq_descriptions=names),
        "after.json": document(after, seconds=2.0, irq_descriptions=names, at="2026-11-21T10:00:00Z"),
        **{f"{name}.json": table for name, table in tables.items()},
        **{f"{name}-later.json": table | {"at": "2026-11-21T10:00:00Z"} for name, table in tables.items()},
        "go.json": preflight("tx-01"),
        "no-go.json": preflight("tx-02", "no-go", max_ns=90_000, reasons=["fan failed"]),
    }


_COUNTERS = {"softirq": {}, "context_switches": {"voluntary": 0, "involuntary": 2}, "page_faults": 0, "steal_ns": 0}


def _new_place() -> Path:
    """In memory where that can be: recorded hosts are many small files."""
    where, prefix = ("/dev/shm", "p") if os.access("/dev/shm", os.W_OK) else ("/tmp", "place")
    return Path(tempfile.mkdtemp(prefix=prefix, dir=where))


class World:
    """One place, in use by one process."""

    def __init__(self) -> None:
        self.place = _new_place()
        # The modes of files are part of the contract, whoever runs this.
        self._umask = os.umask(0o022)
        self._starter = Starter()
        for name, body in _results().items():
            self.write(name, json.dumps(body))

    def close(self) -> None:
        """Removes all of it."""
        self._starter.close()
        os.umask(self._umask)
        shutil.rmtree(self.place)

    def write(self, name: str, text: str) -> None:
        """A file of the place."""
        (self.place / name).parent.mkdir(parents=True, exist_ok=True)
        (self.place / name).write_text(text)

    def host(self, name: str, place: str = "") -> Path:
        """The host of that name: shared and for reading only or, with a `place`, built there afresh."""
        root = self.place / (place or name)
        if place:
            shutil.rmtree(root, ignore_errors=True)
        if not root.exists():
            made = HOSTS[name]
            build_named(root, made.name, tuned_boot=made.tuned_boot)
            if made.host_file:
                write_host_file(root, made.host_file)
        return root

    def run(self, line: str, stdin: str | None = None, env: dict[str, str] | None = None) -> Ran:
        """`tunectl LINE`, from within the place: `--root lab4` is the host lab4."""
        words = shlex.split(line)
        for option, name in pairwise(words):
            if option == "--root" and name in HOSTS:
                self.host(name)
        with contextlib.chdir(self.place):
            done = self._starter.run([str(TUNECTL), *words], environment(env), stdin)
        assert "Traceback" not in done.err, done.err
        return done

    def told(self, line: str, stdin: str | None = None, env: dict[str, str] | None = None) -> str:
        """What run() did, as a transcript."""
        done = self.run(line, stdin, env)
        said = "".join(f"stderr: {one}\n" for one in done.err.splitlines())
        out = short_json(done.out, *_IN_FULL.get(line.split()[0], ())) if done.out.startswith("{") else done.out
        return f"$ tunectl {line}\nexit {done.code}\n{said}{out}"

    def told_with_changes(self, root: Path, *lines: str) -> str:
        """told() of each line, and after each the files below `root` that it changed.

        Those that are again as they were at first, to the byte, are counted.
        """
        text, first = "", picture(root)
        before = first
        for line in lines:
            text += self.told(line)
            now = picture(root)
            changed = sorted(path for path in {*before, *now} if before.get(path) != now.get(path))
            differ = [path for path in changed if first.get(path) != now.get(path)]
            text += "".join(_change(path, before.get(path), now.get(path)) for path in differ)
            text += f"--- {len(changed) - len(differ)} as they were at first\n" if len(differ) < len(changed) else ""
            text += "\n"
            before = now
        return text


def _change(path: str, was: Seen | None, now: Seen | None) -> str:
    if now is None:
        return f"--- {path}: removed\n"
    kind, mode, content = now
    text = content.decode(errors="backslashreplace") if isinstance(content, bytes) else f"{content}\n"
    shown = _SHORT.get(Path(path).name, str)(text)
    beside = " = " if shown.count("\n") == 1 else "\n"
    return f"--- {path}: {'changed' if was else 'new'} {kind} {mode:o}{beside}{shown}"


def _program(unit: str) -> str:
    """What a unit starts: the rest is in units-*."""
    return "".join(line for line in unit.splitlines(keepends=True) if line.startswith("ExecStart="))


_SHORT = {
    "journal.jsonl": short_journal,
    "status": lambda text: "".join(re.findall("Cpus_allowed_list.*\n", text)),
    "tunectl-apply.service": _program,
    "tunectl-reapply@.service": _program,
}
