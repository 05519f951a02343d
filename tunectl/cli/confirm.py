"""tunectl confirm"""

from typing import Annotated, Literal

import click
import msgspec
from msgspec import Meta

from tunectl.cli.command import emit, today, tunectl_command
from tunectl.cli.helped import FAILED, OK, Example
from tunectl.cli.options import Options, wait_option
from tunectl.cli.restore import Row, drop_ins_left, rows_of
from tunectl.errors import UsageError
from tunectl.host.identity import read_identity
from tunectl.host.writable import WritableSysroot
from tunectl.shapes import Maybe, Notes, NotRun, Time, TrialKind
from tunectl.tuning.confirming import Ended, confirm
from tunectl.tuning.inspection import Inspection, open_inspection
from tunectl.tuning.transaction import require_root
from tunectl.tuning.trial import Status, Trial, TriedBy, read_trial
from tunectl.tuning.tryboot import confirm_boot


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a change that had to be confirmed."""

    id: str
    kind: TrialKind
    status: Annotated[Status, Meta(description="Armed: it waits still.")]
    ended_at: Annotated[Time | Literal[""], Maybe] = ""
    why: Annotated[str, Meta(description="What took it back.")] = ""
    already: Annotated[bool, Meta(description="Was it confirmed by an earlier call?"), Maybe] = False
    confirmed_by: str = ""
    line: Annotated[str, Meta(description="Of a boot that is tried: its kernel's command line."), Maybe] = ""
    by: Annotated[
        TriedBy | Literal[""],
        Meta(description="What started its kernel: kexec proves the line, and not the boot loader."),
        Maybe,
    ] = ""
    proved_at: Annotated[Time | Literal[""], Meta(description="When everything was seen in force."), Maybe] = ""
    results: Annotated[list[Row], Meta(description="What was brought back.")]
    not_run: NotRun
    notes: Notes


@tunectl_command(
    exits={
        OK: "it is confirmed, now or by an earlier call",
        FAILED: "too late, another boot, or no change waits",
    },
    examples=(
        Example("Keep what `apply --confirm-within` made:", "sudo tunectl confirm"),
        Example("Have every boot be as the one that was tried:", "sudo tunectl confirm 0123abcd"),
    ),
)
@click.argument("trial_id", metavar="[ID]", required=False)
@wait_option
def command(options: Options, trial_id: str | None, wait_s: float) -> int:
    """Keep a change that would be taken back; ID, where it is given, has to be its own."""
    if trial_id == "":  # of a script whose variable is empty
        raise UsageError("the ID is empty", "`tunectl show` tells what waits")
    root = WritableSysroot(options.root)
    require_root(root, "confirm")
    identity = read_identity(root)
    trial = read_trial(options.state_path, root)
    if trial and trial.tries and not trial.is_over:
        ended = confirm_boot(of_set(options, root, trial), root, options.state_path, trial_id or "", wait_s=wait_s)
    else:
        ended = confirm(root, options.state_path, identity.boot_id, trial_id or "", wait_s=wait_s)
    notes = [f"it was confirmed already, at {ended.trial.ended_at}"] if ended.was_confirmed else []
    notes += [] if ended.complete else ["its units could not be removed: `sudo tunectl deadline` tries it again"]
    emit(options, "trial", identity, tried(ended, notes))
    return OK


def of_set(options: Options, root: WritableSysroot, trial: Trial) -> Inspection:
    """The host as the set of the trial has it."""
    host_file, texts = trial.set.host_file, trial.set.texts
    return open_inspection(root, host_file, options.state_path, options.invocation, today(), texts=texts)


def tried(ended: Ended, notes: list[str]) -> Tried:
    """tunectl.trial/1"""
    trial, taken = ended.trial, ended.taken
    changed = dict.fromkeys((*(taken.left if taken else ()), *ended.edited))
    left = [f"{path} was changed since: it was left alone, and stays in the journal" for path in changed]
    left += drop_ins_left((*(taken.outcome.drop_ins if taken else ()), *ended.drop_ins))
    return Tried(
        id=trial.id,
        kind=trial.kind,
        status=trial.status,
        ended_at=trial.ended_at,
        why=trial.why,
        already=ended.was_confirmed,
        confirmed_by=trial.confirmed_by,
        line=trial.tries.line if trial.tries else "",
        by=trial.tries.by if trial.tries else "",
        proved_at=trial.tries.proved_at if trial.tries else "",
        results=rows_of(taken.outcome) if taken else [],
        not_run=list(ended.not_run),
        notes=[*notes, *left, *(taken.outcome.failed_commands if taken else [])],
    )
