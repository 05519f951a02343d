"""Starts tunectl-probe, the native program, and hands back its result."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tunectl import installed
from tunectl.cpulist import CpuSet, format_cpulist, named_cpus, parse_cpulist
from tunectl.errors import TunectlError, UsageError
from tunectl.host.cgroup import home_of, place_for
from tunectl.host.hardware import counting_smis
from tunectl.host.run import Completed, Resident, reason_of, run
from tunectl.host.sysroot import Sysroot
from tunectl.host.tracefs import mark
from tunectl.probe.explain import SCHEMA, explain
from tunectl.probe.injecting import PHASES, injected, stopped
from tunectl.probe.raw import SCHEMA as RAW
from tunectl.probe.selftest import judged
from tunectl.probe.tracing import Tracer, marker
from tunectl.shapes import Jitter
from tunectl.wording import nanoseconds
from tunectl.work import Tell, Work

PROGRAM = "tunectl-probe"
OVERRIDE = "TUNECTL_PROBE"
# The program ends with this process, and with no other (native/src/lib/stop.h).
_PARENT = "TUNECTL_PROBE_PARENT"
# Beyond the measuring itself: calibration, reading the counters of a large host twice, writing a long list of events.
_GRACE_S = 60.0
_STOP_ATTEMPTS = 3
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
    places = [Path(installed.scripts()), Path(sys.executable).parent]
    for place in places:
        if os.access(place / PROGRAM, os.X_OK):
            return place / PROGRAM
    raise TunectlError(
        f"{PROGRAM} is not installed in {places[0]}",
        "install tunectl again with a C compiler and make present: its installation builds the probe",
    )


def given(**options: str | float | bool | None) -> Iterator[str]:
    """The program's arguments of these options; none of one that is None or False."""
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            yield option
        elif value is not None and value is not False:
            yield from (option, str(value))


def start(
    words: Sequence[str],
    cpus: CpuSet,
    timeout_s: float | None = None,
    on_stderr: Callable[[str], None] | None = None,
    answer: Callable[[str], str | None] | None = None,
    enters: bool = False,
    keep: int | None = None,
) -> Completed:
    """The program run to its end with these arguments, on these CPUs: inside the isolated partition that holds them.

    The CPUs of a partition are nobody's but those that live in it. With `enters` the program has an option --group and
    puts only those of its threads there that measure; otherwise `keep` is a descriptor that stays open in it. `answer`
    is as in host.run. UsageError where the partition holds only some of the CPUs; TunectlError where they are out of
    reach for who asks.
    """
    root = Sysroot()
    env = {_PARENT: str(os.getpid())}
    with place_for(root, cpus) as group:
        argv = [str(find_program()), *words]
        entered = group
        if group is not None and enters:
            argv += ["--group", str(group)]
            entered, keep = None, group
        done = run(argv, timeout_s=timeout_s, on_stderr=on_stderr, answer=answer, env=env, group=entered, keep=keep)
    if done.interrupted and done.returncode == -signal.SIGINT:
        raise KeyboardInterrupt
    if done.returncode and not done.stdout.strip() and group is None and (fence := fenced(root, cpus)):
        raise TunectlError(f"{_reason(done)}: {fence}", "run it as root, or from a unit in that slice")
    return done


def stay(words: Sequence[str], cpus: CpuSet, keep: int | None = None) -> Resident:
    """The program as one that stays, in the same place, until it is closed. TunectlError where it cannot start."""
    return Resident([str(find_program()), *words], place_for(Sysroot(), cpus), {_PARENT: str(os.getpid())}, keep)


def fenced(root: Sysroot, cpus: CpuSet) -> str:
    """Why a program without the right to enter their partition cannot run on these CPUs; "" where there is none."""
    home = home_of(root, cpus)
    verb = "belongs" if len(cpus) == 1 else "belong"
    return f"{named_cpus(cpus)} {verb} to the isolated partition /{home}" if home else ""


def run_jitter(
    cpus: Iterable[int],
    duration_s: float,
    threshold_ns: int | None = None,
    fifo: int | None = None,
    events: int | None = None,
    attribute: bool = False,
    intrude: bool = False,
    on_progress: Tell | None = None,
    until_ns: int | None = None,
) -> Jitter:
    """Probes `cpus` for `duration_s` seconds; what follows from what the program wrote.

    `threshold_ns`, `fifo` (a SCHED_FIFO priority) and `events` (list capacity per CPU) are the program's own when None;
    no CPU at all means those the host isolates. `attribute` has the kernel traced, to name each
    gap's cause. A CPU that a thread of somebody else wants is left alone, or left at once, and is listed in
    `not_measured`, unless `intrude` is true. With `until_ns` the first gap of that length ends the run, and `until` has
    its story. `on_progress` is told once a second how far it is.
    Ctrl-C ends the measuring early, and the result so far comes back with `interrupted` true.
    TunectlError with the program's own reason when it fails, UsageError when it refuses the request.
    """
    chosen = frozenset(cpus)
    wanted = format_cpulist(chosen)
    words = ["jitter", "--duration", f"{duration_s:.6f}", *given(cpus=wanted or None, threshold_ns=threshold_ns)]
    words += given(fifo=fifo, events=events, until=until_ns, intrude=intrude)
    tell = None
    if on_progress:
        words.append("--progress")
        on_progress(Work(f"measuring {_where(wanted)}", duration_s))
        tell = partial(pass_on, on_progress, wanted, duration_s)

    def hear(line: str) -> None:
        """Where nobody traces for the program."""
        word, _, rest = line.partition(" ")
        if word == "until":
            mark(Sysroot(), marker(rest))
        elif tell:
            tell(line)

    limit_s = duration_s + _GRACE_S
    spared = os.sched_getaffinity(0) - chosen if chosen else frozenset()
    smis, traced = counting_smis(Sysroot(), spared), None
    if attribute:
        words.append("--wait-for-go")
        with Tracer(Sysroot(), keeps_last=until_ns is not None) as tracer:
            done = start(words, chosen, timeout_s=limit_s, on_stderr=hear, answer=tracer.answer, enters=True)
            traced = tracer.result()
    else:
        done = start(words, chosen, timeout_s=limit_s, on_stderr=hear, enters=True)
    came = smis()
    return replace(explain(of_schema(document_of(done), RAW, SCHEMA), traced), smis=came)


def run_selftest(cpu: int) -> dict[str, Any]:
    """The tunectl.probe.selftest/1 document for this CPU, passed or not.

    A CPU is interrupted by known lengths at known times, and what the program recorded says which were found.
    TunectlError with the program's own reason when it fails, UsageError when it refuses the request.
    """
    document, stop = stopped(_measure, cpu)
    phases = [stop, *(injected(_measure, cpu, asked) for asked in PHASES)]
    found = judged(document, cpu, phases)
    for _ in range(_STOP_ATTEMPTS - 1):
        # A virtual machine may itself be stopped meanwhile, which nothing in it can tell.
        if found["phases"][0]["outcome"] != "failed":
            break
        document, phases[0] = stopped(_measure, cpu)
        found = judged(document, cpu, phases)
    return found


def _measure(words: Sequence[str], answer: Callable[[str], str | None] | None) -> dict[str, Any]:
    """All of the program goes into the partition, if there is one: an interrupt comes from a CPU of its process's."""
    cpus = parse_cpulist(words[words.index("--cpus") + 1])
    return of_schema(document_of(start(words, cpus, timeout_s=_SELFTEST_LIMIT_S, answer=answer)), RAW)


def of_schema(document: Any, *schemas: str) -> dict[str, Any]:
    """The document, once it says that it is of one of these schemas; else TunectlError."""
    found = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(document, dict) or found not in schemas:
        raise TunectlError(f"{PROGRAM}: expected a document of schema {schemas[0]}, found {found or 'none'}")
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
    return f"{PROGRAM}: {reason_of(done.returncode, said).removeprefix(f'{PROGRAM}: ')}"


def _where(cpus: str) -> str:
    return named_cpus(parse_cpulist(cpus)) if cpus else "the isolated CPUs"


def pass_on(tell: Tell, cpus: str, duration_s: float, line: str) -> None:
    """A line of the program's: how long it measures, and the longest gap of each CPU so far."""
    word, _, rest = line.partition(" ")
    if word != "progress":
        return
    elapsed_s, *found = rest.split()
    gaps = []
    for part in found:  # "2:12345@1.234": CPU, ns and seconds
        cpu, _, gap = part.partition(":")
        ns, _, at_s = gap.partition("@")
        when = f" at {float(at_s):.1f} s" if float(at_s) >= 0 else ""
        gaps.append((float(ns), f"{nanoseconds(float(ns))} on CPU {cpu}{when}"))
    most_ns, longest = max(gaps, default=(0.0, ""))
    tell(Work(f"measuring {_where(cpus)}", max(duration_s - float(elapsed_s), 0.0), longest if most_ns else ""))
