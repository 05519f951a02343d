"""`wake`, spinning against sleeping: within this host, and to another one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from tunectl.experiments.pair_hosts import serve_pair
from tunectl.experiments.pair_link import Link, split_address
from tunectl.experiments.wake_explain import explained_wake
from tunectl.experiments.wake_request import WakeRequest
from tunectl.experiments.wake_run import WakeRun, far_words
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.sysroot import Sysroot


def run_wake(request: WakeRequest, on_progress: Callable[[str], None] | None = None) -> dict[str, Any]:
    """The tunectl.probe.wake/1 document; `on_progress` is handed a line for each case.

    Ctrl-C ends the measuring early, and the result so far comes back with `interrupted` true. TunectlError with the
    program's own reason when it fails, or where the other host cannot be reached; UsageError for a wrong request.
    """
    if request.connect:
        split_address("--connect", request.connect)
    run = WakeRun(request, read_scope_facts(Sysroot()), on_progress or _say_nothing)
    if request.connect:
        with closing(Link("wake", request.connect)) as link:
            result = explained_wake(run.measure(link), link.peer)
    else:
        result = explained_wake(run.measure(None))
    result["warnings"] = [*filter(None, [run.placed.note]), *result["warnings"]]
    return result


def serve_wake(request: WakeRequest, on_line: Callable[[str], None]) -> None:
    """Is the other host until Ctrl-C, as serve_pair()."""
    serve_pair("wake", request, far_words, on_line)


def _say_nothing(_: str) -> None:
    pass
