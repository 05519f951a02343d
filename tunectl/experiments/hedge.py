"""`hedge`, a second copy of each late request: does it help, and where does it break down?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tunectl.experiments.hedge_explain import explained_hedge
from tunectl.experiments.hedge_request import HedgeRequest
from tunectl.experiments.hedge_run import HedgeRun
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.sysroot import Sysroot


def run_hedge(request: HedgeRequest, on_progress: Callable[[str], None]) -> dict[str, Any]:
    """The tunectl.probe.hedge/1 document; `on_progress` is handed a line for each case.

    Ctrl-C ends the measuring early, and the result so far comes back with `interrupted` true. TunectlError with the
    program's own reason when it fails; UsageError for a wrong request.
    """
    run = HedgeRun(request, read_scope_facts(Sysroot()), on_progress)
    result = explained_hedge(run.measure())
    result["warnings"] = [*run.notes, *result["warnings"]]
    return result
