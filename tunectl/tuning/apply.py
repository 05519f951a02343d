"""The plan through the journal: before-image on disk, write, read back. The only writer of the host, with restore."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import NamedTuple

from tunectl.errors import TunectlError, UsageError
from tunectl.host.affinity import move_thread, read_affinity, with_affinity
from tunectl.host.echo import as_shown, born, echoes
from tunectl.host.sysroot import Sysroot, WritableSysroot
from tunectl.knobs import KNOBS
from tunectl.knobs.row import Step, View
from tunectl.model import Change, Target
from tunectl.tuning.commands import Told, run_commands
from tunectl.tuning.journal import Journal
from tunectl.tuning.records import Entry

_GONE = (errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.ESRCH)
_VALUES = ("value", "affinity")


class Result(NamedTuple):
    """What became of one change."""

    change: Change
    result: str  # changed, refused, failed
    errno: int | None = None
    message: str = ""

    @property
    def gone(self) -> bool:
        """The target went away between plan and apply: there is nothing left to be wrong."""
        return self.errno in _GONE


class Applied(NamedTuple):
    """What a run of apply did."""

    results: list[Result]
    not_run: list[str]
    failed: list[str]  # programs that could not be told of a change


def settle(root: WritableSysroot, journal: Journal) -> None:
    """Decides what became of the writes during which an earlier run was killed, by what the host shows."""
    for seq, entry in list(journal.entries.items()):
        if entry.shown is None and entry.errno is None:
            if entry.persistent or not root.live:
                root.sweep(entry.path)
            stands = current(root, entry.kind, entry.path)
            if stands == entry.before:
                journal.refused(seq, errno.EINTR)
            else:
                journal.after(seq, stands or "")


def steps_of(view: View, changes: Sequence[Change]) -> Iterator[Step]:
    """The files to write, in the order of the changes; changes of one kind of driver are handed over together."""
    for _, group in groupby(changes, key=lambda change: type(KNOBS[change.knob].driver)):
        batch = [(KNOBS[change.knob], change) for change in group]
        yield from batch[0][0].driver.steps(view, batch)


def execute(root: WritableSysroot, view: View, changes: Sequence[Change], journal: Journal, boot_id: str) -> Applied:
    """Makes the changes. TunectlError where the host or the disk stops all of it: what was done stays journaled."""
    results: dict[str, Result] = {}
    written: dict[tuple[str, str], Result] = {}
    made: list[Step] = []
    for step in steps_of(view, changes):
        real = root.real(step.path) if step.kind == "value" else step.path
        result = written.get((real, step.content))  # CPUs of one frequency policy share the file, and its fate
        if result is None:
            result = written[real, step.content] = _make(root, step._replace(path=real), journal, boot_id)
        for change in step.changes:
            earlier = results.get(change.target)
            if earlier is None or earlier.result == "changed":
                results[change.target] = result._replace(change=change)
        made.extend([step] if result.result == "changed" else [])
    told = tell(root, journal)
    for step in made:
        problem = "; ".join(told.failed[name] for name in step.commands if name in told.failed)
        problem = problem or (step.read_back(root) if step.read_back else None) or ""
        if problem:
            results.update({change.target: Result(change, "failed", None, problem) for change in step.changes})
    ordered = [results.get(change.target, Result(change, "failed", None, "no way to write it")) for change in changes]
    return Applied(ordered, told.not_run, list(told.failed.values()))


def untold(journal: Journal) -> dict[int, tuple[str, ...]]:
    """Entries whose programs have not heard of the change yet, in an earlier run perhaps: their commands."""
    return {
        seq: entry.commands
        for seq, entry in journal.entries.items()
        if entry.commands and entry.shown is not None and not entry.told
    }


def tell(root: WritableSysroot, journal: Journal) -> Told:
    """Runs the programs that must hear of the journaled changes, and notes which have."""
    waiting = untold(journal)
    told = run_commands(root, (name for names in waiting.values() for name in names))
    heard = [seq for seq, names in waiting.items() if not any(name in told.failed for name in names)]
    if heard:
        journal.told(heard)
    return told


def _make(root: WritableSysroot, step: Step, journal: Journal, boot_id: str) -> Result:
    """One step, with what a recorded host's kernel would have changed along with it."""
    first = step.changes[0]
    try:
        for directory in _missing_directories(root, step):
            _journaled(root, step._replace(kind="directory", path=directory, commands=()), journal, boot_id)
        writes = [step]
        if not root.live and step.kind == "value":
            echoed = echoes(root, step.path, step.content)
            writes = [step._replace(content=as_shown(root, step.path, step.content))]
            writes += [step._replace(path=path, content=text, codec=None) for path, text in echoed]
        if not root.live and step.kind == "directory":
            writes += [Step("file", path, text, step.changes) for path, text in born(root, step.path)]
        problem = ""
        witnesses = _witnessed(root, step, journal, boot_id)
        try:
            for write in writes:
                problem = problem or _journaled(root, write, journal, boot_id)
        finally:
            _settle_witnesses(root, journal, witnesses)
    except OSError as error:
        return _failed(root, step, error)
    return Result(first, "failed" if problem else "changed", None, problem)


def _witnessed(root: WritableSysroot, step: Step, journal: Journal, boot_id: str) -> list[int]:
    """Before-images of what the kernel may set anew along with the step, on disk before it does."""
    numbers = []
    for path in step.resets:
        with suppress(OSError):  # a queue that has no such choice
            beside = step._replace(path=root.real(path), codec=None, commands=())
            entry = before_image(root, beside, boot_id)
            numbers.append(journal.before(entry._replace(after=entry.undo)))
    return numbers


def _settle_witnesses(root: WritableSysroot, journal: Journal, numbers: list[int]) -> None:
    """What the kernel left as it was, is nothing to restore."""
    for seq in numbers:
        entry = journal.entries[seq]
        shown = current(root, entry.kind, entry.path)
        if shown == entry.before:
            journal.refused(seq, errno.EINTR)
        else:
            journal.after(seq, shown or "")


def _journaled(root: WritableSysroot, step: Step, journal: Journal, boot_id: str) -> str:
    """Before-image, write, read back: "" or what is wrong with the value that now stands."""
    entry = before_image(root, step, boot_id)
    seq = journal.before(entry)
    try:
        write(root, step.kind, step.path, step.content)
    except OSError as error:
        journal.refused(seq, error.errno or errno.EIO)
        raise
    shown = current(root, step.kind, step.path)
    journal.after(seq, shown or "")
    return _read_back(step, shown)


def before_image(root: WritableSysroot, step: Step, boot_id: str) -> Entry:
    """What stands at the step's path, and how to have it again. OSError where an attribute cannot be read."""
    before = current(root, step.kind, step.path)
    if before is None and step.kind in _VALUES:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), root.path(step.path))
    undo = before or ""
    if step.kind == "edit":
        undo = step.pristine or ""
    if step.kind in _VALUES:
        try:
            undo = step.codec.encode(step.codec.decode(undo)) if step.codec else undo.strip()
        except (ValueError, UsageError):
            undo = undo.strip()
    targets = tuple(Target(change.knob, change.instance) for change in step.changes)
    mode = root.mode(step.path)
    return Entry(0, boot_id, step.kind, step.path, before, undo, step.content, mode, targets, step.commands)


def current(root: Sysroot, kind: str, path: str) -> str | None:
    """The bytes of a file as latin-1 text, a link's target, "directory"; None where there is none."""
    if kind == "link":
        return root.readlink(path) or (None if not root.exists(path) else root.read_bytes(path).decode("latin-1"))
    if kind == "directory":
        return "directory" if root.exists(path) else None
    if kind == "affinity":
        return read_affinity(root, path)
    try:
        return root.read_bytes(path).decode("latin-1")
    except FileNotFoundError:
        return None


def write(root: WritableSysroot, kind: str, path: str, content: str) -> None:
    """Puts the content in place, each kind in its own atomic way."""
    if kind == "value":
        root.write_value(path, content + "\n")
    elif kind == "affinity":
        _move(root, path, content)
    elif kind == "file":
        root.replace_file(path, content.encode("utf-8"), None)
    elif kind == "edit":
        root.replace_file(path, content.encode("latin-1"), None)  # any byte may stand around our words
    elif kind == "link":
        root.make_link(path, content)
    elif kind == "removal":
        root.remove(path)
    else:
        root.make_directory(path)


def _move(root: WritableSysroot, path: str, cpus: str) -> None:
    if root.live:
        move_thread(path, cpus)
    else:
        root.replace_file(path, with_affinity(root.read_text(path), cpus).encode(), None)


def _missing_directories(root: WritableSysroot, step: Step) -> list[str]:
    missing: list[str] = []
    directory = step.path.rpartition("/")[0]
    while step.kind in ("file", "link", "edit") and directory and not root.exists(directory):
        missing.append(directory)
        directory = directory.rpartition("/")[0]
    return missing[::-1]


def _read_back(step: Step, shown: str | None) -> str:
    if step.kind == "removal":
        return f"/{step.path} is still there" if shown is not None else ""
    if step.kind not in _VALUES or step.codec is None:
        differs = step.kind in ("file", "edit") and shown != step.content
        return f"/{step.path} does not hold what was written" if differs else ""
    try:
        stands = step.codec.decode(shown or "")
        if stands == step.codec.decode(step.content):
            return ""
        return f"wrote {step.content}, and the kernel made it {step.codec.show(stands)}"
    except (ValueError, UsageError) as error:
        return f"/{step.path} cannot be read back: {error}"


def _failed(root: WritableSysroot, step: Step, error: OSError) -> Result:
    """Refused by the kernel, or failed; a host that cannot be written at all ends the run."""
    first = step.changes[0]
    number = error.errno or errno.EIO
    where = root.path(step.path)
    if number in (errno.EROFS, errno.ENOSPC, errno.EDQUOT):
        raise TunectlError(
            f"cannot write {where}: {os.strerror(number)}", "what was changed before that, `tunectl restore` undoes"
        ) from error
    if step.refusable and number in (errno.EIO, errno.EPERM) and (os.geteuid() == 0 or not root.live):
        return Result(first, "refused", number, "the kernel manages this interrupt itself")
    if number in _GONE:
        return Result(first, "failed", number, f"{where} went away: the device or CPU was removed")
    if number == errno.EPERM and _locked_down(root):
        return Result(first, "refused", number, "refused by kernel lockdown")
    return Result(first, "failed", number, f"cannot write {where}: {os.strerror(number)}")


def _locked_down(root: WritableSysroot) -> bool:
    state = root.get("sys/kernel/security/lockdown")
    return bool(state) and "[none]" not in state
