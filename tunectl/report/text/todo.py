"""What to do, in the order to do it: the first thing on a page that says no."""

from collections.abc import Iterable, Mapping
from typing import Any

from tunectl.report.actions import todo
from tunectl.report.text.page import TextPage, heading, line, prose


def todo_list(page: TextPage, actions: Iterable[Mapping[str, Any]]) -> None:
    """A document's `actions`, numbered; nothing where there is nothing to do."""
    listed = todo(actions)
    if listed:
        heading(page, "To do, in this order")
        if page.recorded:
            prose(page, f"Files and commands without {page.recorded} are for that host itself.", indent=2)
    for number, one in enumerate(listed, 1):
        label = f"{number}. ".rjust(len(str(len(listed))) + 2)
        indent = 2 + len(label)
        for place, command in enumerate(one.typed):
            # A command is not wrapped: it is there to be copied.
            line(page, "  ", (label if place == 0 else " " * len(label), "dim"), (command, "bold"))
        if one.by_hand:
            prose(page, one.by_hand, indent=2, label=label)
        if one.note:
            prose(page, one.note, indent=indent)
        prose(page, one.said, indent=indent, style="dim")
