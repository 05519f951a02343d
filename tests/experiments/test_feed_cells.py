"""What Python makes of the counts of `feed`: figures, bars, cells that are void, warnings. On values alone."""

from __future__ import annotations

import errno
import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.experiments.feeds import GOOD, MS, USUAL, case, lossy, message, raw_document, unmeasured, unsent
from tunectl.errors import TunectlError
from tunectl.experiments.feed_cells import explained_feed
from tunectl.probe.document import read_document
from tunectl.shapes import FEED_STAGES

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
SCHEMA = json.loads((SCHEMAS / "tunectl.probe.feed-1.json").read_text())
RAW = json.loads((SCHEMAS / "tunectl.probe.feed.raw-1.json").read_text())
FORMATS = jsonschema.FormatChecker()


def checked(raw: dict[str, Any]) -> dict[str, Any]:
    jsonschema.validate(raw, RAW, format_checker=FORMATS)
    return raw


def document(*cases: dict[str, Any], unstamped: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    made = explained_feed(checked(raw_document(*cases, **changes)), unstamped)
    jsonschema.validate(made, SCHEMA, format_checker=FORMATS)
    return made


def cell(*cases: dict[str, Any], **changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = document(*cases, **changes)["cells"][0]
    return made


def warnings(*cases: dict[str, Any], **changes: Any) -> list[str]:
    made: list[str] = cell(*cases, **changes)["warnings"]
    return made


def test_the_schemas_are_some() -> None:
    for schema in (SCHEMA, RAW):
        jsonschema.Draft202012Validator.check_schema(schema)


def test_a_cell_has_the_figures_of_its_counts() -> None:
    made = cell(case([message()] * 985 + [message(read=14_000)] * 14 + [message(send=290_100)]))
    assert (made["n"], made["due"], made["sent"], made["lost"], made["unsent"]) == (1000, 1000, 1000, 0, 0)
    due = made["due_to_book_ns"]
    assert (due["min"], due["50"], due["99"], due["max"]) == (10_000, 10_000, 20_000, 300_000)
    assert due["mean"] == pytest.approx((985 * 10_000 + 14 * 20_000 + 300_000) / 1000)
    assert [made["stages_ns"][name]["50"] for name in FEED_STAGES] == [*USUAL]
    assert (made["stages_ns"]["read"]["99"], made["stages_ns"]["send"]["max"]) == (14_000, 290_100)
    assert made["late_ns"] == made["stages_ns"]["send"]
    assert [count for _, _, count in made["histogram"]] == [985, 14, 1]
    assert made["series"]["interval_s"] == 0.25
    assert [row[0] for row in made["series"]["intervals"]] == [250] * 4
    assert made["series"]["intervals"][3][2] == 300_000
    assert made["batch_sizes"] == [[1, 1000]]
    assert (made["receiver_cpu_percent"], made["cpus"], made["lower_bounds_from_ns"]) == (100, [2, 3], None)


def test_the_mean_of_the_stages_is_the_mean_of_the_whole() -> None:
    made = cell(case([message(read=4_000 + at, wire=3_000 - at // 2, parse=1_900 + 7 * at) for at in range(500)]))
    parts = sum(made["stages_ns"][name]["mean"] for name in FEED_STAGES)
    assert parts == pytest.approx(made["due_to_book_ns"]["mean"], abs=1)


def test_a_bar_is_of_messages_as_long_as_its_percentile_and_adds_up_to_it() -> None:
    tail = [message(kernel=40_400, read=4_000), message(kernel=400, read=44_000)]  # both of 50 us
    made = cell(case([message()] * 980 + tail * 9 + [message(book=190_100)] * 2))
    bars = made["bars_ns"]
    assert bars["50"] == dict(zip(FEED_STAGES, USUAL, strict=True))
    assert (bars["99"]["kernel"], bars["99"]["read"]) == (20_400, 24_000)
    assert (bars["max"]["book"], bars["99.9"]) == (190_100, None)  # of 1,000 there is no P99.9
    for name in ("50", "90", "99", "max"):
        assert sum(bars[name].values()) == pytest.approx(made["due_to_book_ns"][name])


@pytest.mark.parametrize(
    ("n", "known"), [(9_999, []), (10_000, ["99.9"]), (99_999, ["99.9"]), (100_000, ["99.9", "99.99"])]
)
def test_a_percentile_needs_ten_messages_beyond_it(n: int, known: list[str]) -> None:
    made = cell(case([message()] * n))
    assert [name for name in ("99.9", "99.99") if made["due_to_book_ns"][name] is not None] == known
    assert [name for name in ("99.9", "99.99") if made["stages_ns"]["read"][name] is not None] == known
    assert (made["bars_ns"]["99.9"] is not None) is ("99.9" in known)


def test_without_stamps_the_wire_is_in_kernel() -> None:
    made = cell(case(stamped=False, stamps=case()["stamps"] | {"asked": "off", "kind": "off"}))
    assert made["stages_ns"]["wire"] is None
    assert made["stages_ns"]["kernel"]["50"] == 3_400
    assert made["bars_ns"]["50"]["wire"] is None
    assert sum(ns or 0 for ns in made["bars_ns"]["50"].values()) == 10_000
    assert warnings(case(stamped=False, stamps=case()["stamps"] | {"asked": "off", "kind": "off"})) == []


# ---- messages that did not arrive


@pytest.mark.parametrize(("lost", "known"), [(0, True), (10, True), (11, False)])
def test_a_percentile_among_lost_messages_has_no_value(lost: int, known: bool) -> None:
    """Of 1,000 messages P99 is the 990th: it is one of the lost ones once there are more than ten."""
    made = cell(lossy([message()] * (1000 - lost), lost))
    assert (made["n"], made["lost"]) == (1000, lost)
    due = made["due_to_book_ns"]
    assert due["50"] == due["95"] == 10_000
    assert (due["99"] is not None) is known
    assert (due["max"] is None, due["mean"] is None) == (lost > 0, lost > 0)
    assert (made["bars_ns"]["99"] is not None) is known
    assert sum(count for _, _, count in made["histogram"]) == 1000 - lost
    said = [text for text in made["warnings"] if "were lost" in text]
    assert len(said) == (lost > 0)
    if lost:
        without = "the mean" if known else "the mean, P99"
        assert said == [
            f"{lost} of 1,000 messages were lost ({lost / 10:.2g} %): they count as longer than all others, "
            f"so {without} and the longest have no value"
        ]


def test_an_unsent_message_counts_as_what_it_had_waited() -> None:
    made = cell(unsent([message()] * 900, [5_000, *[700_000] * 99]))
    due = made["due_to_book_ns"]
    assert (made["n"], made["due"], made["sent"], made["unsent"], made["lost"]) == (1000, 1000, 900, 100, 0)
    assert (due["min"], due["90"], due["95"], due["max"]) == (5_000, 10_000, 700_000, 700_000)
    assert made["lower_bounds_from_ns"] == 5_000
    assert made["bars_ns"]["99"] is None  # no message so long has arrived: nobody knows of what it is made
    assert made["bars_ns"]["50"] is not None
    assert sum(count for _, _, count in made["histogram"]) == 1000
    assert sum(count for count, _, _ in made["series"]["intervals"]) == 900
    (said,) = (text for text in made["warnings"] if "100 of 1,000 messages were not sent before the end" in text)
    assert "figures from 5 µs on are lower bounds" in said


def test_overload_never_shortens_the_tail() -> None:
    """What is not sent may only lengthen a percentile."""
    calm = cell(case([message()] * 1000))["due_to_book_ns"]
    for waited in (10_001, 50_000, 10_000_000):
        full = cell(unsent([message()] * 1000, [waited] * 300))["due_to_book_ns"]
        assert all(full[name] >= calm[name] for name in ("50", "90", "95", "99", "max"))
        assert full["99"] == waited


# ---- void


def is_void(made: dict[str, Any]) -> bool:
    """With its reason, and without any figure that could be read as a result."""
    if made["is_void"]:
        assert made["reason"].startswith("void: ")
        assert (made["n"], made["histogram"], made["series"]) == (0, [], None)
        assert not any(
            (made["due_to_book_ns"], made["late_ns"], *made["stages_ns"].values(), *made["bars_ns"].values())
        )
        assert made["sent"] == 1000  # what was counted stays
    else:
        assert (made["reason"], made["n"]) == ("", 1000)
    return bool(made["is_void"])


@pytest.mark.parametrize(("ms", "void"), [(900, False), (899, True), (0, True)])
def test_a_spinner_needs_nine_tenths_of_its_cpu(ms: int, void: bool) -> None:
    made = cell(case(receiver_ns=ms * MS))
    assert is_void(made) is void
    assert made["receiver_cpu_percent"] == ms / 10
    if void:
        assert f"the spinner had CPU 3 for {ms / 10:.3g} % of the time" in made["reason"]


@pytest.mark.parametrize("waiting", ["poll", "busy-poll"])
@pytest.mark.parametrize(("switches", "void"), [(0, False), (10, False), (11, True)])
def test_a_sleeper_may_be_preempted_once_in_a_hundred_messages(waiting: str, switches: int, void: bool) -> None:
    made = cell(case(waiting=waiting, involuntary_switches=switches, receiver_ns=0))
    assert is_void(made) is void
    if void:
        assert "the receiver was preempted 11 times in 1,000 messages on CPU 3" in made["reason"]
    assert not is_void(cell(case(involuntary_switches=switches)))  # of a spinner its share of the CPU decides


@pytest.mark.parametrize("waiting", ["poll", "poll0"])
@pytest.mark.parametrize(("us", "void"), [(0, False), (1, True)])
def test_threads_that_a_quota_stopped_have_no_times(waiting: str, us: int, void: bool) -> None:
    made = cell(case(waiting=waiting, throttled_us=us))
    assert is_void(made) is void
    assert made["reason"].startswith("void: cgroup throttling (cpu.max) stopped the probe") is void


@pytest.mark.parametrize("waiting", ["poll", "poll0"])
@pytest.mark.parametrize(("times", "void"), [(0, False), (1, True)])
def test_threads_that_a_signal_stopped_have_no_times(waiting: str, times: int, void: bool) -> None:
    made = cell(case(waiting=waiting, sender_voluntary_switches=times))
    assert is_void(made) is void
    assert made["reason"].startswith("void: the probe was stopped during the case") is void


@pytest.mark.parametrize("waiting", ["poll", "poll0"])
def test_a_receiver_that_never_came_back_is_void(waiting: str) -> None:
    """The other host, or its last words, never came: what the receiver has used is not known."""
    made = cell(case(waiting=waiting, receiver_ns=0, receiver_ticks=0, failed="receiving", errno=errno.ETIMEDOUT))
    assert is_void(made)
    assert "the receiver waited in vain for the end" in made["reason"]
    assert made["receiver_cpu_percent"] is None


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (unmeasured("the kernel refuses ktls: No such file or directory"), "the kernel refuses ktls"),
        (case([], failed="receiving", errno=errno.ECONNRESET), "receiving failed: Connection reset by peer"),
        (case([], close_code=1007), "the WebSocket reader failed with 1007 before the first message"),
        (lossy([], 10), "every message was lost"),
        (unsent([], [9_000] * 10), "no message was sent before the end"),
        (case([]), "interrupted before the first message was due"),
    ],
)
def test_a_case_without_figures_says_why(made: dict[str, Any], reason: str) -> None:
    found = cell(made)
    assert reason in found["reason"]
    assert (found["n"], found["is_void"], found["warnings"], found["receiver_cpu_percent"]) == (0, False, [], None)
    assert found["due_to_book_ns"] is None


# ---- what stamps cost


def test_the_cost_of_stamps_is_the_difference_of_two_medians() -> None:
    without = raw_document(case([message(read=3_700)] * 1000, stamped=False))
    assert document(case(), unstamped=without)["stamp_cost_ns"] == 300
    faster = raw_document(case([message(read=4_050)] * 1000, stamped=False))
    assert document(case(), unstamped=faster)["stamp_cost_ns"] == -50
    assert document(case())["stamp_cost_ns"] is None


def test_an_overloaded_case_has_no_cost_of_stamps() -> None:
    without = raw_document(unsent([message()] * 900, [5_000] * 100, stamped=False))
    assert document(case(), unstamped=without)["stamp_cost_ns"] is None


def test_a_void_case_has_no_cost_of_stamps() -> None:
    without = case(stamped=False)
    assert document(case(receiver_ns=0), unstamped=raw_document(without))["stamp_cost_ns"] is None
    assert document(case(), unstamped=raw_document(without | {"receiver_ns": 0}))["stamp_cost_ns"] is None
    unstamped_first = document(case(stamped=False), case([message(read=5_000)] * 1000), unstamped=raw_document(without))
    assert unstamped_first["stamp_cost_ns"] == 1_000  # of the first that is stamped


# ---- warnings


def stamps(**changes: Any) -> dict[str, Any]:
    return {**case()["stamps"], **changes}


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (case(), ""),
        (case(failed="receiving", errno=errno.EPIPE), "receiving failed before the last message: Broken pipe"),
        (case(close_code=1002), "the WebSocket reader failed with 1002 before the last message"),
        (case(drops={"socket": 7, "softnet": 0, "nic": None}), "the receiving TCP socket threw 7 segments away"),
        (
            case(drops={"socket": 7, "softnet": 0, "nic": None}, transport="udp", format="binary"),
            "the receiving socket dropped 7 packets",
        ),
        (case(drops={"socket": None, "softnet": 3, "nic": None}), "the host dropped 3 packets"),
        (case(drops={"socket": None, "softnet": None, "nic": None}), ""),
        (case(drops={"socket": 0, "softnet": 0, "nic": 9}), "this host's interface dropped 9 packets"),
        (case(doubled=2), "2 messages came twice"),
        (case(doubled=1000, transport="multicast-ab", format="binary"), ""),  # sent twice on purpose
        (case(strangers=1), "not of this run, and left out: 1 packet"),
        (case(reordered=4), "4 messages came after a later one of the same symbol"),
        (case(sender_involuntary_switches=5), "the sender was preempted 5 times"),
        (case(involuntary_switches=5), "the receiver was preempted 5 times"),
        (case(minor_faults=2, major_faults=1), "the receiver took 3 page faults"),
        (case(stamp_shared=10), ""),
        (case(stamp_shared=11), "11 of 1,000 messages came in a read with others"),
        (case(stamped=False, stamp_shared=999), "no time stamps: the kernel made none; kernel contains wire"),
        (case(stamped=False, stamps=stamps(kind="off", reason="ktls brings none")), "no time stamps: ktls brings none"),
        (case(stamped=False, stamps=stamps(stepped=True)), "CLOCK_REALTIME was set during the run"),
        (
            case(stamped=False, stamps=stamps(kind="hw", stepped=True)),
            "the network card's clock was set during the run",
        ),
        (case(stamped=False, stamps=stamps(kind="hw")), "no time stamps: the network card did not stamp every message"),
        (case(stamps=stamps(asked="hw", kind="hw", were_on=None)), ""),
        (case(stamps=stamps(were_on=True)), "somebody else had switched time stamps on already"),
        (case(stamps=stamps(were_on=None)), ""),
        (case(negative=dict.fromkeys(FEED_STAGES, 0) | {"wire": 1}), ""),
        (case(negative=dict.fromkeys(FEED_STAGES, 0) | {"wire": 2}), "in 2 of 1,000 messages wire is negative"),
        (case(late=[100, 500, 1_100_000, 500]), ""),
        (case(late=[100, 499, 1_100_000, 501]), "half of the messages were sent 1.1 ms late or later"),
    ],
)
def test_warnings_of_a_case(made: dict[str, Any], said: str) -> None:
    found = warnings(made)
    assert len(found) == bool(said), found
    assert all(said in text for text in found)


SHARED = GOOD | {"is_isolated": False}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"interrupted": True}, "a signal ended the run early"),
        ({"facts": {"cpus": [SHARED, GOOD]}}, "not isolated: CPU 2; other"),
        ({"facts": {"cpus": [GOOD, GOOD | {"governor": "powersave"}]}}, "not performance on CPU 3"),
        ({"cpus": [3, 3]}, "sender and receiver share CPU 3"),
        ({"facts": {"is_locked": False}}, "memory could not be locked"),
        ({"host_files": {"/sys/hypervisor/type": "xen\n"}}, "this is a virtual machine: the hypervisor may stop"),
        (
            {"clock": {"hz": 1e9, "drift_ppm": 0, "offset_ticks": [5, 9], "source": "tsc", "granule_ns": 1}},
            "5 to 9 ns ahead",
        ),
    ],
)
def test_warnings_of_a_run(changes: dict[str, Any], said: str) -> None:
    found = document(case(), **changes)["warnings"]
    assert len(found) == bool(said), found
    assert all(said in text for text in found)


@pytest.mark.parametrize(("waiting", "spins"), [("poll0", True), ("poll", False)])
def test_two_spinners_on_one_core_are_named(waiting: str, spins: bool) -> None:
    siblings = {"cpus": [GOOD, GOOD | {"core_cpus": "2-3"}]}
    found = document(case(waiting=waiting), facts=siblings)["warnings"]
    assert any("share a physical core: they slow each other" in text for text in found)
    assert any("two spinners share a physical core: the receiver" in text for text in found) is spins


def test_the_offset_of_the_counters_is_told() -> None:
    clock = {"hz": 2e9, "drift_ppm": 0, "offset_ticks": [-5, 9], "source": "tsc", "granule_ns": 1}
    found = document(case(), clock=clock)["clock"]
    assert (found["offset_least_ns"], found["offset_most_ns"]) == (-2.5, 4.5)
    assert "offset_ticks" not in found


# ---- what is no raw document


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sent": -1}, r"cells\[0\]"),
        ({"due": 1001}, r"cells\[0\]: 1000 sent and 0 unsent are not the 1001 messages that were due"),
        ({"arrived": 1001}, r"1001 messages arrived, and 1000 were sent"),
        ({"total": [10_000, 999]}, "total holds 999 of 1000"),
        ({"total": [-5, 1000]}, "reached the book before it was due: the counters of the two CPUs have no common time"),
        ({"total": [10_000]}, "total is no list of values"),
        ({"unsent_ticks": [5, 1]}, "unsent_ticks holds 1 of 0"),
        ({"batch_sizes": [1, 999]}, "batch_sizes holds 999 of 1000"),
        ({"stages": {}}, "stages and negative: send is missing"),
        ({"negative": {}}, "stages and negative: send is missing"),
        ({"stages": case()["stages"] | {"read": [4_000, 3]}}, r"stages\.read holds 3 of 1000"),
        ({"stages": case()["stages"] | {"wire": []}}, r"stages\.wire holds 0 of 1000"),
        ({"stamped": False}, r"stages\.wire holds 1000 of 0"),
        ({"profile": []}, "profile holds 0 of 1000"),
        ({"profile": [[10_000, 10_001, 1000, *[1] * 8]]}, r"profile\[0\]: its stages do not add up"),
        ({"profile": [[10_000, 10_001, 1000]]}, r"no tunectl\.probe\.feed\.raw/1"),
        ({"series": {"start": 0, "interval_ticks": 1, "intervals": [[9, 9, 9]]}}, "series holds 9 of 1000"),
        ({"waiting": "sleeping"}, r"no tunectl\.probe\.feed\.raw/1"),
    ],
)
def test_what_does_not_add_up_is_refused_with_the_place(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(TunectlError, match=said):
        explained_feed(raw_document(case() | changes))


def test_another_document_is_refused() -> None:
    with pytest.raises(TunectlError, match=r"expected a document of schema tunectl\.probe\.feed\.raw/1"):
        explained_feed({"schema": "tunectl.probe.feed/1"})


def test_what_the_program_wrote_by_itself_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "raw").write_text(json.dumps(raw_document(case(symbols=4), lossy([message()] * 90, 10))))
    read = read_document(tmp_path / "raw")
    assert read.name == "probe.feed"
    assert read.body == document(case(symbols=4), lossy([message()] * 90, 10))
    (tmp_path / "raw").write_text(json.dumps({"schema": "tunectl.probe.feed.raw/2"}))
    with pytest.raises(TunectlError, match=r"schema: tunectl\.probe\.feed\.raw/2 is of another version"):
        read_document(tmp_path / "raw")


def test_a_histogram_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    made = document(lossy([message()] * 90, 10))
    made["cells"][0]["lost"] = 9
    (tmp_path / "cut").write_text(json.dumps(made))
    with pytest.raises(TunectlError, match=r"cells\[0\]\.histogram: holds 90 of 91"):
        read_document(tmp_path / "cut")


def test_ranks_are_of_all_that_were_due() -> None:
    """Against a plain sort, with lost messages as infinite."""
    arrived = [message(read=4_000 + 13 * at) for at in range(700)]
    waited = [9_000 + 31 * at for at in range(200)]
    made = cell(unsent(arrived, waited, sent=800, due=1000))
    values = sorted([*map(sum, arrived), *waited, *[math.inf] * 100])
    for name in ("50", "90", "95", "99"):
        expected = values[math.ceil(len(values) * float(name) / 100) - 1]
        assert made["due_to_book_ns"][name] == (expected if math.isfinite(expected) else None)
