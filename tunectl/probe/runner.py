"""Starts tunectl-probe, the native program, and hands back its result."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.errors import TunectlError, UsageError
from tunectl.host.cgroup import home_of, place_for
from tunectl.host.run import Completed, Resident, run
from tunectl.host.sysroot import Sysroot
from tunectl.probe.result import check_result

PROGRAM = "tunectl-probe"
OVERRIDE = "TUNECTL_PROBE"
# The program ends with this process, and with no other (native/src/lib/parent.h).
_PARENT = "TUNECTL_PROBE_PARENT"
# Beyond the measuring itself: calibration, reading the counters of a large host twice, writing a long list of events.
_GRACE_S = 60.0
_PROGRESS_S = 1.0
SELFTEST_SCHEMA = "tunectl.probe.selftest/1"
# It takes some twelve seconds; a loaded host may make each of 56,000 injections wait.
_SELFTEST_LIMIT_S = 300.0


def find_program() -> Path:
    """Path of tunectl-probe: `$TUNECTL_PROBE`, else beside this installation's scripts, else beside its Python.

    Never from PATH: under sudo that is not the user's. TunectlError when it is nowhere.
    """
    override = os.environ.get(OVERRIDE)
    if override:
        if not os.access(override, os.X_OK):
            raise TunectlError(f"{OVERRIDE}={override} is not a program", "unset it, or name the built tunectl-probe")
        return Path(override)
    places = [Path(sysconfig.get_path("scripts")), Path(sys.executable).parent]
    for place in places:
        if os.access(place / PROGRAM, os.X_OK):
            return place / PROGRAM
    raise TunectlError(
        f"{PROGRAM} is not installed in {places[0]}",
        "install tunectl again with a C compiler and make present: its installation builds the probe",
    )


def start(
    words: Sequence[str],
    cpus: CpuSet,
    timeout_s: float | None = None,
    on_stderr: Callable[[str], None] | None = None,
    enters: bool = False,
) -> Completed:
    """The program run to its end with these arguments, on these CPUs: inside the isolated partition that holds them.

    The CPUs of a partition are nobody's but those that live in it. With `enters` the program has an option --group and
    puts only those of its threads there that measure. UsageError where the partition holds only some of the CPUs;
    TunectlError where they are out of reach for who asks.
    """
    root = Sysroot()
    env = {_PARENT: str(os.getpid())}
    with place_for(root, cpus) as group:
        argv = [str(find_program()), *words]
        if group is not None and enters:
            argv += ["--group", str(group)]
            done = run(argv, timeout_s=timeout_s, on_stderr=on_stderr, env=env, keep=group)
        else:
            done = run(argv, timeout_s=timeout_s, on_stderr=on_stderr, env=env, group=group)
    if done.returncode and not done.stdout.strip() and group is None and (fence := fenced(root, cpus)):
        raise TunectlError(f"{_reason(done)}: {fence}", "run it as root, or from a unit in that slice")
    return done


def stay(words: Sequence[str], cpus: CpuSet) -> Resident:
    """The program as one that stays, in the same place, until it is closed. TunectlError where it cannot start."""
    return Resident([str(find_program()), *words], place_for(Sysroot(), cpus), {_PARENT: str(os.getpid())})


def fenced(root: Sysroot, cpus: CpuSet) -> str:
    """Why a program without the right to enter their partition cannot run on these CPUs; "" where there is none."""
    home = home_of(root, cpus)
    return f"CPUs {format_cpulist(cpus)} belong to the isolated partition /{home}" if home else ""


def run_jitter(
    cpus: Iterable[int],
    duration_s: float,
    threshold_ns: int | None = None,
    fifo: int | None = None,
    events: int | None = None,
    attribute: bool = False,
    intrude: bool = False,
    on_progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Probes `cpus` for `duration_s` seconds; the tunectl.probe.jitter/1 document as the program wrote it.

    `threshold_ns`, `fifo` (a SCHED_FIFO priority) and `events` (list capacity per CPU) are the program's own when None;
    no CPU at all means those the host isolates. `attribute` has the kernel traced, to name each
    gap's cause. A CPU that a thread of somebody else wants is left alone, or left at once, and is listed in
    `not_measured`, unless `intrude` is true. `on_progress` is handed one line a second while it measures.
    Ctrl-C ends the measuring early, and the result so far comes back with `interrupted` true.
    TunectlError with the program's own reason when it fails, UsageError when it refuses the request.
    """
    chosen = frozenset(cpus)
    wanted = format_cpulist(chosen)
    words = ["jitter", "--duration", f"{duration_s:.6f}"]
    options = (("cpus", wanted or None), ("threshold-ns", threshold_ns), ("fifo", fifo), ("events", events))
    for name, value in options:
        if value is not None:
            words += [f"--{name}", str(value)]
    if attribute:
        words.append("--attribute")
    if intrude:
        words.append("--intrude")
    with _progress(wanted, duration_s, on_progress):
        done = start(words, chosen, timeout_s=duration_s + _GRACE_S, enters=True)
    return check_result(document_of(done), PROGRAM)


def run_selftest(cpu: int | None) -> dict[str, Any]:
    """The tunectl.probe.selftest/1 document for `cpu`, or for the program's own choice, passed or not.

    The program interrupts a CPU by known lengths at known times, and says which interruptions it found.
    TunectlError with the program's own reason when it fails, UsageError when it refuses the request.
    """
    words = [] if cpu is None else ["--cpus", str(cpu)]
    done = start(["selftest", *words], frozenset() if cpu is None else frozenset({cpu}), timeout_s=_SELFTEST_LIMIT_S)
    if done.returncode == 1 and done.stdout.strip():
        # Status 1 with a document is an answer: not every known interruption was found.
        return of_schema(json.loads(done.stdout), SELFTEST_SCHEMA)
    return of_schema(document_of(done), SELFTEST_SCHEMA)


def of_schema(document: Any, schema: str) -> dict[str, Any]:
    """The document, once it says that it is of this schema; else TunectlError."""
    if not isinstance(document, dict) or document.get("schema") != schema:
        raise TunectlError(f"{PROGRAM}: expected a document of schema {schema}")
    return document


def document_of(done: Completed) -> Any:
    """What the program wrote, as JSON; TunectlError, or UsageError, with its reason where it failed."""
    if done.returncode != 0:
        raise (UsageError if done.returncode == 2 else TunectlError)(_reason(done))
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise TunectlError(f"{PROGRAM} wrote no JSON: {error}") from error


def _reason(done: Completed) -> str:
    said = done.stderr.strip().splitlines()
    reason = said[-1].removeprefix(f"{PROGRAM}: ") if said else f"it ended with status {done.returncode}"
    return f"{PROGRAM}: {reason}"


@contextmanager
def _progress(cpus: str, duration_s: float, tell: Callable[[str], None] | None) -> Iterator[None]:
    """Calls `tell` once a second: no more, since each call is work on a host that is being measured."""
    if tell is None:
        yield
        return
    over = threading.Event()
    started = time.monotonic()
    where = f"CPUs {cpus}" if cpus else "the isolated CPUs"

    def work() -> None:
        while True:
            elapsed_s = min(time.monotonic() - started, duration_s)
            tell(f"measuring {where}: {elapsed_s:.0f} of {duration_s:g} s")
            if over.wait(_PROGRESS_S):
                return

    thread = threading.Thread(target=work, name="tunectl-probe-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
