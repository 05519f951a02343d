"""The operator's files that hold a command line: our words merged in, told from the operator's, and taken out again.

A Form says how one kind of file is read and rewritten: only the line changes, no other byte does. A family of boot
loaders says which files there are (its Look), and everything else is the same for all of them.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from tunectl.bootloader.cmdline import length_problem, lookup, parse_cmdline
from tunectl.bootloader.family import BootPlan, Conflict, Family, Journaled, Upcoming, Write
from tunectl.bootloader.words import Desired, Lines, Same, Swap, given, merge, split, swaps, take_out
from tunectl.command import as_data
from tunectl.fix import NOTHING, Fix
from tunectl.host.shellvars import Assignment, assignments
from tunectl.host.sysroot import ABSENT_ERRNOS, Sysroot

# Nothing in it has a meaning to a shell, except `$`, which may stay because we never touch the operator's words.
_QUOTED = re.compile(r"(?P<quote>[\"'])(?P<line>[^\"'`\\]*)(?P=quote)(?P<tail>[ \t]*(?:#.*)?)")
_OPTIONS = re.compile(r"^(?P<key>[ \t]*options[ \t]+)(?P<line>[^\n]*)$", re.MULTILINE)
# Boot counting renames an entry at each boot (tries left, tries done), and once more when a boot was good.
_COUNTER = re.compile(r"\+[0-9]+(?:-[0-9]+)?(?=\.conf\Z)")


class Form(NamedTuple):
    """One kind of file.

    `lines` gives its command line, in one part or several; a plain text instead says why it cannot be edited.
    `render` gives the file's text with other lines, as many as there were.
    """

    lines: Callable[[str], Lines | str]
    render: Callable[[str, Lines], str]


def _one_line(text: str) -> Lines | str:
    return (text.rstrip(),)


def _render_one_line(text: str, lines: Lines) -> str:
    return lines[0] + (text[len(text.rstrip()) :] or "\n")


def _options(text: str) -> Lines | str:
    return tuple(match["line"] for match in _OPTIONS.finditer(text)) or ("",)


def _render_options(text: str, lines: Lines) -> str:
    left = list(lines)
    if not _OPTIONS.search(text):
        return text + ("" if not text or text.endswith("\n") else "\n") + f"options {lines[0]}\n" if lines[0] else text
    return _OPTIONS.sub(lambda found: found["key"] + left.pop(0), text)


def variable(name: str) -> Form:
    """A file of shell assignments: the words between the quotes of the last assignment of one variable."""

    appended = re.compile(rf"^\s*(?:export\s+)?{name}\+=", re.MULTILINE)  # an assignment behind it would undo it

    def last(text: str) -> Assignment | None:
        return next((assignment for assignment in reversed(list(assignments(text))) if assignment.name == name), None)

    def place(text: str, assignment: Assignment) -> slice | None:
        """Where the words are in the text, empty for an empty value; None where they are written in another way."""
        if inner := _QUOTED.fullmatch(text[assignment.start : assignment.end]):
            return slice(assignment.start + inner.start("line"), assignment.start + inner.end("line"))
        return None if text[assignment.start : assignment.end].strip() else slice(assignment.start, assignment.start)

    def lines(text: str) -> Lines | str:
        assignment = last(text)
        where = place(text, assignment) if assignment else None if appended.search(text) else slice(0, 0)
        return (text[where],) if where else f"{name} is not one plain text in quotes"

    def render(text: str, lines: Lines) -> str:
        assignment, words = last(text), lines[0]
        if not assignment:
            newline = "" if not text or text.endswith("\n") else "\n"
            return f'{text}{newline}{name}="{words}"\n' if words else text
        where = place(text, assignment)
        assert where  # lines() was asked first
        bare = where.start == assignment.start
        return text[: where.start] + (f'"{words}"' if bare and words else words) + text[where.stop :]

    return Form(lines, render)


LINE = Form(_one_line, _render_one_line)
OPTIONS = Form(_options, _render_options)


class Holder(NamedTuple):
    """A file that holds a command line. `new` is the line that a file which does not exist yet starts with."""

    path: str
    form: Form
    new: str | None = None
    expand: Callable[[str], str] | None = None  # what the boot loader makes of the line, where it has variables
    lead: str = ""  # what the boot loader puts in front of it


class Look(NamedTuple):
    """What a family of files found on a host."""

    holders: tuple[Holder, ...]
    upcoming: Upcoming
    refusal: str = ""  # why tunectl must not edit the files, which it could read


def files_family(
    look: Callable[[Sysroot], Look], files: tuple[str, ...], commands: tuple[str, ...] = (), remedy: Fix = NOTHING
) -> Family:
    """A family whose configuration is files that are edited in place."""
    return Family(
        lambda root: look(root).upcoming,
        partial(plan_edits, look),
        partial(our_words, look),
        partial(without_ours, look),
        files,
        commands,
        remedy,
    )


def read(root: Sysroot, path: str) -> str | None:
    """A file's bytes as latin-1 text, which keeps every byte; None where there is no file. OSError otherwise."""
    try:
        return root.read_bytes(path).decode("latin-1")
    except OSError as error:
        if error.errno in ABSENT_ERRNOS:
            return None
        error.filename = root.path(path)  # read(2) names no file
        raise


def plan_edits(
    look: Callable[[Sysroot], Look], root: Sysroot, desired: Sequence[Desired], same: Same, journaled: Journaled
) -> BootPlan:
    """Our words merged into every file that holds a command line, as if we had never written there before."""
    found = look(root)
    if found.refusal or found.upcoming.problem:
        return BootPlan(problem=found.refusal or found.upcoming.problem)
    known = _memory(found.holders, journaled)
    writes: list[Write] = []
    conflicts: list[Conflict] = []
    for holder in found.holders:
        try:
            text = read(root, holder.path)
        except OSError as error:
            return BootPlan(problem=f"cannot read {as_data(f'/{holder.path}')}: {error.strerror}")
        lines = holder.form.lines(text or "")
        if isinstance(lines, str):
            return BootPlan(problem=f"{as_data(f'/{holder.path}')}: {lines}")
        clean = _pristine(holder, text, journaled, known)
        start = _lines_of(holder, clean, known)
        assert not isinstance(start, str)  # it was read before our words were taken out
        merged = merge(start, desired, same)
        conflicts += _unmet(holder, merged, desired, same)
        if too_long := length_problem(f"{holder.lead} {_as_booted(holder, merged)}".strip()):
            return BootPlan(problem=f"{as_data(f'/{holder.path}')}: {too_long}")
        content = holder.form.render(clean or "", merged)
        if content != (text or ""):
            writes.append(Write("edit", holder.path, content, clean))
    return BootPlan(tuple(writes), tuple(conflicts))


def _lines_of(holder: Holder, clean: str | None, known: Sequence[Swap]) -> Lines | str:
    """The lines without our words: of the file, or, where it does not exist, of what it will be made from."""
    return take_out((holder.new or "",), known) if clean is None else holder.form.lines(clean)


def _as_booted(holder: Holder, lines: Lines) -> str:
    line = " ".join(lines)
    return holder.expand(line) if holder.expand else line


def _unmet(holder: Holder, lines: Lines, desired: Sequence[Desired], same: Same) -> list[Conflict]:
    args = parse_cmdline(_as_booted(holder, lines))
    told = []
    for want in desired:
        if not given(args, want, same):
            winner = lookup(args, want[0], want[2])
            # Among the file's own words ours is in force, so another one can only come from a variable.
            who = as_data(winner.arg) if winner else "a variable"
            told.append(
                Conflict(f"{who} in {as_data(f'/{holder.path}')}, by a variable, wins: {want[2].value}", want[0])
            )
    return told


def _pristine(holder: Holder, text: str | None, journaled: Journaled, known: Sequence[Swap]) -> str | None:
    """The file without our words: the before-image, or, where somebody edited it since, the file minus our words."""
    name = _journaled_as(holder.path, journaled)
    before, after = journaled.get(name, (None, ""))
    if name in journaled and text == after:
        return before
    if text is None:
        return None
    mine = _swaps_of(holder, before, after, known) if name in journaled else known
    lines = holder.form.lines(text)
    return text if isinstance(lines, str) else holder.form.render(text, take_out(lines, mine))


def _journaled_as(path: str, journaled: Journaled) -> str:
    """The name a file had when we wrote it last; its own where we did not."""
    if path in journaled:
        return path
    bare = _COUNTER.sub("", path)
    return next((one for one in reversed(list(journaled)) if _COUNTER.sub("", one) == bare), path)


def _memory(holders: Sequence[Holder], journaled: Journaled) -> tuple[Swap, ...]:
    """Our words, wherever we wrote them. The entry of a kernel that was installed later has them from there.

    Entries that are gone are asked, too: their words may live on in those that came after them.
    """
    known: dict[str, Swap] = {}
    names = {_journaled_as(holder.path, journaled): holder for holder in holders}
    gone = {path: Holder(path, OPTIONS) for path in journaled if path not in names and "/loader/entries/" in path}
    mine = [(holder, *journaled[name]) for name, holder in {**names, **gone}.items() if name in journaled]
    # A file that we made started from another file's line, which may hold our words by now: it comes last.
    for holder, before, after in sorted(mine, key=lambda one: one[1] is None):
        for swap in _swaps_of(holder, before, after, tuple(known.values())):
            known.setdefault(swap.ours, swap)
    return tuple(known.values())


def _swaps_of(holder: Holder, before: str | None, after: str, known: Sequence[Swap]) -> tuple[Swap, ...]:
    old, new = _lines_of(holder, before, known), holder.form.lines(after)
    return () if isinstance(old, str) or isinstance(new, str) else swaps(old, new)


def our_words(look: Callable[[Sysroot], Look], root: Sysroot, journaled: Journaled) -> tuple[str, ...]:
    """Our words that still stand in one of the files; the words of an entry that is gone do not count."""
    holders = look(root).holders
    known = _memory(holders, journaled)
    stand: set[str] = set()
    for holder in holders if known else ():
        with suppress(OSError):  # plan_edits says so
            lines = holder.form.lines(read(root, holder.path) or "")
            stand |= set() if isinstance(lines, str) else set(split(" ".join(lines)))
    return tuple(swap.ours for swap in known if swap.ours in stand)


def line_without_ours(look: Callable[[Sysroot], Look], root: Sysroot, line: str, journaled: Journaled) -> str:
    """A line that may have our words, from one of the files or from a later one that was made of it, without them."""
    return take_out((line,), _memory(look(root).holders, journaled))[0]


def without_ours(look: Callable[[Sysroot], Look], root: Sysroot, journaled: Journaled) -> tuple[Write, ...]:
    """The files that still hold words of ours, without them."""
    holders = look(root).holders
    known = _memory(holders, journaled)
    found = []
    for holder in holders:
        text = read(root, holder.path)
        clean = _pristine(holder, text, journaled, known)
        if text is not None and clean is not None and clean != text:
            found.append(Write("edit", holder.path, clean, clean))
    return tuple(found)
