"""What the fleet's page says: a tunectl.fleet/1 body turned into what its template shows. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tunectl.command import as_data
from tunectl.report.charts import LogScale
from tunectl.report.hosts import (
    MEANS,
    MEASURES,
    OWN_WORDS,
    VERDICTS,
    causes,
    folded,
    group_name,
    named,
    odd_hosts,
    times,
    to_do,
    word,
)
from tunectl.wording import plural, written

_LOOKS = {"go": "good", "no-go": "bad"}
_PLOTTED = ("p99_9_ns", "max_ns")
_WIDTH = 960
_MISSING = "missing"  # of a host without a document; its verdict is unknown
_TILES = (
    ("no-go", "NO-GO"),
    ("unknown", "UNKNOWN"),
    (_MISSING, "missing"),
    ("pending-reboot", "pending reboot"),
    ("go", "GO"),
)


def fleet_view(body: Mapping[str, Any]) -> dict[str, Any]:
    """Every section of the page. Of a host that has one of its own, `pages` has the address."""
    pages = body.get("pages", {})
    odd = {(one["host"], one["measure"]) for one in body["outliers"]}
    return {
        "session": body["session"],
        "word": word(body["verdict"]),
        "look": _look(body["verdict"]),
        "asked": plural(len(body["hosts"]), "host") + " asked",
        "means": MEANS.get(body["verdict"], ""),
        "warnings": body["warnings"],
        "todo": [
            {"what": one.what, "is_command": one.is_command, "said": f"{one.said}: {', '.join(folded(one.hosts))}"}
            for one in to_do(body)
            if not one.own_words
        ],
        "own_words": [
            {"hosts": ", ".join(folded(one.hosts)), "what": one.what} for one in to_do(body) if one.own_words
        ],
        "own_words_title": OWN_WORDS,
        "tiles": _tiles(body["hosts"]),
        "racks": _racks(body["hosts"], pages, {host for host, _ in odd}),
        "failing": [
            _failing(body, verdict) for verdict in VERDICTS if verdict != "go" and named(body["hosts"], verdict)
        ],
        "score": body["outlier_rule"]["score"],
        "odd": [_odd(one) for _, found in odd_hosts(body["outliers"]) for one in found],
        "groups": [_group(group, place, body, odd) for place, group in enumerate(body["groups"])],
        "titles": list(MEASURES.values()),
        "rows": [_row(host, odd, pages) for host in body["hosts"]],
    }


def _failing(body: Mapping[str, Any], verdict: str) -> dict[str, Any]:
    """The hosts of one verdict, and why, each cause once."""
    hosts = named(body["hosts"], verdict)
    return {
        "word": word(verdict),
        "look": _look(verdict),
        "hosts": ", ".join(folded(hosts)),
        "causes": [
            {"title": cause.title, "severity": cause.severity, "said": cause.said, "example": cause.example}
            | {
                "hosts": ", ".join(folded(cause.hosts)),
                "percent": round(100 * len(cause.hosts) / len(hosts), 1),
            }
            for cause in causes(body, verdict)
        ],
    }


def _state(host: Mapping[str, Any]) -> str:
    """Its verdict, and whether it left a document at all."""
    return str(host["verdict"]) if host["answer"] == "document" else _MISSING


def _cell_look(state: str) -> str:
    return state if state == _MISSING else _look(state)


def _tiles(hosts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How many hosts stand how; together they are all hosts."""
    counts = Counter(map(_state, hosts))
    return [
        {"word": title, "count": counts[state], "look": _cell_look(state) if counts[state] else "none"}
        for state, title in _TILES
        if counts[state] or state != "pending-reboot"
    ]


def _racks(hosts: Sequence[Mapping[str, Any]], pages: Mapping[str, str], strange: set[str]) -> list[dict[str, Any]]:
    """Every host as a cell, rack by rack; those of no rack come last."""
    racks: dict[str, list[dict[str, Any]]] = {}
    for host in sorted(hosts, key=lambda host: (not host.get("rack"), host.get("rack", ""))):  # of one, the worst first
        state = _state(host)
        longest = (host["measured"] or {}).get("max_ns")
        racks.setdefault(host.get("rack", ""), []).append(
            {
                "name": host["name"] or "(no name)",
                "look": _cell_look(state),
                "odd": host["name"] in strange,
                "page": pages.get(host["name"], ""),
                "said": f"longest {written('max_ns', longest)}" if longest is not None else dict(_TILES)[state],
            }
        )
    return [{"name": name, "hosts": of} for name, of in racks.items()]


def _look(verdict: str) -> str:
    return _LOOKS.get(verdict, "open")


def _odd(one: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "host": one["host"],
        "measure": MEASURES.get(one["measure"], one["measure"]),
        "value": written(one["measure"], one["value"]),
        "median": written(one["measure"], one["median"]),
        "ratio": times(one["ratio"]),
        "score": f"{one['score']:.3g}",
        "worse": one["worse"],
        "differs": "; ".join(one["differs"]),
    }


def _row(host: Mapping[str, Any], odd: set[tuple[str, str]], pages: Mapping[str, str]) -> dict[str, Any]:
    measured = host["measured"] or {}
    return {
        "name": host["name"] or "(no name)",
        "page": pages.get(host["name"], ""),
        "rack": host.get("rack", ""),
        "place": VERDICTS.index(host["verdict"]) if host["verdict"] in VERDICTS else 0,
        "word": word(host["verdict"]),
        "look": _look(host["verdict"]),
        "cells": [{"text": written(name, measured.get(name)), "odd": (host["name"], name) in odd} for name in MEASURES],
        "isolated": as_data(host["isolated"] or "", "-"),
        "kernel": as_data((host["host"] or {}).get("kernel") or "", "-"),
    }


def _group(group: Mapping[str, Any], place: int, body: Mapping[str, Any], odd: set[tuple[str, str]]) -> dict[str, Any]:
    hosts = {host["name"]: host["measured"] for host in body["hosts"]}
    plots = [
        _plot(f"g{place}-{name}", name, usual, {host: hosts[host][name] for host in group["compared"]}, odd)
        for name in _PLOTTED
        if (usual := group["usual"].get(name))
    ]
    count = len(group["hosts"])
    said = f"{plural(count, 'host')}, {len(group['compared']):,} compared: "
    return {
        "name": group_name(group, as_data),
        "said": said + ", ".join(folded(group["hosts"])),
        "plots": plots,
        "notes": group["notes"],
    }


def _plot(
    ident: str, measure: str, usual: Mapping[str, Any], values: Mapping[str, float | None], odd: set[tuple[str, str]]
) -> dict[str, Any]:
    """A stroke for each host on a logarithmic axis; the usual range is shown behind them."""
    known = {host: max(value, usual["floor"]) for host, value in values.items() if value is not None}
    low, high = usual["low"], usual["high"]
    axis = LogScale.over(min(low, *known.values()), max(high, *known.values()), 4, _WIDTH - 4)
    strange = [host for host in known if (host, measure) in odd]
    marks = [{"at": axis.at(value), "label": written(measure, value)} for value in axis.decades()]
    beyond = f"; beyond what is usual: {', '.join(folded(strange))}" if strange else ""
    return {
        "id": ident,
        "title": MEASURES[measure],
        "width": _WIDTH,
        "count": len(known),
        "said": f"median {written(measure, usual['median'])}, usual up to {written(measure, usual['high'])}{beyond}",
        "median": written(measure, usual["median"]),
        "high": written(measure, usual["high"]),
        "from": axis.at(low),
        "span": round(axis.at(high) - axis.at(low), 1),
        "marks": marks,
        "hosts": "".join(f"M{axis.at(value)},6v18" for host, value in known.items() if host not in strange),
        "odd": "".join(f"M{axis.at(known[host])},2v26" for host in strange),
    }
