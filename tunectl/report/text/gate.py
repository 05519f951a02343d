"""The page of `fleet gate`."""

from collections.abc import Mapping
from typing import Any

from tunectl.command import as_data
from tunectl.report.hosts import in_short, tally, word
from tunectl.report.text import screen
from tunectl.report.text.page import VERDICT_STYLES, TextPage, columns, heading, notes, prose
from tunectl.wording import MEASURES, percent, plain, plural

_FEW = 5  # notes without -v
_MEANS = {
    "go": "it may go to all hosts",
    "no-go": "it must not go to more hosts",
    "pending-reboot": "not in force everywhere before a reboot",
    "unknown": "not enough is known to let it go to all hosts",
}


def gate(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.fleet.gate/1 body."""
    verdict, share = str(body["verdict"]), body["share"]
    canary = as_data(body["canary"])
    screen.begin(page, verdict, f"canary {canary}: {_MEANS.get(verdict, '')}", last=f"canary {canary}")
    own = {verdict: len(names) for verdict, names in body["hosts"].items()}
    for side, counts in (("canary", own), ("peers", body["peers"])):
        prose(page, tally({"hosts": sum(counts.values()), **counts}), indent=2, label=f"{side} ".ljust(8))
    level = percent(body["confidence"] * 100)
    heading(page, "Share of NO-GO: ", (word(share["verdict"]), VERDICT_STYLES.get(share["verdict"], "")))
    bounds = f"{percent(share['low_percent'])} to {percent(share['high_percent'])}"
    said = f"{share['no_go']:,} of {plural(share['hosts'], 'host')}, which is {bounds} ({level} bounds)"
    prose(page, f"{said}; permitted are {percent(share['max_no_go_percent'])}", indent=2)
    if share["not_known"]:
        prose(page, f"{plural(share['not_known'], 'host')} neither GO nor NO-GO: each may be a NO-GO", indent=2)
    if share["verdict"] == "unknown":
        prose(page, f"GO takes {plural(share['fewest'], 'host')}, all of them GO, or more", indent=2)
    _figures(page, body, level)
    not_go = [(word(verdict), in_short(names)) for verdict, names in body["hosts"].items() if names and verdict != "go"]
    if not_go:
        heading(page, "Not GO, of the canary", ": `tunectl fleet report` says why")
        columns(page, not_go, indent=2)
    notes(page, body["notes"][: None if page.verbose else _FEW])


def _figures(page: TextPage, body: Mapping[str, Any], level: str) -> None:
    """Each figure of the canary over its peers'."""
    heading(page, "Its figures, how many times those of peers of the same hardware")
    rows = [
        (
            MEASURES.get(row["measure"], row["measure"]),
            plain(row["ratio"]["value"]),
            f"{plain(row['ratio']['low'])} to {plain(row['ratio']['high'])}",
            plain(row["tolerated_ratio"]),
            plain(row["chance"]),
            word(row["verdict"]),
        )
        for row in body["figures"]
    ]
    if not rows:
        prose(page, "nothing could be compared: UNKNOWN", indent=2)
        return
    header = ("", "is", f"{level} bounds", "tolerated", "chance", "")
    columns(page, rows, indent=2, right=(1, 2, 3, 4), header=header)
    most = max(body["figures"], key=lambda row: row["hosts"])
    compared = f"{plural(most['hosts'], 'host')} against {most['peers']:,}"
    prose(page, f"{compared}; chance: of lying so far apart, were nothing different", indent=2, style="dim")
