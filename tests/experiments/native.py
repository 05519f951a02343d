"""How the tests of the experiments start the native program."""

import json
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.probe.running import until_named


def words(program: Path | str, experiment: str, *flags: str, **options: object) -> list[str]:
    """The command line of one case; `dirty_kib` is --dirty-kib."""
    named = ((f"--{name.replace('_', '-')}", str(value)) for name, value in options.items())
    return [str(program), experiment, *(f"--{flag}" for flag in flags), *(word for two in named for word in two)]


def document_of(argv: Sequence[str]) -> dict[str, Any]:
    """What a case that can be measured wrote."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def ended_by(number: signal.Signals, argv: Sequence[str], threads: Sequence[str], after_s: float) -> dict[str, Any]:
    """What a case wrote that two signals ended so long after its threads were there."""
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    until_named(child.pid, *threads)
    time.sleep(after_s)  # some messages may go; a busy machine sends none, and that is right as well
    child.send_signal(number)
    child.send_signal(number)
    document: dict[str, Any] = json.loads(child.communicate(timeout=60)[0])
    assert (child.returncode, document["interrupted"]) == (0, True)
    return document
