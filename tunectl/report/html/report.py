"""The page of `tunectl report`: probes, preflights and a comparison, turned into what its templates show. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tunectl import kinds
from tunectl.command import quoted
from tunectl.cpulist import format_cpulist
from tunectl.model import Finding, Outcome, Severity, Target, cost
from tunectl.report.actions import Todo, todo
from tunectl.report.cases import ended
from tunectl.report.causes import grouped, totals
from tunectl.report.escape import shown
from tunectl.report.feed import feed_limits_of
from tunectl.report.figures import (
    LOADED,
    OF_A_RUN,
    SIDES,
    bounds_of,
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
from tunectl.report.findings import Group, brief, groups, name_of
from tunectl.report.hosts import MEANS, machine_name
from tunectl.report.html.charts import MAX_CURVES, budget_bars, curve, forest, frequency_plot, wait_plot
from tunectl.report.html.cpus import cpu_grid
from tunectl.report.html.experiments import cases_view
from tunectl.report.html.gaps import COLOURS, gap_strips
from tunectl.report.story import story
from tunectl.report.urgency import COSTS, findings_in, kept, needs_attention, other_reasons, outcome_of
from tunectl.shapes import (
    CaseTable,
    Comparison,
    CpuSets,
    Difference,
    Feed,
    Jitter,
    JitterLoaded,
    JitterRuns,
    Preflight,
    RowGroup,
)
from tunectl.wording import percent, plural, wanted, written

MAX_PERIODS = 12
MAX_COUNTED = 12


Probe = Jitter | JitterRuns | JitterLoaded | CaseTable
Result = Probe | Preflight
Facts = Mapping[str, tuple[str, str]]  # of a knob why it matters, and the source that says so
_NO_PREFLIGHT: Mapping[str, Any] = {"todo": [], "reasons": [], "settings": None, "hardware": ""}
_SECTIONS = ("verify", "check", "thermal")


def file_view(file: Mapping[str, Any], number: int, facts: Facts) -> dict[str, Any]:
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
        "limits": _limits(result),
        "cpus": _cpus(result, jitter),
        **(_preflight(body, result, facts) if isinstance(result, Preflight) else _NO_PREFLIGHT),
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


def _preflight(body: Mapping[str, Any], result: Preflight, facts: Facts) -> dict[str, Any]:
    """What to do, why it is as it is, and every setting and check."""
    steps = todo(list(kinds.read(body.get("actions") or ())))
    hardware = body.get("hardware")
    return {
        "todo": steps,
        "reasons": other_reasons(body),
        "settings": _settings([finding for name in _SECTIONS for finding in findings_in(body.get(name))], steps, facts),
        "hardware": machine_name(hardware) if hardware else "",
    }


def _limits(result: Result) -> list[dict[str, Any]]:
    """What was measured beside what the budget allows: bars each of the probe, the probe under load, and feed."""
    of_jitter = result if isinstance(result, Jitter) else None
    runs = result if isinstance(result, Preflight) else None
    loaded = runs.loaded if runs else None
    load = loads_of(loaded.load or None)[0] if loaded else ""
    tables = (
        ("Measured", "", limits_of(runs.probe if runs else of_jitter)),
        ("Under load", load, limits_of(loaded)),
        ("Feed", "", feed_limits_of(runs.feed if runs else None)),
    )
    return [{"of": of, "said": said, **budget_bars(rows)} for of, said, rows in tables if rows]


def _cpus(result: Result, jitter: Jitter | None) -> list[dict[str, Any]]:
    """The grid of CPUs; nothing where there is but one."""
    preflight = result if isinstance(result, Preflight) else None
    clocks = (preflight.thermal.evidence if preflight and preflight.thermal else {}).get("core_khz")
    clocks = clocks if isinstance(clocks, Mapping) else {}
    findings = preflight.verify.findings if preflight and preflight.verify else ()
    grid = cpu_grid(preflight.cpu_sets if preflight else CpuSets(), jitter, clocks, findings)
    return grid if sum(len(core) for node in grid for core in node["cores"]) > 1 else []


def _settings(findings: Sequence[Finding], steps: Sequence[Todo], facts: Facts) -> dict[str, Any] | None:
    """Every setting and check as one table: what needs attention first, each with the step that mends it."""
    step_of: dict[str, dict[int, None]] = {}
    for number, step in enumerate(steps, 1):
        for target in step.mends:
            step_of.setdefault(target, {})[number] = None
    rows = [row for group in groups(findings) for row in _rows(group, step_of, steps, facts)]
    rows.sort(key=lambda row: (not row["needs"], row["cost"] if row["needs"] else 0))
    if not rows:
        return None
    costs = {row["weight"]: COSTS[Severity(row["weight"])] for row in rows if row["needs"] and row["weight"]}
    states = Counter(row["state"] for row in rows)
    return {"rows": rows, "said": brief(findings), "costs": costs, "states": list(states)}


def _rows(
    group: Group, step_of: Mapping[str, Mapping[int, None]], steps: Sequence[Todo], facts: Facts
) -> list[dict[str, Any]]:
    """A row for each value of a group."""
    shown_rows, left_out = kept(group)
    why, source = facts.get(group.knob, ("", ""))
    more = f"and {plural(left_out, 'more value')}; --format json lists each" if left_out else ""
    needs = needs_attention(group)
    found = []
    for row in shown_rows:
        targets = (str(Target(group.knob, instance)) for instance in row.instances)
        numbers = sorted({number for target in targets for number in step_of.get(target, ())})
        typed = {number: steps[number - 1].typed for number in numbers}
        observed, desired = ("" if value is None else shown(value) for value in (row.observed, row.desired))
        found.append(
            {
                "name": name_of(group.knob, row.instances, 6),
                "state": outcome_of(group),
                "needs": needs,
                "weight": group.severity.value if group.severity else "",
                "cost": cost(group.severity),
                "look": "open" if group.outcome is Outcome.UNREADABLE else "bad" if needs else "good"
                if group.outcome is Outcome.COMPLIANT else "quiet",
                "observed": observed or ("not set" if desired else ""),
                "desired": wanted(desired, group.match) if row.observed != row.desired and desired else "",
                "reason": "; ".join(filter(None, (row.reason or group.reason, more))),
                "why": "" if why == group.reason else why,
                "source": source,
                "steps": [(number, of[0] if len(of) == 1 else "") for number, of in typed.items()],
            }
        )  # fmt: skip
    return found


def _verdict(result: Result, doubt: str) -> dict[str, Any] | None:
    """{word, look, said}: the preflight's verdict, the budget's, or how an experiment ended.

    A GO with a `doubt` is not repeated, nor is a word that is no verdict.
    """
    if isinstance(result, Preflight):
        word, said = result.verdict, [result.headline] if result.headline else []
        if word not in MEANS:
            word, said = "unknown", [f"Its verdict is {quoted(word)}, which tunectl does not know."]
        if word == "go" and doubt:
            word, said = "unknown", [f"It says GO, and {doubt}."]
        return {"word": word.upper(), "look": {"go": "good", "no-go": "bad"}.get(word, "open"), "said": said}
    if isinstance(result, CaseTable) and not (isinstance(result, Feed) and result.budget.limits):
        word, *said = filter(None, ended(result))
        return {"word": word, "look": "open" if word == "no result" else "plain", "said": said}
    if not isinstance(result, Jitter | Feed):
        return None
    budget = result.budget
    if budget.verdict == "not-judged":
        return {"word": "not judged", "look": "open", "said": [budget.reason or "no budget"]}
    word, look = ("within budget", "good") if budget.verdict == "within" else ("over budget", "bad")
    return {"word": word, "look": look, "said": budget.broken}


def jitter_view(result: Jitter) -> dict[str, Any]:
    """A row of figures for each CPU, the two distributions, every gap over time, and the causes."""
    worst = [cpu.cpu for cpu in sorted(result.cpus, key=lambda cpu: -cpu.max_ns)]
    drawn = [cpu for cpu in result.cpus if cpu.cpu in worst[:MAX_CURVES]]
    curves = [curve(f"CPU {cpu.cpu}", result, [cpu]) for cpu in drawn]
    causes = grouped(result)
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
                "stolen": written("stolen_ppm", cpu.stolen_ppm),
                "gaps": [cpu.gap_ns.get(name) if cpu.interruptions else None for name in ("50", "99", "99.9")],
                "arrivals": [cpu.arrival_ns.get(name) for name in ("99", "99.9", "99.99")],
                "max_ns": cpu.max_ns,
            }
            for cpu in result.cpus
        ],
        "frequency": frequency_plot(curves),
        "waits": wait_plot(curves),
        "left_out": len(result.cpus) - len(drawn),
        "strips": gap_strips(result, causes[:-1]),
        "causes": causes,
        "colours": COLOURS,
        "totals": totals(result),
        "stops": stopped_together(result.simultaneous_stops, result.duration_s),
        "periods": _periods(result),
        "searched": searched_of(result),
        "counted": _counted(result),
    }


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
    judged = compared.judged
    words = {(row.measure, row.percentile): row.change for row in judged.rows} if judged else {}
    return {
        "names": names,
        "verdict": verdict_of(compared, names),
        "judged": compared.judged is not None,
        "confidence": percent(compared.confidence * 100),
        "before": compared.before,
        "after": compared.after,
        "warnings": compared.warnings,
        "look": _look(judged),
        "groups": [_group(group, words if place == 0 else {}) for place, group in enumerate(compared.groups)],
        "frequency": frequency_plot(curves),
        "waits": wait_plot(curves),
    }


def _look(judged: Difference | None) -> str:
    """Good where what decides became less, bad where it became more; open where it did both, or nobody can tell."""
    changes = {row.change for row in judged.rows} & {"lower", "higher"} if judged else set()
    if not judged or judged.outcome == "no-difference":
        return "plain"
    return {frozenset({"lower"}): "good", frozenset({"higher"}): "bad"}.get(frozenset(changes), "open")


def _group(group: RowGroup, words: Mapping[tuple[str, str | None], str]) -> dict[str, Any]:
    """Both sides of each figure, and the ratio with its bounds as a picture."""
    rows = [row for row in group.rows if row.before or row.after]
    drawn = forest(rows, words)
    sides = [
        {
            "name": label_of(row),
            "sides": [(value_of(row, side), bounds_of(row, side)) for side in (row.before, row.after)],
            "reason": row.reason,
        }
        for row in rows
    ]
    whiskers = drawn["rows"]
    return {
        "name": group.name,
        "marks": drawn["marks"],
        "rows": [{**side, **whisker} for side, whisker in zip(sides, whiskers, strict=True)],
    }
