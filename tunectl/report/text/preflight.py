"""`tunectl preflight`: GO or not, every reason, then what each part found."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tunectl.report.escape import printable, shown
from tunectl.report.feed import feed_limits_of
from tunectl.report.figures import Limited, Runs, limits_of, runs_in
from tunectl.report.findings import brief, groups, summary
from tunectl.report.hosts import machine_name
from tunectl.report.text import screen
from tunectl.report.text.experiments import feed_measured
from tunectl.report.text.findings import compliant, findings
from tunectl.report.text.page import VERDICT_STYLES, TextPage, heading, line, notes, prose
from tunectl.report.text.probe_jitter import headline, measured, under
from tunectl.report.urgency import findings_in, needs_attention, other_reasons
from tunectl.shapes import Jitter
from tunectl.verdict import SECTIONS
from tunectl.wording import nanoseconds, plural, seconds_of


def preflight(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.preflight/1 body: the screen; with -v what each part found and measured."""
    runs = runs_in(body)
    found = [finding for name in SECTIONS for finding in findings_in(body.get(name))]
    grouped, limits, actions = groups(found), _limits(runs), body.get("actions") or ()
    last = [*_measured(runs, limits)]
    last += [summary(found)] if not last or any(map(needs_attention, grouped)) else []
    screen.begin(page, str(body["verdict"]), str(body.get("headline") or ""), _about(body), ", ".join(last))
    noted = [*((body.get("verify") or {}).get("notes") or ()), *(body.get("notes") or ())]

    def draw(page: TextPage) -> None:
        screen.against_limits(page, limits, other_reasons(body))
        screen.wrong(page, grouped, actions)
        screen.todo_list(page, actions, found)
        screen.ending(page, noted, found)

    screen.fit(page, draw)
    if page.verbose:
        _details(page, body, runs)


def _about(body: Mapping[str, Any]) -> Iterator[str]:
    """The machine, and the CPUs that were judged."""
    if hardware := body.get("hardware"):
        yield machine_name(hardware)
    if sets := body.get("cpu_sets"):
        isolated, rest, online = (shown(sets.get(which)) for which in ("isolated", "housekeeping", "online"))
        yield f"CPUs {isolated} of {online} to trade on, {rest} for everything else, says {shown(sets.get('from'))}"


def _measured(runs: Runs, limits: Iterable[Limited]) -> Iterator[str]:
    """What decides beside the findings: the limits that were broken, or not judged."""
    if not runs.probe:
        yield "not measured"
    if over := sum(row.word == "OVER" for row in limits):
        yield f"{plural(over, 'limit')} broken"
    if left := max((len(run.budget.not_judged) for run in (runs.probe, runs.loaded) if run), default=0):
        yield f"{plural(left, 'limit')} not judged"


def _limits(runs: Runs) -> list[Limited]:
    """What was measured, the quiet run first."""
    loaded = [row._replace(label=f"{row.label}, loaded") for row in limits_of(runs.loaded)]
    return [*limits_of(runs.probe), *loaded, *feed_limits_of(runs.feed)]


def _details(page: TextPage, body: Mapping[str, Any], runs: Runs) -> None:
    """What each part found, value by value, and what was measured."""
    for name, title in (("check", "Checks"), ("thermal", "Thermal state"), ("verify", "Settings")):
        _section(page, title, body.get(name))
    _probe(page, runs.probe, body.get("beside") or ())
    if runs.loaded:
        heading(page, "Probe under load")
        under(page, runs.loaded, indent=2)
        prose(page, headline([runs.loaded]), indent=2, style="bold")
        measured(runs.loaded, page, indent=2)
    if runs.feed:
        heading(page, "Feed")
        feed_measured(runs.feed, page)
    _evidence(page, (body.get("thermal") or {}).get("evidence") or {})


def _section(page: TextPage, title: str, section: Mapping[str, Any] | None) -> None:
    """One part's verdict and counts, and each of its findings."""
    if section is None:
        heading(page, title, ": not run")
        return
    verdict = str(section["verdict"])
    judged = findings_in(section)
    grouped = groups(judged)
    page.line()
    word = printable(verdict).replace("-", " ")
    line(page, (title, "bold"), ": ", (word, f"bold {VERDICT_STYLES.get(verdict, '')}"))
    prose(page, brief(judged), indent=2)
    findings(page, grouped, indent=2)
    compliant(page, grouped)


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
        return ", ".join(map(_plain, value)) or "empty"
    return shown(value)


def _probe(page: TextPage, probe: Jitter | None, beside: Sequence[Mapping[str, Any]]) -> None:
    heading(page, "Probe", "" if probe else ": not run")
    if probe:
        prose(page, headline([probe]), indent=2, style="bold")
        measured(probe, page, indent=2)
    for one in beside:
        stolen = nanoseconds(one["waited_ns"] + one["steal_ns"])
        what = (
            f"{one['interrupts']:,} interrupts, {one['lost_turns']:,} lost turns, {stolen} stolen "
            f"in {seconds_of(one['duration_s'])}; percentiles: {one['percentiles']}"
        )
        threads = "; ".join(printable(str(thread)) for thread in one["threads"])
        prose(page, what, indent=2, label=f"CPU {one['cpu']}, beside {threads}: ")
    if probe:
        notes(page, probe.warnings, "Probe: warnings")
