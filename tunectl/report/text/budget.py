"""How a result was judged by its limits: a line for each that broke, or one for all."""

from collections.abc import Callable

from tunectl.report.text.page import TextPage, prose
from tunectl.shapes import Budget
from tunectl.wording import nanoseconds

_LIMITS: dict[str, tuple[str, Callable[[float], str]]] = {
    "max_ns": ("longest gap", nanoseconds),
    "p99_9_ns": ("arrival P99.9", nanoseconds),
    "interruptions_per_s": ("interruptions", lambda value: f"{value:g}/s"),
    "stolen_ppm": ("stolen", lambda value: f"{value:g} ppm"),
    "due_to_book_p99_9_ns": ("due to book P99.9", nanoseconds),
}


def judged(page: TextPage, budget: Budget, indent: int = 0, which: str = "") -> None:
    """`which` stands before each line."""
    for text in budget.broken:
        prose(page, text, indent=indent, label=f"{which}over budget: ", style="red")
    if budget.verdict == "within":
        limits = [(*_LIMITS[name], limit) for name, limit in budget.limits.items() if name in _LIMITS and limit]
        known = [f"{name} {shown(limit)}" for name, shown, limit in limits]
        prose(page, f"{which}within budget ({', '.join(known)})", indent=indent, style="green")
    elif not budget.broken:
        prose(page, f"{which}not judged: {budget.reason or 'no budget'}", indent=indent, style="magenta")
