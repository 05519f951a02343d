"""Charts in characters: a histogram of gaps, and sparklines of a run over time."""

import math
from collections.abc import Iterable, Sequence
from itertools import chain

from tunectl.report.charts import Slice, timeline
from tunectl.report.figures import plain
from tunectl.report.text.page import TextPage, columns, line, prose
from tunectl.shapes import Jitter
from tunectl.wording import nanoseconds

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
    bins, taken = _binned(histograms)
    if not bins:
        return
    page.line()
    prose(page, f"{what} by length, with their share of {share_of} (logarithmic)", indent=indent)
    places = _places(min(bins), max(bins))
    counts = [f"{bins.get(place, 0):,}" for place in places]
    room = max(page.width - indent - 2 - 18 - max(map(len, counts)) - 6 - 6, 10)
    most, total = math.log10(max(bins.values())) + 1, sum(taken.values()) or 1.0
    rows: list[tuple[str, str, str, str]] = []
    for place in places:
        count = bins.get(place, 0)
        length = room * (math.log10(count) + 1) / most if count else 0.0
        share = f"{_percent(100 * taken[place] / total)} %" if count else ""
        rows.append((_range(place, _next(place)), f"{count:,}", share, _bar(length)))
    columns(page, _gathered(rows, places), indent=indent + 2, right={0, 1, 2}, styles=("", "", "dim", "cyan"))


Place = tuple[int, int]  # (decade, index of 1, 2 or 5)


def _binned(histograms: Iterable[Iterable[Sequence[int]]]) -> tuple[dict[Place, int], dict[Place, float]]:
    """How many gaps, and how many ns of them, in each step."""
    bins: dict[Place, int] = {}
    taken: dict[Place, float] = {}
    for from_ns, to_ns, count in chain.from_iterable(histograms):
        if count:
            place = _bin(from_ns)
            bins[place] = bins.get(place, 0) + count
            taken[place] = taken.get(place, 0.0) + (from_ns + to_ns) / 2 * count
    return bins, taken


def _gathered(rows: list[tuple[str, str, str, str]], places: list[Place]) -> list[tuple[str, str, str, str]]:
    """The rows; a long run of empty rows becomes one."""
    made: list[tuple[str, str, str, str]] = []
    at = 0
    while at < len(rows):
        end = at
        while end < len(rows) and rows[end][1] == "0":
            end += 1
        if end - at > _EMPTY_SHOWN:
            made.append((_range(places[at], _next(places[end - 1])), "0", "", ""))
            at = end
        else:
            made.append(rows[at])
            at += 1
    return made


def _bar(cells: float) -> str:
    """A bar of that length, to an eighth of a cell; at least one cell for any length above 0."""
    if not cells:
        return ""
    eighths = max(round(cells * 8), 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8]


def _percent(share: float) -> str:
    return "<0.1" if 0 < share < 0.05 else f"{share:.1f}"


def _range(low: Place, high: Place) -> str:
    return f"{nanoseconds(_value(low))} to {nanoseconds(_value(high))}"


def _places(first: Place, last: Place) -> list[Place]:
    places = [first]
    while places[-1] < last:
        places.append(_next(places[-1]))
    return places


def _bin(value: float) -> Place:
    """The step that holds `value`, in ns; below 1 ns is the first."""
    decade = len(str(int(value))) - 1 if value >= 1 else 0
    lead = value / 10**decade
    return decade, max(index for index, step in enumerate(_STEPS) if step <= max(lead, 1))


def _next(place: Place) -> Place:
    decade, index = place
    return (decade, index + 1) if index + 1 < len(_STEPS) else (decade + 1, 0)


def _value(place: Place) -> float:
    return float(_STEPS[place[1]] * 10 ** place[0])


_LEVELS = " ▁▂▃▄▅▆▇█"
_UNKNOWN = "?"
MAX_SPARKLINES = 16


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
    if any(slices for _, slices in rows):
        _axis(page, indent + 2 + label, max(len(slices) for _, slices in rows), result.seconds(shown[0]) * 1e9)


def _title(result: Jitter, rows: Sequence[Sequence[Slice | None]], floor: float, top: float, most: float) -> str:
    counted = max(map(len, rows))
    width = nanoseconds(result.duration_s * 1e9 / counted)
    text = f"over time, {width} a column; longest gap: ▁ {nanoseconds(floor)} to █ {nanoseconds(top)}, logarithmic"
    text += f"; stolen: █ {plain(most * 100)} % of a column"
    unknown = any(one is None for slices in rows for one in slices)
    return f"{text}; ?: the list of gaps was full" if unknown else text


def _logarithmic(ns: float, floor: float, top: float) -> float:
    """0 for no gap, otherwise above 0 and at most 1."""
    if ns <= 0:
        return 0.0
    return min(max(math.log(max(ns, floor) / floor) / math.log(top / floor), 0.01), 1.0)


def _level(height: float | None) -> str:
    if height is None:
        return _UNKNOWN
    return _LEVELS[min(math.ceil(height * (len(_LEVELS) - 1)), len(_LEVELS) - 1)]


def _axis(page: TextPage, indent: int, cells: int, length_ns: float) -> None:
    end = nanoseconds(length_ns)
    if cells > len(end) + 4:
        line(page, " " * indent, ("0 s" + end.rjust(cells - 3), "dim"))
