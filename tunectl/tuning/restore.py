"""The journal backwards: the earlier value returns where the host still shows ours; the rest is reported."""

from difflib import ndiff
from typing import NamedTuple

from tunectl.bootloader.families import stripped
from tunectl.host.ethtool import PREFIX
from tunectl.host.scheduling import identity, is_another, name_in, named_as, parse_scheduling, scheduling_of
from tunectl.host.sysroot import Sysroot
from tunectl.host.writable import WritableSysroot
from tunectl.model import Target
from tunectl.tuning.apply import GONE, current, write
from tunectl.tuning.commands import run_commands
from tunectl.tuning.journal import Journal
from tunectl.tuning.records import Entry
from tunectl.units import DIRECTORY
from tunectl.wording import few

_GONE = {**GONE, "edit": "it was removed, and so was what we had written there"}
_NEITHER = "it holds neither our value nor the earlier one"
_MOVERS = ": irqbalance, where it runs, and the card's driver move interrupts"
_UNKNOWN = f"apply was ended at this write; {_NEITHER}: the kernel showed ours so, or somebody else wrote it"
_EXACT = ("file", "link", "edit")  # they hold what was written: no kernel shows it in another form


BECAME = ["restored", "would-restore", "already", "changed-since", "gone", "failed"]


class Restored(NamedTuple):
    """What became of one file."""

    path: str
    targets: tuple[Target, ...]
    result: str  # BECAME
    observed: str | None
    before: str | None
    message: str = ""


class Outcome(NamedTuple):
    """What a run of restore did."""

    results: list[Restored]
    not_run: list[str]
    failed_commands: list[str]
    drop_ins: tuple[str, ...] = ()  # somebody's, of our units: they stay

    @property
    def complete(self) -> bool:
        """Is nothing left to be tried again?"""
        return not self.failed_commands and all(row.result != "failed" for row in self.results)


class _File(NamedTuple):
    """All that the journal knows of one path."""

    first: Entry  # its before-image is what to bring back
    last: Entry  # what we wrote last
    in_flight: bool  # nobody knows whether the last write was made, or how the kernel shows it
    forced: bool = False  # it is brought back whatever it holds


def files(journal: Journal, boot_id: str) -> list[_File]:
    """The files to bring back: edits first, the others newest first. Runtime values of an earlier boot are gone."""
    known: dict[str, _File] = {}
    for _, entry in sorted(journal.entries.items()):
        if not entry.persistent and entry.boot_id != boot_id:
            continue
        if entry.errno is not None:  # the write was not made
            continue
        earlier = known.get(entry.path)
        first = entry._replace(before=entry.original)
        if earlier and not _is_another(earlier, entry):
            first = earlier.first
        gone = entry.kind == "value" and not entry.shown  # our write removed this queue: nobody has set it since
        known[entry.path] = _File(first, entry, entry.shown is None or gone)
    edits = [file for file in known.values() if file.first.kind == "edit"]
    others = [file for file in known.values() if file.first.kind != "edit"]
    # Edits are undone in the order they were made: 20-grub.install goes by which of two settings files is the newer.
    return [*edits, *sorted(others, key=lambda file: file.first.seq, reverse=True)]


def _is_another(earlier: _File, entry: Entry) -> bool:
    """Is what a later apply found to be brought back? What the operator made of his own file; another thread."""
    if entry.kind == "scheduling":  # the number of a thread that ended is another's by now
        return identity(entry.before or "") != identity(earlier.first.before or "")
    if entry.kind not in ("file", "edit") or entry.before is None or earlier.in_flight:
        return False
    if entry.kind == "file" and earlier.first.before is None:  # the file is ours as a whole
        return False
    return entry.before not in (earlier.last.after, earlier.last.shown, earlier.first.before)


def restore(
    root: WritableSysroot, journal: Journal, boot_id: str, *, force: bool = False, early: bool = False
) -> Outcome:
    """Brings back every file (`force`: also what was changed since), and runs the programs that depend on it.

    `early` in a boot no service is there yet that would have to be restarted.
    """
    known = files(journal, boot_id)
    results = [_one(root, file._replace(forced=force)) for file in known]
    if any(result.path.startswith(f"/{PREFIX}") and result.result == "restored" for result in results):
        # A NIC whose rings or channels are written sets up its queues and interrupts again. A value that was
        # restored already may be lost, and a queue that was gone may be there again.
        results = [_again(root, file, result) for file, result in zip(known, results, strict=True)]
    results = _strip(root, journal, results, root)
    # An earlier restore may have ended before the program was run.
    done = {result.path for result in results if result.result in ("restored", "already")}
    commands = [
        name for file in known if "/" + file.first.path in done for name in file.first.commands or file.last.commands
    ]
    commands.sort(key=lambda name: name != "reload-systemd")  # systemd must know a unit before it is restarted
    notified = run_commands(root, commands, early=early)
    return Outcome(results, notified.not_run, list(notified.failed.values()), _drop_ins(root, results))


def preview(root: Sysroot, journal: Journal, boot_id: str, *, force: bool = False) -> Outcome:
    """What restore() would do: it only reads."""
    known = files(journal, boot_id)
    looked = [_look(root, file._replace(forced=force)) for file in known]
    results = _strip(root, journal, looked, None)
    return Outcome(results, [], [], _drop_ins(root, results))


def _drop_ins(root: Sysroot, results: list[Restored]) -> tuple[str, ...]:
    """Whatever stands beside the units of ours: no apply wrote it."""
    units = (row.path for row in results if row.path.startswith(f"/{DIRECTORY}/tunectl-"))
    return tuple(f"/{path}" for unit in units for path in root.walk(f"{unit[1:]}.d"))


def _again(root: WritableSysroot, file: _File, earlier: Restored) -> Restored:
    """Restores a kernel attribute once more, unless somebody else had changed it before the first time."""
    if file.first.persistent or earlier.result not in ("restored", "already", "gone"):
        return earlier
    later = _one(root, file._replace(forced=True))
    return earlier if later.result in ("already", "gone") else later


def _strip(root: Sysroot, journal: Journal, results: list[Restored], to: WritableSysroot | None) -> list[Restored]:
    """Removes our words from boot files that somebody edited since, and from entries that were made of ours since.

    Without a host to write `to` the result says only what would go.
    """
    known = {result.path: result for result in results}
    try:
        for change in stripped(root, journal.edits()):
            earlier = known.get("/" + change.path)
            if earlier and earlier.result == "would-restore":
                continue
            observed = current(root, change.kind, change.path)
            if to:
                write(to, change.kind, change.path, change.content)
            word, verb = ("restored", "were") if to else ("would-restore", "would be")
            message = f"it was changed since: our boot arguments {verb} taken out of it, and the rest left as it is"
            targets = earlier.targets if earlier else ()
            known["/" + change.path] = Restored("/" + change.path, targets, word, observed, change.content, message)
    except OSError as error:
        where = error.filename or "the boot entries"
        known["boot"] = Restored(str(where), (), "failed", None, None, f"{where}: {error.strerror}")
    return list(known.values())


def _one(root: WritableSysroot, file: _File) -> Restored:
    first = file.first
    restored = Restored("/" + first.path, _targets(file), "failed", None, first.before)
    try:
        root.sweep(first.path)
        restored = _look(root, file)
        if restored.result == "already" and first.persistent:
            root.sync(first.path)  # an earlier restore may have ended before that: then the journal has to outlive it
        if restored.result != "would-restore":
            return restored
        word, observed, message = _write(root, first, restored.observed)
    except OSError as error:
        word, observed, message = "failed", None, f"{root.path(first.path)}: {error.strerror}"
    return restored._replace(result=word, observed=observed, message=message or restored.message)


def _look(root: Sysroot, file: _File) -> Restored:
    first, last = file.first, file.last
    before = first.before

    def result(word: str, observed: str | None, message: str = "") -> Restored:
        return Restored("/" + first.path, _targets(file), word, observed, before, message)

    try:
        observed = current(root, first.kind, first.path)
        if observed == before or _undone(first, observed):
            return result("already", observed)
        if _is_gone(root, first, observed) and first.kind in _GONE:
            return result("gone", None, _GONE[first.kind] + _instead(root, first))
        if file.forced or _ours(observed, last) or _undone(first, observed) is not None:
            return result("would-restore", observed)
        if not file.in_flight:
            what = f"somebody edited it ({_edits(observed, last)})" if first.kind == "file" and observed else _NEITHER
            what += _MOVERS if first.path.startswith("proc/irq/") else ""
            return result("changed-since", observed, f"{what}; left alone")
        if observed is not None and observed == last.before:  # what an earlier apply wrote: this one did not come to it
            return result("would-restore", observed)
        if first.kind in _EXACT:
            return result(
                "changed-since", observed, f"{_NEITHER}: somebody changed it after apply was ended; left alone"
            )
        return result("would-restore", observed, _UNKNOWN if observed is not None else "")
    except OSError as error:
        return result("failed", None, f"{root.path(first.path)}: {error.strerror}")


def _edits(observed: str, last: Entry) -> str:
    """The lines that are not as we wrote them: `-Nice=0, +Nice=5`."""
    return few(
        [f"{line[0]}{line[2:]}" for line in ndiff(last.after.splitlines(), observed.splitlines()) if line[0] in "+-"]
    )


def _is_gone(root: Sysroot, first: Entry, observed: str | None) -> bool:
    """Is there nothing at the path any more, or something else?"""
    if observed is None:
        return True
    if first.kind == "scheduling":
        return identity(observed) != identity(first.before or "")
    return first.kind == "affinity" and is_another(root, first.path, _names(first))


def _names(first: Entry) -> set[str]:
    """The names of the thread whose affinity was set, where its target is the name and not the number."""
    return {target.instance for target in first.targets if not target.instance.isdecimal()}


def _instead(root: Sysroot, first: Entry) -> str:
    """What the interrupt of a thread that ended has now: the kernel starts a new one where it is requested again."""
    if first.kind != "scheduling" or not first.before:
        return ""
    now = [f"pid {thread.pid}, {scheduling_of(thread)}" for thread in named_as(root, first.before)]
    was = f": {name_in(first.before)}, {parse_scheduling(first.before)} before apply"
    return was + (f"; another thread has its name now ({'; '.join(now)})" if now else "")


def _targets(file: _File) -> tuple[Target, ...]:
    return tuple(dict.fromkeys((*file.first.targets, *file.last.targets)))


def _ours(observed: str | None, last: Entry) -> bool:
    if observed is None:  # a file of ours that somebody removed already
        return False
    return observed.strip() in (last.after.strip(), (last.shown or last.after).strip())


def _undone(entry: Entry, observed: str | None) -> bool | None:
    """Is our word out of a list of controllers again, whatever other words it holds? None for any other file."""
    if not entry.path.endswith("/cgroup.subtree_control") or entry.kind != "value" or observed is None:
        return None
    return (entry.undo[1:] in observed.split()) is entry.undo.startswith("+")


def _write(root: WritableSysroot, first: Entry, observed: str | None) -> tuple[str, str | None, str]:
    """Puts the before-image back. Returns the result, what the path held before, and a message."""
    if first.kind == "directory":
        removed = root.remove_directory(first.path)
        message = "" if removed else "it holds what is not ours, and stays"
        return ("restored" if removed else "already"), observed, message
    if first.before is None:
        root.remove(first.path, link=first.kind == "link")
    elif first.kind == "link":
        root.make_link(first.path, first.before)
    elif first.kind == "affinity":
        root.move_thread(first.path, first.undo)
    elif first.kind == "scheduling":
        root.reschedule(first.path, first.undo)
    elif first.kind != "value":
        root.replace_file(first.path, first.before.encode("latin-1"), first.mode)
    else:
        root.write_back(first.path, first.before.encode("latin-1"), first.undo, first.mode)
        after = current(root, first.kind, first.path)
        if after != first.before and (after or "").strip() != first.undo.strip() and not _undone(first, after):
            return "failed", after, f"wrote {first.undo}, and the kernel shows {(after or '').strip()}"
    return "restored", observed, ""
