"""The console script: what must be done before anything large is imported."""

from __future__ import annotations

import gc


def main() -> None:
    """Runs the command line, and does not return."""
    gc.disable()  # a short-lived process: collecting cycles, of the imports' above all, costs more than it frees
    from tunectl.cli.main import main as run

    run()
