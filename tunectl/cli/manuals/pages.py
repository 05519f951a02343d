"""The command tree as pages: what a man page and the reference have of each command. Only click is asked."""

from collections.abc import Iterator, Mapping
from inspect import cleandoc
from typing import NamedTuple

import click

from tunectl.cli.helped import DRIFTED, FAILURE, OK, REBOOT, Example, Family, Helped, summary_of
from tunectl.cli.main import COMMANDS, cli
from tunectl.cli.options import Options
from tunectl.installed import HOST_FILE, STATE

PROGRAM = "tunectl"


class Item(NamedTuple):
    """A row of a list: an option and what it does, a file and what is in it."""

    term: str
    text: str


class Page(NamedTuple):
    """All that is said of one command, or of tunectl-probe. `body` is text by paragraphs."""

    name: str  # as it is typed: `tunectl probe jitter`
    summary: str
    usage: tuple[str, ...]
    body: tuple[str, ...]
    options: tuple[Item, ...] = ()
    shared: tuple[Item, ...] = ()  # the global options
    commands: tuple[Item, ...] = ()
    examples: tuple[Example, ...] = ()
    exits: tuple[Item, ...] = ()
    files: tuple[Item, ...] = ()
    environment: tuple[Item, ...] = ()
    see_also: tuple[str, ...] = ()  # other pages' names
    section: str = "1"  # of the manual


_SHARED_SAID = "Global options work before and after the command's name, and override their environment variables."
_NAGIOS = Item("with --format nagios", "0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN; a wrong command line is 3, too")
_BY_SIGNAL = Item("128 + N", "ended by the signal N, as a shell shows it")
_OF_ANY = {OK: "done, compliant or GO", DRIFTED: "drifted, NO-GO or over a limit", REBOOT: "only a reboot is pending"}
_FILES = (
    Item(HOST_FILE, "The host file, see tunectl-hostfile(5): what is asked of this host. --host names another."),
    Item(STATE, "The journal that restore follows, and the lock. --state names another directory."),
)
_FILES_OF: Mapping[str, tuple[Item, ...]] = {
    "monitor": (
        Item(f"{STATE}/monitor", "What fires, and what is not yet delivered; below STATE_DIRECTORY in a unit."),
    ),
    "service": (Item("/etc/systemd/system/tunectl-*.service", "The units that `tunectl service install` writes."),),
    "fleet": (Item("~/.local/state/tunectl/fleet", "Sessions, a directory each. --store names another directory."),),
}
_ENVIRONMENT = (
    Item("NO_COLOR", "Set, and not empty: no colours. TERM=dumb: no colours and no progress bar, either."),
    Item("COLUMNS", "The width of text where the output is no terminal."),
    Item("TUNECTL_DEBUG", "Set to anything: an internal error is shown with its place in the program."),
)
_PROBE_VARIABLE = Item(
    "TUNECTL_PROBE", "The tunectl-probe to start, instead of the one that was installed with tunectl."
)
# Pages that name each other.
_CIRCLES = (
    ("propose", "plan", "apply", "verify", "restore"),
    ("verify", "check", "probe", "preflight"),
    ("probe jitter", "probe wake", "probe feed", "probe hedge", "probe contention", "compare", "report"),
    ("preflight", "fleet"),
    ("monitor", "service"),
    ("plan", "knobs"),
    ("show", "snapshot"),
)


def pages() -> Iterator[Page]:
    """A page for each command, the program itself first. tunectl-probe has its own: native.py."""
    settings = {**cli.context_settings, "terminal_width": 10_000, "max_content_width": 10_000}
    for ctx in contexts(click.Context(cli, info_name=PROGRAM, **settings)):
        yield _page(ctx)


def contexts(ctx: click.Context) -> Iterator[click.Context]:
    """This command and every one below it, the program itself first."""
    yield ctx
    if isinstance(ctx.command, click.Group):
        for name in ctx.command.list_commands(ctx):
            below = ctx.command.get_command(ctx, name)
            assert below is not None
            yield from contexts(click.Context(below, info_name=name, parent=ctx))


def _page(ctx: click.Context) -> Page:
    command = ctx.command
    assert isinstance(command, Helped)
    words = ctx.command_path.removeprefix(PROGRAM).strip()
    own, shared = _options(ctx)
    paragraphs = (" ".join(paragraph.split()) for paragraph in cleandoc(command.help or "").split("\n\n"))
    return Page(
        ctx.command_path,
        COMMANDS.get(words, "") or summary_of(command),
        (" ".join([ctx.command_path, *command.collect_usage_pieces(ctx)]),),
        tuple(filter(None, paragraphs)) + ((_SHARED_SAID,) if shared else ()),
        own,
        shared,
        _commands(ctx),
        command.examples,
        _exits(ctx),
        (*_FILES, *_FILES_OF.get(words.partition(" ")[0], ())),
        _environment(ctx, words),
        _see_also(ctx, words),
    )


def _options(ctx: click.Context) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """The command's own options, and the global ones."""
    own: list[Item] = []
    shared: list[Item] = []
    for param in ctx.command.get_params(ctx):
        record = param.get_help_record(ctx) if isinstance(param, click.Option) else None  # the usage names arguments
        if record:
            (shared if param.name in Options._fields else own).append(Item(*record))
    return tuple(own), tuple(shared)


def _commands(ctx: click.Context) -> tuple[Item, ...]:
    return tuple(Item(*summary) for summary in ctx.command.summaries(ctx)) if isinstance(ctx.command, Family) else ()


def _exits(ctx: click.Context) -> tuple[Item, ...]:
    """Every code; a group has what its commands may end with."""
    commands = [below.command for below in contexts(ctx) if isinstance(below.command, Helped)]
    used = {code for command in commands for code in command.exits} | {OK, *FAILURE}
    alone = commands[0].exits if len(commands) == 1 else _OF_ANY if DRIFTED in used else {}
    said = {OK: "done", **FAILURE, **alone}
    rows = tuple(Item(str(code), said[code]) for code in sorted(used))
    params = (param for command in commands if isinstance(command, click.Command) for param in command.params)
    formats = {one for param in params if param.name == "fmt" for one in getattr(param.type, "choices", ())}
    return (*rows, *((_NAGIOS,) if "nagios" in formats else ()), _BY_SIGNAL)


def _environment(ctx: click.Context, words: str) -> tuple[Item, ...]:
    params = {param.name: param for one in (ctx.find_root(), ctx) for param in one.command.params if param.envvar}
    rows = [Item(str(one.envvar), f"As {one.opts[-1]}, which overrides it.") for one in params.values()]
    probes = words.startswith(("probe", "preflight", "check", "monitor"))
    return (*rows, *_ENVIRONMENT, *((_PROBE_VARIABLE,) if probes else ()))


def _see_also(ctx: click.Context, words: str) -> tuple[str, ...]:
    named = [ctx.parent.command_path] if ctx.parent else []
    named += [f"{ctx.command_path} {command.term}" for command in _commands(ctx)]
    named += [f"{PROGRAM} {one}" for circle in _CIRCLES if words in circle for one in circle]
    named += [PROGRAM, f"{PROGRAM}-probe"] if words.startswith("probe") else [PROGRAM]
    return tuple(name for name in dict.fromkeys(named) if name != ctx.command_path)
