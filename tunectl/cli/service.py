"""tunectl service"""

import os
from collections.abc import Iterable
from typing import Annotated, Literal

import click
import msgspec
from msgspec import Meta

from tunectl.cli.command import emit, open_root, tunectl_command, write_whole
from tunectl.cli.helped import FAILED, OK, Example, Family
from tunectl.cli.options import Options
from tunectl.errors import TunectlError, UsageError, words_of
from tunectl.host.calendar import check_calendar
from tunectl.host.identity import read_identity
from tunectl.host.run import run
from tunectl.host.sysroot import Sysroot
from tunectl.shapes import Notes
from tunectl.units import SERVICES, TIMER, USUAL_TIME, Unit, ours, same, time_of, units_of, warnings

_TIMEOUT_S = 60.0
State = Literal["absent", "installed", "outdated", "foreign", "written", "unchanged", "removed"]
Action = Literal["show", "install", "remove"]
_NAME = click.argument("name", type=click.Choice(tuple(SERVICES)))
_AT = click.option(
    "--at",
    metavar="TIME",
    help=f"Of preflight: when, as systemd.time(7) has it [that of its timer, or {USUAL_TIME}].",
)
_REPAIR = click.option("--repair", is_flag=True, help="Of the monitor: it asks for apply when a knob drifts.")


class Row(msgspec.Struct, frozen=True):
    """One unit file."""

    path: str
    state: Annotated[State, Meta(description="Outdated is an earlier one of tunectl's, foreign somebody else's.")]
    text: str


class Service(msgspec.Struct, frozen=True):
    """What `tunectl service show|install|remove NAME` says of tunectl's systemd units."""

    action: Action
    name: Annotated[str, Meta(extra_json_schema={"enum": [*SERVICES]})]
    units: list[Row]
    ran: Annotated[list[list[str]], Meta(description="The programs that were run.")]
    notes: Notes


@click.group(
    "service",
    cls=Family,
    examples=(
        Example("Install the monitor, and have it start with each boot:", "sudo tunectl service install monitor"),
        Example("", "sudo systemctl enable --now tunectl-monitor.service"),
    ),
)
def command() -> None:
    """The systemd units: the monitor, apply at boot, the repair that the monitor may ask for, preflight at its time."""


@tunectl_command(
    name="show",
    examples=(
        Example("The monitor's unit:", "tunectl service show monitor"),
        Example("The unit that applies again at each boot:", "tunectl service show apply"),
    ),
)
@_NAME
@_REPAIR
@_AT
def show(options: Options, name: str, repair: bool, at: str | None) -> int:
    """Print the unit files for this installation; writes nothing."""
    root = open_root(options)
    rows = [_row(unit, _state(root, unit)) for unit in _units(options, root, name, repair, at)]
    return _emit(options, root, Service("show", name, rows, [], warnings(name, options.invocation)))


@tunectl_command(
    name="install",
    examples=(
        Example("The monitor:", "sudo tunectl service install monitor"),
        Example("The monitor that asks for apply when a knob drifts:", "sudo tunectl service install monitor --repair"),
        Example(
            "A preflight before the open:",
            'sudo tunectl service install preflight --at "Mon..Fri 07:45 Europe/London"',
        ),
    ),
)
@_NAME
@_REPAIR
@_AT
def install(options: Options, name: str, repair: bool, at: str | None) -> int:
    """Write the unit files and have systemd read them. What tunectl did not write is not overwritten."""
    root = open_root(options)
    units = _units(options, root, name, repair, at)
    states = _own_states(root, units)
    rows = []
    for unit, state in states.items():
        if state != "installed":
            _write(root, unit)
        rows.append(_row(unit, "unchanged" if state == "installed" else "written"))
    said = warnings(name, options.invocation)
    said += [f"`sudo systemctl enable --now {os.path.basename(units[0].path)}` starts it, now and at every boot"]
    return _reload(options, root, "install", name, rows, said)


@tunectl_command(
    name="remove", examples=(Example("Stop the monitor, and remove its unit:", "sudo tunectl service remove monitor"),)
)
@_NAME
def remove(options: Options, name: str) -> int:
    """Stop and disable the service, and remove its unit files. What tunectl did not write stays."""
    root = open_root(options)
    units = _units(options, root, name)
    states = _own_states(root, units)
    there = [unit for unit, state in states.items() if state != "absent"]
    commands = [["systemctl", "disable", "--now", os.path.basename(unit.path)] for unit in there]
    done, failed = _systemctl(root, commands)
    for unit in there:
        try:
            os.unlink(root.resolve(unit.path))
        except OSError as error:
            raise TunectlError(f"cannot remove {root.path(unit.path)}: {error.strerror}") from error
    rows = [_row(unit, "removed" if unit in there else "absent") for unit in units]
    return _reload(options, root, "remove", name, rows, failed, done)


for _one in (show, install, remove):
    command.add_command(_one)


def _units(options: Options, root: Sysroot, name: str, repair: bool = False, at: str | None = None) -> tuple[Unit, ...]:
    """Where --at is left out, the installed timer keeps its time: an upgrade installs again."""
    if at is not None and name != "preflight":
        raise UsageError(f"--at goes with preflight, and {name} has no time")
    standing = root.get(TIMER) or ""
    when = check_calendar(at) if at is not None else (time_of(standing) if ours(standing) else "") or USUAL_TIME
    return units_of(name, options.invocation, ("--repair",) if repair and name == "monitor" else (), when)


def _state(root: Sysroot, unit: Unit) -> State:
    if not root.exists(unit.path):
        return "absent"
    text = root.get_text(unit.path)
    if same(text, unit.text):
        return "installed"
    return "outdated" if ours(text) else "foreign"


def _own_states(root: Sysroot, units: Iterable[Unit]) -> dict[Unit, State]:
    """How each unit stands. TunectlError where one is somebody else's."""
    states = {unit: _state(root, unit) for unit in units}
    for unit, state in states.items():
        if state == "foreign":
            raise TunectlError(f"{root.path(unit.path)} was not written by tunectl", "move it away first")
    return states


def _write(root: Sysroot, unit: Unit) -> None:
    directory = os.path.dirname(unit.path)
    if not root.exists(directory):
        raise TunectlError(f"{root.path(directory)}: no such directory", "this host is not run by systemd")
    write_whole(root.resolve(unit.path), unit.text)


def _systemctl(root: Sysroot, commands: Iterable[list[str]]) -> tuple[list[list[str]], list[str]]:
    """Runs them, but only on the running host: (the commands that succeeded, a sentence about each of the others)."""
    done, said = [], []
    for argv in commands:
        if not root.live:
            said.append(f"not run on a recorded host: {' '.join(argv)}")
            continue
        if not root.exists("run/systemd/system"):  # sd_booted(3)
            said.append(f"not run, because systemd does not run this host: {' '.join(argv)}")
            continue
        result = run(argv, timeout_s=_TIMEOUT_S)
        if result.returncode:
            said.append(f"{' '.join(argv)} failed: {words_of(result.stderr) or result.returncode}")
        else:
            done.append(argv)
    return done, said


def _reload(
    options: Options,
    root: Sysroot,
    action: Action,
    name: str,
    rows: list[Row],
    said: list[str],
    done: Iterable[list[str]] = (),
) -> int:
    ran, failed = _systemctl(root, [["systemctl", "daemon-reload"]])
    return _emit(options, root, Service(action, name, rows, [*done, *ran], [*said, *failed]))


def _row(unit: Unit, state: State) -> Row:
    return Row(f"/{unit.path}", state, unit.text)


def _emit(options: Options, root: Sysroot, body: Service) -> int:
    emit(options, "service", read_identity(root), body)
    return FAILED if any(" failed: " in note for note in body.notes) else OK
