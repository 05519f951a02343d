"""What a shell asks of the program when TAB is pressed. Loaded only then.

A shell hands over the line up to the cursor, and is given a line for each value: its kind (plain, file, dir), the
value, a few words about it, with tabs between. Only values that no shell and no terminal reads otherwise are given:
what another program named (an interface, a session) may hold anything, and what is completed is executed.
"""

from __future__ import annotations  # click 8.2 has types without parameters

import os
import re

import click
from click.shell_completion import ShellComplete, add_completion_class, split_arg_string

from tunectl.installed import read_shipped
from tunectl.report.escape import printable

VARIABLE = "_TUNECTL_COMPLETE"
_SAFE = re.compile(r"[A-Za-z0-9_.,:@%+/=-]{1,200}")  # no character that a shell, or an option's parser, would take


def is_safe(value: str) -> bool:
    """Can it be put on a command line as it stands?"""
    return bool(_SAFE.fullmatch(value))


def complete(cli: click.Group) -> None:
    """Answers the shell."""
    shell, _, what = os.environ[VARIABLE].partition("_")
    kind = next((one for one in _SHELLS if one.name == shell), None)
    if kind is None:
        return
    for one in _SHELLS:
        add_completion_class(one)
    made = kind(cli, {}, "tunectl", VARIABLE)
    if what == "source":
        click.echo(made.source(), nl=False)
    if what == "complete":
        click.echo(made.complete())


def script(shell: str, program: str = "tunectl") -> str:
    """The shell's own part: a file that a package installs. `program` is a word of a shell."""
    return read_shipped(f"completions.{shell}").replace("PROGRAM", program)


class _Shell(ShellComplete):
    """What all three have in common: one protocol."""

    source_template = ""

    def source(self) -> str:
        """The script, which starts this very program."""
        import shlex

        from tunectl.cli.options import Options

        return script(self.name, shlex.quote(Options().program))

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor, and the one that it ends."""
        line = os.environ.get("_TUNECTL_LINE", "")
        words = split_arg_string(line)[1:]
        ends = not words or (line[-1:].isspace() and not line.endswith("\\ "))
        return (words, "") if ends else (words[:-1], words[-1])

    def complete(self) -> str:
        """A line for each value."""
        words, last = self.get_completion_args()
        before = "".join(last.partition("=")[:2]) if last.startswith("--") and "=" in last else ""
        lines = []
        for item in self.get_completions(words, last):
            if item.type in ("file", "dir"):
                lines.append(f"{item.type}\t\t")
            elif is_safe(str(item.value)):
                about = printable(" ".join((item.help or "").split()))
                lines.append(f"plain\t{self.shown(before + str(item.value), last)}\t{about}")
        return "\n".join(lines)

    def shown(self, value: str, last: str) -> str:
        """The value as this shell expects it, where `last` is what stands there."""
        del last
        return value


class Zsh(_Shell):
    name = "zsh"


class Fish(_Shell):
    name = "fish"


class Bash(_Shell):
    """Bash breaks words at = and :, too, and replaces only the last piece."""

    name = "bash"

    def shown(self, value: str, last: str) -> str:
        """Without the pieces that stand there already."""
        breaks = os.environ.get("_TUNECTL_BREAKS", "=:")
        return value[max((last.rfind(char) for char in breaks if char in "=:"), default=-1) + 1 :]


_SHELLS: tuple[type[_Shell], ...] = (Bash, Zsh, Fish)
