"""tunectl restore"""

import sys
from typing import Annotated

import click
import msgspec
from msgspec import Meta

from tunectl.bootloader.cmdline import parse_cmdline, same_key
from tunectl.cli.command import emit, is_terminal, show_first, today, tunectl_command
from tunectl.cli.helped import DRIFTED, FAILED, OK, Example
from tunectl.cli.options import Options, wait_option
from tunectl.errors import TunectlError
from tunectl.host.identity import read_identity
from tunectl.host.sysroot import Sysroot
from tunectl.host.writable import WritableSysroot
from tunectl.model import HostId, Outcome, Scalar, Target
from tunectl.shapes import Maybe, Notes, NotRun, Reboot
from tunectl.tuning.evidence import may_be_tuned
from tunectl.tuning.inspection import open_inspection
from tunectl.tuning.restore import BECAME
from tunectl.tuning.restore import Outcome as Brought
from tunectl.tuning.transaction import Undone, preview_restore, require_root, run_restore
from tunectl.wording import few


class Row(msgspec.Struct, frozen=True):
    """What became of one file."""

    path: str
    targets: list[str]
    result: Annotated[str, Meta(extra_json_schema={"enum": BECAME})]
    observed: Scalar
    before: Scalar
    message: str


class MayBeTuned(msgspec.Struct, frozen=True):
    """A target that is as the host file asks and bears no mark of tunectl's, without a before-image."""

    target: str
    observed: Scalar
    boots_with: Annotated[
        Scalar,
        Meta(description="What every kernel starts with; null where it depends on the machine, or on its build."),
    ]
    given_at: Annotated[
        list[str], Meta(description="Of a boot argument, the files (and lines) that give it to the next boot."), Maybe
    ] = []


class Undoing(msgspec.Struct, frozen=True, kw_only=True):
    """What `tunectl restore` brought back, or would."""

    results: list[Row]
    standing: Annotated[
        list[str],
        Meta(description="What tunectl wrote and the journal does not name: files, boot arguments, control groups."),
        Maybe,
    ] = []
    may_be_tuned: Annotated[list[MayBeTuned], Meta(description="Where something stands so."), Maybe] = []
    not_run: NotRun
    notes: Notes
    reboot_required: Reboot


@tunectl_command(
    exits={
        OK: "all is as it was before apply",
        FAILED: "something stands that could not be restored, or the command failed",
        DRIFTED: "somebody changed a value since: it was left alone",
    },
    examples=(
        Example("What would be restored:", "sudo tunectl restore --dry-run"),
        Example("Everything as it was before:", "sudo tunectl restore"),
        Example("In a script:", "sudo tunectl restore --yes"),
    ),
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask; without a terminal nobody is asked.")
@click.option("--salvage", is_flag=True, help="Needed no more: what a damaged journal tells is restored.")
@click.option("--force", is_flag=True, help="Bring back what somebody changed since, too.")
@click.option("--dry-run", is_flag=True, help="Only say what would be restored.")
@wait_option
def command(options: Options, yes: bool, salvage: bool, force: bool, dry_run: bool, wait_s: float) -> int:
    """Undo everything that apply wrote: the earlier value where ours still stands; the rest is reported."""
    root = WritableSysroot(options.root)
    identity = read_identity(root)
    state, boot_id = options.state_path, identity.boot_id
    if dry_run:
        undone = preview_restore(root, state, boot_id, force=force)
    else:
        require_root(root, "restore")
        # Programs call `restore` without --yes (docs/interface.md): only a person is asked.
        if not yes and is_terminal(sys.stdin):
            _ask(options, root, identity, force)
        undone = run_restore(root, state, boot_id, wait_s=wait_s, force=force)
    body = _body(root, undone)
    if undone.standing:
        tuned, said = _may_be_tuned(options, root, undone)
        body = msgspec.structs.replace(body, may_be_tuned=tuned, notes=[*body.notes, *said])
    emit(options, "restore", identity, body)
    if not undone.complete or undone.set_aside:
        return FAILED
    return DRIFTED if any(result.result == "changed-since" for result in undone.outcome.results) else OK


def _ask(options: Options, root: WritableSysroot, identity: HostId, force: bool) -> None:
    """Shows what would be restored, and ends with TunectlError unless the answer is yes."""
    preview = preview_restore(root, options.state_path, identity.boot_id, force=force)
    if not any(result.result == "would-restore" for result in preview.outcome.results):
        return
    show_first(options, "restore", identity, msgspec.structs.replace(_body(root, preview), notes=[]))
    if not click.confirm("Restore all this?", err=True):
        raise TunectlError("nothing was restored: the answer was no")


def _may_be_tuned(options: Options, root: WritableSysroot, undone: Undone) -> tuple[list[MayBeTuned], list[str]]:
    """Where the journal did not tell all: the values that may be ours, by what the host file asks; what is not known.

    Restore needs no host file.
    """
    try:
        inspection = open_inspection(root, options.host_path, options.state_path, options.invocation, today())
        plan = inspection.assess()
    except TunectlError as error:
        return [], [f"which values of the running kernel tunectl set is not known without the host file: {error}"]
    known = {target for result in undone.outcome.results for target in result.targets}
    tuned = may_be_tuned(inspection.view(), plan.findings, known, undone.standing)
    notes = [f"what an earlier host file asked for, and {options.host_path} does not, is not known"]
    rest = [finding for finding in plan.findings if Target(finding.knob, finding.instance) not in known]
    if unread := [f"{finding.target} ({finding.reason})" for finding in rest if finding.outcome is Outcome.UNREADABLE]:
        notes.append(f"whether tunectl set these is not known: {few(unread)}")
    return [MayBeTuned(str(one.target), one.observed, one.boots_with, list(one.given_at)) for one in tuned], notes


def _body(root: Sysroot, undone: Undone) -> Undoing:
    outcome = undone.outcome
    return Undoing(
        results=rows_of(outcome),
        standing=list(undone.standing),
        not_run=outcome.not_run,
        notes=[*outcome.failed_commands, *undone.notes, *drop_ins_left(outcome.drop_ins)],
        reboot_required=_reboots(root, undone),
    )


def rows_of(outcome: Brought) -> list[Row]:
    """What became of each file, as documents have it."""
    return [
        Row(result.path, list(map(str, result.targets)), result.result, result.observed, result.before, result.message)
        for result in outcome.results
    ]


def drop_ins_left(paths: tuple[str, ...]) -> list[str]:
    """What is said of what somebody put beside our units."""
    return [f"{path} is not tunectl's: it stays" for path in dict.fromkeys(paths)]


def _reboots(root: Sysroot, undone: Undone) -> bool:
    """Had this boot any of the arguments that the next has no more, or has it a menu that was not made again?"""
    outcome = undone.outcome
    targets = [
        target.knob
        for result in outcome.results
        if result.result in ("restored", "would-restore")
        for target in result.targets
        if target.knob.startswith("boot.")
    ]
    line = root.get_text("proc/cmdline")
    if targets and line:
        return any(same_key(f"boot.{arg.key}", knob) for arg in parse_cmdline(line) for knob in targets)
    programs = ("update-grub", "grub2-mkconfig", "grub-mkconfig", "kernel-install")
    return bool(targets) or any(
        name in said for said in (*outcome.not_run, *outcome.failed_commands) for name in programs
    )
