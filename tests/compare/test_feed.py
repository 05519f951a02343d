"""Two results of `feed` side by side: rows with bounds, medians of stages, and what else differs."""

import json
from pathlib import Path

import pytest

from tests.compare.feeds import TRIP, feed_document
from tests.compare.reading import Read, both, compared, rows, wider
from tests.compare.runs import cpu_of, simulated
from tests.compare.runs import document as jitter_document
from tests.experiments.feeds import case, lossy, message, tail, unmeasured, unsent
from tunectl.errors import TunectlError
from tunectl.probe.document import read_document
from tunectl.shapes import FEED_STAGES


@pytest.fixture
def read(read: Read) -> Read:
    """The same of cases of `feed`."""
    return lambda name, *cases, **changes: read(name, feed_document(*cases, **changes))


def test_percentiles_have_bounds_and_stages_their_medians(read: Read) -> None:
    made = both(read("a", case(tail(20_000))), read("b", case(tail(20_000, scale=2))))
    found = rows(made)
    assert [*found] == [
        *(("due_to_book_ns", name) for name in ("50", "99", "99.9")),
        ("max_ns", None),
        *((f"{stage}_ns", "50") for stage in FEED_STAGES),
        ("receiver_cpu_percent", None),
    ]
    ratio = found["due_to_book_ns", "50"]["ratio"]
    assert 1.4 < ratio["low"] <= ratio["value"] <= ratio["high"] < 1.6
    assert found["read_ns", "50"]["ratio"] == {"value": 2, "low": None, "high": None}
    assert found["parse_ns", "50"]["ratio"]["value"] == 1
    assert (made["kind"], made["judged"], made["groups"][0]["name"]) == ("feed", None, "tcp ws-json, 1 symbol, poll0")
    assert any("messages are independent of each other" in text for text in made["warnings"])


def test_cases_are_matched_by_all_that_was_asked(read: Read) -> None:
    cases = [case(), case(symbols=4), case(burst=8), case(rate=2000), case(alloc=2), case(tls="ktls")]
    made = both(read("a", *cases), read("b", *reversed(cases)))
    assert len(made["groups"]) == 6
    one = both(read("c", case(), case(symbols=4)), read("d", case(), case(symbols=8)))
    assert len(one["groups"]) == 1
    assert [text for text in one["warnings"] if text.startswith("only ")] == [
        "only before: tcp ws-json, 4 symbols, poll0",
        "only after: tcp ws-json, 8 symbols, poll0",
    ]


def test_a_figure_that_there_is_not_has_no_ratio(read: Read) -> None:
    """Too few messages for P99.9, and too many lost ones for P99."""
    found = rows(both(read("a", case(tail(1000))), read("b", lossy(tail(980), 20))))
    assert found["due_to_book_ns", "50"]["ratio"] is not None
    assert (found["due_to_book_ns", "99"]["after"], found["due_to_book_ns", "99.9"]["before"]) == (None, None)
    for name in ("99", "99.9"):
        assert found["due_to_book_ns", name]["ratio"] is None
        assert "too many of them lost" in found["due_to_book_ns", name]["reason"]
    assert found["max_ns", None]["after"] is None


def test_bounds_have_no_end_where_messages_that_did_not_come_decide(read: Read) -> None:
    calm = read("a", case(tail(1000)))
    found = rows(both(calm, read("b", lossy(tail(992), 8))))
    assert found["due_to_book_ns", "99"]["after"]["high"] is None  # P99 has a value, but the eight may be below it
    assert found["due_to_book_ns", "50"]["after"]["high"] is not None
    found = rows(both(calm, read("c", unsent(tail(900), [80_000] * 100))))
    row = found["due_to_book_ns", "99"]
    assert (row["after"]["value"], row["after"]["high"]) == (pytest.approx(80_000, rel=0.01), None)
    assert found["due_to_book_ns", "50"]["after"]["high"] is not None


def test_a_median_below_zero_has_no_ratio(read: Read) -> None:
    before, after = case([message(wire=-20)] * 100), case([message(wire=30)] * 100)
    row = rows(both(read("a", before), read("b", after)))["wire_ns", "50"]
    assert (row["before"]["value"], row["after"]["value"], row["ratio"]) == (-20, 30, None)


def test_what_else_differs_is_named(read: Read) -> None:
    before = read("a", case(), case(symbols=4), fifo_priority=0)
    after = read(
        "b", case(stamped=False), case(symbols=4, receiver_ns=0), fifo_priority=3, cpus=[4, 5], interrupted=True
    )
    said = "\n".join(both(before, after)["warnings"])
    for text in (
        "another scheduling priority: ordinary before, 3 after",
        "tcp ws-json, 1 symbol, poll0: only before has time stamps: on the other side kernel contains wire",
        "after was interrupted before its time",
        "after: tcp ws-json, 4 symbols, poll0: void: the spinner had CPU 5 for 0 % of the time",
        "tcp ws-json, 1 symbol, poll0: other CPUs: 2-3 before, 4-5 after",
    ):
        assert text in said
    alike = "\n".join(both(before, before)["warnings"])
    assert "time stamps" not in alike
    assert "other CPUs" not in alike


def test_a_round_trip_is_another_case_than_a_way(read: Read) -> None:
    stayed, went = read("a", case()), read("b", case(), trip=TRIP)
    with pytest.raises(TunectlError, match="have no case in common"):
        both(stayed, went)
    made = both(went, went)
    assert made["groups"][0]["name"] == "tcp ws-json, 1 symbol, poll0, there and back"
    assert not any("other end" in text for text in made["warnings"])


def test_another_host_at_the_other_end_is_named(read: Read) -> None:
    other = TRIP._replace(peer=TRIP.peer._replace(address="10.0.0.9:7000"))
    made = both(read("a", case(), trip=TRIP), read("b", case(), trip=other))
    assert "another host at the other end: 10.0.0.2:7000 before, 10.0.0.9:7000 after" in made["warnings"]


def test_stamps_of_two_kinds_are_named(read: Read) -> None:
    stamps = case()["stamps"]
    cards = case(stamps=stamps | {"asked": "hw", "kind": "hw", "were_on": None})
    text = (
        "tcp ws-json, 1 symbol, poll0, there and back: time stamps of two kinds, the kernel's before, the network "
        "card's after: wire and kernel are not the same on both sides"
    )
    kernel, card = read("a", case(), trip=TRIP), read("b", cards, trip=TRIP)
    assert text in both(kernel, card)["warnings"]
    assert not any("time stamps" in said for said in both(card, card)["warnings"])


def test_what_cannot_be_compared(read: Read, tmp_path: Path) -> None:
    (tmp_path / "jitter").write_text(json.dumps(jitter_document(cpu_of(simulated(1, 2.0), 2.0), seconds=2.0)))
    feed, jitter = read("a", case()), read_document(tmp_path / "jitter")
    with pytest.raises(TunectlError, match=r"a\.json is of `probe feed`, .*jitter is of `probe jitter`"):
        compared(feed, jitter)
    with pytest.raises(TunectlError, match=r"have no case in common \(probe both hosts with the same transports"):
        compared(feed, read("b", case(symbols=4)))
    void = read("c", case(receiver_ns=0))
    with pytest.raises(TunectlError, match=r"in common is void: the spinner had CPU 3"):
        compared(void, void)
    with pytest.raises(TunectlError, match=r"in common is void or not measured: .*the kernel refuses"):
        compared(void, read("d", unmeasured("the kernel refuses it")))


@pytest.mark.parametrize("width", [80, 120])
def test_the_page(read: Read, width: int) -> None:
    made = both(read("a", case(tail(20_000))), read("b", lossy(tail(19_990, scale=2), 10)))
    assert not wider(made, width)
