"""What follows from the raw facts of a run: figures, percentiles, and warnings, each beside its nearest innocent."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.probe.samples import raw_cpu, raw_run
from tests.schemas import fits
from tunectl.errors import TunectlError
from tunectl.probe.budget import judge
from tunectl.probe.document import checked, read_document
from tunectl.probe.explain import explained
from tunectl.probe.lengths import Lengths
from tunectl.shapes import Jitter, typed

LIMITS = {"max_ns": 500_000_000.0}
STOPPED = raw_cpu()["counters"] | {"context_switches": {"voluntary": 1, "involuntary": 0}}


def warnings(*cpus: dict[str, Any], **changes: Any) -> list[str]:
    """Of a run of these CPUs, or of one quiet CPU."""
    document = explained(raw_run(*(cpus or (raw_cpu(),)), **changes))
    fits("probe.jitter", document)
    found: list[str] = document["warnings"]
    return found


def test_a_quiet_run_on_a_tuned_host_has_no_warning() -> None:
    assert warnings() == []


def test_a_raw_run_fits_its_schema() -> None:
    fits("probe.jitter.raw", raw_run(raw_cpu(2, (10_000, 11_000))))


def test_figures_of_a_run() -> None:
    gaps = ((10_000, 11_000), (20_000, 23_000), (50_000, 50_500))
    (cpu,) = explained(raw_run(raw_cpu(2, *gaps)))["cpus"]
    assert (cpu["interruptions"], cpu["stolen_ns"], cpu["max_ns"], cpu["stolen_ppm"]) == (3, 4500, 3000, 0.45)
    assert cpu["gap_ns"] == {"50": 1000, "99": 3000, "99.9": 3000, "99.99": 3000}
    assert cpu["loops"] == cpu["interruptions"] + (10**10 - 4500) // 10
    assert cpu["loop_ns"] == {"mean": 10.0, "min": 9.9, "recording": 20.0}
    assert cpu["histogram"] == [[500, 501, 1], [1000, 1001, 1], [3000, 3001, 1]]
    assert cpu["duration_ns"] == 10**10


@pytest.mark.parametrize(("lost_max", "long"), [(800, "10 s"), (60_000, "50 ms")])
def test_a_list_that_was_too_short_says_what_it_has(lost_max: int, long: str) -> None:
    """All gaps until the first that was lost; long ones to the end, or where one was lost until the last listed."""
    gaps = ((10_000, 11_000), (50_001_000, 50_100_000))
    full = raw_cpu(2, *gaps, lost=3, complete_until=20_001_000, events_lost_max_ticks=lost_max, stolen_ticks=200_000)
    full["histogram"].append([*full["histogram"].pop()[:3], 199_000])
    document = explained(raw_run(full, raw_cpu(3), long_ticks=50_000))
    (warning,) = [text for text in document["warnings"] if "too short for CPU 2" in text]
    assert re.findall(r"[\d.]+ (?:ms|s|µs|%)", warning) == ["20 ms", long, "50 µs", "50 %"]
    assert [cpu["complete_until_ns"] for cpu in document["cpus"]] == [20_000_000, None]


def test_a_run_that_was_one_gap_has_the_turn_that_was_timed_before_it() -> None:
    run_ticks = 10**10
    gap = raw_cpu(2, (1_000, 1_000 + run_ticks), quiet_turns=0, turns=1)
    (cpu,) = explained(raw_run(gap))["cpus"]
    assert cpu["loop_ns"]["mean"] == cpu["loop_ns"]["min"] == 9.9


def test_buckets_narrower_than_a_nanosecond_are_one() -> None:
    rows = [[1000, 1001, 2, 2000], [1001, 1002, 3, 3003], [1002, 1003, 4, 4008]]
    clock = raw_run()["clock"] | {"hz": 2e9}
    (cpu,) = explained(raw_run(raw_cpu(histogram=rows, stolen_ticks=9011, max_ticks=1002), clock=clock))["cpus"]
    assert cpu["histogram"] == [[500, 501, 5], [501, 502, 4]]


def test_a_document_that_is_explained_already_stays() -> None:
    document = explained(raw_run(raw_cpu()))
    assert explained(document) is document


def test_what_the_program_wrote_by_itself_can_be_read_on_another_host(tmp_path: Path) -> None:
    path = tmp_path / "raw.json"
    path.write_text(json.dumps(raw_run(raw_cpu(2, (10_000, 11_000)))))
    assert read_document(path).body == json.loads(json.dumps(explained(json.loads(path.read_text()))))
    path.write_text(json.dumps(raw_run({"cpu": 2})))
    with pytest.raises(TunectlError, match=r"raw\.json: .*tsc_start"):
        read_document(path)


def test_a_field_that_is_missing_is_named() -> None:
    with pytest.raises(TunectlError, match=r"quiet_ticks.*cpus"):
        explained(raw_run({name: value for name, value in raw_cpu().items() if name != "quiet_ticks"}))


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=60), st.sampled_from([0.5, 0.9, 0.99, 0.999, 0.99999]))
@settings(max_examples=examples(100))
def test_percentiles_are_what_their_definition_says(lengths: list[int], share: float) -> None:
    """Nearest rank; and the least wait that is exceeded by at most the rest of the run."""
    found = Lengths((float(length), 1) for length in lengths)
    shorter = sorted(lengths)
    assert found.percentile(share) == next(
        one for place, one in enumerate(shorter, 1) if place >= round(share * 1e5) * len(lengths) / 1e5
    )
    run = 10 * sum(lengths)
    wait = found.arrival_percentile(share, run)
    exceeded = sum(max(0.0, length - wait) for length in lengths)
    exceeded = sum(max(0.0, length - wait) for length in lengths)
    may = run * (1 - share)
    assert exceeded == pytest.approx(may, rel=1e-6) if wait else exceeded <= may * (1 + 1e-9)


def test_gaps_that_were_not_listed_count_by_the_mean_of_their_bucket() -> None:
    (cpu,) = explained(
        raw_run(raw_cpu(2, lost=4, histogram=[[1000, 1008, 4, 4012]], stolen_ticks=4012, max_ticks=1004))
    )["cpus"]
    assert (cpu["gap_ns"]["50"], cpu["percentile_error_ppm"]) == (1003, 7813)


# what is wrong -> the warning; the second is the nearest innocent, of which nothing is said
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "shorter than a stop": ({"interrupted": True}, {"interrupted": False}),
    "not isolated: CPU 2": ({"facts": {"isolated": [3]}}, {"facts": {"isolated": [2]}}),
    "nohz_full is not in force on CPU 2": ({"facts": {"nohz_full": [3]}}, {"facts": {"nohz_full": [2]}}),
    "could not be read": ({"files_after": {}}, {}),
    "main thread is on isolated CPUs, 3": ({"facts": {"main_thread": [3]}}, {"facts": {"main_thread": [1]}}),
    "this is a virtual machine": (
        {"host_files": {"/proc/cpuinfo": "flags : constant_tsc hypervisor nonstop_tsc\n"}},
        {},
    ),
    "not constant_tsc": (
        {"host_files": {"/proc/cpuinfo": "flags : constant_tsc nonstop_tsc_not\n"}},
        {"host_files": {"/proc/cpuinfo": "flags : nonstop_tsc constant_tsc\n"}},
    ),
    "stole more than 0.1 %": ({"cpu_times_ms": {"2": [1, 1, 11]}}, {"cpu_times_ms": {"2": [1, 1, 10]}}),
    "clocksource is hpet, not tsc": (
        {"clock": raw_run()["clock"] | {"kernel_source": "hpet"}},
        {"clock": raw_run()["clock"] | {"kernel_source": ""}},
    ),
    "rate moved by 20.1 ppm": (
        {"clock": raw_run()["clock"] | {"drift_ppm": 20.1}},
        {"clock": raw_run()["clock"] | {"drift_ppm": -20.0}},
    ),
    "was not measured: engine": ({"not_measured": [{"cpu": 3, "reason": "engine runs there"}]}, {}),
    "sched_rt_runtime_us is 950000": (
        {"fifo_priority": 1, "host_files": {"/proc/sys/kernel/sched_rt_runtime_us": "950000\n"}},
        {"fifo_priority": 0, "host_files": {"/proc/sys/kernel/sched_rt_runtime_us": "950000\n"}},
    ),
    "cpu.max) stopped the probe, on all of its CPUs together for 1 µs": ({"facts": {"throttled_us": 1}}, {}),
}


@pytest.mark.parametrize("said", CASES)
def test_what_the_run_was_like_is_said(said: str) -> None:
    wrong, right = CASES[said]
    (one,) = warnings(**wrong)
    assert ("signal ended the run early" if said == "shorter than a stop" else said) in one
    assert warnings(**right) == []


COUNTED = raw_cpu()["counters"]
CPUS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "measured for 899 ms: what comes less often does not show": ({"tsc_end": 899_001_000}, {"tsc_end": 900_001_000}),
    "list of events was too short for CPU 2": ({"lost": 1}, {"lost": 0}),
    "took page faults while measuring on CPU 2": ({"counters": COUNTED | {"page_faults": 1}}, {}),
    "close to the cost of recording on CPU 2": ({"recording_ticks": 90.2}, {"recording_ticks": 90.1}),
    "more than five timer interrupts a second on CPU 2": (
        {"counters": COUNTED | {"irq": {"LOC": 51}}},
        {"counters": COUNTED | {"irq": {"LOC": 50, "9": 1000}}},
    ),
    "governor is not performance on CPU 2": ({"governor": "powersave"}, {"governor": ""}),
    "memory could not be locked for CPU 2": ({"memory_locked": False}, {}),
    "counter went backwards on CPU 2": ({"steps_back": 1}, {}),
    "seemed to fall during the run, from 1000 to 949 MHz": (
        {"cycles_per_tick_after": 0.949},
        {"cycles_per_tick_after": 0.951},
    ),
    "below its base clock of 1000 MHz": (
        {"cycles_per_tick_before": 0.89, "cycles_per_tick_after": 0.89},
        {"cycles_per_tick_before": 0.9, "cycles_per_tick_after": 0.9},
    ),
    "moved to another CPU": ({"stayed": False}, {"migrations": None}),
    "was moved": ({"migrations": 1}, {"migrations": 0}),
    "CPU 2 was shared: other threads had it for 10 % of the run": ({"waited_ns": 10**9}, {"waited_ns": 10**9 - 1}),
}


def test_a_throttled_cpu_was_nobody_elses() -> None:
    said = "\n".join(warnings(raw_cpu(waited_ns=2 * 10**9), facts={"throttled_us": 1_000_001}))
    assert "shared" not in said
    said = "\n".join(warnings(raw_cpu(waited_ns=2 * 10**9), facts={"throttled_us": 1_000_000}))
    assert "CPU 2 was shared: other threads had it for 10 % of the run" in said


def test_who_had_the_cpu_is_not_said_where_nobody_knows_whether_it_was_throttled() -> None:
    """Whether a limit held is not judged either, and nothing says that there was none."""
    result = typed(explained(raw_run(raw_cpu(waited_ns=9 * 10**9), facts={"throttled_us": None})), Jitter)
    assert (result.throttled_ns, result.cpus[0].shared, len(result.cpus[0].unfit)) == (None, "", 1)


@pytest.mark.parametrize("said", CPUS)
def test_what_a_cpu_was_like_is_said(said: str) -> None:
    wrong, right = CPUS[said]
    (one,) = warnings(raw_cpu(**wrong))
    assert said in one
    assert warnings(raw_cpu(**right)) == []


def test_a_busy_sibling_is_named_and_two_spinners_on_a_core() -> None:
    beside = raw_cpu(siblings=[1])
    (one,) = warnings(beside, cpu_times_ms={"1": [20, 980, 0]})
    assert one == "CPU 1, on the same physical core as CPU 2, was busy 2 % of the run"
    assert warnings(beside, cpu_times_ms={"1": [19, 981, 0]}) == []
    assert warnings(raw_cpu(siblings=[9]), cpu_times_ms={"9": [20, 980, 0]}) == []
    (one,) = warnings(raw_cpu(2, siblings=[3]), raw_cpu(3, siblings=[2]))
    assert "one physical core" in one


def test_a_main_thread_without_a_cpu_of_its_own_is_named() -> None:
    alone = {"online": [2], "main_thread": []}
    assert "every online CPU is probed" in "\n".join(warnings(facts=alone))
    said = "\n".join(warnings(facts={"main_thread": []}))
    assert "1 of 4 online CPUs are probed, and the probe may use no other (not 0-1,3)" in said


def test_arrivals_of_arm_ticks_are_timer_interrupts() -> None:
    counters = COUNTED | {"irq": {"11": 51}}
    said = warnings(raw_cpu(counters=counters), names={"11": "GICv3 27 Level arch_timer"})
    assert any("timer interrupts" in text for text in said)
    assert warnings(raw_cpu(counters=counters), names={"11": "GICv3 28 Level other"}) == []


def test_conservation_is_claimed_only_by_a_clock_that_can_disagree() -> None:
    off = raw_cpu(clock_readings=[[0, 0], [2_000 + 10**10, round(10**10 * 1.0011)]])
    for source in ("tsc", "kvm-clock"):
        document = explained(raw_run(off, clock=raw_run()["clock"] | {"kernel_source": source}))
        assert document["cpus"][0]["conservation_ppm"] is None
        assert not any("add up" in text for text in document["warnings"])
    document = explained(raw_run(off, clock=raw_run()["clock"] | {"kernel_source": "hpet"}))
    assert document["cpus"][0]["conservation_ppm"] == pytest.approx(-1099, abs=1)
    assert any("loops and gaps add up to -1,099 ppm" in text for text in document["warnings"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"stayed": False}, "was moved to another CPU"),
        ({"migrations": 2}, "was moved to another CPU"),
        ({"counters": STOPPED}, "was stopped during the run"),
    ],
)
@pytest.mark.parametrize("gaps", [(), ((10_000, 600_010_000),)], ids=["quiet", "broken"])
def test_a_spinner_that_was_moved_neither_keeps_nor_breaks_a_limit(
    changes: dict[str, Any], said: str, gaps: tuple[tuple[int, int], ...]
) -> None:
    budget = judge(typed(explained(raw_run(raw_cpu(2, *gaps, **changes))), Jitter), LIMITS)
    assert (budget.verdict, budget.broken) == ("not-judged", [])
    assert said in budget.reason


@pytest.mark.parametrize("facts", [{"throttled_us": 5_000}, {"throttled_us": None}, {"main_thread": []}], ids=str)
def test_a_probe_that_was_throttled_or_shares_the_cpu_with_itself_is_not_judged(facts: dict[str, Any]) -> None:
    budget = judge(typed(explained(raw_run(raw_cpu(2, (10_000, 600_010_000)), facts=facts)), Jitter), LIMITS)
    assert (budget.verdict, budget.broken) == ("not-judged", [])


@pytest.mark.parametrize(
    ("threshold", "default", "hidden"),
    [
        (200, 200, []),
        (201, 200, ["interruptions_per_s", "stolen_ppm"]),
        (10_000, 10_000, []),
        (10_001, 200, ["p99_9_ns", "interruptions_per_s", "stolen_ppm"]),
        (50_001, 50_001, ["max_ns", "p99_9_ns"]),
    ],
)
def test_what_a_threshold_hides_is_not_judged(threshold: int, default: int, hidden: list[str]) -> None:
    limits = {"max_ns": 50_000.0, "p99_9_ns": 10_000.0, "interruptions_per_s": 10.0, "stolen_ppm": 1_000.0}
    run = raw_run(raw_cpu(), threshold_ns=threshold, default_threshold_ns=default)
    budget = judge(typed(explained(run), Jitter), limits)
    assert budget.verdict == ("not-judged" if hidden else "within")
    assert [text.partition(":")[0] for text in budget.not_judged] == hidden


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"stolen_ticks": 10}, "stolen_ticks is not what the histogram holds"),
        ({"max_ticks": 0}, "max_ticks is not in the last bucket"),
        ({"tsc_end": 1_000}, "tsc_end is not after tsc_start"),
    ],
)
def test_facts_that_contradict_each_other_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(TunectlError, match=rf"cpus\[0\]: {said}"):
        explained(raw_run(raw_cpu(2, (10_000, 11_000), **changes)))


def test_a_counter_without_a_rate_is_refused() -> None:
    with pytest.raises(TunectlError, match=r"clock\.hz"):
        explained(raw_run(raw_cpu(), clock=raw_run()["clock"] | {"hz": 0}))


def test_one_cpu_that_was_moved_hides_nothing_that_another_broke() -> None:
    broken = raw_cpu(3, (10_000, 600_010_000))
    budget = judge(typed(explained(raw_run(raw_cpu(2, stayed=False), broken)), Jitter), LIMITS)
    assert budget.verdict == "broken"
    assert [text.partition(":")[0] for text in budget.broken] == ["CPU 3"]


@pytest.mark.parametrize(("gaps", "verdict"), [((), "not-judged"), (((10_000, 600_010_000),), "broken")])
def test_beside_others_a_limit_can_be_broken_and_not_kept(gaps: tuple[tuple[int, int], ...], verdict: str) -> None:
    budget = judge(typed(explained(raw_run(raw_cpu(2, *gaps, waited_ns=2 * 10**9))), Jitter), LIMITS)
    assert budget.verdict == verdict
    assert ("was shared" in budget.reason) is (verdict == "not-judged")


def bucketed(lengths: list[int]) -> list[list[int]]:
    """As native/src/lib/histogram.h has it: 128 buckets for each power of two."""
    rows: dict[int, list[int]] = {}
    for length in sorted(lengths):
        shift = max(length.bit_length() - 8, 0)
        first = length >> shift << shift
        row = rows.setdefault(first, [first, first + (1 << shift), 0, 0])
        row[2] += 1
        row[3] += length
    return list(rows.values())


@settings(max_examples=examples(100))
@given(
    st.lists(st.integers(1, 10**7) | st.integers(1, 300), max_size=40),
    st.booleans(),
    st.sampled_from([1e9, 2_299_999_917.931, 3.7e9, 25e6]),
    st.integers(25_000, 10**11),
)
def test_no_run_contradicts_itself(lengths: list[int], listed: bool, hz: float, quiet: int) -> None:
    """Whatever was measured, at whatever rate of the counter, however short the run was."""
    starts = [1_000 + sum(lengths[:place]) + place for place in range(len(lengths))]
    gaps = [(start, start + length) for start, length in zip(starts, lengths, strict=True)]
    run_ticks = sum(lengths) + len(lengths) + quiet
    none: dict[str, Any] = {} if listed else {"events": [], "events_lost": len(lengths)}
    cpu = raw_cpu(2, *gaps, histogram=bucketed(lengths), tsc_end=1_000 + run_ticks, **none)
    run = raw_run(cpu, clock={**raw_run()["clock"], "hz": hz})
    assert checked(explained(run), Path("run.json")).name == "probe.jitter"
