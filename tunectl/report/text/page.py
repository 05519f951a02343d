"""A text page: lines of styled parts, wrapped prose, columns, and what a page says beside its result.

rich is imported only to colour the lines, and for wide characters. What it does by itself to long lines cuts or folds
words; a command in a text must stay whole.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple, TypeVar

from tunectl.report.escape import printable

_NARROWEST = 20  # cells
_ALL = 1_000_000
Styled = tuple[str, str]  # a text, and its style in rich's words; "" for no style


class Room(NamedTuple):
    """How much a page shows of what may fold. Never folded: the headline, counts, waivers' names, the first note."""

    wrong: int = _ALL  # lines of each severity, and of what is not known
    worst: int = 1  # of a severity's knobs that are shown with their values
    said: int = 2  # lines of a reason, and of a note
    told: int = 2  # lines of what a step says of itself
    values: int = 2  # lines of a family of values
    figures: int = 5
    steps: int = 7
    waivers: int = 5  # that have a line each
    expired: int = _ALL  # lines of the names of expired ones
    notes: int = 3


class TextPage:
    """The lines of a page so far; `width` is in terminal cells."""

    def __init__(self, width: int, verbose: int = 0, recorded: str = "", start: Sequence[str] = ("tunectl",)) -> None:
        self.width = max(width, _NARROWEST)
        self.verbose = verbose
        self.room = Room(*[_ALL] * len(Room._fields)) if verbose else Room()
        self.recorded = recorded  # the directory of a recorded host
        self.start = start  # how the reader starts it
        self.last = "", ""  # the verdict that its last line has, and what stands beside it
        self.signed = "", ""  # who made it and when: beside that verdict, and where there is none
        self.lines: list[Sequence[Styled]] = []

    def line(self) -> None:
        """A blank line."""
        self.lines.append(())

    def plain(self) -> str:
        """The page without styles."""
        return "".join("".join(text for text, _ in parts).rstrip() + "\n" for parts in self.lines)

    def coloured(self) -> str:
        """The page with a terminal's escape sequences. Nothing in it is taken for markup: `[never]` stays."""
        from io import StringIO

        from rich.console import Console
        from rich.text import Text

        memory = StringIO()
        console = Console(
            file=memory,
            width=self.width,
            color_system="standard",
            force_terminal=True,
            force_jupyter=False,
            markup=False,
            highlight=False,
            emoji=False,
            legacy_windows=False,
            _environ={},  # the caller decides what the text looks like, not COLUMNS or FORCE_COLOR
        )
        for parts in self.lines:
            text = Text()
            for words, style in parts:
                text.append(words, style)
            text.rstrip()
            console.print(text, soft_wrap=True)
        return memory.getvalue()

    def sign(self) -> None:
        """The verdict once more, since the first line of a long page has scrolled away; otherwise who made it."""
        (verdict, beside), (short, full) = self.last, self.signed
        if verdict or full:
            self.line()
        if verdict:
            banner(self, verdict, " · ".join(filter(None, (beside, short))))
        elif full:
            prose(self, full, style="dim")


Size = TypeVar("Size")


def roomiest(
    page: TextPage, sizes: Iterable[Size], draw: Callable[[TextPage, Size], None], fits: Callable[[TextPage], bool]
) -> None:
    """What is drawn in the first of these sizes in which the page fits; the last one where it fits in none."""
    for size in sizes:
        drawn = copy(page)
        drawn.lines = [*page.lines]
        draw(drawn, size)
        if fits(drawn):
            break
    page.lines = drawn.lines


Part = str | tuple[str, str]  # a text, or a text and its style

VERDICT_STYLES = {
    "compliant": "green",
    "go": "green",
    "ok": "green",
    "pending-reboot": "yellow",
    "drifted": "red",
    "no-go": "red",
    "throttled": "red",
    "warning": "yellow",
    "critical": "red",
    "unreadable": "magenta",
    "unknown": "magenta",
    "within": "green",
    "over": "red",
    "passed": "green",
    "not passed": "red",
    **dict.fromkeys(("measured", "simulated"), ""),
}
_GAP, _HANG = 2, 4
_LEAST = 6  # cells; a column is made no narrower
_LEAST_LAST = 24
_LONGEST_WORD = 16
_CUT = " ...: -v"
_COMBINING = "\u0300"  # the first printable character that does not take exactly one cell


def cell_len(text: str) -> int:
    """The cells a text takes on a terminal. rich knows wide characters, and is imported only for them."""
    if text.isprintable() and max(text, default="") < _COMBINING:
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def copied(page: TextPage, *parts: Part) -> None:
    """One line that is whole: a command, or a line of a file. All text passes through here, and is made printable."""
    styled = [(part, "") if isinstance(part, str) else part for part in parts]
    page.lines.append([(printable(text), style) for text, style in styled])


def line(page: TextPage, *parts: Part) -> None:
    """One line of parts; a name that is too long for it is cut, but with -v. What may be typed is whole."""
    copied(page, *parts)
    over = cell_len("".join(text for text, _ in page.lines[-1]).rstrip()) - page.width
    words = (
        [word for text, _ in page.lines[-1] for word in _WHOLE.findall(text)] if over > 0 and not page.verbose else ()
    )
    if names := [word for word in words if " " not in word and "/" not in word[:2]]:
        longest = max(names, key=cell_len)
        short = cut(longest, max(cell_len(longest) - over, _LEAST))
        page.lines[-1] = [(text.replace(longest, short), style) for text, style in page.lines[-1]]


def cut(text: str, cells: int) -> str:
    """`text` in so many cells; where it is longer its last is an ellipsis."""
    if cell_len(text) <= cells:
        return text
    from rich.cells import set_cell_size

    return f"{set_cell_size(text, cells - 1).rstrip()}…"


def heading(page: TextPage, text: str, *rest: Part) -> None:
    """A blank line and a section's title; `rest` stands beside it, or below where the line has no room for it."""
    page.line()
    beside = "".join(part if isinstance(part, str) else part[0] for part in rest)
    if cell_len(printable(text + beside)) <= page.width:
        line(page, (printable(text), "bold"), *rest)
        return
    prose(page, text, style="bold")
    if said := beside.strip(" ,:;"):
        prose(page, said, indent=2, style="dim")


def prose(
    page: TextPage, text: str, *, indent: int = 0, label: str = "", hang: int = 0, style: str = "", most: int = 0
) -> None:
    """A wrapped paragraph; `label` stands in front; all lines are indented by `hang` cells, or by the label's width.

    A long label has a line of its own. Of more lines than `most`, where that is given, the last says where the rest is.
    """
    if cell_len(label) > (page.width - indent) // 2:
        line(page, " " * indent, (label.rstrip(), "dim"))
        label, hang = "", hang or _HANG
    hang = max(hang, cell_len(label))
    room = page.width - indent - hang
    lines = wrap(text, room)
    if 0 < most < len(lines):
        lines = wrap(text, room - len(_CUT))[:most]
        lines[-1] += _CUT
    for number, wrapped in enumerate(lines):
        lead = label if number == 0 else ""
        line(page, " " * indent, (lead, "dim"), " " * (hang - cell_len(lead)), (wrapped, style))


def banner(page: TextPage, verdict: str, said: str) -> None:
    """A verdict in capitals, then what it rests on."""
    word, style = verdict_word(verdict)
    hang = cell_len(word) + _GAP
    for number, wrapped in enumerate(wrap(said, page.width - hang)):
        line(page, (word if number == 0 else " " * (hang - _GAP), style), " " * _GAP, wrapped)


def verdict_word(verdict: str) -> tuple[str, str]:
    """A verdict in capitals, and its style."""
    word = printable(verdict).upper().replace("PENDING-REBOOT", "PENDING REBOOT")
    return word, f"bold {VERDICT_STYLES.get(verdict, 'magenta')}"


_OPTION = r" --(?:root|host|state) (?:'[^']*'|[^\s'])+"
_WHOLE = re.compile(rf"sudo (?:'[^']*/tunectl'|[^\s']*tunectl)(?:{_OPTION})* [a-z]+(?: --adopt)?\S*|\S+(?: → \S+)?")


def wrap(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` cells, broken at white space only; a longer word has its own line.

    A command of ours is one word: it is there to be copied. So is a value beside what becomes of it.
    """
    lines: list[str] = []
    used = 0
    for word in _WHOLE.findall(text):
        safe = printable(word)
        cells = cell_len(safe)
        if lines and used + 1 + cells <= width:
            lines[-1] += f" {safe}"
            used += 1 + cells
        else:
            lines.append(safe)
            used = cells
    return lines or [""]


def columns(
    page: TextPage,
    rows: Sequence[Sequence[str]],
    *,
    indent: int = 0,
    right: Collection[int] = (),
    styles: Sequence[str] = (),
    header: Sequence[str] = (),
    widths: Sequence[int] = (),
) -> None:
    """Rows in columns as wide as they need. If that is too wide, the widest becomes narrower and wraps.

    `right` are the columns that are aligned right, `styles` one style for each column; the header is bold. `widths`
    come from column_widths() where several tables share their columns. Figures, which are aligned right, are never cut:
    those that find no room stand in a table of their own below, beside the names again.
    """
    whole = [[printable(cell) for cell in row] for row in ([header, *rows] if header else rows)]
    if not whole:
        return
    room = page.width - indent
    if widths and sum(widths) + _GAP * (len(widths) - 1) > room:
        widths = ()
    if not widths and (beside := _beside(whole, room, right)) < len(whole[0]):
        for part in (range(beside), (*range(_names(right)), *range(beside, len(whole[0])))):
            cut = [[row[at] for at in part] for row in whole]
            there = {place for place, at in enumerate(part) if at in right}
            looks = [(*styles, *[""] * len(whole[0]))[at] for at in part]
            names = cut.pop(0) if header else ()
            columns(page, cut, indent=indent, right=there, styles=looks, header=names)
        return
    widths = widths or column_widths(whole, room, right)
    for number, row in enumerate(whole):
        looks = ["bold"] * len(row) if header and number == 0 else [*styles, *[""] * len(row)]
        cells = [_cell(text, width) for text, width in zip(row, widths, strict=True)]
        for at in range(max(map(len, cells))):
            parts: list[Part] = [" " * indent]
            for column, (lines, width) in enumerate(zip(cells, widths, strict=True)):
                text = lines[at] if at < len(lines) else ""
                pad = " " * (width - cell_len(text))
                parts += [pad, (text, looks[column])] if column in right else [(text, looks[column]), pad]
                parts.append(" " * _GAP)
            line(page, *parts)


def _names(right: Collection[int]) -> int:
    """How many columns say what a row is about: those before the figures."""
    return max(1, min(right, default=1))


def _beside(rows: Sequence[Sequence[str]], room: int, right: Collection[int]) -> int:
    """How many of the columns fit beside each other, in `room` cells: at least one of figures."""
    used = -_GAP
    for at, column in enumerate(zip(*rows, strict=True)):
        width = max(map(cell_len, column))
        used += _GAP + (width if at in right else _least(column))
        if used > room and right:
            return max(at, _names(right) + 1)
    return len(rows[0])


def _least(column: Sequence[str]) -> int:
    """How narrow a column of names may be beside figures: its words stay whole, but for very long ones."""
    longest = max((cell_len(word) for text in column for word in text.split()), default=0)
    return min(max(map(cell_len, column)), max(_LEAST, min(longest, _LONGEST_WORD)))


def column_widths(rows: Sequence[Sequence[str]], room: int, whole: Collection[int] = ()) -> list[int]:
    """How wide each column of `rows` is, in cells, so that all fit in `room`; those of `whole` as wide as they need."""
    widths = [min(max(map(cell_len, column)), room) for column in zip(*rows, strict=True)]
    room -= _GAP * (len(widths) - 1)
    soft = [at for at in range(len(widths)) if at not in whole]
    while soft and sum(widths) > room and max(widths[at] for at in soft) > _LEAST:
        # The last column usually is a sentence, which wraps well; a name that is broken in two is hard to read.
        last = soft[-1] == len(widths) - 1 and widths[-1] > _LEAST_LAST
        widths[-1 if last else max(soft, key=lambda at: widths[at])] -= 1
    return widths


def _cell(text: str, width: int) -> list[str]:
    """A cell's lines: broken at white space, otherwise after a comma, otherwise where the column ends."""
    if cell_len(text) <= width:
        return [text]
    return [piece for wrapped in wrap(text, width) for piece in fold(wrapped, width)]


def fold(text: str, width: int, joints: str = " ,/") -> Iterator[str]:
    """All of `text` in pieces of at most `width` cells: broken at a space, or after a comma, a slash, or anywhere."""
    if cell_len(text) <= width:
        yield text
        return
    if not joints:
        from rich.cells import chop_cells

        yield from chop_cells(text, width)
        return
    held = ""
    for piece in re.findall(f"[^{joints[0]}]*{joints[0]}|[^{joints[0]}]+", text):
        if held and cell_len(held + piece) > width:
            yield held
            held = ""
        *full, last = fold(piece, width, joints[1:])
        yield from full
        held += last
    if held:
        yield held


def notes(page: TextPage, texts: Iterable[str], title: str = "Notes") -> None:
    """Each note as a paragraph of its own; without notes no title either."""
    listed = list(texts)
    if listed:
        heading(page, title)
    for text in listed:
        prose(page, str(text), indent=2, label="- ")


def lasting(lifetime: str) -> str:
    """Which boot a change of this lifetime is for."""
    return {"runtime": "this boot", "boot": "next boot"}.get(lifetime, printable(lifetime))


def not_run(page: TextPage, body: Mapping[str, Any]) -> None:
    """The programs a recorded host cannot run."""
    notes(page, body.get("not_run", ()), "Not run")


def reboot(page: TextPage, body: Mapping[str, Any]) -> None:
    """Says that a reboot is needed, if one is."""
    if body.get("reboot_required"):
        page.line()
        prose(page, "A reboot is needed before all of this is in force.", style="yellow")
