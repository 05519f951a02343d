"""The gap that ended a run (--until): what its story tells, and what it says that it could not see."""

from pathlib import Path
from typing import Any

import pytest

from tests.probe.samples import raw_cpu, raw_run
from tests.probe.test_tracepages import KERNEL, PAGE, page, record, switch, timer
from tests.schemas import fits
from tunectl.errors import TunectlError
from tunectl.host.sysroot import Sysroot
from tunectl.host.tracefs import TraceInstance, TracePipe, mark
from tunectl.probe.attribution import CpuTrace, Traced
from tunectl.probe.budget import judge
from tunectl.probe.explain import explained
from tunectl.probe.story import BEFORE, WITHIN
from tunectl.probe.tracepages import events, parse_page
from tunectl.probe.tracing import _Reader, marker
from tunectl.report.story import EDGE, story
from tunectl.shapes import Jitter, typed

GAP = (5_000_000, 5_060_000)
NOT_TRACED = "what held the CPU was not traced: --attribute, as root, shows each event of the kernel in the gap"
ALONE = "no other CPU was probed: what happened there at that time is not seen (--cpus)"


def told(*cpus: dict[str, Any], traced: Traced | None = None, **changes: Any) -> dict[str, Any]:
    """A run that ended at GAP on CPU 2, unless `changes` say otherwise."""
    until = {"least_ns": 50_000, "reached": [2, *GAP]}
    document = explained(raw_run(*cpus, **{"until": until, **changes}), traced)
    fits("probe.jitter", document)
    return document


def gap_of(*cpus: dict[str, Any], traced: Traced | None = None, **changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = told(*cpus, traced=traced, **changes)["until"]["gap"]
    return found


def of_pages(**pages: list[bytes]) -> Traced:
    """Of CPU 2 and CPU 3: `of_2`, `of_3`; the probe's thread is 700 on both."""
    return Traced("", KERNEL, {cpu: CpuTrace(700, pages.get(f"of_{cpu}", []), 0, False) for cpu in (2, 3)})


def test_a_run_that_a_gap_ended_says_so_and_is_not_interrupted() -> None:
    document = told(raw_cpu(2, GAP))
    assert (document["ended_by"], document["interrupted"], document["until"]["least_ns"]) == ("until", False, 50_000)
    gap = document["until"]["gap"]
    assert (gap["cpu"], gap["length_ns"], gap["at_ns"], gap["cause"]) == (2, 60_000, 4_999_000, "")
    assert gap["unseen"] == [NOT_TRACED, ALONE]
    found = story(typed(document, Jitter))
    assert found
    assert "CPU 2 was away for 60 µs, 5 ms after the start" in found.headline


@pytest.mark.parametrize(
    ("changes", "ended", "said"),
    [
        ({}, "duration", "no gap of 50 µs or longer (--until): the run ended after its time"),
        ({"interrupted": True}, "signal", "no gap of 50 µs or longer (--until): a signal ended the run"),
    ],
)
def test_where_no_gap_was_that_long_that_is_said(changes: dict[str, Any], ended: str, said: str) -> None:
    document = told(raw_cpu(), until={"least_ns": 50_000, "reached": []}, **changes)
    found = story(typed(document, Jitter))
    assert found
    assert (document["ended_by"], document["until"]["gap"], found.headline) == (ended, None, said)


def test_nobody_asked() -> None:
    document = told(raw_cpu(), until=None)
    assert (document["ended_by"], document["until"], story(typed(document, Jitter))) == ("duration", None, None)


def test_what_held_the_cpu_is_told_in_order_from_the_begin_of_the_gap() -> None:
    first, second = GAP[0] - 2_000, GAP[0] + 1_500
    pages = [
        page(first, record(0, timer())),
        page(
            second,
            record(0, timer()),
            record(2_000, switch(700, 9, 0x4, b"engine")),
            record(50_000, switch(9, 0, 0, b"swapper/2")),
            record(1_000, switch(0, 700)),
            record(90_000, timer()),
        ),
    ]
    gap = gap_of(raw_cpu(2, GAP), raw_cpu(3), traced=of_pages(of_2=pages))
    assert gap["before"] == [[-2_000, "local timer"]]
    assert gap["events"] == [
        [1_500, "local timer"],
        [3_500, "a signal stops the probe, and thread engine has the CPU"],
        [53_500, "nobody has the CPU"],
        [54_500, "the probe has the CPU again"],
    ]
    assert gap["cause"].startswith("stopped by a signal")
    assert gap["unseen"] == []


def test_the_other_cpus_gaps_at_that_time_are_told_and_no_others() -> None:
    beside = [
        (GAP[0] - 90_000, GAP[0]),
        (GAP[0] - 1_000, GAP[0] + 2_000),
        (GAP[1] - 1, GAP[1] + 5),
        (GAP[1], GAP[1] + 9),
    ]
    traced = of_pages(of_3=[page(beside[1][0], record(200, timer()))])
    gap = gap_of(raw_cpu(2, GAP), raw_cpu(3, *beside[1:3]), traced=traced)
    (other,) = gap["others"]
    outside = "not the kernel: hypervisor, SMI or hardware"
    assert other == {"cpu": 3, "gaps": [[-1_000, 3_000, "local timer"], [59_999, 6, outside]]}
    assert gap_of(raw_cpu(2, GAP), raw_cpu(3, beside[0], beside[3]))["others"] == [{"cpu": 3, "gaps": []}]
    found = story(typed(told(raw_cpu(2, GAP), raw_cpu(3), raw_cpu(4, *beside[1:2])), Jitter))
    assert found
    assert found.others == ["CPU 4 was away, too: from -1 µs for 3 µs", "not away at that time: CPU 3"]


def test_a_cpu_that_did_not_measure_then_was_not_there() -> None:
    late = raw_cpu(3, tsc_start=GAP[0] + 1, tsc_end=10**10)
    gap = gap_of(raw_cpu(2, GAP), late)
    assert gap["unseen"] == [NOT_TRACED, "CPU 3 did not measure for all of that time"]
    assert gap_of(raw_cpu(2, GAP), raw_cpu(3, tsc_start=GAP[1] + 1, tsc_end=10**10))["others"] == []


def listed_too_few(cpu: int, *latest: tuple[int, int]) -> dict[str, Any]:
    """The list of this CPU was full long ago."""
    full = raw_cpu(cpu, (2_000, 3_000), (4_000, 64_000))
    return full | {"events": full["events"][:1], "events_lost": 1, "latest": [list(one) for one in latest]}


def test_a_gap_beyond_the_list_has_its_story() -> None:
    traced = of_pages(of_2=[page(GAP[0], record(100, timer()))])
    gap = gap_of(listed_too_few(2, GAP), listed_too_few(3, GAP), traced=traced)
    assert (gap["cause"], gap["events"]) == ("local timer", [[100, "local timer"]])
    assert [one[:2] for one in gap["others"][0]["gaps"]] == [[0, 60_000]]
    long = raw_cpu(3, (GAP[0] + 9, GAP[1])) | {"events_lost": 1, "latest": [[GAP[0] - 5, GAP[0] + 5]]}
    assert [at for at, _, _ in gap_of(raw_cpu(2, GAP), long)["others"][0]["gaps"]] == [-5, 9]
    (said,) = gap_of(raw_cpu(2, GAP), listed_too_few(3))["unseen"][1:]
    assert said == "the gaps of CPU 3 at that time are not kept any more (--events)"


def test_of_many_events_the_first_and_the_last_are_kept() -> None:
    many = [page(GAP[0] - 40, *(record(1, timer()) for _ in range(1000)))]
    document = told(raw_cpu(2, GAP), raw_cpu(3), traced=of_pages(of_2=many))
    gap = document["until"]["gap"]
    assert (len(gap["before"]), len(gap["events"])) == (BEFORE, WITHIN)
    assert gap["events_left_out"] == 1000 - 39 - WITHIN
    assert (gap["events"][0][0], gap["events"][-1][0], gap["before"][-1][0]) == (0, 960, -1)
    found = story(typed(document, Jitter))
    assert found
    assert len(found.rows) < 3 * EDGE
    assert ("", f"... {961 - 2 * EDGE:,} events more ...") in found.rows


def test_why_nothing_was_traced_is_said() -> None:
    assert (
        "is not known: tracefs is not mounted"
        in gap_of(raw_cpu(2, GAP), traced=Traced("tracefs is not mounted"))["unseen"][0]
    )


def test_a_cpu_that_was_left_has_no_story_of_its_own() -> None:
    gap = gap_of(raw_cpu(3), not_measured=[{"cpu": 2, "reason": "engine runs there"}])
    assert gap["unseen"][1] == "CPU 2 was then left to somebody else, and its figures with it"


def test_what_is_no_gap_is_refused() -> None:
    with pytest.raises(TunectlError, match="no CPU with two stamps"):
        told(raw_cpu(2, GAP), until={"least_ns": 1, "reached": [2]})


LIMITS = {"max_ns": 50_000.0, "stolen_ppm": 0.001, "interruptions_per_s": 0.01}


def test_a_gap_that_ends_the_run_breaks_what_limits_the_longest_and_nothing_that_is_a_rate() -> None:
    budget = judge(typed(told(raw_cpu(2, GAP)), Jitter), LIMITS)
    assert [text.partition("allowed ")[2] for text in budget.broken] == ["50 µs (max_ns)"]
    kept = judge(typed(told(raw_cpu(2, GAP)), Jitter), LIMITS | {"max_ns": 60_000.0})
    assert (kept.verdict, kept.broken) == ("not-judged", [])
    assert "a gap ended the run (--until)" in kept.reason
    whole = judge(typed(told(raw_cpu(2, GAP), until=None), Jitter), LIMITS)
    assert len(whole.broken) == 3


def test_the_last_pages_are_kept_and_say_that_others_were_before_them(tmp_path: Path) -> None:
    pipe = tmp_path / "per_cpu/cpu3/trace_pipe_raw"
    pipe.parent.mkdir(parents=True)
    whole = [page(stamp, record(0, timer())) for stamp in (1000, 2000, 3000)]
    pipe.write_bytes(b"".join(one.ljust(1 << 16, b"\0") for one in whole))
    found = {}
    for keeps_last, most in ((True, 2 * len(whole[0]) + 1), (True, 1 << 20), (False, 1)):
        reader = _Reader(3, TracePipe(TraceInstance(Sysroot(str(tmp_path)), ""), 3), parse_page(PAGE), most, keeps_last)
        reader.look()
        found[keeps_last, most] = (
            reader.is_late,
            reader.is_full,
            [type(e).__name__ for _, e in events(reader.kept(), KERNEL)],
        )
    assert list(found.values()) == [
        (True, False, ["Lost", "Interruption", "Interruption"]),
        (False, False, ["Interruption"] * 3),
        (False, True, ["Interruption"]),
    ]


@pytest.mark.parametrize(
    ("files", "marks"),
    [
        ({"current_tracer": "function"}, True),
        ({"set_event": "sched:sched_switch"}, True),
        ({}, False),
        ({"current_tracer": "function", "tracing_on": "0"}, False),
    ],
    ids=str,
)
def test_the_hosts_trace_is_marked_where_somebody_traces(tmp_path: Path, files: dict[str, str], marks: bool) -> None:
    at = tmp_path / "sys/kernel/tracing"
    at.mkdir(parents=True)
    for name, text in (
        {"current_tracer": "nop", "set_event": "", "tracing_on": "1", "trace_marker": ""} | files
    ).items():
        (at / name).write_text(text + "\n" * bool(text))
    text = marker("3 123 456 tsc")
    assert mark(Sysroot(str(tmp_path)), text) is marks
    assert (at / "trace_marker").read_text() == (text if marks else "")
    assert text == "tunectl: CPU 3 was away from 123 to 456 (x86-tsc): --until"
    assert marker("3 123 456 cntvct_el0") == text.replace("x86-tsc", "cntvct_el0")
