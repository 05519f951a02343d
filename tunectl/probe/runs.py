"""Several runs of the probe, kept together: each is one observation of what differs from run to run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tunectl.errors import TunectlError
from tunectl.host.ending import ENDING
from tunectl.wording import plural

SCHEMA = "tunectl.probe.jitter.runs/1"
Tell = Callable[[str], None]


def several(count: int, pause_s: float, measured: Callable[[Tell], dict[str, Any]], tell: Tell) -> dict[str, Any]:
    """The body of a tunectl.probe.jitter.runs/1 document: `count` results of `measured`, `pause_s` apart.

    Ctrl-C, and a run that fails, end it with the whole runs so far; TunectlError where there is none, and for a second
    Ctrl-C.
    """
    runs: list[dict[str, Any]] = []
    ended = ""
    while len(runs) < count and not ended:

        def numbered(text: str, which: str = f"run {len(runs) + 1} of {count}") -> None:
            tell(f"{which}: {text}")

        try:
            with ENDING.awaited():
                time.sleep(pause_s if runs else 0)
            run = measured(numbered)
        except (KeyboardInterrupt, TunectlError) as error:
            if not runs:
                raise
            if ENDING.is_urgent:
                raise TunectlError(
                    f"interrupted again: the run at hand and {plural(len(runs), 'whole run')} are lost"
                ) from error
            ended = str(error) or "interrupted"
            break
        if not run["interrupted"] or not runs:
            runs.append(run)
        ended = "interrupted" if run["interrupted"] or (ENDING.is_wanted and len(runs) < count) else ""
    warnings = [f"only {len(runs)} of {count} runs: {ended}"] if len(runs) < count else []
    header = {name: runs[0][name] for name in ("tunectl_version", "host", "at")}
    return {"schema": SCHEMA, **header, "pause_s": pause_s, "warnings": warnings, "runs": runs}
