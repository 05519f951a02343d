"""The console script. It has a file of its own because it must run before anything large is imported."""

import gc
import os
import resource
import signal
import sys

# What a limit on the address space has to leave us: `show` of a small host takes 18 MB. Where memory ends among
# handlers of errors CPython 3.11 calls itself for one more MemoryError until its stack ends too, and no line is said.
_NEEDED_BYTES = 16 << 20

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
        for name in os.environ.keys() - _KEPT:
            if not name.startswith("LC_"):
                del os.environ[name]
    if lacking := _lacking_memory():
        sys.exit(f"tunectl: {lacking}")
    try:
        _run()
    except Exception as error:
        if "TUNECTL_DEBUG" in os.environ:
            raise
        _say(error)
        os._exit(1)


def _lacking_memory() -> str:
    """What is wrong with the limit on our address space (setrlimit(2), RLIMIT_AS), or "" where it leaves enough."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return ""
    try:
        with open("/proc/self/statm", "rb", 0) as stream:
            left = limit - int(stream.read().split()[0]) * resource.getpagesize()
    except OSError:  # without /proc nothing tells
        return ""
    if left >= _NEEDED_BYTES:
        return ""
    leaves, needs = (f"{value >> 20} MiB" for value in (max(0, left), _NEEDED_BYTES))
    return f"the limit on the address space (ulimit -v) leaves {leaves}, and tunectl needs {needs} or more"


def _say(error: Exception) -> None:
    """One line that needs no import, no buffer and no open file."""
    said = f"{type(error).__name__}: {error}".removesuffix(": ")
    os.write(2, b"tunectl: %s\n" % said.encode("unicode_escape"))


def _run() -> None:
    gc.disable()  # a short process: collecting cycles, mostly of the imports, costs more than it frees
    heeds = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not so below nohup
    if heeds:  # in an import Ctrl-C would be a traceback
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tunectl.installed import broken, stranger

    if among_us := stranger():
        sys.exit(f"tunectl: {among_us}")
    try:
        from tunectl.cli.main import main as run
    except ModuleNotFoundError as error:
        sys.exit(f"tunectl: {broken(error)}")
    if heeds:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()
