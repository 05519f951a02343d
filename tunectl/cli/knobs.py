"""tunectl knobs"""

import click

from tunectl.cli.command import DATA, emit, open_root, tunectl_command
from tunectl.cli.helped import OK, Example
from tunectl.cli.options import Options
from tunectl.cli.values import knobs, one_of
from tunectl.errors import UsageError
from tunectl.host.identity import read_identity
from tunectl.tuning.catalogue import Catalogue, catalogue, found, nearest


@tunectl_command(
    formats=(*DATA, "markdown"),
    examples=(
        Example("Every knob in one line:", "tunectl knobs"),
        Example("One knob: why, how, from which source, at which risk:", "tunectl knobs irq.affinity"),
        Example("A whole facility:", "tunectl knobs mm"),
        Example("Which knob writes this file:", "tunectl knobs scaling_governor"),
    ),
)
@click.argument("name", metavar="[WORD]", required=False, shell_complete=one_of(knobs))
def command(options: Options, name: str | None) -> int:
    """The catalogue: meaning, mechanism, source, risk, lifetime.

    WORD: a knob, a facility, a part of a name, a kernel argument, or a file.
    """
    every = catalogue().knobs
    rows = every if name is None else found(every, name)
    if name is not None and not rows:
        meant = nearest(every, name)
        raise UsageError(
            f"there is no knob '{name}'", f"did you mean {meant}?" if meant else "`tunectl knobs` lists all"
        )
    emit(options, "knobs", read_identity(open_root(options)), Catalogue(rows))
    return OK
