"""A family of files that are edited in place: our words merged in, told from the operator's, and taken out again."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from tunectl.bootloader.cmdline import length_problem, lookup, parse_cmdline
from tunectl.bootloader.family import BootPlan, Family, Holder, Journaled, Look, Write
from tunectl.bootloader.forms import OPTIONS
from tunectl.bootloader.words import Desired, Lines, Same, Swap, given, merge, split, swaps, take_out
from tunectl.host.sysroot import ABSENT_ERRNOS, Sysroot

# Boot counting renames an entry at each boot (tries left, tries done), and once more when a boot was good.
_COUNTER = re.compile(r"\+[0-9]+(?:-[0-9]+)?(?=\.conf\Z)")


def files_family(look: Callable[[Sysroot], Look], commands: tuple[str, ...] = (), remedy: str = "") -> Family:
    """A family whose configuration is files that are edited in place."""
    return Family(
        lambda root: look(root).upcoming,
        partial(plan_edits, look),
        partial(our_words, look),
        partial(without_ours, look),
        commands,
        remedy,
    )


def read(root: Sysroot, path: str) -> str | None:
    """A file's bytes as latin-1 text, which every byte survives; None where there is none. OSError otherwise."""
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
    conflicts: list[str] = []
    for holder in found.holders:
        try:
            text = read(root, holder.path)
        except OSError as error:
            return BootPlan(problem=f"cannot read /{holder.path}: {error.strerror}")
        lines = holder.form.lines(text or "")
        if isinstance(lines, str):
            return BootPlan(problem=f"/{holder.path}: {lines}")
        clean = _pristine(holder, text, journaled, known)
        merged = merge(_start(holder, clean, known), desired, same)
        conflicts += _unmet(holder, merged, desired, same)
        if too_long := length_problem(f"{holder.lead} {_as_booted(holder, merged)}".strip()):
            return BootPlan(problem=f"/{holder.path}: {too_long}")
        content = holder.form.render(clean or "", merged)
        if content != (text or ""):
            writes.append(Write("edit", holder.path, content, clean))
    return BootPlan(tuple(writes), tuple(conflicts))


def _start(holder: Holder, clean: str | None, known: Sequence[Swap]) -> Lines:
    """The lines without us: of the file, or of what it is made from where it is not there."""
    if clean is None:
        return take_out((holder.new or "",), known)
    lines = holder.form.lines(clean)
    assert not isinstance(lines, str)  # it was read before our words were taken out
    return lines


def _as_booted(holder: Holder, lines: Lines) -> str:
    line = " ".join(lines)
    return holder.expand(line) if holder.expand else line


def _unmet(holder: Holder, lines: Lines, desired: Sequence[Desired], same: Same) -> list[str]:
    args = parse_cmdline(_as_booted(holder, lines))
    told = []
    for want in desired:
        if not given(args, want, same):
            winner = lookup(args, want[0], want[2])
            # Our word is in force among the file's own, so only a variable can have brought another.
            told.append(
                f"{winner.arg if winner else 'a variable'} in /{holder.path}, by a variable, wins: {want[2].value}"
            )
    return told


def _pristine(holder: Holder, text: str | None, journaled: Journaled, known: Sequence[Swap]) -> str | None:
    """The file as it would be without us: the before-image, or where somebody edited it since, that less our words."""
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
    """Our words, wherever we wrote them. The entry of a kernel installed since took them over from there.

    Entries that are gone are asked, too: their words may live on in those that came after them.
    """
    known: dict[str, Swap] = {}
    names = {_journaled_as(holder.path, journaled): holder for holder in holders}
    gone = {path: Holder(path, OPTIONS) for path in journaled if path not in names and "/loader/entries/" in path}
    mine = [(holder, *journaled[name]) for name, holder in {**names, **gone}.items() if name in journaled]
    # A file that we made started from another's line, which may have ours in it by now: it comes last.
    for holder, before, after in sorted(mine, key=lambda one: one[1] is None):
        for swap in _swaps_of(holder, before, after, tuple(known.values())):
            known.setdefault(swap.ours, swap)
    return tuple(known.values())


def _swaps_of(holder: Holder, before: str | None, after: str, known: Sequence[Swap]) -> tuple[Swap, ...]:
    old = take_out((holder.new or "",), known) if before is None else holder.form.lines(before)
    new = holder.form.lines(after)
    return () if isinstance(old, str) or isinstance(new, str) else swaps(old, new)


def our_words(look: Callable[[Sysroot], Look], root: Sysroot, journaled: Journaled) -> tuple[str, ...]:
    """Our words, as they stand in the files; those of an entry that is gone are no longer asked for."""
    holders = look(root).holders
    known = _memory(holders, journaled)
    stand = {word for holder in holders for word in _words_of(holder, root)} if known else set()
    return tuple(swap.ours for swap in known if swap.ours in stand)


def _words_of(holder: Holder, root: Sysroot) -> list[str]:
    try:
        lines = holder.form.lines(read(root, holder.path) or "")
    except OSError:  # plan_edits says so
        return []
    return [] if isinstance(lines, str) else split(" ".join(lines))


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
