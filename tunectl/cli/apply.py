"""tunectl apply"""

import os
import sys
from functools import partial
from typing import Annotated

import click
import msgspec
from msgspec import UNSET, Meta

from tunectl.bootloader.hang import is_uncovered
from tunectl.cli.command import emit, is_terminal, show_first, stay_off, today, tunectl_command, typed
from tunectl.cli.helped import FAILED, OK, REBOOT, VERDICT, Example, exit_code
from tunectl.cli.options import Options, wait_option
from tunectl.cli.plan import Row, row_of
from tunectl.cli.values import Duration
from tunectl.command import argv
from tunectl.errors import TunectlError, UsageError
from tunectl.host.reach import answers, peer_of_ssh
from tunectl.host.refusals import CHOOSES, mending
from tunectl.host.writable import WritableSysroot
from tunectl.hostfile.monitor import parse_listen
from tunectl.hostfile.profile import NO_TEXTS, Texts
from tunectl.model import Lifetime
from tunectl.shapes import Findings, HostFile, Maybe, Notes, NotRun, Reboot, Waits, fields_of
from tunectl.tuning.apply import Became, Result
from tunectl.tuning.confirming import Chosen, Ended, Wanted, apply_set, choose_set, end_when_due
from tunectl.tuning.inspection import Inspection, open_inspection
from tunectl.tuning.repairing import was_taken_back
from tunectl.tuning.transaction import Run, nothing_done, planned, require_root
from tunectl.tuning.trial import Confirms, TriedBy, read_set
from tunectl.tuning.tryboot import Trying, try_boot
from tunectl.verdict import Verdict, verdict_of
from tunectl.wording import plural

_KEXEC = argv("sudo", "systemctl", "kexec")


class Made(Row, frozen=True):
    """A change, and what became of it."""

    result: Became
    errno: int | None
    message: str


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What `tunectl apply` wrote."""

    host_file: HostFile = ""
    changes: list[Made]
    journal: Annotated[str, Meta(description="The journal's path.")]
    restore: Annotated[str, Meta(description="The command that goes back, as it is typed on this host.")]
    reboot_required: Reboot
    verdict: Annotated[Verdict, Meta(description="After the writes.")]
    not_run: NotRun
    findings: Annotated[Findings, Maybe] = ()
    unconfirmed: Waits = UNSET
    notes: Notes


@tunectl_command(
    exits={**VERDICT, FAILED: "a write failed, or whether all is in force is not known, or the command failed"},
    examples=(
        Example("See what would change, say yes, and have it made:", "sudo tunectl apply"),
        Example("In a script:", "sudo tunectl apply --yes"),
        Example("Only what needs no reboot:", "sudo tunectl apply --runtime --yes"),
        Example("Have it all taken back unless it is confirmed in time:", "sudo tunectl apply --confirm-within 10m"),
        Example("", "sudo tunectl confirm"),
    ),
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--runtime", is_flag=True, help="Only what lasts until the next boot; the boot loader is left alone.")
@click.option("--adopt", is_flag=True, help="Where the journal is gone: take what stands now for the original.")
@click.option(
    "--confirm-within",
    "within_s",
    type=Duration(),
    metavar="T",
    help="Take everything back unless `tunectl confirm` comes within this time, such as 10m; so does a reboot.",
)
@click.option("--reach", metavar="HOST:PORT", help="Take it back also when this answers no more; auto: the ssh peer.")
@click.option(
    "--try-boot",
    "tries",
    is_flag=False,
    flag_value="loader",
    type=click.Choice(["loader", "kexec"]),
    help="The next boot alone has the boot arguments; nothing else. kexec: where the boot loader cannot.",
)
@click.option("--attended", is_flag=True, help="With --try-boot: somebody at the console can type a passphrase.")
@click.option("--without-watchdog", is_flag=True, help="With --try-boot: also where no watchdog ends a hang.")
@click.option(
    "--confirm-by",
    type=click.Choice(["verify", "preflight"]),
    help="With --try-boot: confirm it once everything is in force; preflight: and it says GO.",
)
@click.option("--unless-worse", is_flag=True, help="Of a repair: go back where it mends not all and something drifts.")
@wait_option
def command(
    options: Options,
    yes: bool,
    runtime: bool,
    adopt: bool,
    within_s: float | None,
    reach: str | None,
    tries: TriedBy | None,
    attended: bool,
    without_watchdog: bool,
    confirm_by: Confirms | None,
    unless_worse: bool,
    wait_s: float,
) -> int:
    """Put the host file in force: every write journaled before it is made, and read back after it."""
    _check(tries, within_s, runtime, reach, attended or without_watchdog or confirm_by is not None)
    root, state, unattended = WritableSysroot(options.root), options.state_path, _is_unattended()
    inspection = _inspect(options, root)
    require_root(root, "apply")
    _require_owned(inspection)
    stay_off(root, inspection.config.scope.isolated)
    ended = end_when_due(root, state, inspection.identity.boot_id, wait_s=wait_s, early=unattended)
    if ended and not ended.complete:
        raise TunectlError("an earlier change that nobody confirmed could not be taken back", "sudo tunectl deadline")
    host = read_set(inspection.config)
    chosen = choose_set(root, state, inspection.identity.boot_id, host) if unattended else Chosen(host)
    if ended or chosen.why:
        inspection = _inspect(options, root, chosen.set.texts if chosen.set and chosen.why else NO_TEXTS)
    if unless_worse and (why := was_taken_back(state, root, inspection.identity.boot_id, planned(inspection, True))):
        chosen = Chosen(None, why)
    if not yes and not tries:
        _ask(options, inspection, runtime)
    watched, why = _watched(root, reach) if reach is not None else ("", "")
    wanted = Wanted(within_s, watched) if within_s is not None else None
    if tries:
        unwatched = None if without_watchdog else partial(_ask_of_hangs, yes)
        how = Trying(tries, attended, unwatched, confirm_by, watched)
        run = try_boot(inspection, root, state, how, wait_s=wait_s, adopt=adopt)
    elif chosen.set:
        run = apply_set(
            inspection,
            root,
            state,
            chosen.set,
            wanted,
            joins=unattended,
            runtime_only=runtime,
            wait_s=wait_s,
            adopt=adopt,
            unless_worse=unless_worse,
        )
    else:
        run = nothing_done(inspection, planned(inspection, runtime))
    body = _body(run, [*filter(None, [why]), *_notes_of(ended, chosen, run, wanted), *_of_the_try(root, tries)])
    made = f"the changes were made, and the journal is {body.journal}"
    done = made if run.applied.results else "nothing was changed"
    emit(options, "apply", inspection.identity, body, done=done)
    if run.applied.failed or any(result.result == "failed" and not result.gone for result in run.applied.results):
        return FAILED
    if tries:
        return REBOOT
    return exit_code(body.verdict, options.fmt) if chosen.set else OK


def _check(tries: TriedBy | None, within_s: float | None, runtime: bool, reach: str | None, of_a_try: bool) -> None:
    if tries and (within_s is not None or runtime):
        raise UsageError("--try-boot writes nothing in this boot: it goes with neither --confirm-within nor --runtime")
    if of_a_try and not tries:
        raise UsageError("--attended, --without-watchdog and --confirm-by go with --try-boot")
    if reach is not None and within_s is None and not tries:
        raise UsageError("--reach goes with --confirm-within and --try-boot")


def _watched(root: WritableSysroot, reach: str) -> tuple[str, str]:
    """Who has to answer from now on, and why nobody has: only who answers before the first write is watched."""
    place = peer_of_ssh(root) if reach == "auto" else reach
    if not place:
        return "", "nobody is connected by ssh: nothing is watched"
    address = parse_listen(place, "--reach")
    if not root.live:
        return "", f"a recorded host reaches nobody: {place} is not watched"
    return (place, "") if answers(*address) else ("", f"{place} does not answer now: it is not watched")


def _inspect(options: Options, root: WritableSysroot, texts: Texts = NO_TEXTS) -> Inspection:
    return open_inspection(root, options.host_path, options.state_path, options.invocation, today(), texts=texts)


def _is_unattended() -> bool:
    """Did systemd start it, and nobody watches?"""
    return "INVOCATION_ID" in os.environ and not is_terminal(sys.stdin)


def _notes_of(ended: Ended | None, chosen: Chosen, run: Run, wanted: Wanted | None) -> list[str]:
    """What became of an earlier change, which host file it was, and whether there is anything to confirm."""
    notes = [f"the change {ended.trial.id} was taken back first: {ended.trial.why}"] if ended and ended.taken else []
    notes += [chosen.why] if chosen.why else []
    return notes + (
        ["nothing was to be changed: there is nothing to confirm"] if wanted and not run.applied.results else []
    )


def _require_owned(inspection: Inspection) -> None:
    """TunectlError where others may write what is to be put in force, and somebody is there to mend it.

    Nobody is where systemd started it: untuned the host would be no safer, and the note says it.
    """
    if not _is_unattended() and (doubts := inspection.doubts()):
        said = "; ".join(map(str, doubts))
        raise TunectlError(f"{said}: {CHOOSES}; nothing was changed", mending(doubts))


def _ask(options: Options, inspection: Inspection, runtime: bool) -> None:
    plan = planned(inspection, runtime)
    if not plan.changes:
        return
    if not is_terminal(sys.stdin):
        raise UsageError("apply asks before it writes, and there is no terminal to ask on", "say --yes")
    body = {"changes": fields_of([*map(row_of, plan.changes)]), "reboot_required": plan.reboot_required}
    show_first(options, "plan", inspection.identity, body)
    later = sum(change.lifetime is Lifetime.BOOT for change in plan.changes)
    waits = f"; {later:,} of them hold from the next boot on" if later else ""
    back = typed(options).text("`sudo tunectl restore`").strip("`")
    click.echo(f"{plural(len(plan.changes), 'value')}{waits}. This brings all of it back:\n  {back}", err=True)
    if not click.confirm("Apply these changes?", err=True):
        raise TunectlError("nothing was changed: the answer was no")


def _of_the_try(root: WritableSysroot, tries: TriedBy | None) -> list[str]:
    """What starts that boot, and what precedes its first watchdog."""
    told = [f"`{_KEXEC}` boots it, and no reboot: it proves the line and not the boot loader"]
    told = told if tries == "kexec" else []
    early = "until a watchdog is open, nothing boots the host again that hangs: not in firmware, boot loader and kernel"
    return [*told, early] if tries and is_uncovered(root, "kernel") else told


def _ask_of_hangs(yes: bool) -> None:
    """No watchdog boots the host again: somebody may have to walk to it, and says whether that is so."""
    why = "no watchdog ends a hang of the boot that is tried: it would end at the power button"
    if yes or not is_terminal(sys.stdin):
        raise TunectlError(f"{why}; nothing was changed", "say --without-watchdog; `tunectl plan` has what ends which")
    if not click.confirm(f"{why[0].upper()}{why[1:]}. Try it without a watchdog?", err=True):
        raise TunectlError("nothing was changed: the answer was no")


def _made(result: Result) -> Made:
    row = row_of(result.change)
    return Made(**msgspec.structs.asdict(row), result=result.result, errno=result.errno, message=result.message)


def _body(run: Run, notes: list[str]) -> Applied:
    return Applied(
        host_file=run.inspection.config.origin,
        changes=list(map(_made, run.applied.results)),
        journal=run.inspection.journal.path,
        restore="sudo tunectl restore",
        reboot_required=run.plan.reboot_required,
        verdict=verdict_of(run.plan.findings, False),
        not_run=run.applied.not_run,
        findings=run.plan.findings,
        unconfirmed=run.inspection.unconfirmed(),
        notes=[*notes, *run.applied.failed, *run.notes, *run.inspection.notes(), *run.inspection.tuner_notes()],
    )
