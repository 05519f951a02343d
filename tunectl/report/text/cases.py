"""What a page says of the cases of a result that have no figures, or figures that mean less than they seem to."""

from __future__ import annotations

from collections.abc import Iterable

from tunectl.report.text.page import TextPage, notes

MAX_WARNINGS = 12  # of single cases; JSON has them all
Said = Iterable[tuple[str, str]]  # the name of a case, and what is said of it


def not_measured(page: TextPage, said: Said) -> None:
    """Each reason once, with the cases it is about."""
    by_reason: dict[str, dict[str, None]] = {}
    for name, reason in said:
        by_reason.setdefault(reason, {})[name] = None
    notes(page, (f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()), "Not measured")


def void(page: TextPage, said: Said) -> None:
    """What was measured, and is no result."""
    texts = [f"{name}: {reason.removeprefix('void: ')}" for name, reason in said]
    notes(page, _first(texts), "Void: measured, and no result")


def warnings(page: TextPage, said: Said) -> None:
    """Of single cases."""
    notes(page, _first([f"{name}: {text}" for name, text in said]), "Warnings of single cases")


def _first(texts: list[str]) -> list[str]:
    more = [f"and {len(texts) - MAX_WARNINGS} more; --format json has them all"] if len(texts) > MAX_WARNINGS else []
    return texts[:MAX_WARNINGS] + more
