"""tunectl probe selftest"""

from __future__ import annotations

import click

from tunectl.cli.command import emit, open_root, tunectl_command
from tunectl.cli.exits import FAILED, OK
from tunectl.cli.options import Options
from tunectl.cli.progress import progress
from tunectl.errors import UsageError
from tunectl.host.identity import read_identity
from tunectl.probe.runner import run_selftest


@tunectl_command(name="selftest")
@click.option("--cpu", type=click.IntRange(0), metavar="CPU", help="The CPU to test [the last isolated one].")
def selftest(options: Options, cpu: int | None) -> int:
    """Interrupts a CPU by known lengths at known times: does the probe find them all? Some twelve seconds."""
    root = open_root(options)
    if not root.live:
        raise UsageError("the probe measures this machine: --root makes no sense here")
    with progress(options) as tell:
        tell("injecting known interruptions: some twelve seconds")
        result = run_selftest(cpu)
    emit(options, "probe.selftest", read_identity(root), result)
    return OK if result["passed"] else FAILED
