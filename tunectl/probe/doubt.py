"""May a reader of a preflight document repeat its GO? The document is judged again, by our own judge. Pure.

Earlier versions said GO with less, and a document may have been put together from two by accident. What it does not say
is not proved. Who forges figures that fit each other is believed: no reader of a document can meet that.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain

from tunectl.command import as_data
from tunectl.cpulist import CpuSet, format_cpulist, parse_cpulist
from tunectl.errors import TunectlError, UsageError
from tunectl.experiments.feed_budget import judge_feed
from tunectl.model import Outcome
from tunectl.probe.budget import judge
from tunectl.shapes import FIGURES, SMIS, Cpu, Feed, Jitter, JudgedTarget, Preflight, Section
from tunectl.verdict import SECTIONS, is_proof

# The verdicts beside which GO can stand. `check` is "unreadable" where only the engine's own threads were to be judged.
_ALLOWED = {"verify": ("its settings", ("compliant",)), "check": ("its checks", ("compliant", "unreadable"))}
_NO_REASON = "no reason is given"
# The knobs that are left unread where reading would interrupt an isolated CPU, for whom the table of knobs is too high.
SPARED = frozenset(
    {"cpufreq.energy_perf_bias", "cpufreq.energy_performance_preference", "uncore.max_khz", "uncore.min_khz"}
)
# What else a preflight does takes seconds; and the clock of a host may be set meanwhile.
BESIDE_THE_RUN = timedelta(minutes=5)
_ROUNDED = 0.01  # of a share that another version may have rounded
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE)


def doubt_of_go(document: Preflight) -> str:
    """Why the GO of a preflight cannot be repeated, after "it says GO, and"; "" where it can.

    What of it is the document's own text stands between quotes. When it was made is for the reader to judge.
    """
    probe = document.probe
    if not probe:
        return "measured nothing"
    limit, smis = probe.budget.limits.get(SMIS), document.smis
    if smis and limit is not None and (smis.per_s(probe.duration_s) or 0.0) > limit:
        return f"had more SMIs than its limit permits ({smis.count})"
    reasons = (f"gives a reason against it: {as_data(reason)}" for reason in document.reasons)
    measured = chain(_of_run(document, probe), _under_load(document), _feed(document))
    return next(chain(measured, reasons, _sections(document), _findings(document)), "")


def _of_run(document: Preflight, probe: Jitter) -> Iterator[str]:
    yield from _said(probe)
    yield from _part_of(document, probe)
    yield from _measured(document, probe)
    yield from _again(probe)


def _under_load(document: Preflight) -> Iterator[str]:
    """Was it measured beside each load that was asked for, and did it stand it?"""
    asked, loaded = document.load, document.loaded
    if asked and not loaded:
        yield f"was not measured under load, as it was asked to ({', '.join(map(as_data, asked))})"
    if not loaded:
        return
    if problem := loaded.load_problem:
        yield f"was not measured under load: {as_data(problem)}"
    elif set(asked) != set(loaded.load.names if loaded.load else ()):
        yield "was measured beside another load than it was asked to"
    yield from (f"under load {text}" for text in _of_run(document, loaded))


def _feed(document: Preflight) -> Iterator[str]:
    """Was `probe feed` measured where it was asked for, and do its own figures keep within its limit?"""
    feed = document.feed
    if not feed:
        if document.is_feed_asked:
            yield "did not measure feed, as it was asked to"
        return
    yield from (f"in feed {text}" for text in _part_of(document, feed))
    if others := {cpu for case in feed.cases for cpu in case.cpus} - _cpus(document.cpu_sets.isolated):
        yield f"feed ran on CPU {format_cpulist(others)}, not isolated as it says"
    try:
        again = judge_feed(feed, {name: limit for name, limit in feed.budget.limits.items() if limit is not None})
    except TunectlError as error:
        yield f"feed cannot be judged again: {as_data(error.message)}"
        return
    for judged, whose in ((feed.budget, "feed"), (again, "the figures of feed")):
        for text in judged.broken:
            yield f"{whose} broke a limit: {as_data(text)}"
        if judged.verdict != "within":
            yield f"{whose} was not judged: {as_data(judged.reason, _NO_REASON)}"


def moment_of(text: str) -> datetime | None:
    """A time of RFC 3339; None for anything else, such as ISO 8601's weeks, and a time of nobody knows which zone."""
    try:
        return datetime.fromisoformat(text.upper()) if _RFC_3339.fullmatch(text) else None
    except ValueError:
        return None


def in_utc(text: str) -> str:
    """The same moment as it is sorted by its text; anything else as it stands."""
    moment = None if text.endswith("Z") else moment_of(text)
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat()}Z" if moment else text


def _said(probe: Jitter) -> Iterator[str]:
    """Does it say that it kept within limits that exist?"""
    budget = probe.budget
    if missing := [key for key in FIGURES if budget.limits.get(key) is None]:
        yield f"its probe was held to no limit of {', '.join(missing)}"
    if budget.verdict != "within":
        yield f"its probe was not judged: {as_data(budget.reason, _NO_REASON)}"
    yield from (f"its probe broke a limit: {as_data(text)}" for text in budget.broken)


def _part_of(document: Preflight, probe: Jitter | Feed) -> Iterator[str]:
    """Did it run on this boot of this host, within the time of this preflight?"""
    boot, probed = document.host.boot_id, probe.host.boot_id
    if not boot or not probed:
        yield "does not say on which boot its probe ran"
    if boot != probed:
        yield f"its probe ran on another boot: {as_data(probed)}, not {as_data(boot)}"
    made, ran = moment_of(document.at), moment_of(probe.at)
    measuring_s = sum(run.duration_s for run in (document.probe, document.loaded, document.feed) if run)
    if made is None or ran is None:
        yield "does not say when its probe ran"
    elif not -BESIDE_THE_RUN <= made - ran <= BESIDE_THE_RUN + timedelta(seconds=measuring_s):
        yield f"its probe ran at another time: {as_data(probe.at)}, and it is of {as_data(document.at)}"


def _measured(document: Preflight, probe: Jitter) -> Iterator[str]:
    """Was every isolated CPU measured that is online, and no other?"""
    for left_out in (*probe.not_measured, *document.beside):
        yield f"CPU {left_out.cpu} was left out of its probe"
    expected = _cpus(document.cpu_sets.isolated) & _cpus(document.cpu_sets.online)
    found = {cpu.cpu for cpu in probe.cpus}
    if not expected:
        yield "does not say which CPU is isolated and online"
    if missed := expected - found:
        yield f"its probe did not measure CPU {format_cpulist(missed)}, isolated as it says"
    if others := found - expected:
        yield f"its probe measured CPU {format_cpulist(others)}, not isolated as it says"


def _cpus(text: str) -> CpuSet:
    try:
        return parse_cpulist(text)
    except UsageError:
        return frozenset()


def _again(probe: Jitter) -> Iterator[str]:
    """Do the figures themselves keep within the limits that it states?"""
    if any("99.9" not in cpu.arrival_ns for cpu in probe.cpus):
        yield "its probe cannot be judged again: it lacks the 99.9 of arrival_ns"
        return
    try:
        judged = judge(probe, {name: limit for name, limit in probe.budget.limits.items() if limit is not None})
    except TunectlError as error:
        yield f"its probe cannot be judged again: {as_data(error.message)}"
        return
    for text in judged.broken:
        yield f"the figures of its probe break a limit: {text}"
    if judged.verdict != "within":
        yield f"the figures of its probe prove nothing: {as_data(judged.reason)}"
    for cpu in probe.cpus:
        yield from (f"the figures of CPU {cpu.cpu} contradict each other: {text}" for text in _contradictions(cpu))


def _contradictions(cpu: Cpu) -> Iterator[str]:
    """What is judged beside what it was made of."""
    if cpu.arrival_ns["99.9"] > cpu.max_ns * (1 + cpu.percentile_error_ppm / 1e6) + 1:
        yield "the 99.9 of arrival_ns is above max_ns"
    if any(low > cpu.max_ns + 1 for low, _, _ in cpu.histogram):
        yield "its histogram has a gap above max_ns"
    share = cpu.stolen_ns / cpu.duration_ns * 1e6 if cpu.duration_ns else 0.0
    if abs(share - cpu.stolen_ppm) > max(_ROUNDED * share, 1.0):
        yield "stolen_ppm is not stolen_ns over duration_ns"


def _parts(document: Preflight) -> dict[str, Section]:
    return {name: getattr(document, name) or Section() for name in SECTIONS}


def _sections(document: Preflight) -> Iterator[str]:
    for name, (what, allowed) in _ALLOWED.items():
        section = _parts(document)[name]
        if not section.findings:
            yield f"judged none of {what}: {name} is empty"
        elif section.verdict not in allowed:
            yield f"its {name} says {as_data(section.verdict, 'nothing')}"
    heat = _parts(document)["thermal"].verdict
    if heat not in ("ok", "unknown"):  # a sensor that tells nothing is no part of the proof
        yield f"its thermal says {as_data(heat, 'nothing')}"


def _findings(document: Preflight) -> Iterator[str]:
    found = chain.from_iterable(part.findings for part in _parts(document).values())
    for judged_target in (one for one in found if one.outcome is not Outcome.COMPLIANT):  # nearly all are
        unwaived = judged_target.outcome is Outcome.WAIVED and not document.waivers.standing
        if unwaived or _counts_against(judged_target, document.strict):
            named = f"{as_data(judged_target.target)} in it is {judged_target.outcome}"
            yield f"{named}, and no waiver stands" if unwaived else named


def _counts_against(one: JudgedTarget, strict: bool) -> bool:
    if one.outcome is Outcome.REFUSED:
        return one.harmful
    if one.outcome is Outcome.UNREADABLE:
        return strict or is_proof(one.knob, SPARED)
    return one.outcome in (Outcome.DRIFTED, Outcome.PENDING_REBOOT)
