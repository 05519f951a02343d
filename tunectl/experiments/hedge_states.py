"""What became of the requests of `hedge` and of their copies, counted from the native program's states. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import IntFlag


class State(IntFlag):
    """Of a request, as in native/src/hedge/client.h; DONE and CANCELLED are of a copy, shifted by its server."""

    CAME = 1
    ADMITTED = 2
    HEDGED = 4
    DENIED = 8
    OVER_BUDGET = 16
    ANSWERED = 32
    WON = 64  # by the second copy
    DONE = 128
    CANCELLED = 512


# Of the second copies: what each is among all copies, and by itself.
_SECOND = {"wasted": "lost", "cancelled_unstarted": "hedge_cancelled", "unfinished": "hedge_unfinished"}
_COUNTS = (
    *("offered", "answered", "shed", "unanswered", "hedged", "won", "denied", "over_budget"),
    *_SECOND,
    *_SECOND.values(),
)


def counts_of(states: Sequence[int]) -> dict[str, int]:
    """The counts of a raw case; `states` are a state with its first copy's server << 16, and how often, in turns."""
    counts = Counter(dict.fromkeys(_COUNTS, 0))
    for word, times in zip(states[::2], states[1::2], strict=True):
        for name in _names(word & 0xFFFF, word >> 16):
            counts[name] += times
    return dict(counts)


def _names(state: int, first: int) -> Iterator[str]:
    """What one request counts as."""
    is_admitted, is_answered, is_won = state & State.ADMITTED, state & State.ANSWERED, bool(state & State.WON)
    yield "offered"
    if is_answered:
        yield "answered"
    elif is_admitted:
        yield "unanswered"
    if state & State.DENIED:
        yield "denied"
    if state & State.OVER_BUDGET:
        yield "over_budget"
    if is_admitted:
        yield from _copy(state, first, bool(is_answered) and not is_won)
    else:
        yield "shed"
    if state & State.HEDGED:
        second = tuple(_copy(state, 1 - first, bool(is_answered) and is_won))
        yield from (
            "hedged",
            *second,
            *(_SECOND[name] for name in second),
            *(("won",) if is_answered and is_won else ()),
        )


def _copy(state: int, server: int, is_answer: bool) -> Iterator[str]:
    """Where a copy came that was not the answer: too late, cancelled, or nowhere by the end."""
    is_done, is_cancelled = state & State.DONE << server, state & State.CANCELLED << server
    if is_done and not is_answer:
        yield "wasted"
    if is_cancelled:
        yield "cancelled_unstarted"
    if not is_done and not is_cancelled:
        yield "unfinished"
