"""One line on the terminal that says what is being done; nothing where stderr is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tunectl.cli.options import Options


@contextmanager
def progress(options: Options) -> Iterator[Callable[[str], None]]:
    """Yields a function that replaces the line."""
    if options.quiet or not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console  # only for a person who watches
    from rich.text import Text

    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    # Four turns a second: drawing is work on the host that is being measured.
    with console.status("", refresh_per_second=4) as status:
        yield lambda text: status.update(Text(text))
