"""A session as a document, tunectl.fleet/1, and one host over the sessions, tunectl.fleet.history/1. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tunectl.command import as_data
from tunectl.fleet.causes import Cause, Told, by_text, rank
from tunectl.fleet.judge import Judged, counts, fleet_verdict, judge, oldest
from tunectl.fleet.peers import FEWEST, SCORE, Group, Odd, groups_of
from tunectl.fleet.records import VERDICTS, Asked, Figures, Session, Summary
from tunectl.fleet.todo import todo_body
from tunectl.shapes import Hardware
from tunectl.wording import few


def fleet_body(session: Session, asked: Iterable[Asked], now: str) -> dict[str, Any]:
    """The fields of tunectl.fleet/1: every host, the worst first, and how each compares with its peers.

    `now`: UTC, RFC 3339.
    """
    judged = judge(session, asked, now)
    groups = groups_of({one.name: one.asked.document for one in judged if one.asked.document})
    place = {host: number for number, group in enumerate(groups) for host in group.hosts}
    odd = [one for group in groups for one in group.odd]
    return {
        "verdict": fleet_verdict(judged),
        "session": session_body(session),
        "counts": {"hosts": len(judged), **counts(judged)},
        "hosts": [host_body(one) | {"group": place.get(one.name)} for one in judged],
        "actions": _todo(judged),
        "causes": causes_body(judged),
        "groups": [_group(group) for group in groups],
        "outliers": [_odd(one) for one in sorted(odd, key=lambda one: -abs(one.figure.score))],
        "outlier_rule": {"score": SCORE, "fewest": FEWEST},
        "warnings": list(_warnings(session, judged, now)),
    }


def causes_body(judged: Iterable[Judged]) -> list[dict[str, Any]]:
    """Why hosts are not GO, each cause once for each verdict: the worst verdict and the most urgent cause first."""
    found: dict[tuple[str, Cause], list[tuple[str, Told]]] = {}
    for one in judged:
        for told in _told(one):
            found.setdefault((one.verdict, told.cause), []).append((one.name, told))
    ordered = sorted(found.items(), key=lambda one: (VERDICTS.index(one[0][0]), *rank(one[0][1]), -len(one[1])))
    return [_cause(verdict, cause, of) for (verdict, cause), of in ordered]


def _told(one: Judged) -> Iterator[Told]:
    """Its causes: those of its document's findings, where its document's reasons count, and every other reason."""
    document = one.asked.document
    own = frozenset(document.reasons) if document else frozenset()
    if document and _counts(one):
        yield from document.told
    left = set(document.unexplained) if document else set()
    yield from by_text((reason for reason in one.reasons if reason in own and reason in left), own_words=True)
    yield from by_text(reason for reason in one.reasons if reason not in own)


def _todo(judged: Iterable[Judged]) -> list[dict[str, Any]]:
    """What to do on the hosts that are not GO."""
    documents = [(one.name, one.asked.document) for one in judged if _counts(one)]
    return todo_body((name, document.todo) for name, document in documents if document)


def _counts(one: Judged) -> bool:
    """Is it judged by what its document says? An old one says nothing of now."""
    document = one.asked.document
    return document is not None and bool(set(document.reasons) & set(one.reasons))


def _cause(verdict: str, cause: Cause, of: Sequence[tuple[str, Told]]) -> dict[str, Any]:
    hosts = list(dict.fromkeys(name for name, _ in of))
    return {
        "verdict": verdict,
        "knob": cause.knob,
        "instances": cause.instances,
        "outcome": cause.outcome,
        "severity": cause.severity,
        "cause": cause.data,
        "own_words": cause.own_words,
        "hosts": hosts,
        "targets": sum(told.targets for _, told in of),
        "texts": len({told.text for _, told in of}),
        "example": {"host": of[0][0], "text": of[0][1].text},
    }


def session_body(session: Session) -> dict[str, Any]:
    """Which round of asking."""
    return {
        "name": session.name,
        "directory": session.directory,
        "at": session.at,
        "selection": session.selection,
    }


def host_body(one: Judged) -> dict[str, Any]:
    """One host. The fields that come from its document are null without one."""
    document = one.asked.document
    return {
        "name": one.name,
        "verdict": one.verdict,
        "answer": one.asked.answer.value,
        "headline": document.headline if document else "",
        "reasons": list(one.reasons),
        "expected": one.asked.expected,
        "file": one.asked.file or None,
        **_of_document(document),
    }


def _of_document(document: Summary | None) -> dict[str, Any]:
    if document is None:
        return dict.fromkeys(("at", "host", "tunectl_version", "isolated", "measured"))
    host = document.host
    return {
        "at": document.at,
        "host": {
            "hostname": host.hostname,
            "kernel": host.kernel,
            "boot_id": host.boot_id,
            "machine": host.machine,
        },
        "tunectl_version": document.tunectl_version,
        "isolated": document.isolated,
        "measured": _measured(document.figures) if document.figures else None,
    }


def _measured(figures: Figures) -> dict[str, Any]:
    return {
        "duration_s": figures.duration_s,
        "threshold_ns": figures.threshold_ns,
        "cpus": figures.cpus,
        "budget": figures.budget,
        **figures.values,
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        "hardware": hardware_body(group.hardware),
        "hosts": list(group.hosts),
        "compared": list(group.compared),
        "usual": {name: spread._asdict() for name, spread in group.usual.items()},
        "notes": list(group.notes),
    }


def hardware_body(hardware: Hardware | None) -> dict[str, Any] | None:
    """As the preflight document has it."""
    return {name: getattr(hardware, name) for name in hardware.__struct_fields__} if hardware else None


def _odd(one: Odd) -> dict[str, Any]:
    return {
        "host": one.host,
        "measure": one.measure,
        "value": one.figure.value,
        "median": one.usual.median,
        "ratio": one.figure.ratio,
        "score": one.figure.score,
        "worse": one.figure.score > 0,
        "differs": list(one.differs),
    }


def _warnings(session: Session, judged: Sequence[Judged], now: str) -> Iterator[str]:
    """What makes the whole report less certain."""
    if not judged:
        yield "no host was asked, so nothing is known"
    unlisted = [one.name for one in judged if not one.asked.expected]
    if not session.hosts:
        if judged:
            yield "no list says who was asked: a host that left no document is missing here"
    elif unlisted:
        yield f"left a document, and was not asked: {', '.join(unlisted)}"
    named = [(one.name, one.asked.document) for one in judged if one.asked.document]
    if since := oldest(session.at, [(name, document.at) for name, document in named], now):
        yield since
    if loose := [(name, ", ".join(map(as_data, document.looser))) for name, document in named if document.looser]:
        yield f"judged by looser limits than their profile has: {_by_terms(loose)}"
    if waived := [(name, str(document.waivers)) for name, document in named if document.waivers]:
        yield f"waivers stand: {_by_terms(waived)}"
    documents = [document for _, document in named]
    yield from _mixed("tunectl", [document.tunectl_version for document in documents])


def _by_terms(hosts: Iterable[tuple[str, str]]) -> str:
    """`4 each on 15 hosts (tx-01, tx-02, tx-03 and 12 more), 2 on tx-47`: hosts on the same terms together."""
    found: dict[str, list[str]] = {}
    for name, terms in hosts:
        found.setdefault(terms, []).append(name)
    return ", ".join(_on(terms, names) for terms, names in found.items())


def _on(terms: str, names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"{terms} on {names[0]}"
    return f"{terms} each on {len(names):,} hosts ({few(names)})"


def _mixed(what: str, values: Sequence[str]) -> Iterator[str]:
    found: Mapping[str, int] = {value: values.count(value) for value in sorted(set(values))}
    if len(found) > 1:
        yield f"several versions of {what}: " + ", ".join(f"{as_data(value, '?')} ({n})" for value, n in found.items())


def history_body(name: str, rounds: Iterable[tuple[Session, Asked]], now: str) -> dict[str, Any]:
    """What became of one host, the oldest session first; `changed` says what is not as it was the time before."""
    rows: list[dict[str, Any]] = []
    before: Judged | None = None
    for session, asked in rounds:
        (judged,) = judge(session, [asked], now)
        document = asked.document
        row = {**host_body(judged), "hardware": hardware_body(document.hardware) if document else None}
        own = frozenset(document.reasons) if document else frozenset()
        row["own_words"] = sum(reason in own for reason in judged.reasons)
        rows.append({"session": session_body(session), **row, "changed": list(_changed(before, judged))})
        before = judged if document else before  # a host without a document keeps the one before for comparison
    files = [row["file"] for row in rows if row["measured"]]
    return {"name": name, "sessions": rows, "compare": files[-2:] if len(files) > 1 else []}


def _changed(before: Judged | None, now: Judged) -> Iterator[str]:
    old, new = before.asked.document if before else None, now.asked.document
    if old is None or new is None:
        return
    if old.hardware != new.hardware:
        yield "hardware"
    pairs: Sequence[tuple[str, str, str]] = (
        ("machine's name", old.host.hostname, new.host.hostname),
        ("kernel", old.host.kernel, new.host.kernel),
        ("tunectl", old.tunectl_version, new.tunectl_version),
        ("isolated CPUs", old.isolated, new.isolated),
    )
    for what, was, is_now in pairs:
        if was != is_now:
            yield f"{what}: {as_data(was, '?')} before, {as_data(is_now, '?')} now"
    if old.host.boot_id != new.host.boot_id:
        yield "rebooted"
