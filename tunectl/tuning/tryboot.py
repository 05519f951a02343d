"""A boot that is tried: an entry of ours that one boot takes, what proves that boot, and what makes it permanent.

The permanent configuration stays as it was until the boot has proved itself and somebody has confirmed it. Any other
boot than the one that was tried is refused.
"""

import hashlib
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tunectl.bootloader.family import Default, Once, OnceEntry
from tunectl.bootloader.hang import is_uncovered
from tunectl.bootloader.oneshot import refusals, tried_id
from tunectl.command import argv
from tunectl.errors import TunectlError
from tunectl.host.reach import answers
from tunectl.host.sysroot import Sysroot
from tunectl.host.writable import WritableSysroot
from tunectl.hostfile.monitor import parse_listen
from tunectl.knobs.drivers.bootargs import loaded_by, tried_by
from tunectl.knobs.row import Step, View
from tunectl.model import Finding, NextBoot
from tunectl.shapes import now_utc, replaced
from tunectl.tuning.commands import Notified, run_commands
from tunectl.tuning.confirming import (
    Ended,
    apply_set,
    confirm,
    link_step,
    new_trial,
    own_steps,
    read_active,
    require_none_waits,
    require_own_id,
    require_systemd,
    unit_step,
    who_confirms,
    write_armed,
)
from tunectl.tuning.inspection import Inspection
from tunectl.tuning.lock import hold
from tunectl.tuning.proved import default_of, once_of, unproved
from tunectl.tuning.transaction import Around, Run, io_errors_end_the_run, run_apply
from tunectl.tuning.trial import Confirms, HostSet, Trial, TriedBy, Tries, new_id, read_set, write_trial
from tunectl.units import DEADLINE, TRY_TIMER, try_units
from tunectl.wording import few

LENGTH_S = 600  # from its start on, for the proof
_AGAIN = argv("sudo", "tunectl", "apply", "--try-boot")


class Trying(NamedTuple):
    """How a boot is tried."""

    by: TriedBy = "loader"
    attended: bool = False  # somebody is at the console who can type a passphrase
    # Called where no watchdog would end a hang even of the running system: raises what ends the try. None: it goes on.
    unwatched: Callable[[], None] | None = None
    confirms: Confirms | None = None
    reach: str = ""  # HOST:PORT that has to answer in that boot, too


def try_boot(
    inspection: Inspection, root: WritableSysroot, state: str, how: Trying, *, wait_s: float, adopt: bool = False
) -> Run:
    """Has the next boot, and that alone, take the host file's boot arguments; no setting is written.

    TunectlError with every reason against it.
    """
    require_systemd(root)
    require_none_waits(state, root)
    trial_id = new_id()
    entry, tries = _plan(inspection, trial_id, how)
    if how.unwatched and is_uncovered(root, "userspace"):
        how.unwatched()
    arm = partial(_arm, state, read_set(inspection.config), trial_id, entry, tries, how.reach)
    around = Around(arm, always=True, alone=True)
    return run_apply(inspection, root, state, runtime_only=False, wait_s=wait_s, adopt=adopt, around=around)


def why_untried(inspection: Inspection) -> str:
    """Why `apply --try-boot` is refused here, with nobody at the console; "" where it is not."""
    try:
        require_systemd(inspection.root)
        _require_default(inspection.view(), Trying())
    except TunectlError as error:
        return str(error)
    return ""


def _plan(inspection: Inspection, trial_id: str, how: Trying) -> tuple[OnceEntry, Tries]:
    """The entry, and what its boot will be known by. TunectlError."""
    root, view = inspection.root, inspection.view()
    once, default = _require_default(view, how)
    line = tried_by(view, default.line, trial_id)
    entry = once.entry(root, trial_id, line)
    loads = {path: _fingerprint(root, path) for path in default.loads}
    return entry, Tries(line, loads, entry.disarm, how.by, how.confirms)


@io_errors_end_the_run()
def _require_default(view: View, how: Trying) -> tuple[Once, Default]:
    """How one boot takes an entry, and what the default one boots. TunectlError with every reason against it."""
    root, once = view.root, once_of(view, how.by)
    against = refusals(root, once, loaded_by(view).loader.name)
    if reasons := [refusal for refusal in against if not (refusal.attended and how.attended)]:
        helps = "--attended, where somebody is at the console" if all(refusal.attended for refusal in reasons) else None
        raise TunectlError(f"no boot can be tried here: {'; '.join(refusal.why for refusal in reasons)}", helps)
    default = default_of(view, how.by)
    if default is None or once is None:
        raise TunectlError("no boot can be tried here: the default entry's line is not known")
    return once, default


def _fingerprint(root: Sysroot, path: str) -> str:
    return hashlib.sha256(root.read_bytes(path)).hexdigest() if root.exists(path) else ""


def _arm(
    state: str,
    chosen: HostSet,
    trial_id: str,
    entry: OnceEntry,
    tries: Tries,
    reach: str,
    inspection: Inspection,
    root: WritableSysroot,
) -> Notified:
    """The record, the units, the entry; and the boot loader is told last."""
    require_none_waits(state, root)
    steps = [
        *own_steps(inspection.invocation, state, reaches=bool(reach), measures=tries.confirms == "preflight"),
        link_step("multi-user.target", DEADLINE),
        *map(unit_step, try_units(trial_id, LENGTH_S)),
        *(link_step(target, TRY_TIMER) for target in ("sysinit.target", "emergency.target", "rescue.target")),
        *(Step(write.kind, write.path, write.content, (), pristine=write.pristine) for write in entry.writes),
    ]
    own = tuple(step.path for step in steps)
    trial = new_trial("boot", trial_id, chosen, inspection)
    trial = replaced(trial, deadline_s=float(LENGTH_S), own=own, tries=tries, reach=reach)
    return write_armed(state, trial, steps, entry.arm, inspection, root)


def prove(inspection: Inspection, root: WritableSysroot, state: str, *, wait_s: float) -> list[str]:
    """In the boot that is tried: puts the runtime values of its set in force. What is missing yet.

    Where nothing is, that is noted, and nothing boots the host again.
    """
    if (trial := read_active(state, root)) is None:
        return []
    run = apply_set(inspection, root, state, trial.set, joins=True, runtime_only=True, wait_s=wait_s)
    if missing := _missing(trial, run.plan.findings):
        return missing
    with io_errors_end_the_run(), hold(state, wait_s):
        trial = read_active(state, root)
        if trial and trial.tries and not trial.tries.proved_at:
            write_trial(state, replaced(trial, tries=replaced(trial.tries, proved_at=now_utc())))
    run_commands(root, ["stop-try"])
    return []


def _missing(trial: Trial, findings: tuple[Finding, ...]) -> list[str]:
    """The targets that are not in force, or who does not answer: nobody elsewhere could confirm such a boot."""
    left = unproved(findings)
    is_cut_off = not left and trial.reach and not answers(*parse_listen(trial.reach))
    return [trial.reach] if is_cut_off else left


def confirm_boot(inspection: Inspection, root: WritableSysroot, state: str, trial_id: str, *, wait_s: float) -> Ended:
    """The boot that was tried becomes the permanent one: its arguments are written, and read back.

    `inspection` is of the trial's set. That it is being confirmed is noted before the first write: where the host
    loses its power now, the next boot finishes it if it has the new line, and undoes it otherwise. TunectlError for any
    other boot, for one that did not prove itself, and where the default entry loads another kernel or initial RAM disk
    by now.
    """
    trial = read_active(state, root)
    if trial and trial.tries:
        _require_tried(trial, trial.tries, inspection, trial_id)
        # Once it is noted, whoever tries it again and again writes no more than there is to write.
        around = Around(partial(_note_confirming, state, trial.id), always=not trial.tries.confirming)
        run = run_apply(inspection, root, state, runtime_only=False, wait_s=wait_s, around=around)
        lost = [finding.target for finding in run.plan.findings if finding.next in (NextBoot.OTHER, NextBoot.UNKNOWN)]
        if lost or run.applied.failed:
            why = "; ".join([*run.applied.failed, *(f"the next boot would not have {target}" for target in lost)])
            raise TunectlError(f"the change {trial.id} is not confirmed: {why}", "sudo tunectl verify")
    return confirm(root, state, inspection.identity.boot_id, trial_id, wait_s=wait_s)


def _note_confirming(state: str, trial_id: str, inspection: Inspection, root: WritableSysroot) -> Notified:
    """Under the lock: it may have been restored, or confirmed by another, meanwhile."""
    trial = read_active(state, root)
    if trial is None or trial.tries is None or trial.id != trial_id:
        raise TunectlError(f"the change {trial_id} waits for no confirmation any more; nothing was changed")
    tries = replaced(trial.tries, confirming=trial.tries.confirming or who_confirms())
    write_trial(state, replaced(trial, tries=tries))
    return Notified([], {})


def _require_tried(trial: Trial, tries: Tries, inspection: Inspection, trial_id: str) -> None:
    """Is this the boot that was tried, and does the default entry still load what it loaded?"""
    root, boot_id = inspection.root, inspection.identity.boot_id
    if not trial_id:
        raise TunectlError("a boot that was tried is confirmed by its id", f"sudo tunectl confirm {trial.id}")
    require_own_id(trial, trial_id)
    if boot_id == trial.boot_id:
        raise TunectlError(f"the boot that {trial.id} tries is still to come", "sudo reboot")
    if boot_id == tries.boot_id and tries.confirming:
        return  # it was all so before the first write; a unified image that was built since is another file
    if boot_id != tries.boot_id or tried_id(root.get_text("proc/cmdline")) != trial.id:
        raise TunectlError(f"this is not the boot that {trial.id} tried")
    if changed := [path for path, known in tries.loads.items() if _fingerprint(root, path) != known]:
        raise TunectlError(f"/{changed[0]} is not what this boot was tried with", str(_AGAIN))
    default = default_of(inspection.view(), tries.by)
    if default is None or set(default.loads) != set(tries.loads):
        raise TunectlError("the default entry boots another kernel by now than the boot that was tried", str(_AGAIN))
    if not tries.proved_at:
        left = few(_missing(trial, inspection.assess().findings)) or "its unit has not looked yet"
        raise TunectlError(f"this boot has not proved itself yet ({left})")
