"""The plan through the journal: before-image on disk, write, read back. The only writer of the host, with restore."""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Literal, NamedTuple

from tunectl.errors import TunectlError, UsageError
from tunectl.host.scheduling import read_affinity, read_scheduling
from tunectl.host.sysroot import Sysroot
from tunectl.host.writable import WritableSysroot
from tunectl.knobs import KNOBS
from tunectl.knobs.row import Step, View
from tunectl.model import Change, Target
from tunectl.tuning.commands import Notified, run_commands
from tunectl.tuning.journal import Journal
from tunectl.tuning.records import OF_THE_BOOT, Entry

_GONE = (errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.ESRCH)
GONE = {
    "value": "the device or CPU was removed",
    "affinity": "the thread has ended",
    "scheduling": "the thread has ended",
}
_EXACT = ("file", "edit", "scheduling")  # what is read back is what was written
_REFUSALS = (errno.EIO, errno.EPERM)  # of a managed interrupt's affinity: before Linux 6.12, and since


class _RefusedError(OSError):
    """The kernel refused a write, and the same write once more."""


Became = Literal["changed", "refused", "failed"]


class Result(NamedTuple):
    """What became of one change."""

    change: Change
    result: Became
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
    failed: list[str]  # programs that could not be run after a change


def decide_open_writes(root: WritableSysroot, journal: Journal) -> None:
    """Decides whether the writes were made during which an earlier run was killed."""
    for seq, entry in list(journal.entries.items()):
        if entry.shown is None and entry.errno is None:
            root.sweep(entry.path)
            _decide(root, journal, seq)


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
    notified = notify(root, journal)
    for step in made:
        problem = "; ".join(notified.failed[name] for name in step.commands if name in notified.failed)
        problem = problem or (step.read_back(root) if step.read_back else None) or ""
        if problem:
            results.update({change.target: Result(change, "failed", None, problem) for change in step.changes})
    ordered = [results.get(change.target, Result(change, "failed", None, "no way to write it")) for change in changes]
    return Applied(ordered, notified.not_run, list(notified.failed.values()))


def write_own_files(root: WritableSysroot, steps: Sequence[Step], journal: Journal, boot_id: str) -> Notified:
    """Files that no setting asks for, through the journal. TunectlError or OSError where one does not stand then."""
    for step in steps:
        for directory in _missing_directories(root, step):
            _journaled(root, step._replace(kind="directory", path=directory, commands=()), journal, boot_id)
        if problem := _journaled(root, step, journal, boot_id):
            raise TunectlError(problem)
    return notify(root, journal)


def pending_notifications(journal: Journal) -> dict[int, tuple[str, ...]]:
    """The commands of the entries whose programs have not been run since the change, perhaps in an earlier run."""
    return {
        seq: entry.commands
        for seq, entry in journal.entries.items()
        if entry.commands and entry.shown is not None and not entry.notified
    }


def notify(root: WritableSysroot, journal: Journal) -> Notified:
    """Runs the programs that depend on the journaled changes, and journals for which entries that is done."""
    waiting = pending_notifications(journal)
    notified = run_commands(root, (name for names in waiting.values() for name in names))
    done = [seq for seq, names in waiting.items() if not any(name in notified.failed for name in names)]
    if done:
        journal.notified(done)
    return notified


def _make(root: WritableSysroot, step: Step, journal: Journal, boot_id: str) -> Result:
    """One step, with what it changes elsewhere."""
    try:
        for directory in _missing_directories(root, step):
            _journaled(root, step._replace(kind="directory", path=directory, commands=()), journal, boot_id)
        first, *others = root.writes(step.kind, step.path, step.content)
        writes = [step._replace(content=first.content)]
        writes += [step._replace(codec=None, commands=(), **other._asdict()) for other in others]
        problem = ""
        side_effects = _before_side_effects(root, step, journal, boot_id)
        try:
            for write in writes:
                problem = problem or _journaled(root, write, journal, boot_id)
        finally:
            for seq in side_effects:
                _decide(root, journal, seq)
    except OSError as error:
        return _failed(root, step, error)
    return Result(step.changes[0], "failed" if problem else "changed", None, problem)


def _before_side_effects(root: WritableSysroot, step: Step, journal: Journal, boot_id: str) -> list[int]:
    """Before-images of what the kernel may reset along with the step, on disk before it does."""
    numbers = []
    for path in step.resets:
        try:
            entry = before_image(root, step._replace(path=root.real(path), codec=None, commands=()), boot_id)
        except OSError as error:
            if error.errno in (errno.EIO, errno.EINTR):
                raise
            continue  # a queue that has no such choice
        numbers.append(journal.before(entry._replace(after=entry.undo)))
    return numbers


def _journaled(root: WritableSysroot, step: Step, journal: Journal, boot_id: str) -> str:
    """Before-image, write, read back: "" or what is wrong with the value that now stands."""
    entry = before_image(root, step, boot_id)
    seq = journal.before(entry)
    try:
        _write(root, step)
    except OSError as error:
        with suppress(OSError):
            _decide(root, journal, seq, error.errno or errno.EIO)
        raise
    shown = current(root, step.kind, step.path)
    journal.after(seq, shown or "")
    return _read_back(step, shown)


def _write(root: WritableSysroot, step: Step) -> None:
    """The write; where it is answered as a managed interrupt answers, once more: an error that passes is no refusal."""
    try:
        write(root, step.kind, step.path, step.content)
    except OSError as error:
        if not _is_refusal(step, error):
            raise
        try:
            write(root, step.kind, step.path, step.content)
        except OSError as again:
            raise _RefusedError(*again.args) if _is_refusal(step, again) else again from error


def _is_refusal(step: Step, error: OSError) -> bool:
    return step.refusable and error.errno in _REFUSALS


def _decide(root: WritableSysroot, journal: Journal, seq: int, number: int = errno.EINTR) -> None:
    """Journals whether a write was made, by what the host shows now.

    A write may have been made although a call failed: the rename before the failed sync of its directory. OSError
    where the host cannot be read: the write then stays open in the journal, and restore() brings the file back
    whatever it holds.
    """
    entry = journal.entries[seq]
    shown = current(root, entry.kind, entry.path)
    if shown == entry.before:
        journal.refused(seq, number)
    else:
        journal.after(seq, shown or "")


def before_image(root: WritableSysroot, step: Step, boot_id: str) -> Entry:
    """What the step's path holds, and how to bring it back. OSError where an attribute cannot be read."""
    before = current(root, step.kind, step.path)
    if before is None and step.kind in OF_THE_BOOT:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), root.path(step.path))
    undo = before or ""
    if step.kind == "edit":
        undo = step.pristine or ""
    if step.kind in OF_THE_BOOT:
        try:
            undo = step.codec.encode(step.codec.decode(undo)) if step.codec else undo.strip()
        except (ValueError, UsageError):
            undo = undo.strip()
    targets = tuple(Target(change.knob, change.instance) for change in step.changes)
    mode = root.checked_mode(step.path)
    return Entry(0, boot_id, step.kind, step.path, before, undo, step.content, mode, targets, step.commands)


def current(root: Sysroot, kind: str, path: str) -> str | None:
    """The bytes of a file as latin-1 text, a link's target, "directory"; None where nothing is there.

    OSError where that cannot be known.
    """
    if kind == "directory":
        return "directory" if root.stands(path) else None
    if kind == "affinity":
        return read_affinity(root, path)
    if kind == "scheduling":
        return read_scheduling(root, path)
    if kind == "link" and (target := root.link_target(path)) is not None:
        return target
    try:
        return root.read_bytes(path).decode("latin-1")
    except FileNotFoundError:
        return None


def write(root: WritableSysroot, kind: str, path: str, content: str) -> None:
    """Puts the content in place, each kind in its own atomic way."""
    if kind == "value":
        root.write_value(path, content + "\n")
    elif kind == "affinity":
        root.move_thread(path, content)
    elif kind == "scheduling":
        root.reschedule(path, content)
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


def _missing_directories(root: WritableSysroot, step: Step) -> list[str]:
    missing: list[str] = []
    directory = step.path.rpartition("/")[0]
    while step.kind in ("file", "link", "edit") and directory and not root.stands(directory):
        missing.append(directory)
        directory = directory.rpartition("/")[0]
    return missing[::-1]


def _read_back(step: Step, shown: str | None) -> str:
    if step.kind == "removal":
        return f"/{step.path} is still there" if shown is not None else ""
    if step.kind not in OF_THE_BOOT or step.codec is None:
        differs = step.kind in _EXACT and shown != step.content
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
            f"cannot write {where}: {os.strerror(number)}",
            "what was changed before that, `sudo tunectl restore` undoes",
        ) from error
    if isinstance(error, _RefusedError):
        return Result(first, "refused", number, "the kernel manages this interrupt itself")
    if number in _GONE:
        what = GONE.get(step.kind, GONE["value"])
        return Result(first, "failed", number, f"{where} went away: {what}")
    if number == errno.EPERM and _locked_down(root):
        return Result(first, "refused", number, "refused by kernel lockdown")
    return Result(first, "failed", number, f"cannot write {where}: {os.strerror(number)}")


def _locked_down(root: WritableSysroot) -> bool:
    state = root.get("sys/kernel/security/lockdown")
    return bool(state) and "[none]" not in state
