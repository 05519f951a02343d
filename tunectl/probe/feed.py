"""`feed`, market data from a socket to a book, stage by stage: within this host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tunectl.host.cpusets import read_scope_facts
from tunectl.host.sysroot import Sysroot
from tunectl.probe.feed_explain import explained_feed
from tunectl.probe.feed_request import FeedRequest
from tunectl.probe.feed_run import FeedRun


def run_feed(request: FeedRequest, on_progress: Callable[[str], None]) -> dict[str, Any]:
    """The tunectl.probe.feed/1 document; `on_progress` is handed a line for each case.

    Ctrl-C ends the measuring early, and the result so far comes back with `interrupted` true. TunectlError with the
    program's own reason when it fails; UsageError for a wrong request.
    """
    run = FeedRun(request, read_scope_facts(Sysroot()), on_progress)
    raw = run.measure()
    result = explained_feed(raw, run.without_stamps(raw), request.replay)
    result["warnings"] = [*run.notes, *result["warnings"]]
    return result
