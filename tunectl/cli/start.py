"""The console script. It has a file of its own because it must run before anything large is imported."""

from __future__ import annotations

import gc


def main() -> None:
    """Runs the command line, and does not return."""
    gc.disable()  # a short process: collecting cycles, mostly of the imports, costs more than it frees
    from tunectl.cli.main import main as run

    run()
