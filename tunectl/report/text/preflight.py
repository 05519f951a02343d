"""`tunectl preflight`: GO or not, every reason, then what each part found."""

from collections.abc import Mapping, Sequence
from typing import Any

from tunectl.report.escape import printable, shown
from tunectl.report.feed import feed_limits_of
from tunectl.report.figures import Runs, limits_of, runs_in
from tunectl.report.findings import brief, groups
from tunectl.report.hosts import machine_name
from tunectl.report.text.experiments import feed_measured
from tunectl.report.text.findings import harmless, urgent
from tunectl.report.text.page import VERDICT_STYLES, TextPage, banner, columns, heading, line, notes, prose
from tunectl.report.text.probe_jitter import measured, under
from tunectl.report.text.todo import todo_list
from tunectl.report.urgency import findings_in, other_reasons
from tunectl.shapes import Jitter
from tunectl.verdict import SECTIONS


def preflight(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.preflight/1 body: what to do, what was measured, the settings; then everything else."""
    verdict = str(body["verdict"])
    banner(page, verdict, str(body.get("headline") or ""))
    if hardware := body.get("hardware"):
        prose(page, machine_name(hardware), indent=2, style="dim")
    if sets := body.get("cpu_sets"):
        isolated, rest = shown(sets.get("isolated")), shown(sets.get("housekeeping"))
        text = f"CPUs {shown(sets.get('online'))} online: {isolated} to trade on, {rest} for everything else"
        prose(page, f"{text}, says {shown(sets.get('from'))}", indent=2, style="dim")
    todo_list(page, body.get("actions") or ())
    heading(page, "Measured")
    runs = runs_in(body)
    _against_budget(page, body, runs)
    for name, title in (("check", "Checks"), ("thermal", "Thermal state"), ("verify", "Settings")):
        _section(page, title, body.get(name), body)
    harmless(page, groups(finding for name in SECTIONS for finding in findings_in(body.get(name))))
    _probe(page, runs.probe, body.get("beside") or ())
    if runs.loaded:
        heading(page, "Probe under load")
        under(page, runs.loaded, indent=2)
        measured(runs.loaded, page, indent=2)
    if runs.feed:
        heading(page, "Feed")
        feed_measured(runs.feed, page)
    _evidence(page, (body.get("thermal") or {}).get("evidence") or {})
    notes(page, body.get("notes", ()))


def _against_budget(page: TextPage, body: Mapping[str, Any], runs: Runs) -> None:
    """The worst CPU's figures with their limits, and each reason for the verdict that is no finding's."""
    for reason in other_reasons(body):
        prose(page, reason, indent=2, label="- ")
    for what, rows in (
        ("probe, the worst CPU", limits_of(runs.probe)),
        ("under load, the worst CPU", limits_of(runs.loaded)),
        ("feed", feed_limits_of(runs.feed)),
    ):
        if rows:
            columns(
                page, [row[:5] for row in rows], indent=2, right=(1, 2), header=(what, "measured", "budget", "", "")
            )


def _section(page: TextPage, title: str, section: Mapping[str, Any] | None, body: Mapping[str, Any]) -> None:
    """One part's verdict and counts, what needs attention, and its notes that the whole body has not as well."""
    if section is None:
        heading(page, title, ": not run")
        return
    verdict = str(section["verdict"])
    findings = findings_in(section)
    page.line()
    word = printable(verdict).replace("-", " ")
    line(page, (title, "bold"), ": ", (word, f"bold {VERDICT_STYLES.get(verdict, '')}"))
    prose(page, brief(findings), indent=2)
    urgent(page, groups(findings), body.get("actions") or (), indent=2)
    notes(page, [note for note in section.get("notes", ()) if note not in body.get("notes", ())], f"{title}: notes")


def _evidence(page: TextPage, evidence: Mapping[str, Any]) -> None:
    """The values that a judgement is based on."""
    known = {name: value for name, value in evidence.items() if value}
    if known:
        heading(page, "Thermal state: evidence")
    for name, value in known.items():
        text = _pairs(value) if isinstance(value, Mapping) else _plain(value)
        prose(page, text, indent=2, label=f"{printable(str(name))}: ")


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{printable(str(key))} {_plain(item)}" for key, item in values.items())


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"({_pairs(value)})"
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value)) or "(none)"
    return shown(value)


def _probe(page: TextPage, probe: Jitter | None, beside: Sequence[Mapping[str, Any]]) -> None:
    heading(page, "Probe", "" if probe else ": not run")
    if probe:
        measured(probe, page, indent=2)
    for one in beside:
        stolen_ms = (one["waited_ns"] + one["steal_ns"]) / 1e6
        what = (
            f"{one['interrupts']:,} interrupts, {one['lost_turns']:,} lost turns, {stolen_ms:,.1f} ms stolen "
            f"in {one['duration_s']:.3g} s; percentiles: {one['percentiles']}"
        )
        threads = "; ".join(printable(str(thread)) for thread in one["threads"])
        prose(page, what, indent=2, label=f"CPU {one['cpu']}, beside {threads}: ")
    if probe:
        notes(page, probe.warnings, "Probe: warnings")
