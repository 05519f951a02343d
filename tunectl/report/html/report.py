"""The page of `tunectl report`: probes, preflights and a comparison, turned into what its templates show. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Any

from tunectl.cpulist import format_cpulist
from tunectl.report.actions import mended_by_apply, todo
from tunectl.report.charts import LogScale
from tunectl.report.figures import (
    CHANGES,
    bounds_of,
    budget_of,
    figure,
    label_of,
    limits_of,
    nanoseconds,
    ratio_of,
    value_of,
)
from tunectl.report.findings import brief
from tunectl.report.html.charts import curve, frequency_plot, range_marks, sparkline_plot, wait_plot, warmth
from tunectl.report.urgency import COSTS, findings_in, known, other_reasons, unknown, urgent_of

MAX_CURVES = 6  # more lines cannot be told apart; the CPUs with the longest gaps are drawn
MAX_SPARKLINES = 16
MAX_CAUSES = 12


def file_view(file: Mapping[str, Any], number: int) -> dict[str, Any]:
    """One file: its header, and the sections that its kind has."""
    body, name = file["body"], file["name"]
    probe = body.get("probe") if name == "preflight" else body
    jitter = probe if name in ("preflight", "probe.jitter") else None
    return {
        "id": f"file{number}",
        "path": file["path"],
        "kind": {"preflight": "preflight", "probe.jitter": "jitter probe", "probe.wake": "wake probe"}[name],
        "host": {"hostname": "", "kernel": "", "machine": "", **(body.get("host") or {})},
        "at": body.get("at", ""),
        "version": body.get("tunectl_version", ""),
        "verdict": _verdict(name, body, jitter, file.get("doubt", "")),
        **(_preflight(body) if name == "preflight" else {"todo": [], "limits": [], "reasons": [], "sections": []}),
        "jitter": jitter_view(jitter) if jitter else None,
        "wake": wake_view(body) if name == "probe.wake" else None,
        "warnings": (probe or {}).get("warnings") or [],
    }


def _preflight(body: Mapping[str, Any]) -> dict[str, Any]:
    """What the text page of a preflight begins with: what to do, what was measured, then the settings."""
    titles = (("check", "Checks"), ("thermal", "Thermal state"), ("verify", "Settings"))
    mended = mended_by_apply(body.get("actions") or ())
    return {
        "todo": todo(body.get("actions") or ()),
        "limits": limits_of(body.get("probe") or {}),
        "reasons": other_reasons(body),
        "sections": [
            _section(title, body[name], mended) for name, title in titles if (body.get(name) or {}).get("findings")
        ],
    }


def _section(title: str, section: Mapping[str, Any], mended: Set[str]) -> dict[str, Any]:
    """One part of a preflight: its counts, what needs attention by severity, and what could not be found out."""
    found = findings_in(section)
    return {
        "title": title,
        "said": brief(found),
        "urgent": [
            {"word": one.severity.value, "costs": COSTS[one.severity], "lines": one.lines(mended)}
            if one.severity
            else {"word": "", "costs": "", "lines": one.lines(mended)}
            for one in urgent_of(known(found))
        ],
        "unknown": unknown(found),
    }


def _verdict(name: str, body: Mapping[str, Any], jitter: Mapping[str, Any] | None, doubt: str) -> dict[str, Any] | None:
    """{word, look, said}: the preflight's verdict, otherwise the budget's. A GO with a `doubt` is not repeated."""
    if name == "preflight":
        word, said = str(body["verdict"]), [str(body["headline"])] if body.get("headline") else []
        if word == "go" and doubt:
            word, said = "unknown", [f"It says GO, and {doubt}."]
        return {"word": word.upper(), "look": {"go": "good", "no-go": "bad"}.get(word, "open"), "said": said}
    if jitter is None:
        return None
    budget = budget_of(jitter)
    verdict = budget.get("verdict", "not-judged")
    if verdict == "not-judged":
        return {"word": "not judged", "look": "open", "said": [budget.get("reason") or "no budget"]}
    word, look = ("within budget", "good") if verdict == "within" else ("over budget", "bad")
    return {"word": word, "look": look, "said": budget.get("broken") or []}


def jitter_view(body: Mapping[str, Any]) -> dict[str, Any]:
    """A row of figures for each CPU, the two distributions, the sparklines and the causes."""
    worst = sorted(body["cpus"], key=lambda cpu: -cpu["max_ns"])
    drawn = [cpu for cpu in body["cpus"] if cpu in worst[:MAX_CURVES]]
    curves = [curve(f"CPU {cpu['cpu']}", body, [cpu]) for cpu in drawn]
    return {
        "cpus": format_cpulist(cpu["cpu"] for cpu in body["cpus"]),
        "duration_s": body["duration_s"],
        "threshold_ns": body["threshold_ns"],
        "clock": body["clock"].get("source", ""),
        "granule_ns": body["clock"].get("granule_ns"),
        "interrupted": body.get("interrupted", False),
        "rows": [_figures(body, cpu) for cpu in body["cpus"]],
        "frequency": frequency_plot(curves),
        "waits": wait_plot(curves),
        "left_out": len(body["cpus"]) - len(drawn),
        "sparklines": _sparklines(body, [cpu for cpu in body["cpus"] if cpu in worst[:MAX_SPARKLINES]]),
        "causes": causes(body),
        "periods": _periods(body),
        "counted": _counted(body),
    }


def _figures(body: Mapping[str, Any], cpu: Mapping[str, Any]) -> dict[str, Any]:
    gap = cpu["gap_ns"] if cpu["interruptions"] else {}
    return {
        "cpu": cpu["cpu"],
        "rate": figure(body, cpu, "interruptions_per_s"),
        "stolen_ppm": figure(body, cpu, "stolen_ppm"),
        "gaps": [gap.get(percentile) for percentile in ("50", "99", "99.9")],
        "arrivals": [cpu["arrival_ns"].get(percentile) for percentile in ("99", "99.9", "99.99")],
        "max_ns": cpu["max_ns"],
    }


def _sparklines(body: Mapping[str, Any], cpus: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """All on one scale, so that CPUs can be compared by eye."""
    top = max([cpu["max_ns"] for cpu in cpus] + [10 * body["threshold_ns"], 10])
    made = [sparkline_plot(body, cpu, max(body["threshold_ns"], 1), top) for cpu in cpus]
    return [one for one in made if one]


def causes(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """[{cause, count, total_ns, max_ns, percent}] of all CPUs, most time first; empty where causes were not traced."""
    found: dict[str, dict[str, Any]] = {}
    for cpu in body["cpus"]:
        for one in cpu.get("causes") or ():
            name = one["cause"] or "unknown"
            row = found.setdefault(name, {"cause": name, "count": 0, "total_ns": 0, "max_ns": 0})
            row["count"] += one["count"]
            row["total_ns"] += one["total_ns"]
            row["max_ns"] = max(row["max_ns"], one["max_ns"])
    total = sum(row["total_ns"] for row in found.values()) or 1.0
    rows = sorted(found.values(), key=lambda row: (-row["total_ns"], row["cause"]))
    return [{**row, "percent": 100 * row["total_ns"] / total} for row in rows[:MAX_CAUSES]]


def _periods(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Gaps that come at equal intervals, CPU by CPU."""
    return [
        {
            "cpu": cpu["cpu"],
            "period_ns": one["period_ns"],
            "count": one["count"],
            "mean_ns": one.get("mean_ns", 0),
            "what": ", ".join(filter(None, (one.get("name"), one.get("cause")))) or "-",
        }
        for cpu in body["cpus"]
        for one in cpu.get("periods") or ()
    ][:MAX_CAUSES]


def _counted(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the kernel counted meanwhile: the most frequent interrupts."""
    irqs: Counter[str] = Counter()
    for cpu in body["cpus"]:
        irqs.update((cpu.get("counters") or {}).get("irq") or {})
    names = body.get("irq_descriptions") or {}
    return [{"irq": irq, "name": names.get(irq, ""), "count": count} for irq, count in irqs.most_common(MAX_CAUSES)]


def wake_view(body: Mapping[str, Any]) -> dict[str, Any]:
    """The matrix: a row for each wait method, a column for each idle time."""
    cases = body["cells"]
    idles = sorted({case["idle_ms"] for case in cases})
    medians = [median for case in cases if (median := _median(case))] or [1.0]
    axis = LogScale.over(min(medians), max([case["max_ns"] or 0 for case in cases] + [10.0]), 1, 99)
    rows: dict[tuple[str, str], dict[float, dict[str, Any]]] = {}
    for case in cases:
        shade = warmth(_median(case), min(medians), max(medians)) if _median(case) else 0
        method = f"{case['waiting']} ({case['way']})" if case.get("way") else case["waiting"]
        rows.setdefault((case["mechanism"], method), {})[case["idle_ms"]] = {**_shown(case, axis), "shade": shade}
    return {
        "idles": idles,
        "rows": [
            {"mechanism": mechanism, "waiting": waiting, "cells": [of.get(idle) for idle in idles]}
            for (mechanism, waiting), of in rows.items()
        ],
        "reasons": list(
            dict.fromkeys(f"{case['mechanism']}: {case['reason']}" for case in cases if case.get("reason"))
        ),
        "low": nanoseconds(axis.low),
        "high": nanoseconds(axis.high),
    }


def _shown(case: Mapping[str, Any], axis: LogScale) -> dict[str, Any]:
    percentiles = case.get("percentiles_ns") or {}
    return {
        "n": case["n"],
        "p50": percentiles.get("50"),
        "p99": percentiles.get("99"),
        "max_ns": case["max_ns"],
        "busy": case.get("receiver_cpu_percent"),
        "range": range_marks(case, axis),
    }


def _median(case: Mapping[str, Any]) -> float:
    return float((case.get("percentiles_ns") or {}).get("50") or 0.0)


def compare_view(compared: Mapping[str, Any], files: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The comparison's tables, and for jitter both runs in one plot."""
    probes = [file["body"].get("probe") if file["name"] == "preflight" else file["body"] for file in files]
    curves = []
    if compared["kind"] == "jitter":
        common = {cpu["cpu"] for cpu in probes[0]["cpus"]} & {cpu["cpu"] for cpu in probes[1]["cpus"]}
        for name, probe in zip(("before", "after"), probes, strict=True):
            of = [cpu for cpu in probe["cpus"] if cpu["cpu"] in common or not common]
            curves.append(curve(name, probe, of))
    return {
        "confidence": f"{compared['confidence'] * 100:g} %",
        "before": compared["before"],
        "after": compared["after"],
        "warnings": compared["warnings"],
        "groups": [
            {"name": group["name"], "rows": [_compared(row) for row in group["rows"] if row["before"] or row["after"]]}
            for group in compared["groups"]
        ],
        "frequency": frequency_plot(curves),
        "waits": wait_plot(curves),
    }


def _compared(row: Mapping[str, Any]) -> dict[str, Any]:
    ratio, bounds = ratio_of(row)
    sides = {side: {"value": value_of(row, side), "bounds": bounds_of(row, side)} for side in ("before", "after")}
    change = {"change": row["change"], "word": CHANGES.get(row["change"], row["change"]), "reason": row["reason"]}
    return {"name": label_of(row), **sides, "ratio": ratio, "bounds": bounds, **change}
