"""tunectl knobs"""

import click

from tunectl.cli.command import DATA, emit, open_root, tunectl_command
from tunectl.cli.helped import OK, Example
from tunectl.cli.options import Options
from tunectl.cli.values import knobs, one_of
from tunectl.errors import UsageError
from tunectl.host.identity import read_identity
from tunectl.knobs import KNOBS
from tunectl.tuning.catalogue import Catalogue, catalogue


@tunectl_command(
    formats=(*DATA, "markdown"),
    examples=(
        Example("Every knob in one line:", "tunectl knobs"),
        Example("One knob: why, how, from which source, at which risk:", "tunectl knobs irq.affinity"),
        Example("A whole facility:", "tunectl knobs mm"),
    ),
)
@click.argument("name", required=False, shell_complete=one_of(knobs))
def command(options: Options, name: str | None) -> int:
    """The catalogue: meaning, mechanism, source, risk, lifetime. NAME: one knob, or a facility."""
    rows = [row for row in catalogue().knobs if name in (None, row.name, row.facility)]
    if not rows:
        facilities = ", ".join(dict.fromkeys(knob.facility for knob in KNOBS.values()))
        raise UsageError(f"there is no knob '{name}'", f"facilities are {facilities}; `tunectl knobs` lists all")
    emit(options, "knobs", read_identity(open_root(options)), Catalogue(rows))
    return OK
