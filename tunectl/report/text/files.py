"""The pages of commands that write files: `propose`, `service`, `threads`, `snapshot` and `report`."""

from collections.abc import Mapping, Sequence
from typing import Any

from tunectl.report.escape import printable
from tunectl.report.text.page import TextPage, columns, copied, heading, notes, prose
from tunectl.wording import plural


def propose(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.propose/1 body."""
    if refusal := body.get("refusal"):
        prose(page, refusal, style="bold red")
    else:
        columns(page, [(role, body[role]) for role in ("isolated", "housekeeping")], styles=("dim", "bold"))
        heading(page, f"Why ({plural(body['count'], 'isolated CPU')})")
        for reason in body["reasons"]:
            style = "cyan" if reason["role"] == "isolated" else ""
            columns(page, [(reason["role"], reason["cpus"])], indent=2, styles=(style, style))
            prose(page, reason["text"], indent=4, style="dim")
    if body["notes"]:
        heading(page, "Note")
        for note in body["notes"]:
            prose(page, note, indent=2, label="- ")
    if body["host_file"]:
        written = printable(body.get("written") or "")
        place = f"  written to {written}" if written else "  for /etc/tunectl/host.toml; --output FILE writes it"
        heading(page, "Host file", (place, "dim"))
        # Not wrapped, because it is meant to be copied. Its comments repeat the reasons above, so they are left out.
        for text in body["host_file"].rstrip().split("\n"):
            if not text.startswith("#") and text:
                copied(page, "  ", text)


_STYLES = {"written": "green", "removed": "green", "foreign": "red", "outdated": "yellow"}


def service(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.service/1 body."""
    if body["action"] != "show":
        columns(page, [(unit["state"], printable(unit["path"])) for unit in body["units"]])
        for argv in body["ran"]:
            prose(page, " ".join(map(str, argv)), label="ran  ")
    for number, unit in enumerate(body["units"] if body["action"] == "show" else ()):
        if number:
            page.line()
        copied(page, (f"# {unit['path']} ({unit['state']})", f"bold {_STYLES.get(unit['state'], '')}".strip()))
        for text in unit["text"].splitlines():  # not wrapped: it may be copied from here
            copied(page, text)
    notes(page, body["notes"])


def thread_unit(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.threads.unit/1 body: the drop-in and nothing else, to be redirected into its file."""
    if written := body.get("written"):
        prose(page, f"{written} holds the drop-in of {body['unit']}")
        return
    for text in body["text"].splitlines():
        copied(page, text)


MAX_SKIPPED = 20


def snapshot(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.snapshot/1 body."""
    prose(page, f"{body['file']}: {plural(body['files'], 'file')}, {plural(body['bytes'], 'byte')}", style="bold")
    _listed(page, "Not recorded", [(each["path"], each["reason"]) for each in body.get("skipped", ())])
    secrets = [(f"{each['path']}, line {each['line']}", each["grammar"]) for each in body.get("left_out", ())]
    _listed(page, "Secrets taken out", secrets)


def _listed(page: TextPage, title: str, rows: Sequence[tuple[str, str]]) -> None:
    if rows:
        heading(page, f"{title} ({len(rows)})")
        columns(
            page, [(printable(what), printable(why)) for what, why in rows[:MAX_SKIPPED]], indent=2, styles=("", "dim")
        )
    if len(rows) > MAX_SKIPPED:
        prose(page, f"and {len(rows) - MAX_SKIPPED} more; --format json lists each", indent=2)


def report(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.report/1 body."""
    prose(page, f"{body['written']}: {body['bytes']:,} bytes", style="bold")
    for file in body["sources"]:
        prose(page, printable(file), indent=2, label="from ")
    if body["note"]:
        prose(page, body["note"], indent=2)
