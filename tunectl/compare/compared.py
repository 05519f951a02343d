"""A comparison: the body of a tunectl.compare/1 document. Pure."""

from collections.abc import Callable, Sequence

from tunectl.compare.cases import case_groups, nothing_in_common
from tunectl.compare.conditions import (
    common_conditions,
    feed_conditions,
    jitter_conditions,
    load_condition,
    other_warnings,
    request_conditions,
    set_conditions,
    wake_conditions,
)
from tunectl.compare.drift import Course, course_of
from tunectl.compare.estimate import Sample, sample
from tunectl.compare.judged import judge_runs, judge_sets
from tunectl.compare.tables import NAMES, run_rows, set_rows
from tunectl.cpulist import format_cpulist, named_cpus
from tunectl.errors import TunectlError
from tunectl.probe.document import ProbeFile, Result, is_same_table, shared_runs
from tunectl.shapes import (
    CaseTable,
    ComparedSide,
    Comparison,
    Contention,
    Difference,
    Feed,
    Hedge,
    Jitter,
    JitterLoaded,
    Row,
    RowGroup,
    Wake,
    replaced,
)

CONFIDENCE = 0.95
Runs = Sequence[Jitter]
Samples = Sequence[Sample]
Measured = Runs | CaseTable
LOADED = ("quiet", "loaded")


def compared(before: ProbeFile, after: ProbeFile, confidence: float = CONFIDENCE) -> Comparison:
    """Two results side by side. TunectlError where nothing is in common."""
    first, second = _measured(before), _measured(after)
    verdict: Difference | None = None
    if isinstance(first, CaseTable) and isinstance(second, CaseTable) and first.kind == second.kind:
        groups, warnings = _cases(first, second, confidence, (before.path, after.path))
    elif isinstance(first, CaseTable) or isinstance(second, CaseTable):
        kinds = [f"{file.path} is of `probe {_kind(run)}`" for file, run in ((before, first), (after, second))]
        raise TunectlError(f"nothing to compare: {', '.join(kinds)}", "give two results of the same probe")
    else:
        groups, verdict = _jitter(first, second, confidence)
        warnings = [*common_conditions(first[0], second[0]), *load_condition(first[0], second[0])]
        warnings += jitter_conditions(first[0], second[0])
        warnings += [*set_conditions("before", first), *set_conditions("after", second)]
    if same := _same(first, second):
        said = f"{before.path} and {after.path} hold the same {same}"
        raise TunectlError(f"nothing to compare: {said}", "give two results, each of its own measuring")
    warnings += other_warnings(first, second)
    return Comparison(
        kind=_kind(first),
        confidence=confidence,
        judged=verdict,
        before=_described(before.path, before.result, first),
        after=_described(after.path, after.result, second),
        warnings=warnings,
        groups=groups,
    )


def quiet_and_loaded(result: JitterLoaded, confidence: float = CONFIDENCE) -> Comparison | None:
    """The same of quiet runs and loaded ones: `before` is quiet, `after` loaded.

    A run beside a load that did not run is no loaded run. None where there is none.
    """
    loaded = [run for run in result.loaded if run.load and run.load.ran]
    if not loaded:
        return None
    groups, verdict = _jitter(result.quiet, loaded, confidence, LOADED)
    warnings = [*jitter_conditions(result.quiet[0], loaded[0], LOADED)]
    warnings += [*set_conditions(LOADED[0], result.quiet), *set_conditions(LOADED[1], loaded)]
    return Comparison(
        kind="jitter",
        confidence=confidence,
        judged=verdict,
        before=_described("quiet", result, result.quiet),
        after=_described("loaded", result, loaded),
        warnings=warnings,
        groups=groups,
    )


def _cases(
    first: CaseTable, second: CaseTable, confidence: float, names: tuple[str, str]
) -> tuple[list[RowGroup], list[str]]:
    """The tables of two results of one probe, and what else differs."""
    warnings: list[str] = []
    if isinstance(first, Wake) and isinstance(second, Wake):
        warnings = [*common_conditions(first, second), *wake_conditions(first, second)]
    if isinstance(first, Feed) and isinstance(second, Feed):
        warnings = [*common_conditions(first, second), *feed_conditions(first, second)]
    if isinstance(first, Hedge | Contention) and isinstance(second, Hedge | Contention):
        warnings = [*common_conditions(first, second), *request_conditions(first, second)]
    groups = case_groups(first, second, confidence)
    if not groups:
        raise nothing_in_common(first, second, names)
    return groups, warnings


def _same(first: Measured, second: Measured) -> str:
    """What both sides hold, though a run can be an observation of one side only; "" where that is nothing."""
    if isinstance(first, CaseTable) or isinstance(second, CaseTable):
        is_same = isinstance(first, CaseTable) and isinstance(second, CaseTable) and is_same_table(first, second)
        return "run" if is_same else ""
    shared = dict(shared_runs(first, second))
    if len(shared) == len(first) == len(second):
        return "run" if len(shared) == 1 else "runs"
    place = next(iter(shared.items()), None)
    return f"run: runs[{place[0]}] of the one is runs[{place[1]}] of the other" if place else ""


def _kind(measured: Measured) -> str:
    return measured.kind if isinstance(measured, CaseTable) else "jitter"


def _measured(file: ProbeFile) -> Measured:
    if isinstance(file.result, JitterLoaded) and not any(run.load and run.load.ran for run in file.result.loaded):
        raise TunectlError(f"{file.path}: nothing was measured under load", "measure it again, or compare a quiet run")
    measured = file.measured
    if measured is None:
        raise TunectlError(f"{file.path}: probe: was not run in this preflight", "give it one in which the probe ran")
    return measured


def _jitter(
    before: Runs, after: Runs, confidence: float, names: tuple[str, str] = NAMES
) -> tuple[list[RowGroup], Difference]:
    """A table for all common CPUs together, which has the verdict, then one for each, if there are several."""
    threshold = max(run.threshold_ns for run in (*before, *after))
    common = sorted(set.intersection(*({cpu.cpu for cpu in run.cpus} for run in (*before, *after))))

    def taken(runs: Runs, only: Sequence[int]) -> list[Sample]:
        return [sample(run, [cpu for cpu in run.cpus if not only or cpu.cpu in only], threshold) for run in runs]

    whole = _together(before, after, common, names)
    course = course_of(before, after)
    rows, judge = _table(taken(before, common), taken(after, common), confidence, names, course)
    groups = [RowGroup(whole, common[0] if len(common) == 1 else None, rows)]
    for cpu in common if len(common) > 1 else ():
        rows, _ = _table(taken(before, [cpu]), taken(after, [cpu]), confidence, names, course)
        groups.append(RowGroup(f"CPU {cpu}", cpu, rows))
    verdict = judge()
    if any(run.ended_by == "until" for run in (*before, *after)) and verdict.outcome == "cannot-tell":
        verdict = replaced(verdict, would_help="measure without --until")
    return groups, verdict


def _table(
    before: Samples, after: Samples, confidence: float, names: tuple[str, str], course: Course
) -> tuple[list[Row], Callable[[], Difference]]:
    """The rows, and what judges them."""
    if len(before) == len(after) == 1:
        rows, ratios = run_rows(before[0], after[0], confidence, names)
        return rows, lambda: judge_runs(before[0], after[0], ratios, confidence)
    rows, ratios, values = set_rows(before, after, confidence)
    return rows, lambda: judge_sets(values, ratios, confidence, names, course)


def _together(before: Runs, after: Runs, common: Sequence[int], names: tuple[str, str]) -> str:
    if not common:  # the runs are compared as wholes
        return f"{_listed(before)} {names[0]}, {_listed(after)} {names[1]}"
    return f"{named_cpus(common)}{' together' if len(common) > 1 else ''}"


def _listed(runs: Runs) -> str:
    return named_cpus(cpu.cpu for run in runs for cpu in run.cpus)


def _described(path: str, result: Result, measured: Measured) -> ComparedSide:
    """The file, host and time of one side. The probe inside a preflight has no header of its own."""
    runs = [measured] if isinstance(measured, CaseTable) else measured
    run = runs[0]
    host = run.host if run.host.hostname else result.host
    side = ComparedSide(file=path, host=host, at=run.at or result.at)
    if not isinstance(run, Jitter):
        return side
    return replaced(
        side,
        runs=len(runs),
        cpus=format_cpulist(cpu.cpu for cpu in run.cpus),
        duration_s=run.duration_s,
        threshold_ns=run.threshold_ns,
    )
