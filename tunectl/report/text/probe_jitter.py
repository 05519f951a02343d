"""The pages of `probe jitter` and `probe selftest`: what interrupted each CPU, how long, and from which cause."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from tunectl.cpulist import named_cpus
from tunectl.report.causes import grouped, of_any_cpu, totals
from tunectl.report.escape import printable
from tunectl.report.figures import (
    LOADED,
    OF_A_RUN,
    limits_of,
    loads_of,
    problems_of,
    runs_of,
    searched_of,
    stopped_together,
    verdict_of,
)
from tunectl.report.story import story
from tunectl.report.text import compare, screen
from tunectl.report.text.budget import judged
from tunectl.report.text.charts import histogram, sparklines
from tunectl.report.text.page import TextPage, columns, heading, notes, prose, roomiest
from tunectl.shapes import Cpu, Jitter, JitterLoaded, JitterRuns, Period, typed
from tunectl.wording import looser_limits, nanoseconds, percent, plain, plural, ppm, seconds_of, written

MAX_CPUS = 64  # rows of the table: the CPUs with the longest gaps
_SIZES = ((6, 5, 3), (4, 4, 2), (2, 3, 1))  # CPUs, causes and periods on the first screen: the most that fits
_MOST_CAUSES = 3  # of each of two runs
_ROOM = 38  # lines; the last two are the verdict's
MAX_IRQS = 8  # interrupts listed: the most frequent ones
_HEADER = ("CPU", "int/s", "stolen", "P50", "P99", "P99.9", "P99.99", "arr99.9", "max", "loop")


def jitter(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.probe.jitter/1 body: the screen; with -v every CPU, all lengths, the run's course, counters."""
    result = typed(body, Jitter)
    screen.begin(page, _word([result]), headline([result]))
    if result.budget.verdict == "not-judged":
        prose(page, result.budget.reason or "no budget", indent=2, style="magenta")
    if page.verbose:
        measured(result, page)
        notes(page, result.warnings, "Warnings")
        return
    roomiest(page, _SIZES, partial(_screen, result), lambda drawn: len(drawn.lines) <= _ROOM)


def _screen(result: Jitter, page: TextPage, most: tuple[int, int, int]) -> None:
    """Below the verdict: what decides, and the first of all CPUs, causes and periods."""
    most_cpus, most_causes, most_periods = most
    _story(page, result, 0)
    rows = limits_of(result)
    if any(row.share is not None for row in rows):
        screen.against_limits(page, rows)
    page.line()
    _table(page, result, most_cpus)
    causes(page, result, 0, most_causes)
    periods(page, result, 0, most_periods)
    if together := stopped_together(result.simultaneous_stops, result.duration_s):
        prose(page, together, style="yellow")
    screen.ending(page, result.warnings)
    page.line()
    prose(page, "-v: all lengths, the course of the run, what the kernel counted meanwhile", style="dim")


def _word(runs: Iterable[Jitter]) -> str:
    """How runs kept their budget: one that broke it breaks it for all."""
    verdicts = {run.budget.verdict for run in runs}
    return "over" if "broken" in verdicts else "within" if verdicts == {"within"} else "not judged"


def runs(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.probe.jitter.runs/1 body: a line a run."""
    kept = typed(body, JitterRuns)
    count = f"{len(kept.runs)} runs, {seconds_of(kept.pause_s)} apart" if len(kept.runs) > 1 else "1 run"
    screen.begin(page, _word(kept.runs), f"{count}, each: {headline(kept.runs)}")
    for text in dict.fromkeys(text for run in kept.runs for text in run.budget.broken):
        prose(page, text, label="over budget: ", style="red")
    page.line()
    columns(page, runs_of(kept.runs), right=range(1, 5), header=("the worst CPU of", *OF_A_RUN))
    _stories(page, [(f"run {number}", run) for number, run in enumerate(kept.runs, 1)])
    _warnings(page, kept.warnings, kept.runs)


def loaded(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.probe.jitter.loaded/1 body: quiet and loaded side by side, then what the load did."""
    kept = typed(body, JitterLoaded)
    sides = [("quiet", run) for run in kept.quiet] + [("loaded", run) for run in kept.loaded]
    comparison = kept.comparison
    outcome = comparison.judged.outcome.replace("-", " ") if comparison and comparison.judged else ""
    screen.begin(page, _word(run for _, run in sides), headline(kept.quiet), last=outcome)
    for text in problems_of(kept):
        prose(page, text, style="bold red")
    if comparison:
        verdict, *rest = verdict_of(comparison, LOADED)
        prose(page, verdict, style="bold")
        for text in rest:
            prose(page, text, indent=2)
        page.line()
    for name, run in sides:
        judged(page, run.budget, 0, f"{name}, ")
    for run in kept.loaded:
        under(page, run)
    if len(sides) > 2 or not comparison:
        page.line()
        rows = [(name, *row) for (name, _), row in zip(sides, runs_of(run for _, run in sides), strict=True)]
        columns(page, rows, right=range(2, 6), header=("", "the worst CPU of", *OF_A_RUN))
    if comparison:
        compare.tables(page, comparison, LOADED)
    _stories(page, sides)
    for name, run in sides if len(sides) == 2 else ():
        if run.attribution:
            heading(page, name)
            causes(page, run, 0, MAX_CPUS if page.verbose else _MOST_CAUSES)
    _warnings(page, [*kept.warnings, *(comparison.warnings if comparison else ())], [run for _, run in sides])


def _warnings(page: TextPage, own: Iterable[str], runs: Iterable[Jitter]) -> None:
    """A document's own, then those of its runs, each once."""
    screen.ending(page, [*own, *(text for run in runs for text in run.warnings)])


def under(page: TextPage, run: Jitter, indent: int = 0) -> None:
    """What the load of a run did."""
    where, rows = loads_of(run.load or None)
    prose(page, where, indent=indent, label="load: ")
    columns(page, rows, indent=indent + 2)


def measured(result: Jitter, page: TextPage, indent: int = 0) -> None:
    """Below the headline: the table and all charts, without the warnings. Also a section of preflight."""
    cpus = result.cpus
    judged(page, result.budget, indent)
    _story(page, result, indent)
    page.line()
    _table(page, result, MAX_CPUS, indent)
    account(page, result, indent)
    histogram(page, (cpu.histogram for cpu in cpus), indent)
    sparklines(page, result, indent)
    causes(page, result, indent)
    periods(page, result, indent)
    _during(page, result, indent)


def _table(page: TextPage, result: Jitter, most: int, indent: int = 0) -> None:
    """A line a CPU: those with the longest gaps, where there are more than `most`."""
    cpus = result.cpus
    rows = sorted(cpus, key=lambda cpu: -cpu.max_ns)[:most] if len(cpus) > most else cpus
    header = _HEADER if page.verbose else _HEADER[:-1]
    shown = [_row(result, cpu)[: len(header)] for cpu in rows]
    columns(page, shown, indent=indent, right=range(len(header)), header=header)
    if len(cpus) > len(rows):
        prose(page, f"and {plural(len(cpus) - len(rows), 'more CPU')}, none with a longer gap", indent=indent)
    legend = "stolen: of the time; P50 to max: gaps; arr99.9: P99.9 of a randomly timed message's wait"
    prose(page, legend, indent=indent, style="dim")


def headline(runs: Sequence[Jitter]) -> str:
    """What was measured, and for how long: runs that --until ended may each have another length."""
    result, lengths = runs[0], sorted(run.duration_s for run in runs)
    least, most = map(seconds_of, (lengths[0], lengths[-1]))
    lasted = most if least == most else f"{least} to {most}"
    cpus, clock = named_cpus(cpu.cpu for cpu in result.cpus), result.clock
    source = f", clock {clock.source}" if clock.source else ""
    granule = f" in steps of {nanoseconds(clock.granule_ns)}" if clock.granule_ns else ""
    what = f"gaps over {nanoseconds(result.threshold_ns)}"
    looser = f"; {looser_limits(result.budget.looser)}" if result.budget.looser else ""
    return f"{cpus} for {lasted}: {what}{source}{granule}{looser}"


def _stories(page: TextPage, named: Iterable[tuple[str, Jitter]]) -> None:
    for name, run in named:
        if run.until:
            page.line()
            prose(page, name, style="bold")
            _story(page, run, 2)


def _story(page: TextPage, result: Jitter, indent: int) -> None:
    """Of the gap that --until waited for."""
    found = story(result)
    if not found:
        return
    prose(page, found.headline, indent=indent, style="bold yellow" if result.until and result.until.gap else "")
    columns(page, found.rows, indent=indent + 2, right={0})
    for text in (*found.others, *found.unseen):
        prose(page, text, indent=indent + 2)


def _row(result: Jitter, cpu: Cpu) -> Sequence[str]:
    gap = cpu.gap_ns if cpu.interruptions else {}
    return (
        str(cpu.cpu),
        plain(result.figure(cpu, "interruptions_per_s")),
        written("stolen_ppm", cpu.stolen_ppm),
        *(nanoseconds(gap.get(percentile)) for percentile in ("50", "99", "99.9", "99.99")),
        nanoseconds(result.figure(cpu, "p99_9_ns")),
        nanoseconds(cpu.max_ns),
        nanoseconds(cpu.loop_ns.mean),
    )


def _during(page: TextPage, result: Jitter, indent: int) -> None:
    """What the kernel counted on these CPUs while the probe ran: the likely causes."""
    irqs: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for cpu in result.cpus:
        counted = cpu.counted
        irqs.update(counted.irq)
        others["context switches"] += counted.context_switches.voluntary + counted.context_switches.involuntary
        others["page faults"] += counted.page_faults
        others["ns stolen by the hypervisor"] += counted.steal_ns
        others["interruptions beyond the list of events; the histogram has them"] += cpu.events_lost
    names = result.irq_descriptions
    rows = [(f"{delta:,}", printable(irq), printable(names.get(irq, ""))) for irq, delta in irqs.most_common(MAX_IRQS)]
    rows += [(f"{count:,}", "", name) for name, count in others.items() if count]
    if rows:
        page.line()
        prose(page, "meanwhile, on these CPUs", indent=indent)
        columns(page, rows, indent=indent + 2, right={0})


_CAUSES_HEADER = ("gaps", "total", "share", "longest", "cause, by what held the CPU longest")


def causes(page: TextPage, result: Jitter, indent: int, most: int = MAX_CPUS) -> None:
    """The table of causes over all CPUs, the first `most` and their sum; nothing where they were not asked for."""
    asked = result.attribution
    if not asked:
        return
    page.line()
    if asked.method != "trace":
        prose(page, f"causes: {asked.reason}; the counters below have to do", indent=indent, style="magenta")
        return
    cost = asked.event_cost_ns
    said = f"; tracing an event takes {nanoseconds(cost)} at least, and is part of these" if cost else ""
    if error := asked.clock_error_ns:
        said += f"; by its clock {asked.clock}, an event may have been {nanoseconds(error)} earlier or later"
    prose(page, f"what the gaps were, by the kernel's own trace{said}", indent=indent)
    rows = grouped(result)
    left = max(len(rows) - most, 0)
    rows = [*rows[: most - 1], *rows[-1:]] if left else rows
    shown = [
        (f"{row.count:,}", nanoseconds(row.total_ns), percent(row.percent), nanoseconds(row.max_ns), row.cause)
        for row in rows
    ]
    columns(page, shown, indent=indent + 2, right={0, 1, 2, 3}, header=_CAUSES_HEADER)
    if left:
        prose(page, f"{plural(left, 'more cause')} in all gaps: -v", indent=indent + 2, style="dim")
    for text in totals(result):
        prose(page, text, indent=indent + 2)
    lost = sum(cpu.trace.events_lost for cpu in result.cpus if cpu.trace)
    if lost:
        prose(page, f"{lost:,} events found no room in the trace buffer", indent=indent + 2, style="yellow")


def periods(page: TextPage, result: Jitter, indent: int, most: int = MAX_CPUS) -> None:
    """A line for each series of gaps that comes at regular intervals, of all CPUs that have it; how far was looked."""
    found: dict[tuple[str, str, str], list[tuple[int, Period]]] = {}  # by length, and by what it is on any CPU
    for cpu in result.cpus:
        for period in cpu.periods:
            found.setdefault((period.known_ms, period.name, of_any_cpu(period.cause)), []).append((cpu.cpu, period))
    searched = searched_of(result)
    if found or searched:
        page.line()
    for (known_ms, name, cause), same in list(found.items())[:most]:
        known = " - ".join(dict.fromkeys(filter(None, (name, cause if len(same) > 1 else same[0][1].cause))))
        count = sum(period.count for _, period in same)
        mean_ns = sum(period.count * period.mean_ns for _, period in same) / count
        what = f"{count:,} gaps, {nanoseconds(mean_ns)} each on average"
        label = f"{named_cpus(cpu for cpu, _ in same)}, every {known_ms} ms: "
        prose(page, f"{what}{': ' if known else ''}{known}", indent=indent, label=label)
    if len(found) > most:
        prose(page, f"and {plural(len(found) - most, 'more period')}: -v", indent=indent, style="dim")
    if searched and (page.verbose or not found):
        prose(page, searched, indent=indent, style="dim")


def account(page: TextPage, result: Jitter, indent: int) -> None:
    """Do loops and gaps add up to the run? And, with -v, the clock each core really ran at."""
    off = [abs(cpu.conservation_ppm) for cpu in result.cpus if cpu.conservation_ppm is not None]
    if off:
        worst = max(off)
        said = "1 ppm" if worst < 1 else ppm(worst)
        text = f"loops and gaps add up to the run's length within {said}"
        prose(page, text, indent=indent, style="dim" if worst <= 1000 else "red")
    elif page.verbose > 1:
        text = "the kernel's clock reads the same counter: loops and gaps cannot be held against it"
        prose(page, text, indent=indent, style="dim")
    if smis := result.smis:
        text = f"{plural(smis.count or 0, 'SMI')} counted meanwhile"
        if smis.count is None:
            text = f"SMIs were not counted: {smis.reason}"
        elif smis.count:
            text += ": each stops all CPUs, and no kernel sees it"
        prose(page, text, indent=indent, style="" if smis.count else "dim")
    stops = result.simultaneous_stops
    if together := stopped_together(stops, result.duration_s):
        prose(page, together, indent=indent, style="yellow")
    elif stops and page.verbose > 1:
        unknown = f"simultaneous stops of all CPUs cannot be told: {stops.reason}"
        prose(page, unknown if stops.reason else "no simultaneous stops of all CPUs", indent=indent, style="dim")
    for cpu in result.cpus if page.verbose > 1 else ():
        if clock := cpu.core_khz:
            text = f"core clock {clock.before / 1e6:.3f} GHz before, {clock.after / 1e6:.3f} GHz after"
            prose(page, text, indent=indent, label=f"CPU {cpu.cpu}: ", style="dim")


_PHASES_HEADER = ("", "injected", "found", "as lost", "missed", "shortest", "too long by", "what")
_PHASE_STYLES = {"passed": "green", "failed": "red", "not-run": "magenta"}


def selftest(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.probe.selftest/1 body."""
    outcomes = [phase["outcome"] for phase in body["phases"]]
    said = f"{outcomes.count('passed')} of {plural(len(outcomes), 'phase')} passed"
    word, said = ("passed", "every known interruption was found") if body["passed"] else ("not passed", said)
    screen.begin(page, word, f"CPU {body['cpu']}, gaps over {nanoseconds(body['threshold_ns'])}: {said}", last=said)
    vouched = f"interruptions from {nanoseconds(body.get('vouched_ns'))} on are vouched for on this host"
    prose(page, vouched if body.get("vouched_ns") else "no length is vouched for on this host")
    page.line()
    rows = []
    for phase in body["phases"]:
        figures: tuple[str, ...] = ("", "", "", "", "")
        if "max_error_ns" in phase:  # this phase measures one long stop; the others count gaps
            figures = ("", "", "", nanoseconds(phase["max_ns"]), nanoseconds(phase["max_error_ns"]))
        elif "found" in phase:
            error = (phase.get("length_error_ns") or {}).get("median")
            counts = (f"{phase[name]:,}" for name in ("found", "counted_as_lost", "missed"))
            figures = (*counts, nanoseconds(phase["shortest_gap_ns"]), nanoseconds(error))
        rows.append((phase["outcome"], f"{phase['injected']:,}", *figures, phase["name"]))
    columns(page, rows, right=range(1, 7), header=_PHASES_HEADER)
    for phase in body["phases"]:
        if phase["reason"]:
            prose(page, phase["reason"], label=f"{phase['name']}: ", style=_PHASE_STYLES.get(phase["outcome"], ""))
    legend = "too long by: median of the gap less what was injected, the ways in and out of the kernel"
    prose(page, legend, style="dim")
