"""The journal backwards: the earlier value where ours still stands, and a word about the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tunectl.host.sysroot import Sysroot, WritableSysroot
from tunectl.tuning.apply import current
from tunectl.tuning.commands import run_commands
from tunectl.tuning.journal import Journal
from tunectl.tuning.records import Entry


class Restored(NamedTuple):
    """What became of one file."""

    path: str
    targets: tuple[str, ...]
    result: str  # restored, would-restore, already, changed-since, gone, failed
    observed: str | None
    before: str | None
    message: str = ""


class Outcome(NamedTuple):
    """What a run of restore did."""

    results: list[Restored]
    not_run: list[str]
    failed_commands: list[str]


class _File(NamedTuple):
    """All the journal knows of one path: the first before-image counts, and our newest value."""

    first: Entry
    last: Entry
    in_flight: bool  # the newest write may or may not have happened


def files(journal: Journal, boot_id: str) -> list[_File]:
    """The files to bring back, newest first. Runtime values of an earlier boot died with it."""
    known: dict[str, _File] = {}
    for _, entry in sorted(journal.entries.items()):
        if not entry.persistent and entry.boot_id != boot_id:
            continue
        if entry.errno is not None:  # the write was not made
            continue
        earlier = known.get(entry.path)
        first = earlier.first if earlier and not _edited_between(earlier, entry) else entry
        known[entry.path] = _File(first, entry, entry.shown is None)
    return sorted(known.values(), key=lambda file: file.first.seq, reverse=True)


def _edited_between(earlier: _File, entry: Entry) -> bool:
    """Did the operator change his own file between two applies? Then his newest text is what to bring back."""
    if entry.kind != "file" or earlier.first.before is None or entry.before is None or earlier.in_flight:
        return False
    return entry.before not in (earlier.last.after, earlier.last.shown, earlier.first.before)


def restore(root: WritableSysroot, journal: Journal, boot_id: str, *, force: bool = False) -> Outcome:
    """Brings back every file (`force`: also what was changed since), and tells the programs that must hear of it."""
    results: list[Restored] = []
    commands: list[str] = []
    for file in files(journal, boot_id):
        result = _one(root, file._replace(in_flight=file.in_flight or force))
        results.append(result)
        if result.result in ("restored", "already"):  # an earlier restore may have ended before the program was told
            commands.extend(file.first.commands or file.last.commands)
    told = run_commands(root, _in_order(commands))
    return Outcome(results, told.not_run, list(told.failed.values()))


def preview(root: Sysroot, journal: Journal, boot_id: str, *, force: bool = False) -> Outcome:
    """What restore() would do, told from reading alone."""
    known = files(journal, boot_id)
    return Outcome([_look(root, file._replace(in_flight=file.in_flight or force)) for file in known], [], [])


def _in_order(names: Iterable[str]) -> list[str]:
    """systemd must know the units before one of them is restarted."""
    return sorted(dict.fromkeys(names), key=lambda name: name != "reload-systemd")


def _one(root: WritableSysroot, file: _File) -> Restored:
    first = file.first
    found = Restored("/" + first.path, _targets(file), "failed", None, first.before)
    try:
        if first.persistent or not root.live:
            root.sweep(first.path)
        found = _look(root, file)
        if found.result != "would-restore":
            return found
        word, observed, message = _write(root, first, found.observed)
    except OSError as error:
        word, observed, message = "failed", None, f"{root.path(first.path)}: {error.strerror}"
    return found._replace(result=word, observed=observed, message=message)


def _look(root: Sysroot, file: _File) -> Restored:
    first, last = file.first, file.last
    before = first.before

    def result(word: str, observed: str | None, message: str = "") -> Restored:
        return Restored("/" + first.path, _targets(file), word, observed, before, message)

    try:
        observed = current(root, first.kind, first.path)
        if observed == before:
            return result("already", observed)
        if observed is None and first.kind == "value":
            return result("gone", None, "the device or CPU was removed")
        if not file.in_flight and not _ours(observed, last):
            return result("changed-since", observed, "it holds neither our value nor the earlier one; left alone")
        return result("would-restore", observed)
    except OSError as error:
        return result("failed", None, f"{root.path(first.path)}: {error.strerror}")


def _targets(file: _File) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*file.first.knobs, *file.last.knobs)))


def _ours(observed: str | None, last: Entry) -> bool:
    if observed is None:  # a file of ours that somebody removed already
        return False
    return observed.strip() in (last.after.strip(), (last.shown or last.after).strip())


def _write(root: WritableSysroot, first: Entry, observed: str | None) -> tuple[str, str | None, str]:
    """Puts the before-image back; returns result, what stood, message."""
    if first.kind == "directory":
        removed = root.remove_directory(first.path)
        message = "" if removed else "it holds files that are not ours, and stays"
        return ("restored" if removed else "already"), observed, message
    if first.before is None:
        root.remove(first.path, link=first.kind == "link")
    elif first.kind == "link":
        root.make_link(first.path, first.before)
    elif first.kind in ("file", "removal") or not root.live:
        root.replace_file(first.path, first.before.encode("latin-1"), first.mode)
    else:
        root.write_value(first.path, first.undo + "\n")
        after = current(root, first.kind, first.path)
        if after != first.before and (after or "").strip() != first.undo.strip():
            return "failed", after, f"wrote {first.undo}, and the kernel shows {(after or '').strip()}"
    return "restored", observed, ""
