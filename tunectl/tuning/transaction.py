"""apply and restore as whole runs: the lock, the journal, the writes, and reading the host again."""

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple

from tunectl.command import argv
from tunectl.durable import remove_directories
from tunectl.errors import TunectlError
from tunectl.host.sysroot import Sysroot
from tunectl.host.writable import WritableSysroot
from tunectl.model import Outcome, Plan
from tunectl.shapes import now_utc
from tunectl.tuning import newest
from tunectl.tuning import restore as backwards
from tunectl.tuning.apply import Applied, Result, decide_open_writes, execute, notify, pending_notifications
from tunectl.tuning.commands import Notified, reload_monitor, run_commands
from tunectl.tuning.evidence import GONE, lasting, left_standing, missing, own_group
from tunectl.tuning.inspection import Inspection
from tunectl.tuning.journal import NAME, Journal, is_first, load, peek, require_roots
from tunectl.tuning.lock import DirectoryGoneError, hold, make_directory
from tunectl.tuning.loss import held_now
from tunectl.tuning.plan import runtime_part
from tunectl.tuning.takeback import Before
from tunectl.tuning.trial import CONFIRMED, WORSE, Trial, forget, read_trial
from tunectl.tuning.trial import NAME as TRIAL
from tunectl.wording import few, plural

# A driver may answer to a change by setting up new interrupts: they are moved in a second pass. And systemd and the
# kernel do some of what was asked of them after the call has returned: what is not in force yet is looked at again
# after these pauses.
_PAUSES_S = (0.0, 0.0, 0.0, 0.1, 0.3, 1.0)


class Run(NamedTuple):
    """What apply did, and how the host stands after it."""

    applied: Applied
    plan: Plan
    inspection: Inspection
    notes: tuple[str, ...] = ()  # what went wrong after it, and makes it no failure


class Around(NamedTuple):
    """What a run of apply does under its lock: before its first write, with what it did not run; and after its last.

    `always`: also where there is nothing to write. `judge` is handed how the host stood and what the run came to, and
    may take it back.
    """

    before: Callable[[Inspection, WritableSysroot], Notified] | None = None
    after: Callable[[Inspection], None] | None = None
    always: bool = False
    alone: bool = False  # no setting is written
    judge: Callable[[Plan, Run, Before], Run] | None = None


def require_root(root: WritableSysroot, purpose: str) -> None:
    """On the running host, writing needs root. TunectlError otherwise."""
    if root.live and os.geteuid() != 0:
        again = argv("sudo", "tunectl", purpose)
        raise TunectlError(f"{purpose} writes to /sys, /proc and /etc and needs root", again)


def run_apply(
    inspection: Inspection,
    root: WritableSysroot,
    state: str,
    *,
    runtime_only: bool,
    wait_s: float,
    adopt: bool = False,
    around: Around = Around(),  # noqa: B008 - a tuple
) -> Run:
    """Plan, apply, verify, under the lock; then the monitor is told. Nothing is made where nothing is to be changed.

    Where an earlier journal is gone, only with `adopt`: what stands now is then taken for the original.
    """
    locked = partial(_locked_apply, inspection, root, state, runtime_only, wait_s, adopt, around)
    try:
        run = locked()
    except DirectoryGoneError:  # the host is as it was before the apply that a restore has just undone
        run = locked()
    told = reload_monitor(root)
    applied = run.applied._replace(not_run=list(dict.fromkeys([*run.applied.not_run, *told.not_run])))
    return run._replace(applied=applied, notes=_old_settings(told))


def _old_settings(told: Notified) -> tuple[str, ...]:
    return tuple(f"the monitor goes on with the host file as it read it last: {why}" for why in told.failed.values())


def _locked_apply(
    inspection: Inspection,
    root: WritableSysroot,
    state: str,
    runtime_only: bool,
    wait_s: float,
    adopt: bool,
    around: Around,
) -> Run:
    plan = planned(inspection, runtime_only)
    begins = around.always or (adopt and inspection.journal_gone())
    if not plan.changes and not pending_notifications(inspection.journal) and not begins:
        return nothing_done(inspection, plan)
    with io_errors_end_the_run(), _state_directory(state) as created:
        require_private(root, state)
        with hold(state, wait_s):
            journal = load_own(root, state, inspection.identity.boot_id)
            require_whole(journal)
            inspection = inspection._replace(root=root, journal=journal)
            adopted = _adopted(inspection, adopt)
            first = is_first(journal, inspection.identity.boot_id)
            journal.prune(inspection.identity.boot_id)
            journal.start(inspection.identity.boot_id, root.root, created, adopted)
            journal.settle()
            with io_errors_end_the_run(journal):
                decide_open_writes(root, journal)
                told = around.before(inspection, root) if around.before else Notified([], {})
                if around.alone:
                    journal.end(inspection.identity.boot_id, inspection.own_words())
                    return nothing_done(inspection, plan, told.not_run)
                stood = Before(journal.held, journal.newest.words)
                run = _passes(inspection, root, runtime_only, first, told)
                run = around.judge(plan, run, stood) if around.judge else run
                if around.after:
                    around.after(inspection)
                return run


def nothing_done(inspection: Inspection, plan: Plan, not_run: Sequence[str] = ()) -> Run:
    """A run that wrote no setting."""
    return Run(Applied([], list(not_run), []), plan, inspection)


@contextmanager
def _state_directory(state: str) -> Iterator[tuple[str, ...]]:
    """Makes the state directory, and yields the directories that had to be made for it.

    Where the run ends before its first record, no journal knows of them, and they are removed again. Taking the lock
    once more removes the file of a lock that could not be taken.
    """
    created = make_directory(state)
    try:
        yield created
    except BaseException:
        journal = os.path.join(state, NAME)
        if created:
            with suppress(OSError, TunectlError), hold(state, 0):
                if os.path.lexists(journal) and not os.stat(journal).st_size:
                    os.unlink(journal)
            remove_directories(created)
        raise


@contextmanager
def io_errors_end_the_run(journal: Journal | None = None) -> Iterator[None]:
    """An error of the disk that no single change explains becomes a TunectlError.

    `journal`: of an apply that has begun. What it wrote by then restore undoes; of any other run it would undo nothing.
    """
    try:
        yield
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        undoes = "what was changed before that, `sudo tunectl restore` undoes"
        hint = undoes if journal and journal.has_written else None
        raise TunectlError(f"{where}{error.strerror or error}", hint) from error


def require_whole(journal: Journal) -> None:
    if journal.damaged:
        raise TunectlError(
            f"{journal.damage}; nothing was changed", "`sudo tunectl restore` brings back what the other lines tell"
        )


def _adopted(inspection: Inspection, adopt: bool) -> tuple[str, ...]:
    """What of an earlier apply this run takes for the original: all of it where a journal begins or `adopt` says so.

    What an earlier apply wrote must not pass for the original because nobody knows of it any more.
    """
    gone = inspection.journal_gone()
    if gone and not adopt:
        back = f"put {inspection.journal.path} back, or give the --state that the earlier apply had"
        hint = f"{back}, or take what stands now for the original: apply --adopt"
        raise TunectlError(f"{gone.reason}; nothing was changed", hint)
    if not (gone or inspection.journal.is_new):
        return ()
    stands = lasting(inspection.root, inspection.journal, inspection.config.bootloader)
    settled = map(os.path.basename, inspection.journal.lossy())
    return (*stands, *own_group(inspection.root), *settled)


def _passes(inspection: Inspection, root: WritableSysroot, runtime_only: bool, first: bool, told: Notified) -> Run:
    results: dict[str, Result] = {}
    earlier = notify(root, inspection.journal)
    not_run = dict.fromkeys([*told.not_run, *earlier.not_run])
    failed = dict.fromkeys(earlier.failed.values())
    plan = planned(inspection._replace(settling=first), runtime_only)
    before = plan
    again: set[str] = set()
    for pause_s in _PAUSES_S:
        if pause_s:
            time.sleep(pause_s)
            plan = planned(inspection, runtime_only)
        changes = [change for change in plan.changes if change.target not in results or change.target in again]
        if not changes and not unsettled(before, plan, results):
            break
        if not changes:
            continue
        applied = execute(root, inspection.view(), changes, inspection.journal, inspection.identity.boot_id)
        again = _once_more(applied, results)
        results.update({result.change.target: result for result in applied.results})
        not_run.update(dict.fromkeys(applied.not_run))
        failed.update(dict.fromkeys(applied.failed))
        plan = planned(inspection, runtime_only)
    journal = inspection.journal
    journal.hold(held_now(plan.findings, journal.in_force(), inspection.identity.kernel, now_utc()))
    journal.end(inspection.identity.boot_id, inspection.own_words())
    return Run(Applied(list(results.values()), list(not_run), list(failed)), plan, inspection)


def unsettled(before: Plan, now: Plan, results: Mapping[str, Result]) -> set[str]:
    """The targets that are not in force, though they were, or were written without an error. Pure."""
    hopeless = drifted(before) - {change.target for change in before.changes}
    refused = {target for target, result in results.items() if result.result != "changed"}
    return drifted(now) - hopeless - refused


def drifted(plan: Plan) -> set[str]:
    """The targets that drift. Pure."""
    return {finding.target for finding in plan.findings if finding.outcome is Outcome.DRIFTED}


def _once_more(applied: Applied, earlier: Mapping[str, Result]) -> set[str]:
    """The targets that were written for the first time and show something else: a later change may help them.

    systemd's own control groups give up CPUs only once systemd is notified, which is after the partition asks for them.
    """
    first = (result for result in applied.results if result.change.target not in earlier and not applied.failed)
    return {result.change.target for result in first if (result.result, result.errno) == ("failed", None)}


def planned(inspection: Inspection, runtime_only: bool) -> Plan:
    """What apply would change, and how every target stands."""
    plan = inspection.assess()
    return runtime_part(plan) if runtime_only else plan


def disarm(root: WritableSysroot, trial: Trial) -> Notified:
    """The next boot does not take our entry; and one that has taken it is not booted again because of that."""
    if trial.is_over or not trial.tries:
        return Notified([], {})
    return run_commands(root, ["stop-try" if trial.tries.boot_id else trial.tries.disarm])


class Undone(NamedTuple):
    """What restore did."""

    outcome: backwards.Outcome
    notes: list[str]
    complete: bool
    set_aside: bool
    standing: tuple[str, ...] = ()  # what of ours the journal did not name, and restore so left


def run_restore(root: WritableSysroot, state: str, boot_id: str, *, wait_s: float, force: bool = False) -> Undone:
    """The journal backwards, under the lock; then the journal goes. A damaged one is followed as far as it goes.

    What somebody changed since stays in the journal, to be restored by `force`.
    """
    with io_errors_end_the_run():
        if not _is_directory(state):
            return _without_journal(root, Journal(state)) or _nothing("nothing to restore: apply never ran here")
        try:
            undone = _locked_restore(root, state, boot_id, wait_s=wait_s, force=force)
        except DirectoryGoneError:
            return _without_journal(root, Journal(state)) or _nothing("nothing left to restore: another restore did it")
    told = reload_monitor(root)
    outcome = undone.outcome._replace(not_run=list(dict.fromkeys([*undone.outcome.not_run, *told.not_run])))
    return undone._replace(outcome=outcome, notes=[*undone.notes, *_old_settings(told)])


def _locked_restore(root: WritableSysroot, state: str, boot_id: str, *, wait_s: float, force: bool) -> Undone:
    require_private(root, state)
    with hold(state, wait_s) as lock:
        journal = load_own(root, state, boot_id)
        if lost := _without_journal(root, journal):
            return lost
        notes = _of_damage(journal)
        notes += [] if journal.entries else ["nothing to restore: the journal holds no change", *_kept_aside(journal)]
        group = own_group(root)
        disarmed = _disarm(root, state)
        outcome = backwards.restore(root, journal, boot_id, force=force)
        outcome = outcome._replace(not_run=[*disarmed.not_run, *outcome.not_run])
        notes += disarmed.failed.values()
        failed = not outcome.complete
        standing = () if failed else left_standing(root, journal, group)
        set_aside = bool(journal.damaged or standing)
        left = [result.path for result in outcome.results if result.result == "changed-since"]
        if not failed:  # before the journal goes: a trial without its journal could not be taken back
            forget(state, TRIAL, CONFIRMED, WORSE)
        if failed:
            notes.append(f"the journal {journal.path} is kept: run restore again once the cause is mended")
        elif set_aside:
            if not standing:
                newest.remove(state)
            notes.append(f"the {'damaged ' if journal.damaged else ''}journal is kept as {journal.set_aside()}")
        elif left:
            journal.held = None  # what is in force now is nobody's wish
            numbers = [seq for seq, entry in journal.entries.items() if "/" + entry.path in left]
            journal.keep(numbers, boot_id, "what was not changed since is restored: run `sudo tunectl restore` again")
            notes.append(
                "what was changed since stays in the journal: `sudo tunectl restore --force` brings it back, too"
            )
        elif journal.adopted and (original := [one for one in lasting(root, journal) if one in journal.adopted]):
            journal.held = None
            journal.keep((), boot_id, "everything was restored: run `sudo tunectl restore` again")
            notes.append(f"{journal.path} stays: it tells that `apply --adopt` took {few(original)} for the original")
        else:
            journal.remove()
            notes += _settled(journal)
        if journal.torn:
            notes.append("the journal's last line is cut off or unreadable")
        notes += _of_standing(standing)
    kept = [] if failed else journal.remove_directories(root.root)
    kept += [lock.trouble] if lock.trouble else []
    return Undone(outcome, [*notes, *kept], not (failed or kept or standing), set_aside, standing)


def _disarm(root: WritableSysroot, state: str) -> Notified:
    """No later boot is tried. A boot loader that finds its entry gone takes the default one: a failure is only told."""
    with suppress(TunectlError):  # a record that is not ours: the journal is restored all the same
        if trial := read_trial(state, root):
            return disarm(root, trial)
    return Notified([], {})


def _is_directory(path: str) -> bool:
    """OSError where that cannot be known: it must not pass for a host on which apply never ran."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def preview_restore(root: Sysroot, state: str, boot_id: str, *, force: bool) -> Undone:
    """What run_restore() would do. Nothing is locked, removed or written."""
    journal = peek(state)
    if lost := _without_journal(root, journal):
        return lost
    lacks = missing(root, journal)
    standing = lacks.signs if lacks else ()
    notes = ["nothing was written: --dry-run", *_of_damage(journal), *_of_standing(standing)]
    if journal.unreadable:
        notes.append(f"{journal.path} is root's: what there is to restore is not known here")
    outcome = backwards.preview(root, journal, boot_id, force=force)
    return Undone(outcome, notes, not (journal.unreadable or standing), bool(journal.damaged), standing)


def load_own(root: WritableSysroot, state: str, boot_id: str) -> Journal:
    """The journal by which root writes this host. TunectlError where it is another's, or others may write it."""
    require_private(root, state)
    journal = load(state)
    require_same_host(journal, root, state)
    require_boot_id(root, boot_id)
    return journal


def require_same_host(journal: Journal, root: WritableSysroot, state: str) -> None:
    """A state directory that was named on the command line may belong to another host's root."""
    inside = os.path.realpath(state).startswith(root.root.rstrip("/") + "/") and not root.live
    if journal.root and journal.root != root.root and not inside:
        raise TunectlError(
            f"{journal.path} belongs to the host below {journal.root}, not to {root.root}; nothing was touched",
            "name the --root or the --state that belong together",
        )


def require_boot_id(root: WritableSysroot, boot_id: str) -> None:
    """Values of another boot are forgotten: a boot id that could not be read must not pass for another boot's."""
    if boot_id:
        return
    try:
        shown = root.read_value("proc/sys/kernel/random/boot_id")
    except FileNotFoundError:  # a recorded host without one
        return
    if shown:
        raise TunectlError("the boot id could not be read: nothing was touched", "run it again")


def require_private(root: WritableSysroot, state: str) -> None:
    """On the running host nobody else may make what is read there, either. TunectlError otherwise."""
    for path in (state, os.path.join(state, NAME)) if root.live else ():
        with suppress(FileNotFoundError):
            require_roots(path)


def _without_journal(root: Sysroot, journal: Journal) -> Undone | None:
    """Where the journal is gone: what stands of ours can not be undone, and must not pass for a host without it."""
    lost = missing(root, journal)
    if lost is None or lost.observed != GONE:
        return None
    hint = (
        f"put {journal.path} back from a backup and run restore again; or take away by hand what stands, and reboot: "
        "values of the running kernel end with the boot"
    )
    hint += f"; then remove {few(lost.aside)}" if lost.aside else ""
    said = (f"{lost.reason}: what stood there before tunectl is not known; nothing was restored", hint)
    return _nothing(*said)._replace(complete=False, standing=(*lost.signs, *own_group(root)))


def _nothing(*notes: str) -> Undone:
    """What a restore did that had nothing to go by."""
    return Undone(backwards.Outcome([], [], []), list(notes), complete=True, set_aside=False)


def _kept_aside(journal: Journal) -> list[str]:
    """That an earlier journal was damaged is not forgotten with the restore that found it out."""
    aside = f"{journal.path}.damaged.1"
    return [f"an earlier journal was damaged, and is kept as {aside}"] if os.path.lexists(aside) else []


def _settled(journal: Journal) -> list[str]:
    """What a damaged journal did not tell of stands: it is the original by the operator's word, and no failure."""
    kept = journal.kept("adopted")
    verb = "is" if len(kept) == 1 else "are"
    return [f"`apply --adopt` took what stood for the original: {few(kept)} {verb} kept"] if kept else []


def _of_standing(standing: Sequence[str]) -> list[str]:
    """What a journal that was cut off, or that is an older one, leaves as tunectl wrote it."""
    if not standing:
        return []
    verb = "stands" if len(standing) == 1 else "stand"
    return [
        f"{few(standing)} of an earlier apply still {verb}: what the journal had on that is lost; put the newest "
        "journal back from a backup and run restore again, or take them away by hand"
    ]


def _of_damage(journal: Journal) -> list[str]:
    """What a damaged journal no longer tells, and so is not brought back."""
    if not journal.damaged:
        return []
    whole = [f"{journal.damage}: what the other lines tell is restored, {plural(len(journal.entries), 'change')}"]
    whole += [f"{journal.path}: {why}" for why in journal.unusable]
    if journal.lost:
        names = ", ".join(f"/{path}" for path in journal.lost)
        return [*whole, f"may be left as tunectl wrote it, because its before-image is lost: {names}"]
    return [
        *whole,
        "no path is known of which the before-image is lost; `tunectl plan` shows what differs from the host file",
    ]
