"""What every command is built from: options in, one line of progress, a document or a file out, what to type next."""

from __future__ import annotations

import datetime
import errno
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache, wraps
from typing import IO, Any, NamedTuple

import click
import msgspec

from tunectl import kinds
from tunectl.cli.helped import Command, terminal_width
from tunectl.cli.main import COMMANDS
from tunectl.cli.options import Options, merged, shared_options
from tunectl.command import Command as Commands
from tunectl.command import shell_word
from tunectl.cpulist import CpuSet
from tunectl.errors import TunectlError, UsageError
from tunectl.fix import Fix, Kind, Task, of_tasks
from tunectl.host.sysroot import Sysroot, is_missing
from tunectl.model import Document, Finding, HostId
from tunectl.shapes import fields_of, now_utc
from tunectl.work import Tell

DATA = ("text", "json")
GATE = ("text", "json", "junit", "nagios", "prometheus")


def tunectl_command(
    *, formats: tuple[str, ...] = DATA, name: str = "command", **attrs: Any
) -> Callable[[Callable[..., int]], click.Command]:
    """A click command whose function takes the merged Options first and returns the exit code; `attrs`: Command's."""

    def decorate(function: Callable[..., int]) -> click.Command:
        @wraps(function)
        def call(*args: Any, **given: Any) -> int:
            from tunectl.host.tracefs import sweep  # not for --help

            # What a killed `probe jitter --attribute` left on this host still traces: the next command removes it, also
            # one that reads a recorded host. Who may not make instances sees none.
            sweep(Sysroot())
            options = merged(click.get_current_context(), given, formats)
            own = {key: value for key, value in given.items() if key not in Options._fields}
            can_draw(options.fmt)
            with hinted(options):
                return function(options, *args, **own)

        call.__doc__ = function.__doc__
        made: click.Command = click.command(name, cls=Command, **attrs)(shared_options(formats=formats)(call))
        return made

    return decorate


def can_draw(fmt: str) -> None:
    """TunectlError where a format needs what is not installed: before the work is done, not after it."""
    # Every installation has the first two, and text is slow to import; the fleet's engine writes the others.
    if fmt not in ("text", "json", "csv", "parquet"):
        from tunectl.report import renderer

        renderer(fmt)


def open_root(options: Options) -> Sysroot:
    """The host to read."""
    return Sysroot(options.root)


def typed(options: Options) -> Typed:
    """How commands are typed that go on from this one."""
    path = options.host_path
    return Typed(options.named, path if not options.host and is_missing(path) else "", options.program)


@contextmanager
def hinted(options: Options) -> Iterator[None]:
    """Within it the commands in the hint of a TunectlError are typed as they have to be here."""
    try:
        yield
    except TunectlError as error:
        error.hint = error.hint and typed(options).text(error.hint)
        raise


def today() -> str:
    """Today's date, which decides whether a waiver still holds."""
    return datetime.date.today().isoformat()


def emit(
    options: Options,
    name: str,
    identity: HostId,
    body: msgspec.Struct | Mapping[str, Any],
    *,
    done: str | None = None,
) -> None:
    """Prints the result in the format asked for. TunectlError, with what was `done`, where it cannot be written."""
    from tunectl.report import render
    from tunectl.report.escape import encodable

    document = document_of(options, name, identity, body)
    terminal = is_terminal(sys.stdout)
    colour = terminal and may_colour()
    width = terminal_width(100) if terminal or "COLUMNS" in os.environ else 100
    if options.fmt == "json":  # by far the longest: of a fleet larger than all that it says
        from tunectl.report.json import pieces

        texts = pieces(document)
    else:
        texts = iter([render(document, options.fmt, width=width, colour=colour)])
    try:
        if sys.stdout is None:  # it was closed before we started
            raise OSError(errno.EBADF, "standard output is closed")
        for text in texts:
            # The other formats are UTF-8 by definition, whatever the terminal's encoding.
            is_text = options.fmt == "text"
            out = encodable(text, sys.stdout.encoding or "utf-8") if is_text else text.encode()
            click.echo(out, nl=False, color=colour)
    except BrokenPipeError:  # its reader has gone, and wants to hear nothing
        raise
    except OSError as error:
        raise TunectlError(f"the result could not be written: {error.strerror}", done) from error


def document_of(options: Options, name: str, identity: HostId, body: msgspec.Struct | Mapping[str, Any]) -> Document:
    """The result with its header, its commands as they are typed here."""
    how = typed(options)
    shown = how.body(fields_of(body))
    recorded = "" if open_root(options).live else os.path.abspath(options.root)
    return Document(name, identity, now_utc(), shown, tuple(_findings_in(shown)), options.verbose, recorded, how.start)


def show_first(options: Options, name: str, identity: HostId, body: msgspec.Struct | Mapping[str, Any]) -> None:
    """Shows a person, on stderr, the page of what he is asked about."""
    from tunectl.report import render

    colour = may_colour() and is_terminal(sys.stderr)
    document = document_of(options, name, identity, body)
    click.echo(render(document, "text", width=terminal_width(100, 2), colour=colour), err=True, color=colour)


def may_colour() -> bool:
    """May a terminal be sent colours? An empty NO_COLOR asks for nothing (no-color.org)."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _findings_in(body: Mapping[str, Any]) -> Iterator[Finding]:
    """Those of a document and of its sections, for formats that show nothing else."""
    for key, value in body.items():
        if key == "findings":
            yield from value
        elif isinstance(value, Mapping):
            yield from _findings_in(value)


def is_terminal(stream: IO[str] | None) -> bool:
    """Is a person at the other end? Nobody is where the stream was closed before we started."""
    return stream is not None and stream.isatty()


def stay_off(root: Sysroot, isolated: CpuSet, thread: int = 0, otherwise: CpuSet = frozenset()) -> None:
    """Moves this thread, and those that it starts later, off the isolated CPUs.

    `thread` names another thread of this process; `otherwise` are the CPUs to move to if all of its CPUs are isolated.
    """
    if not root.live:
        return
    with suppress(OSError):
        allowed = os.sched_getaffinity(thread) - isolated or otherwise
        if allowed:
            os.sched_setaffinity(thread, allowed)


@contextmanager
def progress(options: Options) -> Iterator[Tell]:
    """Yields what is told of the work. It is drawn for a person who waits at a terminal."""
    if options.quiet or not is_terminal(sys.stderr) or os.environ.get("TERM") == "dumb":
        yield lambda work: None
        return
    from tunectl.cli.progress import drawn  # rich: only where a person watches

    with drawn() as tell:
        yield tell


def check_output(path: str, *, makes_directory: bool = False) -> None:
    """Is this a place for a result? A regular file or a new name is; of a link, what it points to counts.

    UsageError otherwise: a device or FIFO that a result was put in the place of would be gone for the whole machine.
    Before the work is done, which may take a day.
    """
    from tunectl.durable import followed, require_regular  # few commands write

    if not path:
        raise UsageError("--output: expected the name of a file")
    if path == "-":
        raise UsageError("--output -: expected the name of a file", "without --output the result is printed")
    if not makes_directory and not os.path.isdir(os.path.dirname(os.path.realpath(path))):
        raise UsageError(f"--output {path}: no such directory")
    try:
        require_regular(followed(path))
    except OSError as error:
        raise UsageError(f"--output {path}: {error.strerror}") from error
    place = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(place) and os.statvfs(place).f_flag & os.ST_RDONLY:
        raise UsageError(f"--output {path}: {os.strerror(errno.EROFS)}")


def write_whole(path: str, text: str, mode: int = 0o644) -> None:
    """Replaces a file of the user's, readable by all unless `mode` says otherwise; of a link, the file it points to.

    TunectlError when it cannot, and nothing is left beside it.
    """
    from tunectl.durable import followed, replace_file  # few commands write

    try:
        replace_file(followed(path), text.encode("utf-8"), mode=mode)
    except OSError as error:
        raise TunectlError(f"cannot write {path}: {error.strerror}") from error


def write_new(path: str, text: str, *, force: bool) -> None:
    """Writes all or nothing, for --output. An existing file is the operator's own, and is only replaced by `force`."""
    check_output(path, makes_directory=True)
    if os.path.exists(path) and not force:
        raise UsageError(f"--output {path}: there is a file already", "--force overwrites it")
    try:
        os.makedirs(os.path.dirname(os.path.realpath(path)), exist_ok=True)
    except OSError as error:
        raise TunectlError(f"cannot write {path}: {error.strerror}") from error
    write_whole(path, text)


_OF_NO_HOST = ("knobs", "compare", "report", "fleet")
_COMMAND = re.compile(
    rf"(?<![\w/.-])tunectl(?= (?:{'|'.join(command for command in COMMANDS if command not in _OF_NO_HOST)})\b)"
)
_SIMPLE = (str, int, bool, type(None))
_SAID = ("reasons", "notes", "fix", "restore")  # fields with commands


@lru_cache(1 << 13)
def _typed_text(how: Typed, text: str) -> str:
    """Made once: thousands of hosts give the same reasons."""
    named = " ".join(map(shell_word, how.start))
    return _COMMAND.sub(lambda _: named, text)


@lru_cache
def _typed_fix(how: Typed, fix: Fix) -> Fix:
    """Made once: thousands of findings have the same fix."""
    tasks = []
    for task in fix.tasks:
        if how.missing and task.kind is Kind.APPLY:
            tasks.append(Task(Kind.PROPOSE, how.text(kinds.propose(how.missing))))
        tasks.append(task._replace(text=how.text(task.text), note=how.text(task.note)))
    return of_tasks(tasks)


class Typed(NamedTuple):
    """How this command's reader types the next one."""

    words: tuple[str, ...]  # --root, --host and --state, as they were given to this command
    missing: str = ""  # the host file that has to be written before `apply`; "" where it is there
    program: str = "tunectl"  # or its full path

    @property
    def start(self) -> tuple[str, ...]:
        """The words that start it."""
        return (self.program, *self.words)

    def text(self, text: str) -> str:
        """A text with commands of ours, each with the options. sudo hands no environment on, so they are words."""
        if isinstance(text, Commands):
            return kinds.started(text, self.start)
        return _typed_text(self, text)

    def fix(self, fix: Fix) -> Fix:
        """The same of a fix: without a host file `apply` has nothing to go by."""
        return _typed_fix(self, fix)

    def finding(self, finding: Finding) -> Finding:
        """The same finding, whose fix can be typed here."""
        return finding._replace(fix=self.fix(finding.fix)) if finding.fix else finding

    def body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A document's fields, with all that they say to type. What the probe measured says nothing of the kind."""
        return {key: value if key == "probe" else self._field(key, value) for key, value in body.items()}

    def _field(self, key: str, value: Any) -> Any:
        if type(value) in _SIMPLE and not (type(value) is str and key in _SAID):  # nearly everything
            return value
        if isinstance(value, Finding):
            return self.finding(value)
        if isinstance(value, Fix):
            return str(self.fix(value))
        if isinstance(value, str) and key in _SAID:
            return self.text(value)
        if isinstance(value, dict):
            return self.body(value)
        return type(value)(self._field(key, one) for one in value) if type(value) in (list, tuple) else value
