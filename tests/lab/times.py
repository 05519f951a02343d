"""Where a session's time goes: a line for each command in the guest, each boot and each saved state, where asked for.

CPU seconds are QEMU's own. On a machine with other work they tell more than the clock does.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .vm import Vm

VARIABLE = "TUNECTL_LAB_TIMES"
SHOWN = 200  # characters of a command


@contextmanager
def noted(vm: Vm, what: str) -> Iterator[None]:
    """Append {"test", "what", "seconds", "cpu_s"} to the file that $TUNECTL_LAB_TIMES names."""
    target = os.environ.get(VARIABLE)
    if not target:
        yield
        return
    start, used = time.monotonic(), vm.cpu_s()
    try:
        yield
    finally:
        now = vm.cpu_s()
        row = {
            "test": os.environ.get("PYTEST_CURRENT_TEST", "").rpartition("/")[2],
            "what": what[:SHOWN],
            "seconds": round(time.monotonic() - start, 2),
            "cpu_s": round(now - used if now >= used else now, 2),  # less than before: another QEMU, started meanwhile
        }
        with Path(target).open("a") as file:
            file.write(json.dumps(row) + "\n")
