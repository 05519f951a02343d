"""The words of a datagram: latencies, pairs of moments, and what is neither."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunectl.monitor.sources.datagram import MOST_NS, Parsed, parse

NOW = 1_764_000_000_000_000_000  # CLOCK_REALTIME has 19 digits


def test_latencies_and_pairs_side_by_side() -> None:
    assert parse(b"1240 980\n\t7 000:12") == Parsed([1240, 980, 7, 12], 0, 0, "")
    assert parse(f"{NOW}:{NOW + 1500} 5:5".encode()) == Parsed([1500, 0], 0, 0, "")
    assert parse(b"") == Parsed([], 0, 0, "")


def test_a_pair_that_was_done_before_it_was_due_is_counted_apart() -> None:
    assert parse(b"7 900:899 8") == Parsed([7, 8], 0, 1, "900:899")
    assert parse(b"x 900:899") == Parsed([], 1, 1, "x")


@pytest.mark.parametrize(
    "word",
    [b"1:", b":1", b":", b"1:2:3", b"-1:5", b"1:-5", b"1.5:2", b"nan:nan", b"inf", b"1:9" * 9, b"0:" + b"9" * 20,
     b"-5", b"1.5", b"abc", b"1e3", b"0x10", b"9" * 19, b"9" * 60_000, b"\xff\xfe", "\u0665".encode()],
)  # fmt: skip
def test_what_is_no_latency_and_no_pair_is_counted_and_named(word: bytes) -> None:
    found = parse(b"7 " + word + b" 8")
    assert (found.values_ns, found.bad, found.early) == ([7, 8], 1, 0)
    assert found.named.startswith(word[:20].decode("ascii", "backslashreplace"))


def test_the_longest_latency_and_one_more() -> None:
    for said in (str(MOST_NS), f"5:{MOST_NS + 5}"):
        assert parse(said.encode()).values_ns == [MOST_NS]
    for said in (str(MOST_NS + 1), f"5:{MOST_NS + 6}", f"0:{NOW}"):  # the moment it was due was never set
        assert parse(said.encode()).bad == 1


def test_a_datagram_that_was_cut_does_not_end_in_a_latency() -> None:
    assert parse(b"700 12", is_cut=True) == Parsed([700], 1, 0, "12")
    assert parse(b"700 12 ", is_cut=True) == Parsed([700, 12], 1, 0, "more than 64 KiB at once")


@given(st.binary(max_size=200), st.booleans())
def test_every_word_is_taken_or_counted(data: bytes, is_cut: bool) -> None:
    found = parse(data, is_cut)
    assert len(found.values_ns) + found.bad + found.early == len(data.split()) + (is_cut and not data[-1:].strip())
    assert all(0 <= value <= MOST_NS for value in found.values_ns)
    assert bool(found.named) == bool(found.bad + found.early)
    assert found.named.isascii()
    assert found.named.isprintable()
