"""A change that takes itself back: armed before its first write, then confirmed in time or taken back.

Each step leaves on disk what the next run goes on from: the record before the units, the units before the first write
of the change, "confirmed" before the units go, and "returned" only once everything went back.
"""

import os
from functools import partial
from typing import NamedTuple

from tunectl import kinds
from tunectl.bootloader.oneshot import tried_id
from tunectl.command import argv
from tunectl.cpulist import format_cpulist
from tunectl.errors import TunectlError
from tunectl.host.reach import answers, read_links
from tunectl.host.sysroot import Sysroot
from tunectl.host.writable import WritableSysroot
from tunectl.hostfile.monitor import parse_listen
from tunectl.knobs.row import Step
from tunectl.shapes import TrialKind, now_utc, replaced, typed
from tunectl.tuning import restore as backwards
from tunectl.tuning.apply import write_own_files
from tunectl.tuning.commands import Notified, reload_monitor, run_commands
from tunectl.tuning.inspection import Inspection, open_inspection
from tunectl.tuning.journal import Journal, RecordLostError
from tunectl.tuning.lock import hold
from tunectl.tuning.proved import unproved
from tunectl.tuning.records import InForce, held_record
from tunectl.tuning.repairing import back_where_worse
from tunectl.tuning.takeback import Before, Taken, take_back
from tunectl.tuning.transaction import (
    Around,
    Run,
    disarm,
    io_errors_end_the_run,
    load_own,
    run_apply,
)
from tunectl.tuning.trial import (
    NAME,
    UNKNOWN,
    Due,
    HostSet,
    Trial,
    boot_time,
    due_now,
    forget,
    new_id,
    read_confirmed,
    read_trial,
    write_confirmed,
    write_trial,
)
from tunectl.units import DIRECTORY, OF_A_TRIAL, RETURN, Unit, ours, trial_units
from tunectl.wording import few

_RESTORE = argv("sudo", "tunectl", "restore")
_RELOAD = ("reload-systemd",)
_NAMED = 20  # paths in a line of a unit's journal
_LATER = ("stop-what-is-gone", "reload-systemd")  # as long as systemd knows the units
EXPIRED, REBOOTED = "nobody confirmed it in time", "the host booted before it was confirmed"
UNTRIED = "the boot that was to be tried did not come up, or another entry was booted"
UNPROVED = "the boot that was tried did not prove itself, and the host booted the old line again"
PROVED = "the boot that was tried was not confirmed before the host booted again"
CUT_OFF = "its confirmation was cut off before a boot could have the line"


class Wanted(NamedTuple):
    """How long a change may stand unconfirmed, and who has to answer meanwhile, HOST:PORT; "" for nobody."""

    length_s: float
    reach: str = ""


class Ended(NamedTuple):
    """What became of a trial: its record as it stands now, what is due, and what was brought back for it."""

    trial: Trial
    due: Due
    taken: Taken | None = None
    not_run: tuple[str, ...] = ()
    was_confirmed: bool = False  # before this run
    later: tuple[str, ...] = ()  # what systemd has still to be told, early in a boot
    edited: tuple[str, ...] = ()  # of the trial's own files those that somebody changed: they stay, and stay journaled
    drop_ins: tuple[str, ...] = ()  # somebody's, of units that are gone

    @property
    def complete(self) -> bool:
        """Is nothing left to be tried again?"""
        return self.taken is None or self.taken.complete


def apply_set(
    inspection: Inspection,
    root: WritableSysroot,
    state: str,
    chosen: HostSet,
    wanted: Wanted | None = None,
    *,
    joins: bool = False,
    runtime_only: bool,
    wait_s: float,
    adopt: bool = False,
    unless_worse: bool = False,
) -> Run:
    """`apply` of the set that the inspection was made with.

    What is `wanted` to be confirmed is armed first; anything else becomes the confirmed set.
    While a change waits for its confirmation, another one that is to be confirmed joins it, with a new deadline; one
    that `joins` is put in force as a part of it; any other is refused. With `unless_worse` it goes back where it made
    things worse. TunectlError.
    """
    active = read_active(state, root)
    if wanted and not (active and active.tries):
        require_systemd(root)
        arm = partial(_arm, state, chosen, wanted)
        around = Around(arm, partial(_count_from_now, state, root, wanted), always=active is not None)
    elif active and joins:
        around = Around()
    elif active:
        raise unconfirmed(active)
    else:
        confirmed = read_confirmed(state)
        is_known = inspection.journal.is_new or (confirmed is not None and confirmed.texts == chosen.texts)
        around = Around(partial(_refuse_unconfirmed, state), lambda _: write_confirmed(state, chosen), not is_known)
    if unless_worse:
        around = around._replace(judge=partial(back_where_worse, root, state))
    return run_apply(inspection, root, state, runtime_only=runtime_only, wait_s=wait_s, adopt=adopt, around=around)


def read_active(state: str, root: Sysroot) -> Trial | None:
    """The trial, while anything is waited for. TunectlError."""
    trial = read_trial(state, root)
    return None if trial is None or trial.is_over else trial


def require_none_waits(state: str, root: Sysroot) -> None:
    """TunectlError while a change waits: nothing else is written then."""
    if active := read_active(state, root):
        raise unconfirmed(active)


def unconfirmed(trial: Trial) -> TunectlError:
    """Why nothing else is written, and what ends that."""
    ends = str(argv("sudo", "tunectl", "confirm").then(kinds.apply()))
    if trial.tries:
        ends = str(kinds.confirm(trial.id)) if trial.tries.proved_at else "the boot that tries it has to end first"
    return TunectlError(f"the change {trial.id} is not confirmed yet; nothing was changed", ends)


def _refuse_unconfirmed(state: str, inspection: Inspection, root: WritableSysroot) -> Notified:
    """One may have been armed while the lock was waited for."""
    require_none_waits(state, root)
    return Notified([], {})


def why_kept(root: Sysroot) -> str:
    """Why nobody would take a change back on this host; "" where somebody would."""
    place = "run/systemd/system" if root.live else DIRECTORY
    if root.exists(place):
        return ""
    return f"no systemd runs this host (there is no /{place}): nobody would take the change back"


def require_systemd(root: Sysroot) -> None:
    """TunectlError where nobody would take a change back."""
    if why := why_kept(root):
        raise TunectlError(why)


def _arm(state: str, chosen: HostSet, wanted: Wanted, inspection: Inspection, root: WritableSysroot) -> Notified:
    """The record, the units, and the one that waits is started: before anything else is written."""
    earlier = read_active(state, root)
    steps = own_steps(inspection.invocation, state, reaches=bool(wanted.reach))
    trial = replaced(
        earlier or new_trial("runtime", new_id(), chosen, inspection),
        deadline_s=boot_time() + wanted.length_s,
        set=chosen,
        isolated=format_cpulist(inspection.config.scope.isolated),
        own=tuple(step.path for step in steps),
    )
    if wanted.reach:
        trial = replaced(trial, reach=wanted.reach, links=trial.links or read_links(root))
    return write_armed(state, trial, steps, "start-deadline", inspection, root, is_new=earlier is None)


def new_trial(kind: TrialKind, trial_id: str, chosen: HostSet, inspection: Inspection) -> Trial:
    """A trial that begins with the next entry of the journal."""
    held = inspection.journal.held
    return Trial(
        id=trial_id,
        kind=kind,
        boot_id=inspection.identity.boot_id,
        deadline_s=0.0,
        mark=inspection.journal.next_number,
        set=chosen,
        held=None if held is None else typed(held_record(held), InForce),
        words=inspection.journal.newest.words,
        isolated=format_cpulist(inspection.config.scope.isolated),
    )


def own_steps(invocation: tuple[str, ...], state: str, *, reaches: bool = False, measures: bool = False) -> list[Step]:
    """The units of every trial."""
    units = trial_units(invocation or ("/usr/bin/tunectl",), state, reaches=reaches, measures=measures)
    return [*(unit_step(unit) for unit in units), link_step("sysinit.target", RETURN)]


def unit_step(unit: Unit) -> Step:
    """One unit file."""
    return Step("file", unit.path, unit.text, (), commands=_RELOAD)


def link_step(target: str, unit: str) -> Step:
    """The link by which a target wants a unit."""
    return Step("link", f"{DIRECTORY}/{target}.wants/{unit}", f"/{DIRECTORY}/{unit}", (), commands=_RELOAD)


def write_armed(
    state: str,
    trial: Trial,
    steps: list[Step],
    starts: str,
    inspection: Inspection,
    root: WritableSysroot,
    *,
    is_new: bool = True,
) -> Notified:
    """The record, then the files, then the program that makes it so. TunectlError, and nothing of it stands then."""
    journal, boot_id = inspection.journal, inspection.identity.boot_id
    write_trial(state, trial)
    missing = [step for step in steps if step.content not in (root.link_target(step.path), root.get_text(step.path))]
    written = write_own_files(root, missing, journal, boot_id)
    started = run_commands(root, [starts])
    if failed := [*written.failed.values(), *started.failed.values()]:
        if is_new:
            take_back(root, journal, boot_id, [seq for seq in journal.entries if seq >= trial.mark])
            forget(state, NAME)
        raise TunectlError(f"{'; '.join(failed)}; nothing else was changed")
    return Notified([*written.not_run, *started.not_run], {})


def _count_from_now(state: str, root: WritableSysroot, wanted: Wanted, inspection: Inspection) -> None:
    """Once everything is written, whoever is to confirm it has all of the time."""
    if active := read_active(state, root):
        write_trial(state, replaced(active, deadline_s=boot_time() + wanted.length_s))


def is_cut_off(root: WritableSysroot, trial: Trial) -> bool:
    """Does nobody answer who did before, while a link or an address is another than before?

    A peer that is down, or a gateway that failed over, changes nothing here, and undoes no good change.
    """
    if not trial.reach or answers(*parse_listen(trial.reach)):
        return False
    return read_links(root) != trial.links


def give_up(root: WritableSysroot, state: str, why: str, *, wait_s: float) -> None:
    """The change that waits is due now."""
    with io_errors_end_the_run(), hold(state, wait_s):
        if trial := read_active(state, root):
            write_trial(state, replaced(trial, deadline_s=0.0, why=why))


def end_when_due(
    root: WritableSysroot, state: str, boot_id: str, *, wait_s: float, early: bool = False
) -> Ended | None:
    """Takes back what is due, and finishes what a kill left of an end; None where no trial is known.

    `early` in a boot the services are still to be started: none is restarted. Where its record is lost, the journal
    tells what goes back. TunectlError where it cannot: what was not brought back stays journaled, and the trial armed.
    """
    try:
        trial = read_trial(state, root)
    except RecordLostError as error:
        with io_errors_end_the_run(), hold(state, wait_s):
            trial = _from_journal(root, state, boot_id, error, early)
    due = due_now(trial, root, boot_id)
    if trial is None or due in (Due.WAIT, Due.REBOOT) or (trial.is_over and not any(map(root.stands, _placed(trial)))):
        return Ended(trial, due) if trial else None
    with io_errors_end_the_run(), hold(state, wait_s):
        ended = _end(root, state, boot_id, early)
    if ended and ended.taken:
        # Last: a unit that is there no more has systemd's own time limit, and is not started again.
        told = run_commands(root, ended.later) if early else reload_monitor(root)
        ended = ended._replace(not_run=(*ended.not_run, *told.not_run))
    return ended


def _end(root: WritableSysroot, state: str, boot_id: str, early: bool) -> Ended | None:
    """Under the lock: it may have been confirmed, or restored, meanwhile."""
    trial = read_trial(state, root)
    due = due_now(trial, root, boot_id)
    if trial is None or due in (Due.WAIT, Due.REBOOT):
        return Ended(trial, due) if trial else None
    if due is Due.CUT_OFF and _has_the_arguments(root, state, trial):
        due = Due.TRIED  # a boot of its line, as the one that was tried: what was begun there is finished here
    if due is Due.TRIED and trial.tries:
        trial = replaced(trial, tries=replaced(trial.tries, boot_id=boot_id))
        write_trial(state, trial)
        return Ended(trial, due_now(trial, root, boot_id))
    journal = load_own(root, state, boot_id)
    if trial.is_over:
        return _sweep(root, state, boot_id, Ended(trial, due), journal, early=early)
    if journal.is_new:
        raise TunectlError(f"{journal.path} is gone: what stood before the change {trial.id} is not known")
    disarmed = disarm(root, trial)
    before = Before(trial.held.held() if trial.held else None, trial.words)
    numbers = {seq for seq in journal.entries if seq >= trial.mark} - _own(journal, trial)
    commands = {seq: journal.entries[seq].commands for seq in numbers}
    taken = take_back(root, journal, boot_id, numbers, before, early=early)
    manager = {name for seq in numbers for name in commands[seq]} & {"reexec-systemd"}
    ended = Ended(trial, due, taken, (*disarmed.not_run, *taken.outcome.not_run), later=_LATER + tuple(manager))
    if not taken.complete:
        return ended
    trial = replaced(trial, status="returned", ended_at=now_utc(), why=_why(trial, boot_id))
    write_trial(state, trial)
    return _sweep(root, state, boot_id, ended._replace(trial=trial), journal, early=early)


def _why(trial: Trial, boot_id: str) -> str:
    """What ends a trial now."""
    if trial.why:
        return trial.why
    if trial.tries and trial.tries.confirming:
        return CUT_OFF
    if trial.tries:
        was_there = trial.tries.boot_id
        proved = PROVED if trial.tries.proved_at else UNPROVED
        return proved if was_there else UNTRIED
    return EXPIRED if boot_id == trial.boot_id else REBOOTED


def _from_journal(root: WritableSysroot, state: str, boot_id: str, error: RecordLostError, early: bool) -> Trial:
    """A new record in place of a lost one, by which the change is taken back: its first entry is that of a unit.

    TunectlError where no unit of a change stands; in the boot that is tried, which is booted again by its own timer;
    and where the journal is damaged, too. Then only the units go: they would find the same at each boot.
    """
    returns = f"{DIRECTORY}/{RETURN}"
    if not root.exists(returns) or tried_id(root.get_text("proc/cmdline")):
        raise error
    journal = load_own(root, state, boot_id)
    entries = journal.entries.items()
    begins = [seq for seq, entry in entries if entry.path == returns and not ours(entry.before or "")]
    if journal.damaged or not begins:
        _remove_units(root, early)
        rows = backwards.preview(root, journal, boot_id).results
        paths = [row.path for row in rows if row.result == "would-restore"]
        stands = few(paths, most=_NAMED) or "what it does not tell of"
        stands += f": {journal.path}" if len(paths) > _NAMED else ""
        why = f"{error.message}; the journal does not tell it either ({journal.damage or 'it has no entry of it'})"
        raise TunectlError(f"{why}, and nothing was taken back; as tunectl wrote it stands: {stands}", _RESTORE)
    own = tuple(entry.path for seq, entry in entries if seq >= begins[-1] and _is_own_unit(entry.path))
    why = f"{error.message}; the journal told what to take back"
    lost = Trial(
        id=error.trial_id or new_id(),
        kind="runtime",
        boot_id="",
        deadline_s=0.0,
        mark=begins[-1],
        set=UNKNOWN,
        held=None,
        words=(),
        isolated="",
        own=own,
        why=why,
    )
    write_trial(state, lost)
    return lost


def _is_own_unit(path: str) -> bool:
    """Is it a unit of a trial, or a link by which one is wanted?"""
    return path.startswith(f"{DIRECTORY}/") and path.rpartition("/")[2] in OF_A_TRIAL


def _remove_units(root: WritableSysroot, early: bool) -> None:
    """Without the journal: they are ours as a whole. Last goes the one that would come here again."""
    units = filter(_is_own_unit, root.walk(DIRECTORY))
    for path in sorted(units, key=lambda path: (path.endswith(RETURN), -path.count("/"))):
        is_link = root.link_target(path) is not None
        if is_link or ours(root.get_text(path)):
            root.remove(path, link=is_link)
    run_commands(root, _LATER if early else _RELOAD)


def _has_the_arguments(root: WritableSysroot, state: str, trial: Trial) -> bool:
    """Has this boot what the trial's set wants on its line? By what proves a boot that is tried.

    Not by the files: the write may have reached them, and somebody chosen another entry.
    """
    host_file, texts, today = trial.set.host_file, trial.set.texts, now_utc().partition("T")[0]
    try:
        inspection = open_inspection(root, host_file, state, (), today, texts=texts)
    except TunectlError:  # this boot is another machine: it has fewer CPUs, say
        return False
    settings = (*inspection.config.settings, *inspection.leftovers())
    return not unproved(inspection.assess(tuple(one for one in settings if one.knob.startswith("boot."))).findings)


def confirm(root: WritableSysroot, state: str, boot_id: str, trial_id: str = "", *, wait_s: float) -> Ended:
    """The change stays: its set is the confirmed one from now on, and its units go.

    TunectlError where nothing waits, where it came back already or is about to, and for another trial's id.
    """
    if read_trial(state, root) is None:
        raise TunectlError("no change waits for a confirmation")
    with io_errors_end_the_run(), hold(state, wait_s):
        trial = read_trial(state, root)
        _require_confirmable(trial, root, boot_id, trial_id)
        assert trial
        was_confirmed = trial.status == "confirmed"
        if not was_confirmed:
            by = (trial.tries.confirming if trial.tries else "") or who_confirms()
            trial = replaced(trial, status="confirmed", ended_at=now_utc(), confirmed_by=by)
            write_trial(state, trial)
        ended = Ended(trial, Due.NOTHING, was_confirmed=was_confirmed)
        return _sweep(root, state, boot_id, ended, load_own(root, state, boot_id))


def who_confirms() -> str:
    """The user, as sudo(8) names him."""
    return os.environ.get("SUDO_USER", "") or f"uid {os.getuid()}"


def _require_confirmable(trial: Trial | None, root: WritableSysroot, boot_id: str, trial_id: str) -> None:
    if trial is None:
        raise TunectlError("no change waits for a confirmation: a restore took everything back meanwhile")
    if trial_id:
        require_own_id(trial, trial_id)
    if trial.status == "returned":
        raise TunectlError(f"too late: the change {trial.id} was taken back at {trial.ended_at}: {trial.why}")
    if due_now(trial, root, boot_id) is Due.TAKE_BACK:
        raise TunectlError(f"too late: the change {trial.id} is taken back: {_why(trial, boot_id)}")


def require_own_id(trial: Trial, trial_id: str) -> None:
    """TunectlError for the id of another change."""
    if trial_id != trial.id:
        raise TunectlError(f"{trial_id} is not the change that was made last: that is {trial.id}")


def _own(journal: Journal, trial: Trial) -> set[int]:
    """The entries that are there for the trial's sake alone: its units, and the boot entry of one that is tried."""
    placed = _placed(trial)
    if trial.status == "confirmed":
        placed -= {f"{DIRECTORY}/multi-user.target.wants"}  # it may hold by now what stays
    return {seq for seq, entry in journal.entries.items() if seq >= trial.mark and entry.path in placed}


def _placed(trial: Trial) -> set[str]:
    """Where its own files are, and the directories that may have been made for them."""
    return {*trial.own, *(path.rpartition("/")[0] for path in trial.own if ".target.wants/" in path)}


def _sweep(
    root: WritableSysroot, state: str, boot_id: str, ended: Ended, journal: Journal, *, early: bool = False
) -> Ended:
    """What follows the end of a trial, as far as it is not done yet: as long as its own files are journaled, it is not.

    Only then do the units go that would try it again.
    """
    own = _own(journal, ended.trial)
    if own and ended.trial.status == "confirmed":
        write_confirmed(state, ended.trial.set)
    swept = take_back(root, journal, boot_id, own, early=early) if own else None
    if swept is None:
        return ended
    taken = ended.taken if swept.complete else swept
    not_run = (*ended.not_run, *swept.outcome.not_run)
    return ended._replace(taken=taken, not_run=not_run, edited=swept.left, drop_ins=swept.outcome.drop_ins)


class Chosen(NamedTuple):
    """What an apply that nobody watches puts in force: a set, or None for nothing; and why it is not the host file."""

    set: HostSet | None
    why: str = ""


def choose_set(root: WritableSysroot, state: str, boot_id: str, host: HostSet) -> Chosen:
    """The host file; but while a change waits, its set, and after one was taken back the confirmed set.

    Until somebody applies again: what came back may have been another host file than the one that stands there now.
    """
    trial = read_trial(state, root)
    if trial is None or trial.status == "confirmed":
        return Chosen(host)
    is_to_come = trial.tries is not None and boot_id == trial.boot_id  # it is put in force by the next boot alone
    if not trial.is_over and not is_to_come:
        why = f"the host file as the change {trial.id} had it, which waits for its confirmation"
        return Chosen(trial.set, "" if trial.set.texts == host.texts else why)
    confirmed = read_confirmed(state)
    if confirmed and confirmed.texts == host.texts:
        return Chosen(host)
    what = f"was taken back: {trial.why}" if trial.is_over else "is to be tried by the next boot"
    why = f"nobody has applied {host.host_file} since the change {trial.id}, which {what}"
    what = "the host file that was confirmed last is in force" if confirmed else "none was ever confirmed"
    return Chosen(confirmed, f"{why}; {what}")
