"""The console script. It has a file of its own because it must run before anything large is imported."""

import gc
import os
import signal
import sys

# Of a service's environment, what stays: who it is, its language and time zone, and what systemd tells it
# (systemd.exec(5), "Environment Variables Set or Propagated by the Service Manager"; sd_notify(3)). No PATH: what we
# start has one of our own (host/run.py).
_KEPT = frozenset(
    (
        *("HOME", "LOGNAME", "USER", "SHELL", "LANG", "LANGUAGE", "TZ"),
        *("INVOCATION_ID", "SYSTEMD_EXEC_PID", "MANAGERPID", "MAINPID", "JOURNAL_STREAM"),
        *("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"),
        *("RUNTIME_DIRECTORY", "STATE_DIRECTORY", "CACHE_DIRECTORY", "LOGS_DIRECTORY", "CONFIGURATION_DIRECTORY"),
        *("CREDENTIALS_DIRECTORY", "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE", "TRIGGER_UNIT", "TRIGGER_PATH"),
    )
)


def main() -> None:
    """Runs the command line, and does not return. No traceback reaches a user, whatever there is too little of."""
    if sys.flags.ignore_environment:  # as our units start it: then no library of ours heeds it either
        _forget_environment()
    try:
        _run()
    except Exception as error:
        if "TUNECTL_DEBUG" in os.environ:
            raise
        _say(error)
        os._exit(1)


def _forget_environment() -> None:
    for name in os.environ.keys() - _KEPT:
        if not name.startswith("LC_"):
            del os.environ[name]


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
        from tunectl.installed import broken

        sys.exit(f"tunectl: {broken(error)}")
    if heeds:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()
