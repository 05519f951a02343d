"""tunectl snapshot"""

from contextlib import suppress

import click

from tunectl.cli.command import check_output, emit, open_root, stay_off, tunectl_command
from tunectl.cli.helped import OK, Example
from tunectl.cli.options import Options
from tunectl.errors import TunectlError
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.identity import read_identity
from tunectl.host.recording import record
from tunectl.knobs import files_read
from tunectl.tuners.table import tuner_units
from tunectl.tuning.inspection import read_config


@tunectl_command(
    examples=(
        Example("Record this host:", "sudo tunectl snapshot -o tx-01.tar.gz"),
        Example("Unpack and read it elsewhere:", "mkdir tx-01 && tar -xf tx-01.tar.gz -C tx-01"),
        Example("", "tunectl show --root tx-01"),
    ),
)
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), metavar="FILE", help="The archive.")
def command(options: Options, output: str) -> int:
    """Record this host's files as one archive (.tar.gz) that --root accepts when unpacked."""
    root = open_root(options)
    check_output(output)
    facts = read_scope_facts(root)
    quiet = facts.quiet  # the CPUs that must not be interrupted: the kernel's isolated ones, and the host file's
    with suppress(TunectlError):  # a host file that does not fit is a good reason to send a snapshot
        quiet |= read_config(options.host_path, facts, root).scope.isolated
    stay_off(root, quiet)
    try:
        summary = record(root, output, quiet, tuner_units(), files_read())
    except OSError as error:
        raise TunectlError(f"cannot write {output}: {error.strerror}") from error
    emit(options, "snapshot", read_identity(root), summary)
    return OK
