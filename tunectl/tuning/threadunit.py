"""The drop-in that runs a declared thread's unit as [[threads]] says: what systemd can do, and a comment for the rest.

Pure. Source: systemd.exec(5), CPUAffinity=, CPUSchedulingPolicy=, LimitMEMLOCK=, LimitRTPRIO=, RestrictRealtime=;
systemd.resource-control(5), Slice=; systemd.unit(5), "Unit File Load Path".
"""

import textwrap
from collections.abc import Collection, Iterator, Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tunectl.command import argv, one_line
from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.errors import UsageError
from tunectl.host.scheduling import BY_PRIORITY
from tunectl.knobs.drivers.cpuset import SLICE
from tunectl.model import Scope, Trading
from tunectl.report.escape import printable

FILE = "zz-tunectl-threads.conf"  # drop-ins are read in the order of their names, and the last one counts
_WIDTH = 98


class DropIn(msgspec.Struct, frozen=True):
    """The drop-in of a declared thread's unit, and where it belongs on the host."""

    unit: Annotated[str, Meta(description="The systemd service.")]
    threads: Annotated[tuple[str, ...], Meta(description="The names of the declared threads that the unit runs.")]
    path: Annotated[str, Meta(description="Where the drop-in belongs.")]
    text: Annotated[str, Meta(description="The drop-in.")]
    written: Annotated[str | UnsetType, Meta(description="The file that --output named.")] = UNSET


def drop_in(name: str, threads: Sequence[Trading], scope: Scope, knobs: Collection[str], origin: str) -> DropIn:
    """The drop-in for the unit of the declared thread `name`; it serves every declared thread of that unit.

    `knobs` are those the host file asks for. UsageError for a name that is not declared, a thread that is declared
    without a unit, and a unit that runs no program of its own.
    """
    trading = _declared(name, threads, origin)
    unit = _service(trading, origin)
    mine = tuple(each for each in threads if each.unit == unit)
    for each in mine:
        one_line(each.name, f"{origin}: the name of a thread")
        one_line(each.thread, f"{origin}: the thread of {each.unit}")
    is_whole = len(mine) == 1 and not trading.thread
    in_slice = not {"systemd.isolated_slice", "cpuset.isolated"}.isdisjoint(knobs)
    path = f"/etc/systemd/system/{unit}.d/{FILE}"
    settings = [*_place(mine, scope, is_whole=is_whole, in_slice=in_slice), *_policy(mine, is_whole=is_whole)]
    settings += ["LimitMEMLOCK=infinity"] if any(each.locked for each in mine) else []
    said = [*_inherited(mine, is_whole=is_whole), *_beyond(mine, is_whole=is_whole)]
    said += _crowded(scope) if in_slice and not is_whole else []
    said += _kept_out(mine, scope, kept=not in_slice and "systemd.allowed_cpus" in knobs)
    text = "\n".join([*_head(printable(trading.name), unit, path), *_comments(said), "[Service]", *settings, ""])
    return DropIn(unit, tuple(each.name for each in mine), path, text)


def _declared(name: str, threads: Sequence[Trading], origin: str) -> Trading:
    trading = next((each for each in threads if each.name == name), None)
    if trading is None:
        names = ", ".join(each.name for each in threads)
        hint = f"declared are {names}" if names else "[[threads]] declares them; docs/isolation.md has an example"
        raise UsageError(f"{origin}: no thread named '{name}' is declared", hint)
    return trading


def _service(one: Trading, origin: str) -> str:
    if not one.unit:
        raise UsageError(
            f"{origin}: thread '{one.name}' is declared by command = \"{one.command}\", and a drop-in needs a unit",
            'say unit = "NAME.service" instead, if systemd starts it',
        )
    if not one.unit.endswith(".service"):
        raise UsageError(
            f"{origin}: thread '{one.name}': unit = \"{one.unit}\": systemd runs no program of that name",
            "the name of a service, such as feed.service or feed@1.service",
        )
    return one.unit


def _place(mine: Sequence[Trading], scope: Scope, *, is_whole: bool, in_slice: bool) -> Iterator[str]:
    """CPUAffinity= adds up over several assignments: an empty one drops what the unit says."""
    if in_slice:
        yield f"Slice={SLICE}"
    yield "CPUAffinity="
    own = frozenset(each.cpu for each in mine)
    # A program whose threads are declared by name starts elsewhere: the others must not land on the isolated CPUs.
    # In the slice there are no others.
    cpus: CpuSet = own if is_whole or in_slice else scope.housekeeping & scope.online
    yield f"CPUAffinity={format_cpulist(cpus).replace(',', ' ')}"


def _policy(mine: Sequence[Trading], *, is_whole: bool) -> Iterator[str]:
    trading = mine[0]
    if is_whole and trading.policy != "deadline":
        yield f"CPUSchedulingPolicy={trading.policy}"
        if trading.policy in BY_PRIORITY:
            yield f"CPUSchedulingPriority={trading.priority}"
    elif highest := max(each.priority for each in mine):
        yield f"LimitRTPRIO={highest}"


def _head(name: str, unit: str, path: str) -> Iterator[str]:
    yield f"# Made by `tunectl threads unit` for {name}: {unit} as [[threads]] of the host file declares it."
    yield f"# It belongs in {path}; then type:"
    yield f"#   {argv('sudo', 'systemctl', 'daemon-reload').then(argv('sudo', 'systemctl', 'restart', of=[unit]))}"


def _inherited(mine: Sequence[Trading], *, is_whole: bool) -> Iterator[str]:
    if is_whole:
        cpu = mine[0].cpu
        yield (
            f"Each thread that this process starts inherits all of this, and begins on CPU {cpu}: "
            "the program has to move them away itself."
        )


def _beyond(mine: Sequence[Trading], *, is_whole: bool) -> Iterator[str]:
    """What is declared and systemd cannot do: the program has to, once it runs."""
    for each in mine:
        which = f"{each.name} (thread {each.thread})" if each.thread else f"{each.name} (the first thread)"
        how = f"{each.policy} {each.priority}" if each.priority else each.policy
        is_deadline = each.policy == "deadline"
        if not is_whole:
            scheduled = "" if is_deadline else f" and to schedule it as {how} (sched_setscheduler(2))"
            yield (
                "systemd places a process as a whole, and not one thread of it. The program itself has to put "
                f"{which} on CPU {each.cpu} (sched_setaffinity(2)){scheduled}."
            )
        if is_deadline:
            yield (
                f"systemd knows no deadline policy: the program has to ask for it for {which} (sched_setattr(2), "
                "which needs CAP_SYS_NICE)."
            )
    by_program = mine if not is_whole else [each for each in mine if each.policy == "deadline"]
    if any(each.policy in (*BY_PRIORITY, "deadline") for each in by_program):
        yield "RestrictRealtime=yes in the unit would have the kernel refuse a real-time policy to the program."
    if any(each.locked for each in mine):
        yield (
            "LimitMEMLOCK= permits to lock memory, and locks none: the program itself has to call mlockall(2) with "
            "MCL_CURRENT and MCL_FUTURE."
        )


def _crowded(scope: Scope) -> Iterator[str]:
    cpus = format_cpulist(scope.isolated)
    yield (
        f"In {SLICE} every thread of this unit can run on the isolated CPUs {cpus} only: systemd does not divide a "
        "process between two slices. Threads that are not declared have to be few, and must not spin."
    )


def _kept_out(mine: Sequence[Trading], scope: Scope, *, kept: bool) -> Iterator[str]:
    """What keeps the unit from its CPUs, so that it would not start, or its program could not move its threads."""
    cpus = frozenset(each.cpu for each in mine)
    if kept:
        yield (
            f"The host file keeps system.slice off the isolated CPUs (systemd.allowed_cpus): without Slice={SLICE}, "
            f"which it leaves alone, this unit has no CPU {format_cpulist(cpus)}."
        )
    if offline := cpus - scope.online:
        yield f"CPU {format_cpulist(offline)} is offline now: nothing can run there until it is online."


def _comments(said: Sequence[str]) -> Iterator[str]:
    """Comments are lines of their own that no line end of another's makes: each word has passed one_line()."""
    for text in said:
        yield "#"
        for part in textwrap.wrap(printable(text), _WIDTH, break_long_words=False, break_on_hyphens=False):
            yield f"# {part}"
    if said:
        yield ""
