"""The page of `tunectl report`: probes, preflights and a comparison, turned into what its templates show. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Any

from tunectl import kinds
from tunectl.cpulist import format_cpulist
from tunectl.report.actions import mended_by_apply, todo
from tunectl.report.causes import grouped, totals
from tunectl.report.charts import MAX_SPARKLINES
from tunectl.report.feed import feed_limits_of
from tunectl.report.figures import (
    LOADED,
    OF_A_RUN,
    SIDES,
    bounds_of,
    change_of,
    label_of,
    limits_of,
    loads_of,
    problems_of,
    runs_of,
    searched_of,
    stopped_together,
    value_of,
    verdict_of,
)
from tunectl.report.findings import brief, groups
from tunectl.report.html.charts import (
    MAX_CURVES,
    curve,
    frequency_plot,
    sparkline_plot,
    wait_plot,
)
from tunectl.report.html.experiments import cases_view
from tunectl.report.story import story
from tunectl.report.urgency import COSTS, findings_in, other_reasons, unknown, urgent_of
from tunectl.shapes import (
    CaseTable,
    Comparison,
    Cpu,
    Feed,
    Jitter,
    JitterLoaded,
    JitterRuns,
    Preflight,
    Row,
)

MAX_PERIODS = 12
MAX_COUNTED = 12


Probe = Jitter | JitterRuns | JitterLoaded | CaseTable
Result = Probe | Preflight
_NO_PREFLIGHT: Mapping[str, Any] = {"todo": [], "limits": [], "reasons": [], "sections": []}


def file_view(file: Mapping[str, Any], number: int) -> dict[str, Any]:
    """One file: its header, and the sections that its kind has."""
    body, name, result = file["body"], file["name"], file["result"]
    probe: Probe | None = result.probe if isinstance(result, Preflight) else result
    jitter = probe if isinstance(probe, Jitter) else None
    named = _named(result)
    runs = [run for _, run in named]
    return {
        "id": f"file{number}",
        "path": file["path"],
        "kind": {
            "preflight": "preflight",
            "probe.jitter": "jitter probe",
            "probe.jitter.runs": "runs of the jitter probe",
            "probe.jitter.loaded": "jitter probe, quiet and under load",
            "probe.wake": "wake probe",
            "probe.feed": "feed probe",
            "probe.hedge": "hedge probe",
            "probe.contention": "contention probe",
        }[name],
        "host": result.host,
        "at": result.at,
        "version": result.tunectl_version,
        "verdict": _verdict(result, file["doubt"]),
        **(_preflight(body, result) if isinstance(result, Preflight) else _NO_PREFLIGHT),
        "jitter": jitter_view(jitter) if jitter else None,
        "runs": runs_view(named) if named else None,
        "load": _load(result) if isinstance(result, JitterLoaded) else None,
        "cases": cases_view(result) if isinstance(result, CaseTable) else None,
        # of a result, or of several runs, each once
        "warnings": list(dict.fromkeys(text for measured in (probe, *runs) if measured for text in measured.warnings)),
    }


def _named(result: Result) -> list[tuple[str, Jitter]]:
    """The runs of a result that has several, each with its name."""
    if isinstance(result, JitterRuns):
        return [(f"run {number}", run) for number, run in enumerate(result.runs, 1)]
    if isinstance(result, JitterLoaded):
        return [(kind, run) for kind, runs in zip(LOADED, (result.quiet, result.loaded), strict=True) for run in runs]
    return []


def _load(kept: JitterLoaded) -> dict[str, Any]:
    """Of quiet and loaded runs: the comparison, what the loads did, and why they did not."""
    beside, compared = [run for run in kept.loaded if run.load and run.load.ran], kept.comparison
    return {
        "problems": problems_of(kept),
        "did": [loads_of(run.load or None) for run in kept.loaded],
        "comparison": _comparison(compared, [kept.quiet, beside], LOADED) if compared and beside else None,
    }


def runs_view(runs: Sequence[tuple[str, Jitter]]) -> dict[str, Any]:
    """A line a run, and all runs in one plot. Each run with its name."""
    curves = [curve(name, run, run.cpus) for name, run in runs]
    rows = runs_of(run for _, run in runs)
    return {
        "header": OF_A_RUN,
        "rows": [(f"{name}, {when}", *cells) for (name, _), (when, *cells) in zip(runs, rows, strict=True)],
        "waits": wait_plot(curves[:MAX_CURVES]),
        "left_out": len(curves[MAX_CURVES:]),
        "stories": [(name.capitalize(), story(run)) for name, run in runs if run.until],
    }


def _preflight(body: Mapping[str, Any], result: Preflight) -> dict[str, Any]:
    """What the text page of a preflight begins with: what to do, what was measured, then the settings."""
    titles = (("check", "Checks"), ("thermal", "Thermal state"), ("verify", "Settings"))
    actions = list(kinds.read(body.get("actions") or ()))
    mended = mended_by_apply(actions)
    return {
        "todo": todo(actions),
        "limits": _limits(result),
        "reasons": other_reasons(body),
        "sections": [
            _section(title, body[name], mended) for name, title in titles if (body.get(name) or {}).get("findings")
        ],
    }


def _limits(result: Preflight) -> list[dict[str, Any]]:
    """What was measured beside what the budget allows: a table each of the probe, the probe under load, and feed."""
    worst = "The worst CPU of each measure, and what the budget allows."
    load = loads_of(result.loaded.load or None)[0] if result.loaded else ""
    tables = (
        ("The probe", "on", worst, limits_of(result.probe)),
        ("The probe under load", "on", f"Under load: {load}. {worst}", limits_of(result.loaded)),
        ("Feed", "case", "The worst case of feed, and what the budget allows.", feed_limits_of(result.feed)),
    )
    return [{"of": of, "on": on, "said": said, "rows": rows} for of, on, said, rows in tables if rows]


def _section(title: str, section: Mapping[str, Any], mended: Set[str]) -> dict[str, Any]:
    """One part of a preflight: its counts, what needs attention by severity, and what could not be found out."""
    findings = findings_in(section)
    found = groups(findings)
    return {
        "title": title,
        "said": brief(findings),
        "urgent": [
            {
                "word": urgent.severity.value if urgent.severity else "",
                "costs": COSTS[urgent.severity] if urgent.severity else "",
                "lines": urgent.lines(mended),
            }
            for urgent in urgent_of(found)
        ],
        "unknown": unknown(found),
    }


def _verdict(result: Result, doubt: str) -> dict[str, Any] | None:
    """{word, look, said}: the preflight's verdict, otherwise the budget's. A GO with a `doubt` is not repeated."""
    if isinstance(result, Preflight):
        word, said = result.verdict, [result.headline] if result.headline else []
        if word == "go" and doubt:
            word, said = "unknown", [f"It says GO, and {doubt}."]
        return {"word": word.upper(), "look": {"go": "good", "no-go": "bad"}.get(word, "open"), "said": said}
    if not isinstance(result, Jitter) and not (isinstance(result, Feed) and result.budget.limits):
        return None
    budget = result.budget
    if budget.verdict == "not-judged":
        return {"word": "not judged", "look": "open", "said": [budget.reason or "no budget"]}
    word, look = ("within budget", "good") if budget.verdict == "within" else ("over budget", "bad")
    return {"word": word, "look": look, "said": budget.broken}


def jitter_view(result: Jitter) -> dict[str, Any]:
    """A row of figures for each CPU, the two distributions, the sparklines and the causes."""
    worst = [cpu.cpu for cpu in sorted(result.cpus, key=lambda cpu: -cpu.max_ns)]
    drawn = [cpu for cpu in result.cpus if cpu.cpu in worst[:MAX_CURVES]]
    curves = [curve(f"CPU {cpu.cpu}", result, [cpu]) for cpu in drawn]
    return {
        "cpus": format_cpulist(worst),
        "duration_s": result.duration_s,
        "threshold_ns": result.threshold_ns,
        "clock": result.clock.source,
        "granule_ns": result.clock.granule_ns,
        "interrupted": result.interrupted,
        "story": story(result),
        "rows": [
            {
                "cpu": cpu.cpu,
                "rate": result.figure(cpu, "interruptions_per_s"),
                "stolen_ppm": cpu.stolen_ppm,
                "gaps": [cpu.gap_ns.get(name) if cpu.interruptions else None for name in ("50", "99", "99.9")],
                "arrivals": [cpu.arrival_ns.get(name) for name in ("99", "99.9", "99.99")],
                "max_ns": cpu.max_ns,
            }
            for cpu in result.cpus
        ],
        "frequency": frequency_plot(curves),
        "waits": wait_plot(curves),
        "left_out": len(result.cpus) - len(drawn),
        "sparklines": _sparklines(result, [cpu for cpu in result.cpus if cpu.cpu in worst[:MAX_SPARKLINES]]),
        "causes": grouped(result),
        "totals": totals(result),
        "stops": stopped_together(result.simultaneous_stops),
        "periods": _periods(result),
        "searched": searched_of(result),
        "counted": _counted(result),
    }


def _sparklines(result: Jitter, cpus: Sequence[Cpu]) -> list[dict[str, Any]]:
    """All on one scale, so that CPUs can be compared by eye."""
    top = max([cpu.max_ns for cpu in cpus] + [10 * result.threshold_ns, 10])
    plots = [sparkline_plot(result, cpu, max(result.threshold_ns, 1), top) for cpu in cpus]
    return [plot for plot in plots if plot]


def _periods(result: Jitter) -> list[dict[str, Any]]:
    """Gaps that come at equal intervals, CPU by CPU."""
    return [
        {
            "cpu": cpu.cpu,
            "period": f"{period.known_ms} ms",
            "count": period.count,
            "mean_ns": period.mean_ns,
            "what": ", ".join(filter(None, (period.name, period.cause))) or "-",
        }
        for cpu in result.cpus
        for period in cpu.periods
    ][:MAX_PERIODS]


def _counted(result: Jitter) -> list[dict[str, Any]]:
    """What the kernel counted meanwhile: the most frequent interrupts."""
    irqs: Counter[str] = Counter()
    for cpu in result.cpus:
        irqs.update(cpu.counted.irq)
    names = result.irq_descriptions
    return [{"irq": irq, "name": names.get(irq, ""), "count": count} for irq, count in irqs.most_common(MAX_COUNTED)]


def compare_view(compared: Comparison, files: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The comparison's tables, and for jitter both runs in one plot."""
    return _comparison(compared, [_sides(file["result"]) for file in files], SIDES)


def _sides(result: Result) -> Sequence[Jitter]:
    """The runs of a result that are compared: the loaded ones of quiet and loaded ones."""
    if isinstance(result, JitterLoaded):
        return result.loaded or result.quiet
    if isinstance(result, JitterRuns):
        return result.runs
    probe = result.probe if isinstance(result, Preflight) else result
    return [probe] if isinstance(probe, Jitter) else []


def _comparison(compared: Comparison, sides: Sequence[Sequence[Jitter]], names: tuple[str, str]) -> dict[str, Any]:
    curves = []
    if compared.kind == "jitter":
        common = set.intersection(*({cpu.cpu for cpu in run.cpus} for side in sides for run in side))
        for name, side in zip(names, sides, strict=True):
            of = [cpu for run in side for cpu in run.cpus if cpu.cpu in common or not common]
            curves.append(curve(name, side[0], of))
    return {
        "names": names,
        "verdict": verdict_of(compared, names),
        "judged": compared.judged is not None,
        "confidence": f"{compared.confidence * 100:g} %",
        "before": compared.before,
        "after": compared.after,
        "warnings": compared.warnings,
        "groups": [
            {"name": group.name, "rows": [_compared(row) for row in group.rows if row.before or row.after]}
            for group in compared.groups
        ],
        "frequency": frequency_plot(curves),
        "waits": wait_plot(curves),
    }


def _compared(row: Row) -> dict[str, Any]:
    change, bounds = change_of(row)
    before, after = ({"value": value_of(row, side), "bounds": bounds_of(row, side)} for side in (row.before, row.after))
    rest = {"change": change, "bounds": bounds, "reason": row.reason}
    return {"name": label_of(row), "before": before, "after": after, **rest}
