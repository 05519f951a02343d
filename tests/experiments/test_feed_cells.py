"""What Python makes of the counts of `feed`: figures, bars, cells that are void, warnings. On values alone."""

import math

import pytest

from tests.experiments.feeds import USUAL, case, lossy, message, raw_document, unsent
from tests.experiments.test_laws import FEED
from tunectl.experiments.feed_cells import explained_feed
from tunectl.shapes import FEED_STAGES

cell = FEED.cell


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_without_stamps_the_wire_is_in_kernel() -> None:
    made = cell(case(stamped=False, stamps=case()["stamps"] | {"asked": "off", "kind": "off"}))
    assert made["stages_ns"]["wire"] is None
    assert made["stages_ns"]["kernel"]["50"] == 3_400
    assert made["bars_ns"]["50"]["wire"] is None
    assert sum(ns or 0 for ns in made["bars_ns"]["50"].values()) == 10_000
    assert made["warnings"] == []


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


@pytest.mark.slow
def test_overload_never_shortens_the_tail() -> None:
    """What is not sent may only lengthen a percentile."""
    calm = cell(case([message()] * 1000))["due_to_book_ns"]
    for waited in (10_001, 50_000, 10_000_000):
        full = cell(unsent([message()] * 1000, [waited] * 300))["due_to_book_ns"]
        assert all(full[name] >= calm[name] for name in ("50", "90", "95", "99", "max"))
        assert full["99"] == waited


def test_an_overloaded_case_has_no_cost_of_stamps() -> None:
    without = raw_document(unsent([message()] * 900, [5_000] * 100, stamped=False))
    assert explained_feed(raw_document(case()), without)["stamp_cost_ns"] is None


def test_the_offset_of_the_counters_is_told() -> None:
    clock = {"hz": 2e9, "drift_ppm": 0, "offset_ticks": [-5, 9], "source": "tsc", "granule_ns": 1}
    found = FEED.explained(case(), clock=clock)["clock"]
    assert (found["offset_least_ns"], found["offset_most_ns"]) == (-2.5, 4.5)
    assert "offset_ticks" not in found


@pytest.mark.slow
def test_ranks_are_of_all_that_were_due() -> None:
    """Against a plain sort, with lost messages as infinite."""
    arrived = [message(read=4_000 + 13 * at) for at in range(700)]
    waited = [9_000 + 31 * at for at in range(200)]
    made = cell(unsent(arrived, waited, sent=800, due=1000))
    values = sorted([*map(sum, arrived), *waited, *[math.inf] * 100])
    for name in ("50", "90", "95", "99"):
        expected = values[math.ceil(len(values) * float(name) / 100) - 1]
        assert made["due_to_book_ns"][name] == (expected if math.isfinite(expected) else None)
