"""tunectl verify"""

import fnmatch
from collections.abc import Iterable, Sequence
from typing import Annotated

import click
import msgspec
from msgspec import UNSET, Meta, UnsetType

from tunectl.cli.command import GATE, emit, open_root, stay_off, today, tunectl_command
from tunectl.cli.helped import VERDICT, Example, exit_code
from tunectl.cli.options import Options, strict_option
from tunectl.errors import UsageError
from tunectl.model import NEXT_BOOT, Finding, Outcome, Plan, Severity
from tunectl.report.findings import summary
from tunectl.shapes import CameBack, Findings, HostFile, Notes, Strict, Waits
from tunectl.tuning.catalogue import catalogue, found, nearest
from tunectl.tuning.inspection import Inspection, open_inspection
from tunectl.verdict import Verdict, verdict_of
from tunectl.wording import few


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """What `tunectl verify` found: every target judged."""

    verdict: Verdict
    strict: Strict = False
    host_file: HostFile = ""
    headline: Annotated[str | UnsetType, Meta(description="Of all that were judged, where only some are shown.")] = (
        UNSET
    )
    findings: Findings
    unconfirmed: Waits = UNSET
    returned: CameBack = UNSET
    notes: Notes = []


@tunectl_command(
    formats=GATE,
    exits=VERDICT,
    examples=(
        Example("Is every setting in force?", "tunectl verify"),
        Example("Every target, those in force, too:", "tunectl verify -vv"),
        Example("The boot arguments alone:", "tunectl verify boot"),
        Example("For Nagios:", "tunectl verify --format nagios"),
    ),
)
@click.argument("patterns", metavar="[KNOB]...", nargs=-1)
@click.option(
    "--only",
    type=click.Choice([one.value for one in Outcome]),
    metavar="OUTCOME",
    help="Show only these; all are judged. OUTCOME: drifted, unreadable, waived, ...",
)
@click.option(
    "--severity",
    type=click.Choice([one.value for one in Severity]),
    metavar="COST",
    help="Show only what costs this: stall, interrupt, slower, hygiene.",
)
@strict_option
def command(options: Options, patterns: tuple[str, ...], only: str | None, severity: str | None, strict: bool) -> int:
    """Observe again and compare: every finding with observed, desired, reason and fix.

    KNOB is a knob, the beginning of its name up to a dot, or a pattern (`irq.*`): the verdict is about these alone.
    Without a host file, against what `propose` would write.
    """
    if (only or severity) and options.fmt not in ("text", "json"):  # what counts findings has to have them all
        which = "--only" if only else "--severity"
        raise UsageError(
            f"{which} with --format {options.fmt}: it would count what is shown alone", f"leave {which} out"
        )
    paths, required = (options.host_path, options.state_path), bool(options.host)
    inspection = open_inspection(open_root(options), *paths, options.invocation, today(), required=required)
    stay_off(inspection.root, inspection.config.scope.isolated)
    plan = inspection.assess()
    chosen = _chosen(plan.findings, patterns)
    body = verify_body(inspection, plan._replace(findings=chosen), strict)
    shown = tuple(
        finding
        for finding in chosen
        if only in (None, finding.outcome.value) and severity in (None, finding.severity and finding.severity.value)
    )
    notes = []
    if patterns:
        notes.append(f"judged: {' '.join(patterns)} alone, {len(chosen):,} of {len(plan.findings):,} targets")
    if only or severity:
        which = " and ".join(filter(None, (only, severity)))
        notes.append(f"shown: {which} alone, {len(shown):,} of the {len(chosen):,} targets that were judged")
    if notes:
        first = bool(body.unconfirmed)  # a page that has room for one note shows this
        notes = [*body.notes[:first], *notes, *body.notes[first:]]
        body = msgspec.structs.replace(body, findings=shown, headline=summary(chosen), notes=notes)
    emit(options, "verify", inspection.identity, body)
    return exit_code(body.verdict, options.fmt)


def _chosen(findings: Sequence[Finding], patterns: Sequence[str]) -> tuple[Finding, ...]:
    """The findings that one of the patterns names; UsageError for a pattern that names none."""
    chosen: dict[str, Finding] = {}
    for pattern in patterns:
        named = {
            finding.target: finding
            for finding in findings
            if finding.knob.startswith(f"{pattern}.")
            or any(name == pattern or fnmatch.fnmatchcase(name, pattern) for name in (finding.knob, finding.target))
        }
        if not named:
            raise UsageError(f"KNOB {pattern}: no target here has that name", _meant(findings, pattern))
        if any(finding.knob.startswith("boot.") for finding in named.values()):
            named |= {finding.target: finding for finding in findings if finding.knob == NEXT_BOOT}
        chosen.update(named)
    return tuple(chosen.values()) if patterns else tuple(findings)


def _meant(findings: Iterable[Finding], word: str) -> str:
    """What to do about a word that names nothing here: the knobs of this host that `tunectl knobs` finds for it."""
    every = catalogue().knobs
    named = [row.name for row in found(every, word)] or [nearest(every, word)]
    here = [name for name in named if any(finding.knob == name for finding in findings)]
    return f"did you mean {few(here, between=' or ')}?" if here else "see `tunectl knobs`"


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
