"""What Python makes of the counts of `wake`: figures, cells that are void, speed-ups, warnings. On values alone."""

from __future__ import annotations

import errno
import json
import statistics
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tunectl.compare.compared import compared
from tunectl.errors import TunectlError
from tunectl.experiments.pair import Peer
from tunectl.experiments.tick_figures import PERCENTILES, Figures
from tunectl.experiments.wake_cells import explained_wake
from tunectl.probe.document import read_document

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schema" / "tunectl.probe.wake-1.json").read_text())
HZ = 1e9  # so that a tick is a nanosecond
MS = 1_000_000
CALM = {"ticks": 1000 * MS, "cpu_ns": 2 * MS, "own_ns": 2 * MS, "own_slices": 100, "cpu_slices": 100}


GOOD = {"is_isolated": True, "governor": "performance", "core_cpus": ""}
SHARED = GOOD | {"is_isolated": False}


def accounts(occupancy: dict[str, Any] | None) -> dict[str, Any]:
    """What the kernel said before and after; where it counts no runs, only the idle time of CPU 3, in steps."""
    if occupancy is None:
        return {}
    ticks, cpu_ns, slices = occupancy["ticks"], occupancy["cpu_ns"], occupancy["cpu_slices"]
    own = f"{7 + occupancy['own_ns']} 5 {9 + occupancy['own_slices']}"
    threads = {"before": ["7 5 9", "7 5 9", "7 5 9"], "after": [own, "900000000 5 900", "900000000 5 900"]}
    path = "/proc/schedstat"
    lines = ("cpu3 0 0 0 0 0 0 50 60 70", f"cpu3 0 0 0 0 0 0 {50 + cpu_ns} 60 {70 + (slices or 0)}")
    if slices is None:
        path = "/proc/stat"
        lines = ("cpu3 1 2 3 100 5 6 7 8 0 0", f"cpu3 9 9 9 {100 + (ticks - cpu_ns) // (10 * MS)} 5 6 7 8 0 0")

    def account(at: int, name: str, line: str) -> dict[str, Any]:
        own = {f"/proc/self/task/{tid}/schedstat": of for tid, of in zip((71, 72, 70), threads[name], strict=True)}
        text = f"version 17\ncpu2 0 0 0 0 0 0 9 9 9\n{line}\ncpu31 0 0 0 0 0 0 9 9 9\ndomain0 3 1 2\n"
        return {"ticks": at, "tids": [71, 72, 70], "files": {path: text, **own}}

    return {"before": account(11, "before", lines[0]), "after": account(11 + ticks, "after", lines[1])}


def case(
    way: str, waiting: str, length: int = 5000, occupancy: dict[str, Any] | None = CALM, **changes: Any
) -> dict[str, Any]:
    """100 messages of one length, in a second; a spinner had its CPU for all of it."""
    return {
        "mechanism": "tcp",
        "waiting": waiting,
        "way": way,
        "idle_ms": 10.0,
        "sent": 100,
        "arrived": 100,
        "period_ticks": 10 * MS,
        "receiver_ns": (1000 if waiting == "spinning" else 2) * MS,
        "receiver_ticks": 1000 * MS,
        **accounts(occupancy),
        "delay": [length, 100],
        "after_send": [-10, 100],
        "send_call": [900, 100],
        "late": [100, 100],
        **changes,
    }


THROTTLED = {"/proc/sys/kernel/sched_rt_runtime_us": "950000\n", "/proc/sys/kernel/sched_rt_period_us": "1000000\n"}


def block(**changes: Any) -> dict[str, Any]:
    return case("block", "sleeping", 100_000, **changes)


def minimal(**changes: Any) -> dict[str, Any]:
    return case("minimal", "spinning", 5_000, **changes)


def raw_document(*cases: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "schema": "tunectl.probe.wake.raw/1",
        "tunectl_version": "0.1.0",
        "host": {"hostname": "h", "kernel": "6.12", "boot_id": "b", "machine": "x86_64"},
        "at": "2026-11-23T09:00:00Z",
        "duration_s": 1.0,
        "interrupted": False,
        "messages": 100,
        "bytes": 32,
        "fds": 1,
        "dirty_kib": 0,
        "fifo_priority": 0,
        "busy_poll_us": 50,
        "has_warm_sender": True,
        "cpus": [2, 3],
        "clock": {"source": "tsc", "hz": HZ, "granule_ns": 1.0, "drift_ppm": 0.0},
        "cells": list(cases),
        **changes,
        "facts": {"cpus": [GOOD, GOOD]} | changes.get("facts", {}),
    }


def document(*cases: dict[str, Any], peer: Peer | None = None, **changes: Any) -> dict[str, Any]:
    made = explained_wake(raw_document(*cases, **changes), peer)
    jsonschema.validate(made, SCHEMA, format_checker=jsonschema.FormatChecker())
    return made


def cell(*cases: dict[str, Any], **changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = document(*cases, **changes)["cells"][0]
    return made


def test_percentiles_are_nearest_ranks() -> None:
    lengths = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4]
    values = sorted(lengths)
    found = Figures([number for value in values for number in (value, 1)], HZ)
    for name in PERCENTILES:
        share = float(name) / 100
        enough = [value for value in values if sum(other <= value for other in values) >= share * len(values)]
        assert found.at(name) == min(enough)
    assert found.mean == statistics.mean(lengths)


def test_a_cell_has_the_figures_of_its_counts() -> None:
    made = cell(minimal(delay=[1000, 50, 2000, 49, 300_000, 1]))
    assert (made["n"], made["min_ns"], made["max_ns"], made["mean_ns"]) == (100, 1000, 300_000, 4480.0)
    assert made["percentiles_ns"] == {"50": 1000, "90": 2000, "95": 2000, "99": 2000, "99.9": 300_000, "99.99": 300_000}
    assert made["after_send_ns"]["50"] == -10
    assert [count for _, _, count in made["histogram"]] == [50, 49, 1]
    assert all(
        low <= value < high for (low, high, _), value in zip(made["histogram"], (1000, 2000, 300_000), strict=True)
    )
    assert made["receiver_cpu_percent"] == 100


def test_buckets_narrower_than_a_nanosecond_are_merged() -> None:
    counts = [number for ticks in range(400, 420) for number in (ticks, 1)]
    made = Figures(counts, 4e9).histogram_ns()
    assert [low for low, _, _ in made] == [100, 101, 102, 103, 104]
    assert sum(count for _, _, count in made) == 20


def test_a_round_trip_leaves_the_other_host_out() -> None:
    far = {"far": [20, 100], "away": [4981, 100]}
    made = document(minimal(**far), peer=Peer("10.0.0.2:7000", 2_000_000_000, 3))
    (one,) = made["cells"]
    assert (one["far_ns"]["50"], one["one_way_estimate_ns"]["50"], one["is_round_trip"]) == (20, 2490, True)
    assert made["peer"] == {"address": "10.0.0.2:7000", "hz": 2_000_000_000, "cpu": 3}


def test_a_speedup_is_the_ratio_of_two_cells() -> None:
    poll = case("poll", "sleeping", 200_000)
    (first, second) = document(block(), poll, minimal(), case("poll0", "spinning", 20_000))["speedups"]
    assert (first["way"], first["over"], first["mean"], first["percentiles"]["99"], first["max"]) == (
        "minimal",
        "block",
        20.0,
        20.0,
        20.0,
    )
    assert (second["way"], second["mean"]) == ("poll0", 5.0)
    assert document(minimal(), case("block", "sleeping", idle_ms=1.0))["speedups"] == []


def is_void(made: dict[str, Any]) -> bool:
    """With its reason, and without any figure that could be read as a result."""
    if made["is_void"]:
        assert made["reason"].startswith("void: ")
        assert (made["n"], made["histogram"]) == (0, [])
        for name in ("min_ns", "mean_ns", "percentiles_ns", "max_ns", "after_send_ns", "send_call_ns", "late_ns"):
            assert made[name] is None
    else:
        assert (made["reason"], made["n"]) == ("", 100)
    return bool(made["is_void"])


@pytest.mark.parametrize(("us", "void"), [(0, False), (1, True), (61_250, True)])
def test_threads_that_a_quota_stopped_have_no_delays(us: int, void: bool) -> None:
    made = document(block(throttled_us=us), minimal(throttled_us=us))
    assert [is_void(one) for one in made["cells"]] == [void, void]
    assert len(made["speedups"]) == (not void)
    if us > 1:
        assert made["cells"][0]["reason"] == (
            "void: cgroup throttling (cpu.max) stopped the probe, on all of its CPUs together for 61.2 ms: "
            "the delays hold that"
        )


@pytest.mark.parametrize(("ms", "void"), [(900, False), (899, True), (140, True), (0, True)])
def test_a_spinner_needs_nine_tenths_of_its_cpu(ms: int, void: bool) -> None:
    made = document(block(), minimal(receiver_ns=ms * MS))
    assert is_void(made["cells"][1]) is void
    assert len(made["speedups"]) == (not void)
    assert made["cells"][1]["receiver_cpu_percent"] == ms / 10
    if void:
        assert f"the spinner had CPU 3 for {ms / 10:.3g} % of the time" in made["cells"][1]["reason"]


@pytest.mark.parametrize(
    ("others", "void"),
    [
        ({"cpu_ns": 300 * MS, "cpu_slices": 200}, True),  # somebody computes there
        ({"cpu_ns": 14 * MS, "cpu_slices": 110}, True),  # 11 ms of 1 s beside 1 ms that goes with our own hundred runs
        ({"cpu_ns": 12 * MS, "cpu_slices": 110}, False),
        ({"cpu_ns": 300 * MS, "cpu_slices": 101}, False),  # one run: at most one message of a hundred
        ({"cpu_ns": 20 * MS}, False),  # nobody else ran: what is more is interrupts in our own time
        ({"cpu_ns": 2 * MS, "cpu_slices": 250}, True),  # 150 runs too short to count, and messages under way for 100 us
        ({"cpu_ns": 300 * MS, "cpu_slices": None}, True),
        (
            {"cpu_ns": 30 * MS, "cpu_slices": None},
            False,
        ),  # within the steps of the kernel's account
    ],
)
def test_a_sleeper_needs_its_cpu_to_itself(others: dict[str, Any], void: bool) -> None:
    made = document(block(occupancy=CALM | others), minimal())
    assert is_void(made["cells"][0]) is void
    assert len(made["speedups"]) == (not void)
    if void:
        assert "another task ran on CPU 3" in made["cells"][0]["reason"]


@pytest.mark.parametrize(("preemptions", "void"), [(0, False), (1, False), (2, True)])
def test_a_sleeper_that_is_preempted_has_no_cpu_to_itself(preemptions: int, void: bool) -> None:
    assert is_void(cell(block(preemptions=preemptions))) is void
    assert not is_void(cell(block(preemptions=preemptions), cpus=[3, 3]))  # there the sender does it
    assert is_void(cell(timer(preemptions=preemptions), cpus=[3, 3])) is void  # and of a timer nobody


def timer(**changes: Any) -> dict[str, Any]:
    nothing: dict[str, list[int]] = {name: [] for name in ("after_send", "send_call", "late")}
    return block(**{"mechanism": "timerfd"} | nothing | changes)


def test_a_timer_has_delays_and_nothing_of_a_sender() -> None:
    made = document(timer(late_expirations=3), block(), facts={"timer_slack_ns": 1})
    one, other = made["cells"]
    assert (one["n"], one["percentiles_ns"]["50"], one["late_expirations"]) == (100, 100_000, 3)
    assert [one[name] for name in ("after_send_ns", "send_call_ns", "late_ns")] == [None] * 3
    assert one["warnings"] == [
        "3 of 100 expirations had passed before the thread came to wait for them: it was late for longer than a period"
    ]
    assert other["late_expirations"] is None
    assert made["timer_slack_ns"] == 1


@pytest.mark.parametrize(("mechanism", "slack_ns", "said"), [("clock_nanosleep", 50_000, True), ("tcp", 50_000, False)])
def test_timer_slack_is_named_where_it_matters(mechanism: str, slack_ns: int, said: bool) -> None:
    made = document(timer(mechanism=mechanism), facts={"timer_slack_ns": slack_ns})
    assert any("timer slack is 50,000 ns" in text for text in made["warnings"]) is said
    assert document(timer(mechanism=mechanism), facts={"timer_slack_ns": 1})["warnings"] == []


@pytest.mark.parametrize(("unready", "void"), [(0, False), (1, False), (2, True)])
def test_a_receiver_that_still_dirties_its_caches_does_not_wait(unready: int, void: bool) -> None:
    for one in (block(unready=unready), minimal(unready=unready)):
        made = cell(one, dirty_kib=4096)
        assert is_void(made) is void
        if void:
            assert (
                "2 of 100 messages came while the receiver still wrote to its working set of 4,096 KiB"
                in made["reason"]
            )


def test_threads_of_ours_on_the_receivers_cpu_are_no_others() -> None:
    busy = CALM | {"cpu_ns": 902 * MS, "cpu_slices": 1000}
    assert is_void(cell(block(occupancy=busy)))
    assert is_void(
        cell(block(occupancy=busy | {"cpu_ns": 990 * MS}), cpus=[3, 3])
    )  # the sender's 900 ms, and 88 of others
    assert not is_void(cell(block(occupancy=busy), cpus=[3, 3]))


def test_the_next_sleeper_is_compared_with_where_the_blocking_call_is_void() -> None:
    (one,) = document(block(preemptions=50), case("poll", "sleeping", 50_000), minimal())["speedups"]
    assert (one["over"], one["mean"]) == ("poll", 10.0)


def test_a_spinner_is_not_asked_who_else_ran_and_a_sleeper_not_how_busy_it_was() -> None:
    assert not is_void(cell(minimal(occupancy=CALM | {"cpu_ns": 900 * MS, "cpu_slices": 900}, preemptions=5)))
    assert not is_void(cell(block(receiver_ns=0)))


def test_a_kernel_that_does_not_count_is_no_proof_and_is_named() -> None:
    made = document(block(occupancy=None), minimal(occupancy=None))
    assert not is_void(made["cells"][0])
    assert any(
        "counts not at all who has CPU 3" in text and "in 1 of the sleeping cases" in text for text in made["warnings"]
    )
    steps = CALM | {"cpu_slices": None}
    assert any("only in steps of 10 ms" in text for text in document(block(occupancy=steps))["warnings"])
    long = steps | {"ticks": 10_000 * MS}
    assert document(block(occupancy=long))["warnings"] == document(block())["warnings"] == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"reason": "there is no descriptor to poll", "sent": 0, "arrived": 0}, "there is no descriptor to poll"),
        ({"has_no_napi": True, "sent": 0, "arrived": 0}, "NAPI id is 0"),
        ({"failed": "sending", "errno": errno.EAGAIN, "arrived": 0}, "sending failed: the queue stayed full"),
        ({"failed": "receiving", "errno": errno.EPIPE, "arrived": 0}, "receiving failed: Broken pipe"),
        ({"arrived": 0}, "every message was lost"),
        ({"sent": 0, "arrived": 0}, "interrupted before the first message"),
    ],
)
def test_a_case_without_figures_says_why(changes: dict[str, Any], reason: str) -> None:
    nothing: dict[str, list[int]] = {name: [] for name in ("delay", "after_send", "send_call", "late")}
    made = cell(block(**{"occupancy": None, "receiver_ns": 0, "receiver_ticks": 0} | nothing | changes))
    assert (made["n"], made["is_void"], made["warnings"], made["receiver_cpu_percent"]) == (0, False, [], None)
    assert reason in made["reason"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sent": 98, "arrived": 98, "delay": [5000, 98]}, "98 of 100 messages were sent"),
        ({"arrived": 97, "delay": [5000, 97]}, "3 of 100 messages were lost"),
        ({"duplicates": 2}, "2 messages came twice"),
        ({"reordered": 2}, "2 messages came after a later one"),
        ({"negative": 2, "delay": [5000, 98]}, "2 messages were received before they were sent"),
        ({"late": [100, 49, 1_100_000, 51]}, "half of the messages were sent 1.1 ms late or later"),
        ({"page_faults": 1}, "the probe itself took 1 page faults"),
        ({"preemptions": 1}, "the receiver was preempted 1 time"),
        ({"failed": "receiving", "errno": errno.EPIPE}, "receiving failed before the last message: Broken pipe"),
        ({"late": [100, 51, 1_100_000, 49]}, ""),
        ({}, ""),
    ],
)
def test_warnings_of_a_case(changes: dict[str, Any], said: str) -> None:
    warnings = cell(minimal(**changes))["warnings"]
    assert len(warnings) == bool(said)
    assert all(said in text for text in warnings)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"interrupted": True}, "a signal ended the run early"),
        ({"facts": {"cpus": [GOOD, SHARED]}}, "not isolated: CPU 3; other"),
        ({"facts": {"cpus": [SHARED, SHARED]}}, "not isolated: CPUs 2 and 3; other"),
        ({"facts": {"cpus": [GOOD, GOOD | {"core_cpus": "2-3"}]}}, "share a physical core: they slow"),
        ({"facts": {"cpus": [GOOD, GOOD | {"core_cpus": "3,7"}]}}, ""),
        ({"facts": {"shares_main": True}}, "it shares CPU 2 with the sender"),
        ({"cpus": [3, 3]}, "sender and receiver share CPU 3"),
        ({"facts": {"cpus": [GOOD, GOOD | {"governor": "powersave"}]}}, "not performance on CPU 3"),
        ({"host_files": THROTTLED, "fifo_priority": 1}, "sched_rt_runtime_us is 950000 of 1000000"),
        ({"host_files": {"/proc/cpuinfo": "flags\t: tsc\n"}}, "not invariant"),
        ({"host_files": {"/sys/hypervisor/type": "xen\n"}}, "virtual machine"),
        ({"facts": {"is_locked": False}}, "memory could not be locked"),
        ({"clock": {"hz": HZ, "drift_ppm": -21.0, "source": "tsc", "granule_ns": 1}}, "moved by -21 ppm"),
        ({"clock": {"hz": HZ, "drift_ppm": 19.0, "source": "tsc", "granule_ns": 1}}, ""),
        (
            {"clock": {"hz": HZ, "drift_ppm": 0, "offset_ticks": [5, 9], "source": "tsc", "granule_ns": 1}},
            "5 to 9 ns ahead",
        ),
        (
            {"clock": {"hz": HZ, "drift_ppm": 0, "offset_ticks": [9, 5], "source": "tsc", "granule_ns": 1}},
            "not synchronised",
        ),
        ({"clock": {"hz": HZ, "drift_ppm": 0, "offset_ticks": [-9, 5], "source": "tsc", "granule_ns": 1}}, ""),
        ({"host_files": THROTTLED}, ""),
        ({}, ""),
    ],
)
def test_warnings_of_a_run(changes: dict[str, Any], said: str) -> None:
    warnings = document(minimal(), **changes)["warnings"]
    assert len(warnings) == bool(said), warnings
    assert all(said in text for text in warnings)


def test_what_is_no_raw_document_is_refused_with_the_place() -> None:
    with pytest.raises(TunectlError, match=r"cells\[0\]"):
        document(minimal(sent=-1))
    with pytest.raises(TunectlError, match=r"expected a document of schema tunectl\.probe\.wake\.raw/1"):
        explained_wake({"schema": "tunectl.probe.wake/1"})


def test_what_the_program_wrote_by_itself_is_read_too(tmp_path: Path) -> None:
    raw = raw_document(block(), minimal())
    (tmp_path / "raw").write_text(json.dumps(raw))
    assert read_document(tmp_path / "raw").body == document(block(), minimal())


def test_a_void_cell_is_not_compared(tmp_path: Path) -> None:
    paths = []
    for name, ms in (("before", 1000), ("after", 500)):
        made = document(block(), minimal(receiver_ns=ms * MS), has_warm_sender=name == "before")
        (tmp_path / name).write_text(json.dumps(made))
        paths.append(read_document(tmp_path / name))
    result = compared(paths[0], paths[1])
    rows = [row for group in result["groups"] if "minimal" in group["name"] for row in group["rows"]]
    assert {row["after"] for row in rows if row["measure"] != "receiver_cpu_percent"} <= {None}
    assert [row["measure"] for row in rows if row["ratio"]] == []
    assert any("void: the spinner had CPU 3" in text for text in result["warnings"])
    assert any("another sender: warm before, cold after" in text for text in result["warnings"])


@pytest.mark.parametrize("changes", [{"bytes": 1400}, {"fds": 100}, {"dirty_kib": 512}])
def test_another_size_of_messages_sets_and_working_sets_is_named(tmp_path: Path, changes: dict[str, Any]) -> None:
    made = [document(minimal()), document(minimal(), **changes), document(minimal(), at="2026-11-23T10:00:00Z")]
    for number, one in enumerate(made):
        (tmp_path / str(number)).write_text(json.dumps(one))
    before, after, alike = (read_document(tmp_path / str(number)) for number in range(3))
    shown = str(*changes.values())
    assert [text for text in compared(alike, after)["warnings"] if "another" in text and shown in text] != []
    assert [text for text in compared(before, alike)["warnings"] if "another" in text] == []


def test_two_results_of_void_cells_say_that_they_are_void(tmp_path: Path) -> None:
    def read(name: str, *cases: dict[str, Any]) -> Any:
        (tmp_path / name).write_text(json.dumps(document(*cases)))
        return read_document(tmp_path / name)

    void = read("void", block(preemptions=50), minimal(receiver_ns=0))
    with pytest.raises(
        TunectlError, match=r"every cell that .*void and .*void have in common is void: .*the spinner had"
    ):
        compared(void, void)
    missing = read(
        "missing", block(preemptions=50), minimal(sent=0, arrived=0, delay=[], reason="interrupted before it")
    )
    with pytest.raises(TunectlError, match=r"in common is void or not measured: .*interrupted before it"):
        compared(void, missing)
    with pytest.raises(TunectlError, match="have no wait method in common"):
        compared(void, read("other", block(mechanism="udp", preemptions=50)))
