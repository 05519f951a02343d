"""The program `tunectl`: global options, commands that are imported when they are called, the one exit."""

import errno
import importlib
import io
import os
import re
import sys
from contextlib import suppress
from itertools import pairwise
from typing import Any

import click

from tunectl import __version__
from tunectl.cli import helped
from tunectl.cli.helped import Example, Family, terminal_width
from tunectl.cli.options import Options, shared_options
from tunectl.errors import TunectlError, shortened
from tunectl.host.ending import ENDING
from tunectl.installed import broken
from tunectl.report.escape import printable  # here, and not where it is used: there may be no descriptor left then

# name -> what it does; the function is tunectl.cli.<name>:command
COMMANDS = {
    "show": "This host: CPUs, NICs, interrupts, what is tuned, who else tunes.",
    "propose": "Propose isolated CPUs, with the reasons, and print a host file.",
    "knobs": "The catalogue: what can be tuned, why, and from which source.",
    "plan": "What apply would change; writes nothing.",
    "apply": "Put the host file in force, through the journal.",
    "confirm": "Keep a change that would be taken back.",
    "deadline": "What the units of an unconfirmed change run: take back what is due.",
    "verify": "Observe again and compare: each finding with its reason and fix.",
    "restore": "Undo everything that apply wrote: the host as it was before.",
    "check": "The behavioural checks on this host.",
    "probe": "The spin-loop probe.",
    "preflight": "verify, check, probe and thermal state: GO or NO-GO.",
    "monitor": "Watch: frequency, throttling, temperature, drift; alerts.",
    "service": "The systemd units: show, install, remove.",
    "threads": "A systemd drop-in that runs a declared thread's unit as declared.",
    "compare": "Two probe results side by side, with bounds.",
    "report": "One self-contained HTML page with plots.",
    "fleet": "Many hosts, one answer: who is GO, who is missing, who differs.",
    "snapshot": "Record this host's files as one archive for --root.",
}


_WIDEST_HELP = 100  # columns

# No fault of ours: of open files, memory or processes there are no more.
_SCARCE = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)


class Lazy(Family):
    """A group whose commands are imported when they are called, so that --help stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order a user meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command's own module."""
        if name not in COMMANDS:
            return None
        command = importlib.import_module(f"tunectl.cli.{name}").command
        assert isinstance(command, click.Command)
        return command

    def summaries(self, ctx: click.Context) -> list[tuple[str, str]]:
        """The table above, without importing anything."""
        return list(COMMANDS.items())

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """A misspelled command is answered with the closest one."""
        if args and args[0] not in COMMANDS:
            import difflib  # only for the message

            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean '{close[0]}'?" if close else f" Commands: {', '.join(COMMANDS)}."
            ctx.fail(f"No such command '{args[0]}'.{hint}")
        return super().resolve_command(ctx, args)


_EXAMPLES = (
    Example("Is this host ready to trade?", "sudo tunectl preflight"),
    Example("Which CPUs would be isolated here, and why?", "tunectl propose"),
    Example("What would change; then make the changes, and look again:", "tunectl plan"),
    Example("", "sudo tunectl apply"),
    Example("", "tunectl verify"),
    Example("Everything as it was before:", "sudo tunectl restore"),
)


@click.group(
    cls=Lazy,
    examples=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": _WIDEST_HELP},
)
@click.version_option(__version__, "--version", message="tunectl %(version)s")
@shared_options(top=True)
@click.pass_context
def cli(ctx: click.Context, /, **given: Any) -> None:
    """Tune, prove and watch a Linux host for low-latency trading.

    Exit codes: 0 compliant or GO, 1 could not find out, 2 usage, 3 drifted or NO-GO, 4 only a reboot is pending.
    """
    ctx.obj = Options.from_given(given)


def main() -> None:
    """Runs one command and ends the process."""
    # Under PYTHONUNBUFFERED nobody notices a write that the disk or a signal cut short, and the result is cut, too.
    if sys.stdout is not None and isinstance(raw := sys.stdout.buffer, io.RawIOBase):
        whole = io.BufferedWriter(raw)
        sys.stdout = io.TextIOWrapper(whole, sys.stdout.encoding, sys.stdout.errors, line_buffering=True)
    for name in ("COLUMNS", "LINES"):  # what no terminal has would be taken for its size, by everything that draws
        if not re.fullmatch("0*[1-9][0-9]{0,3}", os.environ.get(name, "80")):
            del os.environ[name]
    if "TUNECTL_DEBUG" not in os.environ:
        sys.unraisablehook = lambda _: None  # of an object that is freed half made: a traceback, and nothing to be done
    code = _completed() if "_TUNECTL_COMPLETE" in os.environ else _run()
    # Asked to end for the second time, it waits for no reader; what it has to say went to stderr.
    streams = (sys.stderr,) if ENDING.is_urgent else (sys.stdout, sys.stderr)
    try:
        for stream in filter(None, streams):  # None: it was closed before we started
            stream.flush()
    except BrokenPipeError:  # the reader of our output has gone
        code = helped.FAILED
    except OSError:  # said already, where it was written
        code = code or helped.FAILED
    # Nothing is left to do. Freeing every object would take a tenth of the time of `verify`.
    os._exit(code)


def _completed() -> int:
    """A shell asks what may follow. Whatever fails, it wants to hear nothing: nobody asked for a message."""
    with suppress(Exception):
        from tunectl.cli.complete import complete

        complete(cli)
    return helped.OK


def _run() -> int:
    try:
        # As click works it out; but that it would import shutil for that.
        code = cli(standalone_mode=False, terminal_width=max(min(terminal_width(80), _WIDEST_HELP) - 2, 50))
        return code if isinstance(code, int) else helped.OK
    except click.UsageError as error:
        if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # since click 8.2
            click.echo(error.format_message(), err=True)
            return helped.USAGE
        where = f" See '{error.ctx.command_path} --help'." if error.ctx else ""
        return _complain(f"{_said_plainly(error)}{where}", helped.USAGE)
    except click.ClickException as error:
        return _complain(error.format_message(), helped.FAILED)
    except TunectlError as error:
        return _complain(str(error), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        again = ENDING.is_urgent  # the first one left what was measured so far
        return _complain("interrupted again: what was measured is lost" if again else "interrupted", helped.FAILED)
    except BrokenPipeError:
        return helped.FAILED
    except Exception as error:
        if isinstance(error, OSError) and _is_of_output(error):  # a help text; of its result each command says it
            return _complain(f"the output could not be written: {error.strerror}", helped.FAILED)
        if os.environ.get("TUNECTL_DEBUG"):
            raise
        return _complain(_unexpected(error), helped.FAILED)


def _unexpected(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return broken(error)
    if isinstance(error, ImportError) and str(error.path).endswith(".so"):  # a damaged file, or no room for it
        return f"a library cannot be loaded: {error}"
    if isinstance(error, MemoryError | SystemError):  # CPython raises the second where it has no memory for the first
        return "there is not enough memory"
    if isinstance(error, FileNotFoundError) and _is_lost():
        return "the working directory is not there any more (go to another one)"
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return str(error)
    if isinstance(error, OSError) and error.errno in _SCARCE:
        return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)
    return f"internal error: {type(error).__name__}: {error} (TUNECTL_DEBUG=1 shows where)"


def _is_lost() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _said_plainly(error: click.UsageError) -> str:
    """Of a number: click names its own class ("valid integer range"), and writes limits as a formula."""
    param = error.param if isinstance(error, click.BadParameter) else None
    kind = param.type if param else None
    if not isinstance(kind, click.types.IntParamType | click.types.FloatParamType):
        return error.format_message()
    ends = [getattr(kind, "min", None), getattr(kind, "max", None)]
    least, most = (None if end is None else f"{end:,}" if isinstance(end, int) else f"{end:,g}" for end in ends)
    limits = "" if least is None else f" from {least} to {most}" if most is not None else f" from {least} on"
    what = "a whole number" if isinstance(kind, click.types.IntParamType) else "a number"
    said = f"{error.message.partition(' is not ')[0]}: expected {what}{limits}."
    return click.BadParameter(said, error.ctx, param).format_message()


def _is_of_output(error: OSError) -> bool:
    """Was it raised where click prints?"""
    place = error.__traceback__
    while place and place.tb_next:
        place = place.tb_next
    return place is not None and place.tb_frame.f_globals.get("__name__") == click.utils.__name__


def _complain(message: str, code: int) -> int:
    line = printable(shortened(" ".join(message.split())))  # a file's name or key may hold control sequences
    click.echo(f"tunectl: {line}", err=True)
    # A usage error happens before the options are known, and Nagios reads exit code 2 as CRITICAL.
    words = sys.argv[1:]
    asked = [word.partition("=")[2] for word in words if word.startswith("--format=")]
    asked += [after for word, after in pairwise(words) if word == "--format"]
    if (asked[-1] if asked else os.environ.get("TUNECTL_FORMAT", "")) == "nagios":
        with suppress(OSError):  # the line may be about the output itself
            click.echo(f"TUNECTL UNKNOWN - {line}".replace("|", "/"))
        return helped.NAGIOS_UNKNOWN
    return code
