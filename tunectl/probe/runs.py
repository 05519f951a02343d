"""Several runs of the probe, kept together: each is one observation of what differs from run to run."""

import time
from collections.abc import Callable

from tunectl.errors import TunectlError
from tunectl.host.ending import ENDING
from tunectl.shapes import Jitter, JitterRuns
from tunectl.wording import plural
from tunectl.work import Tell, Work


def several(
    count: int, pause_s: float, duration_s: float, measured: Callable[[Tell], Jitter], tell: Tell
) -> JitterRuns:
    """`count` results of `measured`, each of `duration_s`, `pause_s` apart.

    Ctrl-C, and a run that fails, end it with the whole runs so far; TunectlError where there is none, and for a second
    Ctrl-C.
    """
    runs: list[Jitter] = []
    ended = ""
    while len(runs) < count and not ended:

        def numbered(work: Work, number: int = len(runs) + 1) -> None:
            tell(work.within(f"run {number} of {count}: ", (count - number) * (duration_s + pause_s)))

        try:
            if runs and pause_s:
                numbered(Work("a pause before it", pause_s + duration_s))
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
        if not run.interrupted or not runs:
            runs.append(run)
        ended = "interrupted" if run.interrupted or (ENDING.is_wanted and len(runs) < count) else ""
    warnings = [f"only {len(runs)} of {count} runs: {ended}"] if len(runs) < count else []
    first = runs[0]
    return JitterRuns(
        tunectl_version=first.tunectl_version,
        host=first.host,
        at=first.at,
        pause_s=pause_s,
        warnings=warnings,
        runs=runs,
    )
