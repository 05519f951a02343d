"""Every command where something that it takes for granted is missing: it works, or says so in one line, and ends."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.places import IS_ROOT, environment
from tests.cli.test_help import ALL
from tests.conftest import LOW_LATENCY, TUNECTL, write_host_file
from tests.hosts.builder import HostFactory
from tests.nobody import needs_root, open_to_all
from tests.probe.samples import raw_cpu, raw_run
from tests.ran import Ran
from tests.starter import shared_starter

pytestmark = [pytest.mark.slow, pytest.mark.pins]

# What each command is asked for; {root} is a recorded host, {place} a directory that may be written.
WORDS = {
    "show": "",
    "propose": "",
    "knobs": "mm.ksm",
    "plan": "",
    "apply": "--yes",
    "confirm": "",
    "deadline": "--boot",
    "verify": "",
    "restore": "",
    "check": "--window 0.05",
    "probe jitter": "--intrude --duration 0.1",
    "probe wake": "--intrude",
    "probe feed": "--intrude",
    "probe hedge": "--simulate",
    "probe contention": "--intrude --duration 0.05",
    "probe selftest": "--intrude",
    "preflight": "--window 0.05 --duration 0.1",
    "monitor": "--once --interval 0.1",
    "service show": "monitor",
    "service install": "apply",
    "service remove": "apply",
    "threads unit": "x",
    "compare": "{place}/result.json {place}/result.json",
    "report": "{place}/result.json -o {place}/page.html",
    "fleet open": "--hosts {place}/hosts --store {place}/store",
    "fleet record": "no-such-session tx-01 --store {place}/store",
    "fleet report": "--store {place}/store",
    "fleet gate": "no-such-session --canary A1 --max-no-go 1% --store {place}/store",
    "fleet history": "tx-01 --store {place}/store",
    "fleet keep": "--store {place}/store",
    "fleet diff": "monday tuesday --store {place}/store",
    "fleet export": "--format csv --output {place}/runs.csv --store {place}/store",
    "fleet sql": "SELECT/**/1 --store {place}/store",
    "snapshot": "-o {place}/host.tgz",
}
CLOSED = "import os, sys; sys.std{0} = None; os.close({1})"
MEMORY = (
    "import resource; pages = int(open('/proc/self/statm').read().split()[0]);"
    "resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + {0}, ) * 2)"
)
PROCESSES = "import resource; resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))"
# Environment, and what the process does first.
POOR: dict[str, tuple[dict[str, str | None], str]] = {
    "no working directory": ({}, "import os, tempfile; d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)"),
    "a terminal of one column": ({"COLUMNS": "1", "LINES": "1"}, ""),
    "a terminal of no size": ({"COLUMNS": "9" * 30, "LINES": "-5"}, ""),
    "no stdin": ({}, CLOSED.format("in", 0)),
    "no stdout": ({}, CLOSED.format("out", 1)),
    "no stderr": ({}, CLOSED.format("err", 2)),
    "no memory": ({}, MEMORY.format(0)),
    "little memory": ({}, MEMORY.format(3 << 20)),
    "no processes": ({}, PROCESSES),
    "nothing in the environment": ({"HOME": None, "PATH": None, "TMPDIR": "/no/such"}, ""),
    "an empty path": ({"HOME": "/no/such", "PATH": "", "USER": None}, ""),
    "a terminal of ASCII": ({}, "import sys; sys.stdout.reconfigure(encoding='ascii', errors='strict')"),
}


def test_every_command_is_asked() -> None:
    commands = {
        path.removeprefix("tunectl").strip() for path, ctx in ALL.items() if not hasattr(ctx.command, "commands")
    }
    assert commands - {""} == WORDS.keys()


@pytest.fixture(scope="module")
def world(host_root: HostFactory) -> Iterator[Path]:
    """Everybody may read what is there, and write beside it."""
    place = Path(tempfile.mkdtemp(prefix="tunectl-poor-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    root = host_root.fresh("lab4", place, tuned_boot=frozenset({2, 3}))
    root.rename(place / "wurzel-ö")
    write_host_file(place / "wurzel-ö", LOW_LATENCY)
    (place / "result.json").write_text(json.dumps(raw_run(raw_cpu(2))))
    (place / "hosts").write_text("tx-01\n")
    (place / "binary").write_bytes(bytes(range(256)) * 40)
    with (place / "huge").open("wb") as file:
        file.truncate(3 << 30)
    os.mkfifo(place / "fifo")
    (place / "folder").mkdir()
    open_to_all(place)
    place.chmod(0o777)
    yield place
    shutil.rmtree(place)


def run(world: Path, command: str, words: str, env: dict[str, str | None], first: str, *, nobody: bool) -> Ran:
    argv = [str(TUNECTL), *command.split(), *words.format(place=world).split()]
    if "probe" not in command and "--root" not in words:
        argv += ["--root", f"{world}/wurzel-ö"]
    given = {**environment({"TUNECTL_PROBE": "/bin/false"}), **env}
    clean = {key: value for key, value in given.items() if value is not None}
    return shared_starter(nobody=nobody and IS_ROOT).run(argv, clean, None, cwd="/", first=first)


def is_fine(done: Ran) -> bool:
    """It works, or says in one line why not."""
    said = done.err + done.out
    odd = "Traceback" in said or "internal error" in said or done.err.count("\n") > 1
    return done.code in (0, 1, 2, 3, 4) and not odd


@needs_root
@pytest.mark.parametrize("command", WORDS)
def test_in_every_poor_place(world: Path, command: str) -> None:
    ran = {name: run(world, command, WORDS[command], *POOR[name], nobody=True) for name in POOR}
    assert [(name, done.code, done.err[:600]) for name, done in ran.items() if not is_fine(done)] == []


# --- files that are none, for every option and argument that takes one

GIVEN = (
    *("/dev/zero", "/dev/full", "lost"),
    *(f"{{place}}/{name}" for name in ("folder", "fifo", "binary", "huge", "no/such")),
)
TAKES = {
    "show --host": "show --host {given}",
    "verify --host": "verify --host {given}",
    "check --host": "check --host {given}",
    "monitor --host": "monitor --once --interval 0.1 --host {given}",
    "--root": "verify --root {given}",
    "--state": "verify --state {given}",
    "restore --state": "restore --state {given}",
    "--candidate": "plan --candidate {given}",
    "--replay": "probe feed --intrude --replay {given}",
    "probe --output": "probe hedge --simulate --output {given}/x",
    "propose --output": "propose --output {given}/x",
    "snapshot --output": "snapshot --output {given}/x",
    "compare": "compare {given} {place}/result.json",
    "compare with": "compare {place}/result.json {given}",
    "report": "report {given} --format html",
    "report --output": "report {place}/result.json --output {given}",
    "--hosts": "fleet open --hosts {given} --store {place}/store",
    "--store": "fleet report --store {given}",
    "history --store": "fleet history x --store {given}",
    "a session": "fleet report {given} --store {place}/store",
    "record": "fleet record {given} x --store {place}/store",
    "a session's gate": "fleet gate {given} --canary kernel=x --max-no-go 1% --store {place}/store",
    "a store that is kept": "fleet keep --store {given}",
    "a folder to keep": "fleet keep {given} --store {place}/store",
    "asked hosts": "fleet keep {place}/store --hosts {given} --store {place}/store",
    "asked columns": "fleet sql SELECT/**/1 --store {given}",
    "a canary": "fleet gate {place}/store --canary @{given} --max-no-go 1%",
}


@needs_root
@pytest.mark.parametrize("option", TAKES)
def test_whatever_is_named_as_a_file(world: Path, option: str) -> None:
    ran = {}
    for given in GIVEN:
        command, _, words = TAKES[option].replace("{given}", given).partition(" ")
        first = POOR["no working directory"][1] if given == "lost" else ""
        ran[given] = run(world, command, words, {}, first, nobody=True)
    assert [(given, done.code, done.err[:600]) for given, done in ran.items() if not is_fine(done)] == []
