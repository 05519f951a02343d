"""What a command says of itself beside its options: examples, and what its exit codes (docs/interface.md) mean.

A group without a table of its own names the commands in it, with the whole of each summary.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import click


class Example(NamedTuple):
    """A command line as it is typed, and what it is for; "" goes on with the example before."""

    does: str
    line: str


class Helped:
    """What both a command and a group have. `exits`: the codes beside 1 and 2, and what they mean here."""

    examples: tuple[Example, ...] = ()
    exits: Mapping[int, str] = {}  # a default that nobody changes

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples. A command line is never broken: it can be copied."""
        del ctx
        if not self.examples:
            return
        with formatter.section("Examples"):
            for example in self.examples:
                if example.does:
                    formatter.write_text(example.does)
                formatter.write(f"{'':{formatter.current_indent + 2}}{example.line}\n")


class Command(Helped, click.Command):
    """A command with examples."""

    def __init__(
        self, *args: Any, examples: tuple[Example, ...] = (), exits: Mapping[int, str] | None = None, **attrs: Any
    ) -> None:
        super().__init__(*args, **attrs)
        self.examples, self.exits = examples, exits or {}


class Family(Helped, click.Group):
    """A group of commands with examples, whose help has the whole first sentence of each."""

    def __init__(self, *args: Any, examples: tuple[Example, ...] = (), **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.examples = examples

    def summaries(self, ctx: click.Context) -> list[tuple[str, str]]:
        """Each command's name and what it does."""
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        return [(name, summary_of(command)) for name, command in found if command]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """The same table; click's own would import every command."""
        from click.shell_completion import CompletionItem

        named = [(name, said) for name, said in self.summaries(ctx) if name.startswith(incomplete)]
        items: list[Any] = [CompletionItem(name, help=said) for name, said in named]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The summaries; click's own table would cut them."""
        with formatter.section("Commands"):
            formatter.write_dl(self.summaries(ctx))


def terminal_width(otherwise: int, descriptor: int = 1) -> int:
    """The columns that COLUMNS or the terminal of this descriptor has, else `otherwise`.

    Without shutil, which is slow to import.
    """
    if given := int(os.environ.get("COLUMNS", 0)):
        return given
    with suppress(OSError):  # standard output is closed, or is no terminal
        return os.get_terminal_size(descriptor).columns or otherwise
    return otherwise


def summary_of(command: click.Command) -> str:
    """The first sentence of its help, or what it says to be its summary."""
    first = " ".join((command.short_help or command.help or "").partition("\n\n")[0].split())
    end = first.find(". ")
    return first if end < 0 else first[: end + 1]


OK = 0
FAILED = 1
USAGE = 2
DRIFTED = 3
REBOOT = 4
NAGIOS_UNKNOWN = 3  # as report/nagios.py has it, for words that must not depend on another import

FAILURE = {FAILED: "could not find out, or the command failed", USAGE: "the command line or the host file is wrong"}
VERDICT = {OK: "compliant", DRIFTED: "drifted", REBOOT: "only a reboot is pending"}
GO = {OK: "GO", DRIFTED: "NO-GO", REBOOT: "only a reboot is pending"}

_BY_VERDICT = {
    "compliant": OK,
    "go": OK,
    "ok": OK,
    "warning": DRIFTED,
    "critical": DRIFTED,
    "drifted": DRIFTED,
    "no-go": DRIFTED,
    "pending-reboot": REBOOT,
    "unreadable": FAILED,
    "unknown": FAILED,
}


def exit_code(verdict: str, fmt: str = "text") -> int:
    """The exit code for a verdict; with the nagios format, that plugin's own."""
    if fmt != "nagios":
        return _BY_VERDICT[verdict]
    from tunectl.report import nagios  # the status line takes its word from there, too

    return nagios.exit_code(verdict)
