"""tunectl verify"""

import msgspec
from msgspec import UNSET

from tunectl.cli.command import GATE, emit, open_root, stay_off, today, tunectl_command
from tunectl.cli.helped import VERDICT, Example, exit_code
from tunectl.cli.options import Options, strict_option
from tunectl.model import Plan
from tunectl.shapes import CameBack, Findings, HostFile, Notes, Strict, Waits
from tunectl.tuning.inspection import Inspection, open_inspection
from tunectl.verdict import Verdict, verdict_of


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """What `tunectl verify` found: every target judged."""

    verdict: Verdict
    strict: Strict = False
    host_file: HostFile = ""
    findings: Findings
    unconfirmed: Waits = UNSET
    returned: CameBack = UNSET
    notes: Notes = []


@tunectl_command(
    formats=GATE,
    exits=VERDICT,
    examples=(
        Example("Is every setting in force?", "tunectl verify"),
        Example("Every target, those in force, too:", "tunectl verify -v"),
        Example("For Nagios:", "tunectl verify --format nagios"),
    ),
)
@strict_option
def command(options: Options, strict: bool) -> int:
    """Observe again and compare: every finding with observed, desired, reason and fix.

    Without a host file, against what `propose` would write.
    """
    paths, required = (options.host_path, options.state_path), bool(options.host)
    inspection = open_inspection(open_root(options), *paths, options.invocation, today(), required=required)
    stay_off(inspection.root, inspection.config.scope.isolated)
    plan = inspection.assess()
    body = verify_body(inspection, plan, strict)
    emit(options, "verify", inspection.identity, body)
    return exit_code(body.verdict, options.fmt)


def verify_body(inspection: Inspection, plan: Plan, strict: bool) -> Verified:
    """tunectl.verify/1, and `verify` of a preflight."""
    return Verified(
        verdict=verdict_of(plan.findings, strict),
        strict=strict,
        host_file=inspection.config.origin,
        findings=plan.findings,
        unconfirmed=inspection.unconfirmed(),
        returned=inspection.returned(),
        notes=inspection.notes(),
    )
