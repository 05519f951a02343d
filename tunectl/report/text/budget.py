"""How a result was judged by its limits: a line for each that broke, or one for all."""

from tunectl.report.text.page import TextPage, prose
from tunectl.shapes import Budget
from tunectl.wording import limit_name, written


def judged(page: TextPage, budget: Budget, indent: int = 0, which: str = "") -> None:
    """`which` stands before each line."""
    for text in budget.broken:
        prose(page, text, indent=indent, label=f"{which}over budget: ", style="red")
    if budget.verdict == "within":
        limits = ((name, limit) for name, limit in budget.limits.items() if limit is not None)
        known = [f"{limit_name(name)} {written(name, limit)}" for name, limit in limits]
        prose(page, f"{which}within budget ({', '.join(known)})", indent=indent, style="green")
    elif not budget.broken:
        prose(page, f"{which}not judged: {budget.reason or 'no budget'}", indent=indent, style="magenta")
