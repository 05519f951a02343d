"""tunectl check"""

from typing import Annotated

import click
import msgspec
from msgspec import UNSET, Meta

from tunectl.checking.runner import run_checks, told_as_work, usual_s
from tunectl.cli.command import GATE, emit, open_root, progress, stay_off, today, tunectl_command
from tunectl.cli.helped import VERDICT, Example, exit_code
from tunectl.cli.options import WINDOW_S, Options, intrude_option, strict_option
from tunectl.cli.values import a_path, checks, one_of
from tunectl.errors import UsageError
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.identity import read_identity
from tunectl.shapes import Findings, Maybe, Notes, Strict, Waits, replaced
from tunectl.tuning.inspection import judged_by
from tunectl.tuning.plan import waive
from tunectl.tuning.trial import waiting
from tunectl.verdict import Verdict, verdict_of
from tunectl.work import Work


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What `tunectl check` found: the host's behaviour judged."""

    verdict: Verdict
    strict: Strict = False
    window_s: Annotated[float, Meta(description="How long the host was watched."), Maybe] = 0.0
    intrude: Annotated[bool, Meta(description="Was it asked to spin where somebody else's threads run?"), Maybe] = False
    findings: Findings
    unconfirmed: Waits = UNSET
    notes: Notes = []


@tunectl_command(
    formats=GATE,
    exits=VERDICT,
    examples=(
        Example("All checks; without root some see less, and say so:", "sudo tunectl check"),
        Example("Watch the host for a minute:", "sudo tunectl check --window 60"),
        Example("A check of your own:", "sudo tunectl check /etc/tunectl/checks/test_feed.py"),
    ),
)
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=a_path(names=one_of(checks)))
@click.option(
    "--window", "window_s", default=WINDOW_S, show_default=True, metavar="S", help="How long the host is watched."
)
@intrude_option
@strict_option
def command(options: Options, paths: tuple[str, ...], window_s: float, intrude: bool, strict: bool) -> int:
    """The behavioural checks on this host: the shipped ones, or pytest modules of your own in PATH."""
    if not 0 < window_s <= 86400:
        raise UsageError("--window: seconds, above 0 and at most a day")
    root = open_root(options)
    facts = read_scope_facts(root)
    config, notes = judged_by(root, options.host_path, facts, required=bool(options.host))
    stay_off(root, config.scope.isolated)
    settings = {setting.knob: setting.value for setting in config.settings}
    with progress(options) as tell:
        tell(Work("reading the checks", None if paths else usual_s(window_s)))
        found = run_checks(
            root,
            config.scope,
            paths=paths,
            window_s=window_s,
            settings=settings,
            on_progress=told_as_work(tell),
            interfaces=config.interfaces,
            trading=config.threads,
            intrude=intrude,
            clock_limit_ns=config.clock.limit_ns,
        )
    findings = waive(found, config.waivers, today(), whole="" if paths else "check.")
    verdict = verdict_of(findings, strict)
    identity = read_identity(root)
    waits = waiting(options.state_path, root, identity.boot_id)
    notes = [*filter(None, [waits.said]), *notes]
    body = Checked(verdict=verdict, strict=strict, window_s=window_s, intrude=intrude, findings=findings, notes=notes)
    emit(options, "check", identity, replaced(body, unconfirmed=waits.change))
    return exit_code(verdict, options.fmt)
