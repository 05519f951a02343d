"""tunectl threads"""

import os

import click
import msgspec

from tunectl.cli.command import emit, open_root, stay_off, tunectl_command, write_new
from tunectl.cli.helped import OK, Example, Family
from tunectl.cli.options import Options
from tunectl.cli.values import declared_threads, one_of
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.identity import read_identity
from tunectl.tuning.inspection import read_config
from tunectl.tuning.threadunit import drop_in

_EXAMPLES = (
    Example(
        "The drop-in for the thread that the host file declares as md-receiver:", "tunectl threads unit md-receiver"
    ),
    Example("Keep it in a file:", "tunectl threads unit md-receiver --output 50-tunectl.conf"),
)


@click.group("threads", cls=Family, examples=_EXAMPLES[:1])
def command() -> None:
    """The site's own trading threads, as [[threads]] of the host file declares them."""


@tunectl_command(name="unit", examples=_EXAMPLES)
@click.argument("name", shell_complete=one_of(declared_threads))
@click.option("--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write the drop-in there.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def unit(options: Options, name: str, output: str | None, force: bool) -> int:
    """Print a systemd drop-in that runs the unit of the declared thread NAME as declared.

    Its comments say where it belongs, and what is declared that systemd cannot do.
    """
    root = open_root(options)
    config = read_config(options.host_path, read_scope_facts(root), root)
    stay_off(root, config.scope.isolated)
    knobs = {setting.knob for setting in config.settings}
    made = drop_in(name, config.threads, config.scope, knobs, config.origin)
    if output is not None:
        write_new(output, made.text, force=force)
        made = msgspec.structs.replace(made, written=os.path.abspath(output))
    emit(options, "threads.unit", read_identity(root), made)
    return OK


command.add_command(unit)
