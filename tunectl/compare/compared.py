"""A comparison: the body of a tunectl.compare/1 document. Pure."""

from collections.abc import Mapping, Sequence

from tunectl.compare.cases import case_groups, nothing_in_common
from tunectl.compare.chance import CONFIDENCE
from tunectl.compare.conditions import (
    case_conditions,
    common_conditions,
    jitter_conditions,
    load_condition,
    other_warnings,
    set_conditions,
)
from tunectl.compare.drift import course_of
from tunectl.compare.estimate import Sample, sample
from tunectl.compare.judged import Measure, Sides, judge_runs, judge_sets
from tunectl.compare.tables import NAMES, Estimates, run_rows, set_rows
from tunectl.cpulist import format_cpulist, named_cpus
from tunectl.errors import TunectlError
from tunectl.probe.document import ProbeFile, Result, is_same_table, shared_runs
from tunectl.shapes import (
    CaseTable,
    ComparedSide,
    Comparison,
    Difference,
    Jitter,
    JitterLoaded,
    Row,
    RowGroup,
    replaced,
)

Runs = Sequence[Jitter]
Samples = Sequence[Sample]
Measured = Runs | CaseTable
LOADED = ("quiet", "loaded")


def compared(before: ProbeFile, after: ProbeFile, confidence: float = CONFIDENCE) -> Comparison:
    """Two results side by side. TunectlError where nothing is in common."""
    first, second = _measured(before), _measured(after)
    verdict: Difference | None = None
    if isinstance(first, CaseTable) and isinstance(second, CaseTable) and first.kind == second.kind:
        groups = case_groups(first, second, confidence)
        if not groups:
            raise nothing_in_common(first, second, (before.path, after.path))
        warnings = [*common_conditions(first, second), *case_conditions(first, second)]
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

    if common:
        whole = f"{named_cpus(common)}{' together' if len(common) > 1 else ''}"
    else:  # the runs are compared as wholes
        each = [named_cpus(cpu.cpu for run in runs for cpu in run.cpus) for runs in (before, after)]
        whole = f"{each[0]} {names[0]}, {each[1]} {names[1]}"
    first, second = taken(before, common), taken(after, common)
    rows, ratios, values = _table(first, second, confidence, names)
    groups = [RowGroup(whole, common[0] if len(common) == 1 else None, rows)]
    for cpu in common if len(common) > 1 else ():
        rows, _, _ = _table(taken(before, [cpu]), taken(after, [cpu]), confidence, names)
        groups.append(RowGroup(f"CPU {cpu}", cpu, rows))
    if values:
        verdict = judge_sets(values, ratios, confidence, names, course_of(before, after))
    else:
        verdict = judge_runs(first[0], second[0], ratios, confidence)
    if any(run.ended_by == "until" for run in (*before, *after)) and verdict.outcome == "cannot-tell":
        verdict = replaced(verdict, would_help="measure without --until")
    return groups, verdict


def _table(
    before: Samples, after: Samples, confidence: float, names: tuple[str, str]
) -> tuple[list[Row], Estimates, Mapping[Measure, Sides]]:
    """(the rows, their ratios, what each run of sets had; nothing of two single runs)."""
    if len(before) == len(after) == 1:
        return *run_rows(before[0], after[0], confidence, names), {}
    return set_rows(before, after, confidence)


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
