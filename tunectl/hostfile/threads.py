"""[[threads]] of the host file: the operator's own threads, which `tunectl check` looks for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tunectl.cpulist import format_cpulist
from tunectl.errors import UsageError
from tunectl.host.scheduling import BY_PRIORITY
from tunectl.hostfile.shape import ThreadRow
from tunectl.model import Scope, Trading

# unit_name_is_valid() of systemd, src/basic/unit-name.c: these characters. A name that begins with a dash is an option.
_UNIT = re.compile(r"[A-Za-z0-9:_.\\][A-Za-z0-9:_.\\-]*(@[A-Za-z0-9:_.\\@-]*)?\.(service|scope|slice)")
_LONGEST = 255  # characters of a unit's name
_COMM = 15  # characters the kernel keeps of a thread's name (TASK_COMM_LEN, less the NUL)


def trading_threads(
    rows: Sequence[ThreadRow], scope: Scope, interfaces: Sequence[str], origin: str
) -> tuple[Trading, ...]:
    """The declarations, each possible by itself and together. UsageError names the row and the key otherwise."""
    found: list[Trading] = []
    for number, row in enumerate(rows):
        where = f"{origin}: threads[{number}]"
        one = _declared(row, scope, where)
        for other in found:
            if other.name == one.name:
                raise UsageError(f"{where}: there is a thread named '{one.name}' already", "give it a name of its own")
            if other.cpu == one.cpu:
                raise UsageError(f"{where}.cpu: CPU {one.cpu} is {other.name}'s", "give each trading thread its own")
        found.append(one)
    known = {*interfaces, *(one.name for one in found)}
    for number, one in enumerate(found):
        for feeder in one.fed_by:
            if feeder not in known or feeder == one.name:
                hint = f"one of {', '.join(sorted(known - {one.name}))}" if known - {one.name} else "see [network]"
                raise UsageError(f"{origin}: threads[{number}].fed_by: nothing else here is named '{feeder}'", hint)
    # Who says nothing of his feeders is fed by the market-data interfaces.
    return tuple(one if one.fed_by else one._replace(fed_by=tuple(interfaces)) for one in found)


def _declared(row: ThreadRow, scope: Scope, where: str) -> Trading:
    if bool(row.unit) == bool(row.command):
        raise UsageError(
            f"{where}: which process is it?", "unit = (a systemd unit) or command = (its name), one of them"
        )
    if row.unit and row.user:
        raise UsageError(f"{where}.user: a unit says itself whose its process is", "leave it out")
    if row.cpu not in scope.isolated:
        isolated = format_cpulist(scope.isolated)
        raise UsageError(f"{where}.cpu: CPU {row.cpu} is not isolated", f"one of {isolated}")
    if row.policy in BY_PRIORITY and not 1 <= row.priority <= 99:
        raise UsageError(f"{where}.priority: {row.priority}: SCHED_{row.policy.upper()} has 1 to 99")
    if row.policy not in BY_PRIORITY and row.priority:
        raise UsageError(
            f"{where}.priority: {row.policy} has no real-time priority", 'policy = "fifo" or "rr", or none'
        )
    for key, value in (("thread", row.thread), ("command", row.command)):
        if len(value.encode()) > _COMM:
            raise UsageError(f"{where}.{key}: '{value}': the kernel keeps {_COMM} characters", value[:_COMM])
    if "/" in row.command:
        raise UsageError(
            f"{where}.command: '{row.command}': a program's name, without its folder", _name_of(row.command)
        )
    unit = _unit_of(row)
    if unit:
        _check_unit(unit, f"{where}.unit")
    return Trading(
        name_of(row),
        unit,
        row.command,
        row.thread,
        row.cpu,
        row.policy,
        row.priority,
        row.locked_memory,
        tuple(row.fed_by),
        row.spins,
        row.user,
    )


def name_of(row: ThreadRow) -> str:
    """What findings call a declared thread."""
    return row.name or row.thread or row.command or _unit_of(row)


def _unit_of(row: ThreadRow) -> str:
    return row.unit if not row.unit or "." in row.unit else f"{row.unit}.service"


def _check_unit(unit: str, where: str) -> None:
    if not _UNIT.fullmatch(unit) or len(unit) > _LONGEST:
        raise UsageError(
            f'{where}: "{unit}": systemd runs no program of that name',
            "a service, such as feed.service or feed@1.service",
        )
    if "@." in unit:
        raise UsageError(f'{where}: "{unit}" is a template, of which only instances run', unit.replace("@.", "@NAME."))


def _name_of(program: str) -> str:
    return program.rpartition("/")[2] or "its name as `ps -o comm` shows it"
