"""What the commands of `probe` share: the host they measure, who else wants its CPUs, and where the result goes."""

import json
import os
import signal
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from tunectl.cli.command import check_output, emit, open_root, stay_off, write_whole
from tunectl.cli.helped import FAILED, OK
from tunectl.cli.options import Options
from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.errors import TunectlError, UsageError
from tunectl.experiments.ends import PairRequest, asked_cpus
from tunectl.host.cpusets import CpuFacts, read_scope_facts
from tunectl.host.ending import ENDING
from tunectl.host.occupants import Occupant, Place, look, refusal
from tunectl.host.procs import hidden_threads
from tunectl.host.sysroot import Sysroot, is_missing
from tunectl.hostfile.config import HostConfig
from tunectl.model import HostId
from tunectl.tuning.inspection import read_config

STOP = "stop them, or say --intrude"
UNSEEN = "run as root on the host itself, or say --intrude"


def this_machine(options: Options) -> Sysroot:
    """The host's files. UsageError for a recorded host: the probe measures this machine."""
    root = open_root(options)
    if not root.live:
        raise UsageError("the probe measures this machine: --root makes no sense here")
    return root


def config_of(options: Options, facts: CpuFacts) -> HostConfig | None:
    """What the host file asks for; None without a host file. A file that was named must exist."""
    if not options.host and is_missing(options.host_path):
        return None
    return read_config(options.host_path, facts, open_root(options))


def refuse_empty(cpus: str | None) -> None:
    """An empty list is a variable of a script that was never set: it must not stand for the isolated CPUs."""
    if cpus is not None and not cpus.strip(" ,"):
        raise UsageError("--cpus: is empty", "name at least one CPU, or leave it out for the default")


def taken_cpus(
    root: Sysroot, facts: CpuFacts, cpus: CpuSet, config: HostConfig | None, intrude: bool
) -> dict[int, list[Occupant]]:
    """The CPUs that somebody else's threads want, and that are left to them."""
    if intrude:
        return {}
    isolated = config.scope.isolated if config else facts.quiet
    return look(root, Place.of(facts, cpus, isolated), config.threads if config else ())


def refuse_taken(root: Sysroot, facts: CpuFacts, cpus: CpuSet, config: HostConfig | None, intrude: bool) -> None:
    """TunectlError where somebody else's threads want one of the CPUs, or may unseen: a measurement that needs all."""
    if (hidden := hidden_threads(root)) and not intrude:
        raise TunectlError(f"{hidden}: whose the CPUs are is not known", UNSEEN)
    if taken := taken_cpus(root, facts, cpus, config, intrude):
        raise TunectlError(refusal(taken), STOP)


class Pair(NamedTuple):
    """What a command knows of its host that pins a sender and a receiver, or three threads."""

    root: Sysroot
    facts: CpuFacts
    config: HostConfig | None
    among: str | None  # the CPUs to choose of; None: those that were named, or whatever there is


def pair_of(options: Options, cpus: str | None, intrude: bool, output: str | None, threads: int = 2) -> Pair:
    """The isolated CPUs that nobody wants are those to choose from. UsageError for a request that is none.

    This process leaves the isolated CPUs, and those that were named.
    """
    root = this_machine(options)
    if output is not None:
        check_output(output)
    facts = read_scope_facts(root)
    refuse_empty(cpus)
    # Before anybody asks who runs there; place() looks at the rest of what was named.
    named = asked_cpus(cpus, None)
    for cpu in sorted(named - facts.online) if len(named) == threads else ():
        raise UsageError(f"CPU {cpu} is not online on this host")
    config = config_of(options, facts)
    isolated = config.scope.isolated if config else facts.quiet
    free = isolated - taken_cpus(root, facts, isolated, config, intrude or bool(cpus)).keys()
    stay_off(root, isolated | named)
    is_enough = not cpus and len(isolated) >= threads
    among = format_cpulist(free if len(free) >= threads else isolated) if is_enough else None
    return Pair(root, facts, config, among)


def end_by_signals(request: PairRequest) -> None:
    """SIGTERM ends a run as Ctrl-C does: with the result so far, and nothing left behind. So does a lost terminal."""
    if not (request.listen or request.connect):
        ENDING.keep()
        return
    # Two hosts wait for each other, and end by themselves.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
        signal.signal(signal.SIGHUP, signal.default_int_handler)


def write_result(path: str, result: object) -> None:
    """Puts a document in the place of the file that the user named, with the mode of what stood there."""
    write_whole(path, "".join(_written(result, "\n")) + "\n", _mode(path))


def _written(value: Any, line: str) -> Iterator[str]:
    """A document as JSON that an editor can show: an item a line, but the numbers of a list in one."""
    if isinstance(value, dict) and value:
        yield "{"
        for place, (key, item) in enumerate(value.items()):
            yield f"{',' if place else ''}{line} {json.dumps(key)}: "
            yield from _written(item, line + " ")
        yield line + "}"
    elif isinstance(value, list) and value and isinstance(value[0], dict | list):
        for place, item in enumerate(value):
            yield "," if place else "["
            if isinstance(item, list):  # millions of them: no blank too much
                yield "\n" + json.dumps(item, separators=(",", ":"))
            else:
                yield line + " "
                yield from _written(item, line + " ")
        yield line + "]"
    else:
        yield json.dumps(value)


def _mode(path: str) -> int:
    """That of the file that stands there, if it is ours; of a new one what the umask leaves."""
    with suppress(OSError):
        about = os.stat(path)
        if about.st_uid == os.geteuid():
            return stat.S_IMODE(about.st_mode)
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def emit_and_write(options: Options, name: str, host: HostId, result: dict[str, Any], output: str | None) -> None:
    """The file first: the terminal may be gone. And then the terminal, also where the file cannot be written."""
    failed = None
    try:
        if output is not None:
            write_result(output, result)
    except TunectlError as error:
        failed = error
    try:
        emit(options, name, host, result)
    except KeyboardInterrupt:
        if output is None or failed:
            raise
        raise TunectlError(f"interrupted again: the result is in {output}") from None
    if failed:
        raise failed


def code_of_cases(result: Mapping[str, Any]) -> int:
    """The exit code for a table of cases: nothing was found out where none of them has a result."""
    return OK if any(cell["n"] for cell in result["cells"]) else FAILED
