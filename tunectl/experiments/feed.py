"""`feed`, market data from a socket to a book, stage by stage: within this host, or to another one and back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from tunectl.errors import TunectlError
from tunectl.experiments.feed_explain import RoundTrip, explained_feed
from tunectl.experiments.feed_request import FeedRequest
from tunectl.experiments.feed_run import FeedRun, Way, far_words
from tunectl.experiments.pair_hosts import serve_pair
from tunectl.experiments.pair_link import Link, split_address
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.sysroot import Sysroot


def run_feed(request: FeedRequest, on_progress: Callable[[str], None]) -> dict[str, Any]:
    """The tunectl.probe.feed/1 document; `on_progress` is handed a line for each case.

    Ctrl-C ends the measuring early, and the result so far comes back with `interrupted` true. TunectlError with the
    program's own reason when it fails, or where the other host cannot be reached; UsageError for a wrong request.
    """
    if request.connect:
        split_address("--connect", request.connect)
    run = FeedRun(request, read_scope_facts(Sysroot()), on_progress)
    if not request.connect:
        return _measured(run, None)
    with closing(Link("feed", request.connect)) as link:
        try:
            way = Way(link, link.interface())
        except OSError as error:
            raise TunectlError(f"--connect {request.connect}: no route leads there: {error.strerror}") from error
        return _measured(run, way)


def serve_feed(request: FeedRequest, on_line: Callable[[str], None]) -> None:
    """Is the other host until Ctrl-C, as serve_pair()."""
    serve_pair("feed", request, far_words, on_line)


def _measured(run: FeedRun, way: Way | None) -> dict[str, Any]:
    raw = run.measure(way)
    trip = RoundTrip(way.link.peer, way.interface) if way else None
    result = explained_feed(raw, run.without_stamps(raw, way), run.request.replay, trip)
    result["warnings"] = [*run.notes, *result["warnings"]]
    return result
