"""tunectl plan"""

from typing import Annotated

import click
import msgspec
from msgspec import UNSET, Meta

from tunectl.bootloader.hang import By, Phase, covers
from tunectl.cli.command import emit, open_root, stay_off, today, tunectl_command
from tunectl.cli.helped import VERDICT, Example, exit_code
from tunectl.cli.options import Options
from tunectl.model import Change, Lifetime, Scalar
from tunectl.shapes import Findings, HostFile, Maybe, Notes, Reboot, Waits
from tunectl.tuning.confirming import why_kept
from tunectl.tuning.inspection import open_inspection
from tunectl.tuning.tryboot import why_untried
from tunectl.verdict import verdict_of


class Row(msgspec.Struct, frozen=True):
    """One change."""

    knob: str
    target: str
    observed: Scalar
    desired: Scalar
    lifetime: Lifetime
    reason: str


class Hang(msgspec.Struct, frozen=True):
    """What boots the host again where it hangs in one phase of a boot."""

    phase: Phase
    by: By
    what: Annotated[str, msgspec.Meta(description="The watchdog's own name, or words on the kernel's line.")]
    seconds: int | None


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """What `tunectl plan` says that apply would write."""

    host_file: HostFile = ""
    changes: list[Row]
    reboot_required: Reboot
    hang: Annotated[list[Hang], msgspec.Meta(description="What ends a hang of the boot that it needs."), Maybe] = []
    findings: Findings
    unconfirmed: Waits = UNSET
    confirm_refused: Annotated[
        str, Meta(description="Why `apply --confirm-within` is refused here; empty where it is not."), Maybe
    ] = ""
    try_refused: Annotated[
        str,
        Meta(description="Why `apply --try-boot` is refused here; empty where it is not, or needs no reboot."),
        Maybe,
    ] = ""
    notes: Notes


@tunectl_command(
    exits=VERDICT,
    examples=(
        Example("What apply would change:", "tunectl plan"),
        Example("The same with another host file, before it is put in place:", "tunectl plan --candidate new.toml"),
    ),
)
@click.option("--candidate", type=click.Path(), metavar="FILE", help="Plan as if FILE were the host file.")
def command(options: Options, candidate: str | None) -> int:
    """What apply would change: knob, target, observed, desired, reason. Writes nothing."""
    paths = options.host_path, options.state_path
    inspection = open_inspection(open_root(options), *paths, options.invocation, today(), candidate=candidate)
    stay_off(inspection.root, inspection.config.scope.isolated)
    plan = inspection.assess()
    boots = any(change.knob.startswith("boot.") for change in plan.changes)
    body = Planned(
        host_file=inspection.config.origin,
        changes=list(map(row_of, plan.changes)),
        reboot_required=plan.reboot_required,
        hang=[Hang(*cover) for cover in covers(inspection.root)] if boots else [],
        findings=plan.findings,
        unconfirmed=inspection.unconfirmed(),
        confirm_refused=why_kept(inspection.root),
        try_refused=why_untried(inspection) if boots else "",
        notes=[*inspection.notes(), *inspection.choices(), *inspection.tuner_notes()],
    )
    emit(options, "plan", inspection.identity, body)
    return exit_code(verdict_of(plan.findings, False), options.fmt)


def row_of(change: Change) -> Row:
    """A change as documents have it."""
    return Row(change.knob, change.target, change.observed, change.desired, change.lifetime, change.reason)
