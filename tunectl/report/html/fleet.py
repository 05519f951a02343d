"""What the fleet's page says: a tunectl.fleet/1 body turned into what its template shows. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Any

from tunectl.command import as_data
from tunectl.report.charts import LogScale
from tunectl.report.escape import printable
from tunectl.report.hosts import (
    FEW_CAUSES,
    MEANS,
    MISSING,
    OWN_WORDS,
    STATES,
    causes,
    group_name,
    in_short,
    middle,
    named,
    odd_hosts,
    state_of,
    to_do,
    word,
)
from tunectl.wording import MEASURES, natural, plural, times, written

_LOOKS = {"go": "good", "no-go": "bad"}
_PLOTTED = ("p99_9_ns", "max_ns")
_WIDTH = 960
_CELLS = 60  # hosts with their names on the first screen; of more each is a square, and the script has their names
_LISTED = 200  # hosts in the table of a larger fleet, the worst first: the script pages through all
_SQUARES = (10, 100)  # side by side, of a rack and of a fleet without racks
_NOTES = 20


def fleet_view(body: Mapping[str, Any]) -> dict[str, Any]:
    """Every section of the page. Of a host that has one of its own, `pages` has the address."""
    pages, hosts = body.get("pages", {}), body["hosts"]
    odd = {(one["host"], one["measure"]) for one in body["outliers"]}
    rows = [_row(host, odd, pages) for host in hosts[:_LISTED]]
    racks = _racks(hosts)
    strange = {host for host, _ in odd}
    failing = [_failing(body, state) for state in STATES[:-1] if named(body["hosts"], state)]
    unlike = [one for _, found in odd_hosts(body["outliers"]) for one in found]
    return {
        "session": body["session"],
        "word": word(body["verdict"]),
        "look": _look(body["verdict"]),
        "asked": plural(len(body["hosts"]), "host") + " asked",
        "means": MEANS.get(body["verdict"], ""),
        "warnings": body["warnings"],
        "todo": [
            {"what": one.what, "is_command": one.is_command, "said": f"{one.said}: {in_short(one.hosts)}"}
            for one in to_do(body)
            if not one.own_words
        ],
        "own_words": [{"hosts": in_short(one.hosts), "what": one.what} for one in to_do(body) if one.own_words],
        "own_words_title": OWN_WORDS,
        "tiles": _tiles(body["hosts"]),
        "racks": [
            _squares(name, [hosts[at] for at in of], strange, len(racks) > 1)
            if len(hosts) > _CELLS
            else {"name": name, "hosts": [_cell(hosts[at], pages, strange) for at in of]}
            for name, of in racks.items()
        ],
        "failing": failing,
        "few": FEW_CAUSES,
        "many": sum(len(one["causes"]) for one in failing) > FEW_CAUSES,
        "score": body["outlier_rule"]["score"],
        "odd": [_odd(one) for one in unlike[:_LISTED]],
        "more_odd": max(len(unlike) - _LISTED, 0),
        "groups": [_group(group, place, body, odd) for place, group in enumerate(body["groups"])],
        "titles": list(MEASURES.values()),
        "rows": rows,
        "more": len(hosts) - len(rows),
        "data": _columns(hosts, racks, odd, pages) if len(hosts) > _CELLS else None,
    }


def _failing(body: Mapping[str, Any], state: str) -> dict[str, Any]:
    """The hosts of one state, and why, each cause once."""
    hosts = named(body["hosts"], state)
    return {
        "word": word(state),
        "look": _look(state),
        "hosts": in_short(hosts),
        "causes": [
            cause._asdict() | {"hosts": in_short(cause.hosts), "percent": round(100 * len(cause.hosts) / len(hosts), 1)}
            for cause in causes(body, state)
        ],
    }


def _cell_look(state: str) -> str:
    return state if state == MISSING else _look(state)


def _tiles(hosts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How many hosts stand how; together they are all hosts."""
    counts = Counter(map(state_of, hosts))
    return [
        {"word": word(state), "count": counts[state], "look": _cell_look(state) if counts[state] else "none"}
        for state in STATES
        if counts[state] or state != "pending-reboot"
    ]


def _racks(hosts: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    """The places of the hosts of each rack, the worst first; R2 before R10, and those of no rack last."""
    racks: dict[str, list[int]] = {}
    for at, host in enumerate(hosts):
        racks.setdefault(host.get("rack", ""), []).append(at)
    return dict(sorted(racks.items(), key=lambda rack: (not rack[0], natural(rack[0]))))


def _cell(host: Mapping[str, Any], pages: Mapping[str, str], strange: Set[str]) -> dict[str, Any]:
    """A host with its name and its worst figure."""
    state, longest = state_of(host), (host["measured"] or {}).get("max_ns")
    return {
        "name": host["name"] or "(no name)",
        "look": _cell_look(state),
        "odd": host["name"] in strange,
        "page": pages.get(host["name"], ""),
        "said": f"longest {written('max_ns', longest)}" if longest is not None else word(state),
    }


def _squares(name: str, hosts: Sequence[Mapping[str, Any]], strange: Set[str], is_rack: bool) -> dict[str, Any]:
    """A rack of many: the places of each look, and of those that are framed, being unlike their peers."""
    states = [*map(state_of, hosts)]
    places: dict[str, list[int]] = {}
    for at, state in enumerate(states):
        places.setdefault(_cell_look(state), []).append(at)
    places["strange"] = [at for at, host in enumerate(hosts) if host["name"] in strange]
    said = ", ".join(f"{count:,} {word(state)}" for state, count in Counter(states).items())
    return {"name": name, "wide": _SQUARES[0 if is_rack else 1], "count": len(hosts), "places": places, "said": said}


def _columns(
    hosts: Sequence[Mapping[str, Any]],
    racks: Mapping[str, Sequence[int]],
    odd: Set[tuple[str, str]],
    pages: Mapping[str, str],
) -> dict[str, Any]:
    """The table's texts for the script, column by column: each text once, and for each host its place."""
    rows = [_row(host, odd, pages) for host in hosts]
    lines = ([row["name"], row["word"], *(cell["text"] for cell in row["cells"]), *row["rest"]] for row in rows)
    texts = [[printable(text) for text in column] for column in zip(*lines, strict=True)]
    places = [{text: place for place, text in enumerate(dict.fromkeys(column))} for column in texts]
    return {
        "columns": [
            [list(known), [known[text] for text in column]] for known, column in zip(places, texts, strict=True)
        ],
        "looks": {row["word"]: row["look"] for row in rows},
        "odd": [
            [at, 2 + place] for at, row in enumerate(rows) for place, cell in enumerate(row["cells"]) if cell["odd"]
        ],
        "pages": [row["page"] for row in rows] if pages else [],
        "racks": [*racks.values()],
    }


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


def _row(host: Mapping[str, Any], odd: Set[tuple[str, str]], pages: Mapping[str, str]) -> dict[str, Any]:
    measured, state = host["measured"] or {}, state_of(host)
    return {
        "name": host["name"] or "(no name)",
        "page": pages.get(host["name"], ""),
        "place": STATES.index(state) if state in STATES else 0,
        "word": word(state),
        "look": _look(state),
        "cells": [{"text": written(name, measured.get(name)), "odd": (host["name"], name) in odd} for name in MEASURES],
        "rest": [
            as_data(host["isolated"] or "", "-"),
            host.get("rack", ""),
            as_data((host["host"] or {}).get("kernel") or "", "-"),
        ],
    }


def _group(group: Mapping[str, Any], place: int, body: Mapping[str, Any], odd: Set[tuple[str, str]]) -> dict[str, Any]:
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
        "said": said + in_short(group["hosts"]),
        "plots": plots,
        "notes": group["notes"][:_NOTES],
        "more_notes": max(len(group["notes"]) - _NOTES, 0),
    }


def _plot(
    ident: str, measure: str, usual: Mapping[str, Any], values: Mapping[str, float | None], odd: Set[tuple[str, str]]
) -> dict[str, Any]:
    """A stroke for each host on a logarithmic axis; the usual range is shown behind them."""
    known = {host: max(value, usual["floor"]) for host, value in values.items() if value is not None}
    low, high = usual["low"], usual["high"]
    axis = LogScale.over(min(low, *known.values()), max(high, *known.values()), 4, _WIDTH - 4)
    strange = [host for host in known if (host, measure) in odd]
    beyond_it = frozenset(strange)
    marks = [{"at": axis.at(value), "label": written(measure, value)} for value in axis.decades()]
    beyond = f"; beyond what is usual: {in_short(strange)}" if strange else ""
    return {
        "id": ident,
        "title": MEASURES[measure],
        "width": _WIDTH,
        "count": len(known),
        "said": f"median {middle(measure, usual)}, usual up to {written(measure, usual['high'])}{beyond}",
        "median": middle(measure, usual),
        "high": written(measure, usual["high"]),
        "from": axis.at(low),
        "span": round(axis.at(high) - axis.at(low), 1),
        "marks": marks,
        "hosts": "".join(f"M{axis.at(value)},6v18" for host, value in known.items() if host not in beyond_it),
        "odd": "".join(f"M{axis.at(known[host])},2v26" for host in strange),
    }
