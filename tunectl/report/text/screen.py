"""One screen that decides: verdict, figures beside their limits, what is wrong, what to do, how many are right.

Each page that judges begins with it and ends with the verdict; `-v` puts the page's own details between them.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from copy import copy
from itertools import accumulate, groupby
from typing import Any

from tunectl.model import Finding, Outcome
from tunectl.report.actions import mended_by_apply, todo
from tunectl.report.charts import LogScale, limit_axis
from tunectl.report.escape import printable
from tunectl.report.figures import Limited
from tunectl.report.findings import WORDS, Group, counts, name_of
from tunectl.report.text.page import (
    Part,
    Room,
    TextPage,
    banner,
    cell_len,
    columns,
    copied,
    cut,
    heading,
    line,
    prose,
    roomiest,
    wrap,
)
from tunectl.report.urgency import Line, Urgent, outcome_of, unknown, urgent_of
from tunectl.wording import few, plural

MOST_LINES, MOST_OF_A_GO = 40, 24
_IN_FULL = 2  # values of a severity, or reasons: with more, there are names alone
_NARROW = 76  # cells: without bars below
_BAR, _LEAST_BAR = 20, 8  # cells, and one for the limit
_WHERE = 8  # cells for the CPU; the name of a case may be cut
_GOES_ON = " \\"
_WORDS_OF_SHELL = re.compile(r"""(?:'[^']*'|"[^"]*"|[^\s'"])+""")
_WORDS = {"OVER": "red", "within": "green"}
_NEXT_IN_FULL = 4  # lines of the waiver that expires next
_WELL = ("go", "compliant", "within", "ok")
_FOLDS = (  # what a page that is too long gives up, one after the other
    ("wrong", 3), ("said", 1), ("told", 1), ("values", 1), ("wrong", 2), ("notes", 2), ("wrong", 1), ("waivers", 1),
    ("notes", 1), ("worst", 0), ("expired", 5), ("steps", 6), ("steps", 5), ("figures", 3), ("steps", 3),
    ("figures", 1), ("steps", 1), ("told", 0), ("expired", 2),
)  # fmt: skip
_UNSAID = (Outcome.DRIFTED, Outcome.UNREADABLE)  # a title says so
_REST = (Outcome.COMPLIANT, Outcome.UNSUPPORTED, Outcome.REFUSED, Outcome.WAIVED, Outcome.UNREADABLE)


def begin(page: TextPage, verdict: str, said: str, about: Iterable[str] = (), last: str = "") -> None:
    """The verdict and what it rests on; the page's last line has the verdict once more, and `last`.

    `about`: what was judged.
    """
    banner(page, verdict, said)
    page.last = verdict, last
    for text in about:
        clipped(page, text, indent=2, style="dim", lines=3 if page.verbose else 1)


def fit(page: TextPage, draw: Callable[[TextPage], None]) -> None:
    """What is drawn in the largest room in which the page, with its last line, fits a screen; `-v` folds nothing."""
    most = MOST_OF_A_GO if page.last[0] in _WELL else MOST_LINES
    folds = () if page.verbose else _FOLDS
    rooms = accumulate(folds, lambda room, fold: room._replace(**dict([fold])), initial=page.room)

    def in_room(drawn: TextPage, room: Room) -> None:
        drawn.room = room
        draw(drawn)

    def fits(drawn: TextPage) -> bool:
        whole = copy(drawn)
        whole.lines = [*drawn.lines]
        whole.sign()
        return len(whole.lines) <= most

    roomiest(page, rooms, in_room, fits)


def clipped(page: TextPage, text: str, *, indent: int = 0, label: str = "", style: str = "", lines: int = 2) -> None:
    """A paragraph of which only its first lines are shown: `-v` shows it whole."""
    whole = page.verbose or "`" in text  # a command is never cut
    prose(page, text, indent=indent, label=label, style=style, most=0 if whole else lines)


def by_family(page: TextPage, rows: Iterable[tuple[str, int, str]], *, indent: int = 2, lines: int = 1) -> None:
    """A line for each family of knobs: how many of its targets, then of each row what is said, while it has room.

    `rows`: the knob and those of its targets that are meant, how many they are, and what is said of them.
    """
    families: dict[str, list[tuple[int, str]]] = {}
    for name, count, said in rows:
        family, _, rest = name.partition(".")
        families.setdefault(family, []).append((count, f"{rest} {said}".strip()))
    counts = {family: f"{sum(count for count, _ in listed):,}" for family, listed in families.items()}
    width, figures = (max(map(cell_len, texts), default=0) for texts in (families, counts.values()))
    for family, listed in families.items():
        label = f"{family:<{width}} {counts[family]:>{max(figures, 2)}}  "
        room, texts = page.width - indent - cell_len(label), [said for _, said in listed]
        shown = (few(texts, most) for most in range(len(texts), 0, -1))
        fits = next((said for said in shown if len(wrap(said, room)) <= lines), few(texts, 1))
        prose(page, ", ".join(texts) if page.verbose else fits, indent=indent, label=label)


def against_limits(page: TextPage, rows: Sequence[Limited], reasons: Sequence[str] = ()) -> None:
    """Figures beside their limits, those that come closest to them; and why there are none. A bar is logarithmic."""
    if rows:
        heading(page, "Measured against its limit")
    elif reasons:
        page.line()
    for reason in reasons:
        clipped(page, reason, indent=2 if rows else 0, label="- " if rows else "Not measured  ", lines=1 if rows else 2)
    kept = sorted(rows, key=lambda row: row.share or 0.0, reverse=True)[: page.room.figures]
    shown = [row for row in rows if row in kept]
    _bars(page, shown)
    if len(rows) > len(shown):
        prose(page, f"{len(rows) - len(shown)} more, further from their limits: -v", indent=2, style="dim")


def _bars(page: TextPage, rows: Sequence[Limited]) -> None:
    """A line each; the bars take what the words leave, at most _BAR cells. A table where that is too little."""
    label, figure, judged, where = (max(map(cell_len, texts), default=0) for texts in (
        [row.label for row in rows], map(_figure, rows), ["within", *(row.word for row in rows)],
        [printable(row.where) for row in rows],
    ))  # fmt: skip
    used = 2 + label + 2 + figure + 2 + 2 + judged + 2 + min(where, _WHERE)
    if page.width < _NARROW or page.width - used <= _LEAST_BAR:
        columns(page, [row[:5] for row in rows], indent=2, right=(1, 2))
        return
    cells = min(page.width - used - 1, _BAR) // 2 * 2 + 1
    room = page.width - used - cells + min(where, _WHERE)
    axis = limit_axis((row.share for row in rows), 0, cells)
    for row in rows:
        style = _WORDS.get(row.word, "")
        parts: list[Part] = ["  ", row.label.ljust(label), "  ", _figure(row).rjust(figure), "  "]
        parts += [(_bar(row.share, axis), style), "  ", (row.word.ljust(judged), style), "  "]
        line(page, *parts, cut(printable(row.where), max(room, 1)))


def _figure(row: Limited) -> str:
    return row.measured if row.share is None else f"{row.measured} of {row.limit}"


def _bar(share: float | None, axis: LogScale) -> str:
    """As long as the page's; `│` is the limit, and what is over stands out beyond it."""
    width, limit = int(axis.end), int(axis.at(1))
    filled = round(axis.at(share)) if share else 0
    filled = max(filled, limit + 2) if share and share > 1 else min(filled, limit)
    cells = ["█" if at < min(filled, width) else " " for at in range(width)]
    cells[limit] = "│"
    return "".join(cells) if share is not None else " " * width


def wrong(page: TextPage, found: Sequence[Group], actions: Iterable[Mapping[str, Any]]) -> None:
    """What needs attention: of each severity how many targets, and every knob by name, the worst with its values.

    Of a few it is said why, but of what `actions` mend by `apply` alone. Where the names are more than the room holds,
    the last ones are counted by family.
    """
    mended = mended_by_apply(actions)
    sections = urgent_of(found)
    missing = unknown(found)
    if not sections and not missing:
        return
    waits = all(group.outcome is Outcome.PENDING_REBOOT for one in sections for group in one.groups)
    if sections:
        heading(page, "Waits for the reboot" if waits else "Wrong")
    else:
        page.line()
    for section in sections:
        _section(page, section, mended)
    if missing:
        unread = [group for group in found if group.outcome is Outcome.UNREADABLE]
        label = f"Not known {sum(len(group.instances) for group in unread):>6,}  "
        prose(page, _named("", unread, page.width - len(label), page.room.wrong), label=label, style="magenta")
        for _, reason in missing if len(missing) <= _IN_FULL and not sections else ():
            clipped(page, reason, indent=cell_len(label), style="dim", lines=page.room.said)


def _section(page: TextPage, section: Urgent, mended: Set[str]) -> None:
    """Targets of one severity: few in full, otherwise the worst knob with its value, and the names of the others."""
    label = _label(section.severity.value if section.severity else "", section.targets)
    lines = section.lines(mended)
    if len(lines) > _IN_FULL or page.room.wrong == 1 or not any(each.why for each in lines):
        first, *others = section.groups
        left = len(first.instances) - len(first.rows[0].instances)
        said = (_valued(lines[0]) if page.room.worst else lines[0].name) + (f", and {left:,} more" if left else "")
        prose(page, _named(said, others, page.width - 2 - len(label), page.room.wrong), indent=2, label=label)
        return
    for each in lines:
        prose(page, _valued(each), indent=2, label=label)
        label = " " * cell_len(label)
        if each.why:
            clipped(page, each.why, indent=2 + cell_len(label), style="dim", lines=page.room.said)


def _named(said: str, others: Sequence[Group], room: int, most: int) -> str:
    """What is said of the first, then names of others; those that `most` lines cannot hold are counted by family."""
    for kept in range(len(others), -1, -1):
        families: Counter[str] = Counter()
        for group in others[kept:]:
            families[re.sub(r"\..*", ".*", printable(group.knob))] += len(group.instances)
        rest = ", ".join(f"{family} ({count:,})" for family, count in families.items())
        text = "; ".join(filter(None, [said, *_by_outcome(others[:kept]), rest]))
        if len(wrap(text, room)) <= most:
            break
    return text


def _label(word: str, count: int) -> str:
    return f"{word:<9} {count:>4,}  "


def _valued(each: Line) -> str:
    return ", ".join(filter(None, (f"{each.name} {each.observed}".rstrip(), each.desired)))


def _by_outcome(others: Iterable[Group]) -> Iterator[str]:
    """The names, those that are no drift below what they are: `pending reboot: boot.isolcpus, boot.nohz_full`."""
    for outcome, same in groupby(others, key=lambda group: group.outcome):
        alike = list(same)
        yield _counted(alike) if outcome in _UNSAID else f"{outcome_of(alike[0])}: {_counted(alike)}"


def _counted(found: Iterable[Group]) -> str:
    """`mm.swappiness, irq.affinity (19)`: each knob once, with the number of its targets, or with the one it has."""
    knobs: dict[str, list[str]] = {}
    for group in found:
        knobs.setdefault(group.knob, []).extend(group.instances)
    return ", ".join(_short(knob, instances) for knob, instances in knobs.items())


def _short(knob: str, instances: Sequence[str]) -> str:
    return f"{printable(knob)} ({len(instances):,})" if len(instances) > 1 else name_of(knob, instances)


def todo_list(page: TextPage, actions: Iterable[Mapping[str, Any]], found: Iterable[Finding] = ()) -> None:
    """A document's `actions`, numbered; nothing where there is nothing to do. `found` says what each would mend."""
    severities = {finding.target: finding.severity for finding in found}
    listed = todo(actions)
    if listed:
        whose = "; what has no --root: on the host itself" if page.recorded else ""
        heading(page, "To do, in this order", (whose, "dim"))
    for number, one in enumerate(listed[: page.room.steps], 1):
        label = f"{number}. ".rjust(len(str(len(listed))) + 2)
        indent = 2 + len(label)
        for command in one.typed:
            for part in continued(command, page.width - indent):
                copied(page, "  ", (label, "dim"), (part, "bold"))
                label = " " * len(label)
        if one.by_hand:
            prose(page, one.by_hand, indent=2, label=label)
        if one.note and page.room.told and not one.looks:  # what it looks at again is said
            clipped(page, one.note, indent=indent, lines=page.room.told)
        says_itself = one.by_hand or one.boots or (one.note and (one.is_search or one.mends[0] in one.note))
        if one.mends and page.room.told and (page.verbose or not says_itself):
            clipped(page, one.weighed(severities), indent=indent, style="dim", lines=page.room.told)
    if len(listed) > page.room.steps:
        prose(page, f"{len(listed) - page.room.steps} more: -v", indent=2, style="dim")


def continued(command: str, room: int) -> Iterator[str]:
    """A command in lines that a shell reads as one; whole where it fits, or where its words are not told apart."""
    words = _WORDS_OF_SHELL.findall(command)
    held = ""
    for word in words if cell_len(command) > room and " ".join(words) == command else [command]:
        if held and cell_len(f"{held} {word}") > room - len(_GOES_ON):
            yield held + _GOES_ON
            held = "   "
        held = f"{held} {word}" if held else word
    yield held


def ending(page: TextPage, texts: Iterable[str], findings: Sequence[Finding] = ()) -> None:
    """What concerns the whole host, in short; and in one line how many need no attention, or could not be found out."""
    listed = list(dict.fromkeys(map(str, texts)))
    known = counts(finding for finding in findings if not finding.harmful or finding.outcome is not Outcome.REFUSED)
    words = WORDS | {Outcome.REFUSED: "refused, harmless"}
    said = ", ".join(f"{known[outcome]:,} {words[outcome]}" for outcome in _REST if known[outcome])
    if listed or said or any(finding.until for finding in findings):
        page.line()
    _waivers(page, findings)
    for text in listed[: page.room.notes]:
        clipped(page, text, indent=2, label="- ", lines=page.room.said)
    if len(listed) > page.room.notes:
        prose(page, f"{plural(len(listed) - page.room.notes, 'more note')}: -v", indent=2, style="dim")
    if said:
        listed_by = ": -v lists them" if cell_len(said) + 17 <= page.width else ": -v"
        prose(page, said + ("" if page.verbose else listed_by), indent=2)


def _waivers(page: TextPage, findings: Iterable[Finding]) -> None:
    """A line each, the one that expires next first, and that one in full; then what expired waivers were for."""
    waivers: dict[tuple[str, str, str], list[str]] = {}
    expired: dict[tuple[str, str], list[str]] = {}
    for finding in sorted(findings, key=lambda finding: finding.until):
        if finding.outcome is Outcome.WAIVED:
            why = finding.reason.removesuffix(f" (until {finding.until})")
            waivers.setdefault((finding.until, finding.knob, why), []).append(finding.instance)
        elif finding.until:
            expired.setdefault((finding.until, finding.knob), []).append(finding.instance)
    rows = [(until, _short(knob, instances), why) for (until, knob, why), instances in waivers.items()]
    for at, (until, name, why) in enumerate(rows[: page.room.waivers]):
        label = f"waived until {until}: " if until else "waived: "
        clipped(page, f"{name}: {why}", indent=2, label=label, lines=1 if at else _NEXT_IN_FULL)
    if len(rows) > page.room.waivers:
        prose(page, ", ".join(name for _, name, _ in rows[page.room.waivers :]), indent=2, label="waived, too: ")
    if expired:
        names = [f"{_short(knob, instances)} ({until})" for (until, knob), instances in expired.items()]
        said = ", ".join(names)
        clipped(page, said, indent=2, label="waiver expired: ", style="yellow", lines=page.room.expired)
