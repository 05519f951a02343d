"""The values that completion offers for an option or argument. A command names them; nothing here is loaded for one.

Each reads names only: a directory of the kernel's, of sessions. No file of a CPU, nothing that waits for a device.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:  # slow to import, and no help text needs it
    from pathlib import Path

Complete = Callable[[click.Context, click.Parameter, str], Any]


def one_of(values: Callable[[click.Context], Iterable[str]]) -> Complete:
    """Names that are known only when they are asked for."""

    def complete(ctx: click.Context, param: click.Parameter, begun: str) -> list[str]:
        del param
        # A name that another program chose may begin with a hyphen: it would be an option.
        return [value for value in values(ctx) if value.startswith(begun) and not value.startswith("-")]

    return complete


def some_of(values: Callable[[], Iterable[str]]) -> Complete:
    """A list with commas, of which the last name is completed."""

    def complete(ctx: click.Context, param: click.Parameter, begun: str) -> list[str]:
        del ctx, param
        before, comma, last = begun.rpartition(",")
        given = before.split(",")
        return [before + comma + value for value in values() if value.startswith(last) and value not in given]

    return complete


class Number(click.FloatRange):
    """A number in a range. click takes nan, which is none, for one in every range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"'{value}' is not a number.", param, ctx)
        return number


_DURATION = re.compile("([1-9][0-9]{0,5})([smh])")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_LONGEST_S = 24 * 3600


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.3
    """A number of seconds, minutes or hours: 20s, 10m, 2h; at most a day."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """In seconds."""
        match = _DURATION.fullmatch(str(value))
        seconds = int(match[1]) * _SECONDS[match[2]] if match else 0
        if not 1 <= seconds <= _LONGEST_S:
            self.fail(f"'{value}': expected a time from 1s to 24h, such as 30s, 10m or 2h.", param, ctx)
        return float(seconds)


def a_path(kind: str = "file", names: Complete | None = None) -> Complete:
    """A file or directory, which the shell completes, and names that stand for one."""

    def complete(ctx: click.Context, param: click.Parameter, begun: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        named = names(ctx, param, begun) if names else []
        return [*map(CompletionItem, named), CompletionItem(begun, type=kind)]

    return complete


def interfaces(ctx: click.Context) -> Sequence[str]:
    """The network interfaces of the host that is asked about."""
    try:
        return sorted(os.listdir(os.path.join(_given(ctx, "root", "/"), "sys/class/net")))
    except OSError:
        return []


def declared_threads(ctx: click.Context) -> Iterable[str]:
    """The names of [[threads]] in the host file that is asked about."""
    from tunectl.errors import TunectlError
    from tunectl.hostfile.config import name_of
    from tunectl.hostfile.shape import HostFile
    from tunectl.hostfile.toml import read_toml
    from tunectl.installed import HOST_FILE

    usual = _given(ctx, "root", "/").rstrip("/") + HOST_FILE
    try:
        return [name_of(row) for row in read_toml(_given(ctx, "host", usual), HostFile).threads]
    except TunectlError:
        return []


def _given(ctx: click.Context, name: str, otherwise: str) -> str:
    """An option of the command or, in front of it, of the program."""
    return str(next(filter(None, (one.params.get(name) for one in (ctx, ctx.find_root()))), otherwise))


def knobs(ctx: click.Context) -> Iterable[str]:
    """Facilities and knobs."""
    del ctx
    from tunectl.knobs import KNOBS

    return [*dict.fromkeys(knob.facility for knob in KNOBS.values()), *KNOBS]


def profiles(ctx: click.Context) -> Iterable[str]:
    """The shipped profiles."""
    del ctx
    from tunectl.hostfile.profile import shipped

    return shipped()


def checks(ctx: click.Context) -> Iterable[str]:
    """The shipped modules of checks, as paths."""
    del ctx
    from tunectl.checking.runner import shipped_checks

    return sorted(map(str, shipped_checks().glob("test_*.py")))


def loads() -> Iterable[str]:
    """The loads of --load, and the two words that stand for a set."""
    from tunectl.probe.loads import ALL, LOADS, NONE

    return [*LOADS, ALL, NONE]


def sessions(ctx: click.Context) -> Iterable[str]:
    """The sessions of the store, the latest first."""
    return [os.path.basename(session.directory) for session in reversed(_sessions(ctx))]


def session_hosts(ctx: click.Context) -> Iterable[str]:
    """The hosts of the session that was named, or of all."""
    from tunectl.errors import TunectlError
    from tunectl.fleet.store import read_session, session_directory

    named = ctx.params.get("session")
    try:
        found = [read_session(session_directory(_store(ctx), named))] if named else _sessions(ctx)
    except TunectlError:
        return []
    return dict.fromkeys(host for one in found for host in one.hosts)


def _store(ctx: click.Context) -> Path:
    from pathlib import Path

    from tunectl.fleet.store import default_store

    store = ctx.params.get("store")
    return store if isinstance(store, Path) else default_store()


def _sessions(ctx: click.Context) -> list[Any]:
    from tunectl.errors import TunectlError
    from tunectl.fleet.store import sessions as sessions_of

    try:
        return sessions_of(_store(ctx))
    except TunectlError:
        return []
