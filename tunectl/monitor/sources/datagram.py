"""The text of a datagram: latencies in ns, plain (`1240`) or as a pair of moments, `due:done`. Pure.

The two moments of a pair are of one clock, whichever the sender has: only their difference counts.
"""

from typing import NamedTuple

MOST_NS = 10**18 - 1  # a longer latency is a mistake: thirty years, or a moment that was never set
_DIGITS = len(str(MOST_NS))
_MOMENT_DIGITS = len(str(1 << 63))
_CUT = b"more than 64 KiB at once"
_SHOWN = 40  # bytes of a bad word


class Parsed(NamedTuple):
    """What a datagram says."""

    values_ns: list[int]
    bad: int  # words that are no latency
    early: int  # pairs that were done before they were due
    named: str  # one of these, printable; "" where there is none


def parse(data: bytes, is_cut: bool = False) -> Parsed:
    """Words separated by white space. What was cut off a datagram is one bad word, with its last, torn one."""
    words = data.split()
    is_torn = bool(words) and not data[-1:].isspace()
    cut = [words.pop() if is_torn else _CUT] if is_cut else []
    # Most words are plain: those are taken in one go.
    values = [int(word) for word in words if word.isdigit() and len(word) <= _DIGITS]
    if len(values) == len(words) and not cut:
        return Parsed(values, 0, 0, "")
    bad, early = list(cut), []
    for word in words:
        if word.isdigit() and len(word) <= _DIGITS:
            continue
        lasted = _lasted(word)
        if lasted is None:
            bad.append(word)
        elif lasted < 0:
            early.append(word)
        else:
            values.append(lasted)
    return Parsed(values, len(bad), len(early), _printable((bad or early or [b""])[-1]))


def _lasted(word: bytes) -> int | None:
    """done - due, negative where it was done before it was due; None where it is no pair."""
    due, colon, done = word.partition(b":")
    if not colon or not all(part.isdigit() and len(part) <= _MOMENT_DIGITS for part in (due, done)):
        return None
    lasted = int(done) - int(due)
    return lasted if lasted <= MOST_NS else None


def _printable(word: bytes) -> str:
    more = "..." if len(word) > _SHOWN else ""
    return ascii(word[:_SHOWN].decode("latin-1"))[1:-1] + more if word else ""
