"""The console script. It has a file of its own because it must run before anything large is imported."""

from __future__ import annotations

import gc
import os
import signal
import sys


def main() -> None:
    """Runs the command line, and does not return. No traceback reaches a user, whatever there is too little of."""
    try:
        _run()
    except Exception as error:
        if "TUNECTL_DEBUG" in os.environ:
            raise
        _say(error)
        os._exit(1)


def _say(error: Exception) -> None:
    """One line that needs no import, no buffer and no open file."""
    said = f"{type(error).__name__}: {error}".removesuffix(": ")
    os.write(2, b"tunectl: %s\n" % said.encode("unicode_escape"))


def _run() -> None:
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
