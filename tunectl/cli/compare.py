"""tunectl compare"""

from pathlib import Path

import click

from tunectl.cli.command import emit, open_root, tunectl_command
from tunectl.cli.helped import OK, Example
from tunectl.cli.options import Options
from tunectl.compare.chance import CONFIDENCE
from tunectl.compare.compared import compared
from tunectl.errors import UsageError
from tunectl.host.identity import read_identity
from tunectl.probe.document import read_document


@tunectl_command(
    examples=(
        Example("What did the tuning bring?", "tunectl compare before.json after.json"),
        Example("With wider bounds:", "tunectl compare --confidence 0.99 before.json after.json"),
    ),
)
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--confidence", default=CONFIDENCE, show_default=True, metavar="P", help="Of the bounds, 0.5 to 0.9999.")
def command(options: Options, before: Path, after: Path, confidence: float) -> int:
    """Two probe results side by side: percentiles, longest, rate; their ratio, and whether it is more than chance.

    BEFORE and AFTER: what `probe jitter --output`, `probe wake --output` or `preflight --format json` wrote.
    """
    if not 0.5 <= confidence <= 0.9999:
        raise UsageError(f"--confidence {confidence:g}: a share, from 0.5 to 0.9999", "0.95 is usual")
    body = compared(read_document(before), read_document(after), confidence)
    emit(options, "compare", read_identity(open_root(options)), body)
    return OK
