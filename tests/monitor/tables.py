"""The tables of docs/monitor.md, from SOURCES and RULES. `python -m tests.monitor.tables` writes them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tunectl.monitor.rules import RULES
from tunectl.monitor.sources import SOURCES

PAGE = Path(__file__).parents[2] / "docs/monitor.md"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def sources() -> str:
    """One row a source."""
    text = _row(("source", "whom reading it disturbs", "valid", "reads")) + "|---|---|---|---|\n"
    for source in SOURCES:
        reads = ", ".join(one if " " in one and not one.startswith("/") else f"`{one}`" for one in source.reads)
        text += _row((f"`{source.name}`", source.disturbs, source.valid, reads))
    return text


def rules() -> str:
    """One row a rule."""
    text = _row(("alert", "severity", "why", "what decides", "fires", "over")) + "|---|---|---|---|---|---|\n"
    for rule in RULES:
        fires = "at once" if rule.bad == (1, 1) else f"{rule.bad[0]} of {rule.bad[1]} snapshots"
        over = "when that is announced" if rule.lasts else f"{rule.good} good snapshot{'s' if rule.good > 1 else ''}"
        text += _row((f"**{rule.name}**", rule.severity.value, rule.why, rule.source_of_truth, fires, over))
    return text


def page(text: str) -> str:
    """The page with both tables as they are now."""
    for name, table in (("sources", sources()), ("rules", rules())):
        block = f"<!-- {name} -->\n{table}<!-- /{name} -->"
        before, _, rest = text.partition(f"<!-- {name} -->\n")
        _, _, after = rest.partition(f"<!-- /{name} -->")
        assert before
        assert after
        text = before + block + after
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
