"""Charts in characters: a histogram of gaps, and sparklines of a run over time."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, dropwhile, groupby

from tunectl.report.charts import MAX_SPARKLINES, Slice, timeline
from tunectl.report.text.page import TextPage, columns, line, prose
from tunectl.shapes import Jitter
from tunectl.wording import nanoseconds, percent

_STEPS = (1, 2, 5)  # of a decade
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_EMPTY_SHOWN = 2  # empty steps in a row; more become one line


def histogram(
    page: TextPage,
    histograms: Iterable[Iterable[Sequence[int]]],
    indent: int = 0,
    what: str = "interruptions",
    share_of: str = "the stolen time",
) -> None:
    """The interruptions of all CPUs by length, in steps of 1, 2 and 5; nothing is printed without any.

    Beside each count stands the share of all stolen time that such gaps took: many short gaps may matter less than one
    long gap.
    """
    bins: Counter[int] = Counter()
    taken: Counter[int] = Counter()  # twice the ns of all gaps in each step
    for from_ns, to_ns, count in chain.from_iterable(histograms):
        if count:
            step = _step_of(from_ns)
            bins[step] += count
            taken[step] += (from_ns + to_ns) * count
    if not bins:
        return
    page.line()
    prose(page, f"{what} by length, with their share of {share_of} (logarithmic)", indent=indent)
    most, total = max(bins.values()), taken.total() or 1
    room = max(page.width - indent - 2 - 18 - len(f"{most:,}") - 6 - 6, 10)
    rows: list[tuple[str, str, str, str]] = []
    for is_empty, group in groupby(range(min(bins), max(bins) + 1), key=lambda step: not bins[step]):
        steps = list(group)
        if is_empty and len(steps) > _EMPTY_SHOWN:
            rows.append((_range(steps[0], steps[-1]), "0", "", ""))
            continue
        for step in steps:
            share = "" if is_empty else percent(100 * taken[step] / total)
            length = 0.0 if is_empty else room * (math.log10(bins[step]) + 1) / (math.log10(most) + 1)
            rows.append((_range(step, step), f"{bins[step]:,}", share, _bar(length)))
    columns(page, rows, indent=indent + 2, right={0, 1, 2}, styles=("", "", "dim", "cyan"))


def _step_of(ns: float) -> int:
    """The step that holds a length: three a decade, from 1 ns on; what is shorter is in the first."""
    decade = len(str(int(ns))) - 1 if ns >= 1 else 0
    return len(_STEPS) * decade + max(at for at, step in enumerate(_STEPS) if step <= max(ns / 10**decade, 1))


def _range(first: int, last: int) -> str:
    """From where a step begins to where the next one does."""
    decades = [divmod(step, len(_STEPS)) for step in (first, last + 1)]
    return " to ".join(nanoseconds(_STEPS[at] * 10**decade) for decade, at in decades)


def _bar(cells: float) -> str:
    """A bar of that length, to an eighth of a cell; at least one cell for any length above 0."""
    if not cells:
        return ""
    eighths = max(round(cells * 8), 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8]


_LEVELS = " ▁▂▃▄▅▆▇█"


def sparklines(page: TextPage, result: Jitter, indent: int = 0) -> None:
    """Two lines a CPU, of many only those with the longest gaps; nothing where the times of the gaps are not known."""
    longest_first = sorted(result.cpus, key=lambda cpu: -cpu.max_ns)
    drawn = {cpu.cpu for cpu in longest_first[:MAX_SPARKLINES]}
    shown = [cpu for cpu in result.cpus if cpu.cpu in drawn]
    label = max([len(f"CPU {cpu.cpu} longest ") for cpu in shown], default=0)
    room = min(max(page.width - indent - 2 - label, 10), 100)
    rows = [(cpu, timeline(result, cpu, room)) for cpu in shown]
    if not any(one and one.longest_ns and one.stolen for _, slices in rows for one in slices):
        return
    known = [one for _, slices in rows for one in slices if one]
    top = max(one.longest_ns for one in known)
    floor = min([one.longest_ns for one in known if one.longest_ns] + [top / 10])
    most = max(one.stolen for one in known)
    page.line()
    prose(page, _title(result, [slices for _, slices in rows], floor, top, most), indent=indent)
    for cpu, slices in rows:
        name = f"CPU {cpu.cpu} "
        longest = "".join(_level(one and _logarithmic(one.longest_ns, floor, top)) for one in slices)
        stolen = "".join(_level(one and one.stolen / most) for one in slices)
        line(page, " " * (indent + 2), f"{name}longest".ljust(label), (longest, "cyan"))
        line(page, " " * (indent + 2), "stolen".rjust(len(name) + 6).ljust(label), (stolen, "magenta"))
    end = nanoseconds(result.seconds(shown[0]) * 1e9)
    cells = max(len(slices) for _, slices in rows)
    if cells > len(end) + 4:
        line(page, " " * (indent + 2 + label), ("0 s" + end.rjust(cells - 3), "dim"))


def _title(result: Jitter, rows: Sequence[Sequence[Slice | None]], floor: float, top: float, most: float) -> str:
    counted = max(map(len, rows))
    width = nanoseconds(result.duration_s * 1e9 / counted)
    text = f"over time, {width} a column; longest gap: ▁ {nanoseconds(floor)} to █ {nanoseconds(top)}, logarithmic"
    text += f"; stolen: █ {percent(most * 100)} of a column"
    unknown = any(one is None for slices in rows for one in slices)
    return f"{text}; ?: the list of gaps was full" if unknown else text


def _logarithmic(ns: float, floor: float, top: float) -> float:
    """0 for no gap, otherwise above 0 and at most 1."""
    if ns <= 0:
        return 0.0
    return min(max(math.log(max(ns, floor) / floor) / math.log(top / floor), 0.01), 1.0)


def spark(values: Sequence[float | None], top: float, *, log: bool = False) -> str:
    """A cell a value, from the first that is known on: in eighths of `top`, or of its decades above 1."""
    known = dropwhile(lambda value: value is None, values)
    heights = (value and (_logarithmic(value, 1.0, max(top, 10.0)) if log else value / top) for value in known)
    return "".join(map(_level, heights))


def _level(height: float | None) -> str:
    if height is None:
        return "?"
    return _LEVELS[min(math.ceil(height * (len(_LEVELS) - 1)), len(_LEVELS) - 1)]
