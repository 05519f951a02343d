"""One host over the sessions, or all sessions in a line each: tunectl.fleet.history/1. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tunectl.fleet.body import hardware_body, host_body, session_body
from tunectl.fleet.judge import Judged, judge
from tunectl.fleet.records import Asked, Session


def history_body(name: str, rounds: Iterable[tuple[Session, Asked]]) -> dict[str, Any]:
    """What became of one host, the oldest session first; `changed` says what is not as it was the time before."""
    rows: list[dict[str, Any]] = []
    before: Judged | None = None
    for session, asked in rounds:
        (judged,) = judge(session, [asked])
        document = asked.document
        row = {**host_body(judged), "hardware": hardware_body(document.hardware) if document else None}
        rows.append({"session": session_body(session), **row, "changed": list(_changed(before, judged))})
        before = judged if document else before  # what is not known has not changed
    files = [row["file"] for row in rows if row["measured"]]
    return {"name": name, "sessions": rows, "compare": files[-2:] if len(files) > 1 else []}


def _changed(before: Judged | None, now: Judged) -> Iterator[str]:
    old, new = before.asked.document if before else None, now.asked.document
    if old is None or new is None:
        return
    if old.hardware != new.hardware:
        yield "hardware"
    pairs: Sequence[tuple[str, Any, Any]] = (
        ("machine's name", old.host.hostname, new.host.hostname),
        ("kernel", old.host.kernel, new.host.kernel),
        ("tunectl", old.tunectl_version, new.tunectl_version),
        ("isolated CPUs", old.isolated, new.isolated),
    )
    for what, was, is_now in pairs:
        if was != is_now:
            yield f"{what}: {was or '?'} before, {is_now or '?'} now"
    if old.host.boot_id != new.host.boot_id:
        yield "rebooted"
