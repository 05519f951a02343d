"""The options every command knows, before and after its name, and the environment variables behind them."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import click

from tunectl import installed
from tunectl.cli.values import Number, a_path, one_of, some_of
from tunectl.cli.values import loads as loads_known
from tunectl.errors import UsageError
from tunectl.installed import HOST_FILE, STATE

F = TypeVar("F", bound=Callable[..., Any])
FORMATS = ("text", "json", "junit", "nagios", "prometheus", "toml", "markdown", "html")  # of all commands together
WINDOW_S = 2.0  # for how long checks watch a host, where nothing else is said
_SUDO_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # as Debian's sudoers has it

_SHARED: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("--root",), {"metavar": "DIR", "shell_complete": a_path("dir"), "help": "Read the host's files below DIR."}),
    (("--host",), {"metavar": "FILE", "shell_complete": a_path(), "help": f"The host file [{HOST_FILE}]."}),
    (("--state",), {"metavar": "DIR", "shell_complete": a_path("dir"), "help": f"Journal and lock [{STATE}]."}),
)
_FLAGS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("-q", "--quiet"), {"is_flag": True, "help": "No progress on stderr."}),
    (("-v", "--verbose"), {"count": True, "help": "More detail; repeat for more."}),
)

# What several commands know, each declared once.
intrude_option = click.option(
    "--intrude", is_flag=True, help="Measure also on CPUs where somebody else's threads run: takes time from them."
)
load_option = click.option(
    "--load",
    metavar="NAME,...",
    shell_complete=some_of(loads_known),
    help="Measure once more beside these loads on the housekeeping CPUs (stress-ng): memory, ...; all; none.",
)
result_option = click.option(
    "--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write the JSON result there, too."
)
strict_option = click.option("--strict", is_flag=True, help="What cannot be read fails, too.")
wait_option = click.option(
    "--wait",
    "wait_s",
    type=Number(0, 86400),
    default=10.0,
    show_default=True,
    metavar="S",
    help="Wait for another tunectl.",
)


class Options(NamedTuple):
    """What was asked for on the command line or in the environment."""

    root: str = "/"
    host: str | None = None
    state: str | None = None
    fmt: str = "text"
    quiet: bool = False
    verbose: int = 0

    @classmethod
    def from_given(cls, given: dict[str, Any]) -> Options:
        """Options from the values that were given; the others keep their defaults."""
        _refuse_empty(given)
        return cls(**{key: value for key, value in given.items() if value})

    @property
    def host_path(self) -> str:
        """The host file: as given, or the recorded host's own."""
        return os.path.abspath(self.host or self._below_root(HOST_FILE))

    @property
    def state_path(self) -> str:
        """The state directory: as given, or the recorded host's own."""
        return os.path.abspath(self.state or self._below_root(STATE))

    def _below_root(self, path: str) -> str:
        """The path below the root. A link in a recorded host cannot lead out of it."""
        from tunectl.host.sysroot import Sysroot

        root = Sysroot(self.root)
        try:
            return path if root.live else root.resolve(path[1:])
        except OSError as error:
            raise UsageError(f"{root.path(path[1:])}: {error.strerror}") from error

    @property
    def invocation(self) -> tuple[str, ...]:
        """The words by which a unit starts this tunectl again; nothing is taken from the environment (cli/start.py)."""
        return (sys.executable, installed.isolating(), self._script, *self._paths())

    @property
    def _script(self) -> str:
        """The program of this installation; where that is gone, the one that was just started, if its path is known."""
        path, started = os.path.join(installed.scripts(), "tunectl"), sys.argv[0]
        is_known = os.path.isabs(started) and started.endswith("/tunectl")
        return started if is_known and not os.path.exists(path) else path

    @property
    def program(self) -> str:
        """What starts this tunectl after `sudo`: its name where sudo finds it by that, else its full path."""
        import shutil  # slow to import, and no help text needs it

        program = self._script
        path = os.environ.get("PATH") if "SUDO_UID" in os.environ else _SUDO_PATH  # that of a user is not sudo's
        found = shutil.which("tunectl", path=path)
        return "tunectl" if found and os.path.realpath(found) == os.path.realpath(program) else program

    @property
    def named(self) -> tuple[str, ...]:
        """The words that name the same host to another command of ours, whatever its directory and environment."""
        root = os.path.abspath(self.root)
        return (*(("--root", root) if root != "/" else ()), *self._paths())

    def _paths(self) -> tuple[str, ...]:
        host = ("--host", self.host_path) if self.host else ()
        return (*host, *(("--state", self.state_path) if self.state else ()))


def _refuse_empty(given: dict[str, Any]) -> None:
    """An empty name is a variable of a script that was never set: it must not stand for another host's file."""
    for name, value in given.items():
        if value == "" and name in Options._fields:
            option = "format" if name == "fmt" else name
            raise UsageError(f"--{option}: is empty", "leave it out for the default")


def shared_options(*, top: bool = False, formats: tuple[str, ...] = ("text", "json")) -> Callable[[F], F]:
    """--root --host --state --format -q -v. The environment is asked once, by the group (`top`)."""
    # Before the command's name the command is not known yet: any format is accepted here, and the command checks it.
    kind: Any = str if top else click.Choice(formats)
    offered = one_of(lambda _: FORMATS if top else formats)
    shown = "text, json, ..." if top else ", ".join(formats)
    of_format = {"metavar": "FORMAT", "type": kind, "shell_complete": offered, "help": f"One of: {shown}."}
    rows = (*_SHARED, (("--format", "fmt"), of_format), *_FLAGS)

    def decorate(function: F) -> F:
        for names, attrs in reversed(rows):
            long = next(name for name in names if name.startswith("--"))
            env: dict[str, Any] = {"envvar": f"TUNECTL_{long[2:].upper()}", "show_envvar": True} if top else {}
            function = click.option(*names, **attrs, **env)(function)
        return function

    return decorate


def pair_options(function: F) -> F:
    """What every experiment with a sender and a receiver knows of SO_BUSY_POLL and of another host."""
    for option in (
        click.option("--connect", metavar="A:P", help="Measure round trips to that host, over tcp and udp."),
        click.option("--listen", metavar="A:P", help="Be the other host of a --connect, until Ctrl-C."),
        click.option("--busy-poll-us", type=click.IntRange(1, 1_000_000), metavar="N", help="For SO_BUSY_POLL [50]."),
    ):
        function = option(function)
    return function


def merged(ctx: click.Context, given: dict[str, Any], formats: tuple[str, ...]) -> Options:
    """The command's own options, which override the group's. UsageError for a format that the command does not have."""
    options: Options = ctx.find_object(Options) or Options()
    _refuse_empty(given)
    own = {key: value for key, value in given.items() if value and key in Options._fields}
    options = options._replace(**own)
    if options.fmt not in formats:
        raise UsageError(f"--format {options.fmt}: '{ctx.info_name}' writes {', '.join(formats)}")
    from tunectl.command import one_line  # no help text needs it

    for name in ("root", "host", "state"):
        one_line(getattr(options, name) or "", f"--{name}")
    _require_root(options.root)
    if options.state and ctx.info_name != "monitor":  # which goes on without what it remembers, and alerts all the same
        _require_state(options.state)
    return options


def _require_root(root: str) -> None:
    """UsageError unless it is a directory that may be entered: nothing is found below one that may not."""
    try:
        os.stat(os.path.join(root, "."))
    except FileNotFoundError:
        raise UsageError(f"--root {root}: no such directory", "unpack a snapshot there first") from None
    except OSError as error:
        if error.errno == errno.ENOTDIR and os.path.exists(root):
            hint = "unpack a snapshot, and name the directory: mkdir HOST && tar -xf ARCHIVE -C HOST"
            raise UsageError(f"--root {root}: a file, no directory", hint) from error
        raise UsageError(f"--root {root}: {error.strerror}") from error


def _require_state(state: str) -> None:
    """UsageError where anything but a directory has its name: it must not pass for a host on which apply never ran.

    One that does not exist is a host without a journal. One that is not for this user is said by who reads it.
    """
    try:
        is_directory = stat.S_ISDIR(os.stat(state).st_mode)
    except (FileNotFoundError, PermissionError):
        return
    except OSError as error:
        raise UsageError(f"--state {state}: {error.strerror}") from error
    if not is_directory:
        raise UsageError(f"--state {state}: not a directory")
