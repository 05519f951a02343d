"""Programs in the place of stress-ng, each wrong in one way."""

from pathlib import Path

_YAML = """metrics:
    - stressor: stream
      bogo-ops: {stream}
      user-time: 0.5
      system-time: 0.25
      max-rss: 1024
    - stressor: timer
      bogo-ops: {timer}
"""
# A child that works, and an end on SIGTERM; `figures` is what it writes then.
_WORKS = """#!/usr/bin/env python3
import os, signal, sys, time
if "--version" in sys.argv:
    print("stress-ng, version 0.99.01 (made up)")
    sys.exit()
figures = {figures!r}
def end(*_):
    open(sys.argv[sys.argv.index("--yaml") + 1], "w").write(figures)
    {last}
signal.signal(signal.SIGTERM, end)  # before its child works, and with it the load
{first}
if not os.fork():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while True:
        pass
while True:
    time.sleep(1)
"""
_SILENT = """#!/bin/sh
[ "$1" = --version ] && exit
sleep 60
"""
WORKED = _YAML.format(stream=16, timer=9)


def works(figures: str = WORKED, first: str = "", last: str = "os.killpg(0, 9) if 0 else os._exit(0)") -> str:
    """One that works; its child is left to be killed."""
    return _WORKS.format(figures=figures, first=first, last=last)


WHO = "who"  # the file, among its own, in which one says what may be killed, and what ends behind it
_TOLD = f"""
with open(sys.argv[sys.argv.index("--temp-path") + 1] + "/{WHO}", "w") as file:
    file.write(f"{{os.getpid()}} {{os.getppid()}}")
"""

# name -> (the program, what is said of it)
BROKEN = {
    "ends at once": ("#!/bin/sh\necho 'no such stressor' >&2\nexit 2\n", "stress-ng has ended: no such stressor"),
    "stands and is silent": (_SILENT, "stress-ng took no CPU time"),
    "ends while it is measured": (works(first=_TOLD), "stress-ng has ended: it was killed by SIGALRM"),
    "is on another CPU": (
        works(first="os.sched_setaffinity(0, range(os.cpu_count()))"),
        "may run on CPU",
    ),
    "says nothing": (works(""), "stress-ng names no work of memory, timers"),
    "skips a load": (works(_YAML.format(stream=16, timer=0)), "stress-ng names no work of timers"),
    "fails": (works(last="os._exit(2)"), "stress-ng failed (exit status 2)"),
}


def put(place: Path, text: str) -> Path:
    """The program as a file."""
    path = place / "stress-ng"
    path.write_text(text)
    path.chmod(0o755)
    return path
