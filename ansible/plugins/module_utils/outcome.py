# Copyright: tunectl contributors
# SPDX-License-Identifier: Apache-2.0
"""From one of tunectl's documents to what a playbook wants to know. Pure: no Ansible, no I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

_BY_CODE = {0: "compliant", 1: "unreadable", 3: "drifted", 4: "pending-reboot"}
_TOO_OLD = ("No such option", "No such command")
_PARTS = 12  # of a group's name
_QUIET = ("compliant",)  # outcomes that nobody has to read
Document = dict[str, Any]


def complaint(stderr: str, code: int) -> str:
    """The one line in which tunectl says what is wrong, without its name in front."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("tunectl: ")]
    said = (own or lines or [f"tunectl ended with exit code {code} and said nothing"])[-1]
    return said.removeprefix("tunectl: ")


def too_old(said: str) -> bool:
    """Is this the complaint of a tunectl that does not know what this collection asks for?"""
    return said.startswith(_TOO_OLD)


def parse(stdout: str, schema: str) -> Document:
    """The document. ValueError says what came instead."""
    try:
        document = json.loads(stdout)
    except ValueError:
        raise ValueError(f"its output is no JSON: {stdout[:200]!r}") from None
    named = document.get("schema") if isinstance(document, dict) else None
    if named != f"tunectl.{schema}/1":
        raise ValueError(f"it speaks {named or 'no schema'}, and this collection reads tunectl.{schema}/1")
    return dict(document)


def verdict(document: Document, code: int) -> str:
    """compliant, drifted, pending-reboot, unreadable; go, no-go, unknown; of a probe: within, broken, not-judged."""
    if "budget" in document:
        return str(document["budget"].get("verdict", "not-judged"))
    return str(document.get("verdict") or _BY_CODE.get(code, "unreadable"))


def findings(document: Document) -> list[Document]:
    """Every finding of a document that has some: its own, those of verify, check and the thermal state."""
    found = list(document.get("findings") or [])
    for part in ("verify", "check", "thermal"):
        found += (document.get(part) or {}).get("findings") or []
    return found


def outcomes(document: Document) -> dict[str, int]:
    """How many findings there are of each outcome."""
    counted: dict[str, int] = {}
    for finding in findings(document):
        counted[finding["outcome"]] = counted.get(finding["outcome"], 0) + 1
    return counted


def notable(document: Document) -> list[Document]:
    """The findings that are not simply compliant."""
    return [finding for finding in findings(document) if finding["outcome"] not in _QUIET]


def reasons(document: Document) -> list[str]:
    """Why the verdict is what it is, a line each."""
    if document.get("reasons"):
        return [str(one) for one in document["reasons"] if isinstance(one, str)]
    if "budget" in document:
        judged = document["budget"]
        return [str(one) for one in judged.get("broken") or filter(None, [judged.get("reason")])]
    wrong = [one for one in notable(document) if one["outcome"] in ("drifted", "pending-reboot", "unreadable")]
    rows = [(one["target"], (_standing(one), one.get("reason") or "")) for one in wrong]
    return [_line(name, *shared) for name, shared in alike(rows)]


def _line(name: str, stands: str, reason: str) -> str:
    said = f"{name} {stands}".rstrip()
    return said + (f": {reason}" if reason else "")


def alike(rows: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Targets of one knob of which the same is said, as one: cpufreq.governor[0-3], in the order of the first."""
    grouped: dict[tuple[str, str], tuple[Any, list[str]]] = {}
    for target, said in rows:
        knob, instance = (*target.split("[", 1), "")[:2]
        grouped.setdefault((knob, repr(said)), (said, []))[1].append(instance[:-1])
    return [(_name(key[0], instances), said) for key, (said, instances) in grouped.items()]


def _name(knob: str, instances: list[str]) -> str:
    numbers = sorted({int(one) for one in instances if one.isdigit()})
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in parts]
    shown += dict.fromkeys(one for one in instances if one and not one.isdigit())
    if len(shown) > _PARTS:
        shown = [*shown[:_PARTS], f"... ({len(set(instances))} in all)"]
    return f"{knob}[{','.join(shown)}]" if shown else knob


def few(lines: list[str], count: int = 3) -> str:
    """The first of them, and how many there are beside."""
    rest = len(lines) - count
    return "; ".join(lines[:count]) + (f"; and {rest} more" if rest > 0 else "")


def _standing(finding: Document) -> str:
    """As tunectl's own sentences say it."""
    observed, desired = finding["observed"], finding["desired"]
    unread = finding["outcome"] == "unreadable" and observed is None
    stands = "could not be read" if unread else f"is {_shown(observed)}"
    if observed is None and desired is None:
        return stands if unread else ""
    bound = f"{finding['match']} " if finding.get("match") in ("at most", "at least") else ""
    return stands if desired is None else f"{stands}, should be {bound}{_shown(desired)}"


def _shown(value: Any) -> str:
    return "not set" if value is None else "empty" if value == "" else str(value)


def changed(command: str, document: Document) -> bool:
    """Did the command change the host (in check mode: would it)?"""
    if command == "apply":
        results = [change.get("result", "changed") for change in document["changes"]]
        return "changed" in results or is_tried(document)
    if command == "restore":
        return any(one["result"] in ("restored", "would-restore") for one in document["results"])
    if command == "confirm":
        return "unconfirmed" in document if "status" not in document else not document.get("already")
    return False


def is_tried(document: Document) -> bool:
    """Does the next boot alone have what was asked for?"""
    return (document.get("unconfirmed") or {}).get("kind") == "boot"


def service_changed(document: Document, state: str) -> bool:
    """Did `service install|remove` change a unit; after `service show`, would it?"""
    ours = {"written", "removed"}
    if document.get("action") == "show":
        ours = {"absent", "outdated"} if state == "present" else {"installed", "outdated"}
    return any(unit["state"] in ours for unit in document["units"])


def failure(command: str, document: Document, code: int) -> str:
    """What tunectl was asked to do and could not; "" where it could. A verdict is no failure."""
    if command == "propose":
        return document.get("refusal") or ""
    if command == "apply" and code == 1:
        lost = [f"{one['target']}: {one['message']}" for one in document["changes"] if one["result"] == "failed"]
        if lost or document.get("verdict") != "unreadable":
            return few(lost or document.get("notes", [])) or "apply ended with exit code 1"
    if command == "restore" and code == 1:
        lost = [f"{one['path']}: {one['message']}" for one in document["results"] if one["result"] == "failed"]
        return few([*lost, *document.get("notes", [])]) or "restore ended with exit code 1"
    if command == "service" and code == 1:
        return few(document.get("notes", [])) or "service ended with exit code 1"
    return ""


def diff(document: Document) -> list[dict[str, str]]:
    """Before and after of what was changed or restored, in the form that `--diff` prints.

    All settings stand in one part, a line for each group of targets that change alike; a file has a part of its own.
    """
    rows = [
        (one["target"], (one["observed"], one["desired"]))
        for one in document.get("changes") or []
        if one.get("result", "changed") == "changed"
    ]
    rows += [
        (one["path"], (one["observed"], one["before"]))
        for one in document.get("results") or []
        if one["result"] in ("restored", "would-restore")
    ]
    short = [row for row in rows if not any(_is_text(value) for value in row[1])]
    files = [difference(name, before, after) for name, (before, after) in rows if (name, (before, after)) not in short]
    if not short:
        return files
    groups = alike(short)
    before, after = ("".join(f"{name} = {_shown(said[side]).strip()}\n" for name, said in groups) for side in (0, 1))
    return [difference("settings", before, after), *files]


def _is_text(value: Any) -> bool:
    """More than one line."""
    return "\n" in str(value or "").strip()


def difference(name: str, before: Any, after: Any) -> dict[str, str]:
    """One part of a diff."""
    return {"before_header": name, "after_header": name, "before": _text(before), "after": _text(after)}


def _text(value: Any) -> str:
    if value is None or value == "":
        return ""
    text = str(value)
    return text if text.endswith("\n") else text + "\n"
