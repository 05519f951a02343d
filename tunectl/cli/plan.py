"""tunectl plan"""

from __future__ import annotations

from typing import Any

import click

from tunectl.cli.command import emit, open_root, stay_off, today, tunectl_command
from tunectl.cli.helped import VERDICT, Example, exit_code
from tunectl.cli.options import Options
from tunectl.model import Change
from tunectl.tuning.inspection import open_inspection
from tunectl.verdict import verdict_of


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
    body = {
        "host_file": inspection.config.origin,
        "changes": [change_dict(change) for change in plan.changes],
        "reboot_required": plan.reboot_required,
        "findings": plan.findings,
        "notes": [*inspection.notes(), *inspection.choices(), *inspection.tuner_notes()],
    }
    emit(options, "plan", inspection.identity, body, plan.findings)
    return exit_code(verdict_of(plan.findings, False), options.fmt)


def change_dict(change: Change) -> dict[str, Any]:
    """A change as JSON has it."""
    fields = {**change._asdict(), "lifetime": str(change.lifetime)}
    del fields["knob"], fields["instance"], fields["value"]
    return {"knob": change.knob, "target": change.target, **fields}
