"""The console script. It has a file of its own because it must run before anything large is imported."""

from __future__ import annotations

import gc
import signal
import sys


def main() -> None:
    """Runs the command line, and does not return."""
    gc.disable()  # a short process: collecting cycles, mostly of the imports, costs more than it frees
    heeds = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not so below nohup
    if heeds:  # in an import Ctrl-C would be a traceback
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from tunectl.cli.main import main as run
    except ModuleNotFoundError as error:
        from tunectl.extras import broken

        sys.exit(f"tunectl: {broken(error)}")
    if heeds:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()
