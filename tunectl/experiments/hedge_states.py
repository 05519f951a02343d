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
    """What one request counts as, and each of its copies that was not the answer: too late, cancelled, or nowhere."""
    is_admitted, is_answered, is_hedged = (bool(state & of) for of in (State.ADMITTED, State.ANSWERED, State.HEDGED))
    is_won = is_answered and bool(state & State.WON)
    request = {
        "offered": True,
        "answered": is_answered,
        "unanswered": is_admitted and not is_answered,
        "shed": not is_admitted,
        "denied": state & State.DENIED,
        "over_budget": state & State.OVER_BUDGET,
        "hedged": is_hedged,
        "won": is_hedged and is_won,
    }
    yield from (name for name, is_so in request.items() if is_so)
    copies = [(first, is_answered and not is_won)] * is_admitted + [(1 - first, is_won)] * is_hedged
    for server, is_answer in copies:
        is_done, is_cancelled = state & State.DONE << server, state & State.CANCELLED << server
        is_nowhere = not is_done and not is_cancelled
        fates = {"wasted": is_done and not is_answer, "cancelled_unstarted": is_cancelled, "unfinished": is_nowhere}
        found = [name for name, is_so in fates.items() if is_so]
        yield from found
        yield from (_SECOND[name] for name in found if server != first)
