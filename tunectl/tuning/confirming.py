"""A change that takes itself back: armed before its first write, then confirmed in time or taken back.

Each step leaves on disk what the next run goes on from: the record before the units, the units before the first write
of the change, "confirmed" before the units go, and "returned" only once everything went back.
"""

from functools import partial
from typing import NamedTuple

from tunectl.command import argv
from tunectl.cpulist import format_cpulist
from tunectl.errors import TunectlError
from tunectl.host.sysroot import Sysroot
from tunectl.host.writable import WritableSysroot
from tunectl.knobs.row import Step
from tunectl.shapes import replaced
from tunectl.tuning.apply import write_own_files
from tunectl.tuning.commands import Notified, reload_monitor, run_commands
from tunectl.tuning.inspection import Inspection
from tunectl.tuning.journal import Journal, load
from tunectl.tuning.lock import hold
from tunectl.tuning.takeback import Before, Taken, take_back
from tunectl.tuning.transaction import (
    Around,
    Run,
    io_errors_end_the_run,
    require_boot_id,
    require_private,
    require_same_host,
    run_apply,
)
from tunectl.tuning.trial import (
    CONFIRM,
    Due,
    HostSet,
    Trial,
    boot_time,
    decide,
    forget_trial,
    new_id,
    noted_in_force,
    now_utc,
    read_confirmed,
    read_set,
    read_trial,
    write_confirmed,
    write_trial,
)
from tunectl.units import DIRECTORY, RETURN, trial_units

_WANTS = f"{DIRECTORY}/sysinit.target.wants"
_LINK = f"{_WANTS}/{RETURN}"
EXPIRED, REBOOTED = "nobody confirmed it in time", "the host booted before it was confirmed"


class Wanted(NamedTuple):
    """How long a change may stand unconfirmed."""

    length_s: float


class Ended(NamedTuple):
    """What became of a trial: its record as it stands now, what is due, and what was brought back for it."""

    trial: Trial
    due: Due
    taken: Taken | None = None
    not_run: tuple[str, ...] = ()
    was_confirmed: bool = False  # before this run

    @property
    def complete(self) -> bool:
        """Is nothing left to be tried again?"""
        return self.taken is None or self.taken.complete


def apply_set(
    inspection: Inspection,
    root: WritableSysroot,
    state: str,
    wanted: Wanted | None,
    *,
    joins: bool = False,
    runtime_only: bool,
    wait_s: float,
    adopt: bool = False,
) -> Run:
    """`apply`: what is `wanted` to be confirmed is armed first; anything else becomes the confirmed set.

    While a change waits for its confirmation, another one that is to be confirmed joins it, with a new deadline; one
    that `joins` is put in force as a part of it; any other is refused. TunectlError.
    """
    active = _active(read_trial(state, root))
    chosen = read_set(inspection.config)
    if wanted:
        if why := why_kept(root):
            raise TunectlError(why)
        arm = partial(_arm, state, chosen, wanted)
        around = Around(arm, partial(_count_from_now, state, root, wanted), always=active is not None)
    elif active and joins:
        around = Around()
    elif active:
        raise _unconfirmed(active)
    else:
        is_known = inspection.journal.is_new or _texts(read_confirmed(state, root)) == chosen.texts
        around = Around(partial(_refuse_unconfirmed, state), lambda _: write_confirmed(state, chosen), not is_known)
    return run_apply(inspection, root, state, runtime_only=runtime_only, wait_s=wait_s, adopt=adopt, around=around)


def _texts(known: HostSet | None) -> dict[str, str]:
    return known.texts if known else {}


def _active(trial: Trial | None) -> Trial | None:
    return None if trial is None or trial.is_over else trial


def _unconfirmed(trial: Trial) -> TunectlError:
    keeps = CONFIRM.then(argv("sudo", "tunectl", "apply"))
    return TunectlError(f"the change {trial.id} is not confirmed yet; nothing was changed", keeps)


def _refuse_unconfirmed(state: str, inspection: Inspection, root: WritableSysroot) -> Notified:
    """One may have been armed while the lock was waited for."""
    if active := _active(read_trial(state, root)):
        raise _unconfirmed(active)
    return Notified([], {})


def why_kept(root: Sysroot) -> str:
    """Why nobody would take a change back on this host; "" where somebody would."""
    place = "run/systemd/system" if root.live else DIRECTORY
    if root.exists(place):
        return ""
    return f"no systemd runs this host (there is no /{place}): nobody would take the change back"


def _arm(state: str, chosen: HostSet, wanted: Wanted, inspection: Inspection, root: WritableSysroot) -> Notified:
    """The record, the units, and the one that waits is started: before anything else is written."""
    journal, boot_id = inspection.journal, inspection.identity.boot_id
    earlier = _active(read_trial(state, root))
    deadline_s = boot_time() + wanted.length_s
    isolated = format_cpulist(inspection.config.scope.isolated)
    if earlier:
        trial = replaced(earlier, deadline_s=deadline_s, set=chosen, isolated=isolated)
    else:
        trial = Trial(
            id=new_id(),
            kind="runtime",
            boot_id=boot_id,
            deadline_s=deadline_s,
            mark=journal.next_number,
            set=chosen,
            held=noted_in_force(journal.held),
            words=journal.newest.words,
            isolated=isolated,
        )
    write_trial(state, trial)
    written = write_own_files(root, list(_units(root, inspection.invocation, state)), journal, boot_id)
    started = run_commands(root, ["start-deadline"])
    failed = {**written.failed, **started.failed}
    if failed and not earlier:
        take_back(root, journal, boot_id, _from(journal, trial.mark))
        forget_trial(state)
    if failed:
        raise TunectlError(f"nobody would take the change back: {'; '.join(failed.values())}; nothing was changed")
    return Notified([*written.not_run, *started.not_run], {})


def _units(root: WritableSysroot, invocation: tuple[str, ...], state: str) -> list[Step]:
    """The files that do not stand as they should."""
    reload = ("reload-systemd",)
    units = trial_units(invocation or ("/usr/bin/tunectl",), state)
    steps = [Step("file", unit.path, unit.text, (), commands=reload) for unit in units]
    steps.insert(1, Step("link", _LINK, f"/{DIRECTORY}/{RETURN}", (), commands=reload))
    return [step for step in steps if step.content not in (root.link_target(step.path), root.get_text(step.path))]


def _count_from_now(state: str, root: WritableSysroot, wanted: Wanted, inspection: Inspection) -> None:
    """Once everything is written, whoever is to confirm it has all of the time."""
    if active := _active(read_trial(state, root)):
        write_trial(state, replaced(active, deadline_s=boot_time() + wanted.length_s))


def end_when_due(root: WritableSysroot, state: str, boot_id: str, *, wait_s: float) -> Ended | None:
    """Takes back what is due, and finishes what a kill left of a confirmation; None where no trial is known.

    TunectlError where it cannot: what was not brought back stays journaled, and the trial armed.
    """
    trial = read_trial(state, root)
    due = decide(trial, boot_id, boot_time())
    if trial is None or due is Due.WAIT or trial.status == "returned":
        return Ended(trial, due) if trial else None
    with io_errors_end_the_run(), hold(state, wait_s):
        ended = _end(root, state, boot_id)
    if ended and ended.taken:
        told = reload_monitor(root)
        ended = ended._replace(not_run=(*ended.not_run, *told.not_run))
    return ended


def _end(root: WritableSysroot, state: str, boot_id: str) -> Ended | None:
    """Under the lock: it may have been confirmed, or restored, meanwhile."""
    trial = read_trial(state, root)
    due = decide(trial, boot_id, boot_time())
    if trial is None or due is Due.WAIT:
        return Ended(trial, due) if trial else None
    journal = _journal_of(root, state, boot_id)
    if trial.status == "confirmed":
        return _finish(root, state, boot_id, trial, journal)
    if trial.is_over:
        return Ended(trial, due)
    if journal.is_new:
        raise TunectlError(f"{journal.path} is gone: what stood before the change {trial.id} is not known")
    before = Before(trial.held_before(), trial.words)
    taken = take_back(root, journal, boot_id, _from(journal, trial.mark), before)
    if taken.complete:
        why = EXPIRED if boot_id == trial.boot_id else REBOOTED
        trial = replaced(trial, status="returned", ended_at=now_utc(), why=why)
        write_trial(state, trial)
    return Ended(trial, due, taken, tuple(taken.outcome.not_run))


def _journal_of(root: WritableSysroot, state: str, boot_id: str) -> Journal:
    require_private(root, state)
    journal = load(state, follow=root.live)
    require_same_host(journal, root, state)
    require_boot_id(root, boot_id)
    return journal


def _from(journal: Journal, mark: int) -> set[int]:
    """The entries of the trial."""
    return {seq for seq in journal.entries if seq >= mark}


def confirm(root: WritableSysroot, state: str, boot_id: str, trial_id: str = "", *, wait_s: float) -> Ended:
    """The change stays: its set is the confirmed one from now on, and its units go.

    TunectlError where nothing waits, where it came back already or is about to, and for another trial's id.
    """
    if read_trial(state, root) is None:
        raise TunectlError("no change waits for a confirmation")
    with io_errors_end_the_run(), hold(state, wait_s):
        trial = read_trial(state, root)
        _require_confirmable(trial, boot_id, trial_id)
        assert trial
        was_confirmed = trial.status == "confirmed"
        if not was_confirmed:
            trial = replaced(trial, status="confirmed", ended_at=now_utc())
            write_trial(state, trial)
        ended = _finish(root, state, boot_id, trial, _journal_of(root, state, boot_id))
        return ended._replace(was_confirmed=was_confirmed)


def _require_confirmable(trial: Trial | None, boot_id: str, trial_id: str) -> None:
    if trial is None:
        raise TunectlError("no change waits for a confirmation: a restore took everything back meanwhile")
    if trial_id and trial_id != trial.id:
        raise TunectlError(f"{trial_id} is not the change that was made last: that is {trial.id}")
    if trial.status == "returned":
        raise TunectlError(f"too late: the change {trial.id} was taken back at {trial.ended_at}: {trial.why}")
    if decide(trial, boot_id, boot_time()) is Due.TAKE_BACK:
        why = EXPIRED if boot_id == trial.boot_id else REBOOTED
        raise TunectlError(f"too late: the change {trial.id} is taken back: {why}")


def _finish(root: WritableSysroot, state: str, boot_id: str, trial: Trial, journal: Journal) -> Ended:
    """What follows a confirmation, as far as it is not done yet: while the units are journaled, it is not."""
    places = {f"{DIRECTORY}/{RETURN}", _LINK, _WANTS, *(unit.path for unit in trial_units(("/x",), state))}
    units = {seq for seq, entry in journal.entries.items() if seq >= trial.mark and entry.path in places}
    if not units:
        return Ended(trial, Due.NOTHING)
    write_confirmed(state, trial.set)
    taken = take_back(root, journal, boot_id, units)
    return Ended(trial, Due.NOTHING, None if taken.complete else taken, tuple(taken.outcome.not_run))


class Chosen(NamedTuple):
    """What an apply that nobody watches puts in force: a set, or None for nothing; and why it is not the host file."""

    set: HostSet | None
    why: str = ""


def choose_set(root: WritableSysroot, state: str, boot_id: str, host: HostSet) -> Chosen:
    """The host file; but while a change waits, its set, and for one that was taken back the confirmed set."""
    trial = read_trial(state, root)
    if trial is None or trial.status == "confirmed":
        return Chosen(host)
    if decide(trial, boot_id, boot_time()) is Due.WAIT:
        why = f"the host file as the change {trial.id} had it, which waits for its confirmation"
        return Chosen(trial.set, "" if trial.set.texts == host.texts else why)
    confirmed = read_confirmed(state, root)
    if trial.set.texts != host.texts or _texts(confirmed) == host.texts:
        return Chosen(host)
    why = f"{host.host_file} is what the change {trial.id} had put in force, which was taken back: {trial.why}"
    what = "the host file that was confirmed last is in force" if confirmed else "none was ever confirmed"
    return Chosen(confirmed, f"{why}; {what}")
