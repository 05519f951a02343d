"""Many hosts against many others: is a figure of theirs higher, and by which factor? Pure.

Mann and Whitney's test (1947) within each stratum, added up over the strata, so that only what is alike is compared.
Where there is one stratum with few ways to deal its values out, all are visited (tunectl.compare.chance); otherwise
the normal curve, corrected for ties (Lehmann 1975, 1.5 and 3.3).
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence

from tunectl.compare.chance import Interval, normal_deviate, permuted, ranked, shift_ranks

Stratum = tuple[Sequence[float], Sequence[float]]  # of peers and of those that changed: values above 0
_EXACT = 200_000  # ways to deal the values out, at most
_HALVINGS = 50  # of a range of factors


def chance_of(strata: Sequence[Stratum]) -> float:
    """The chance that the sides lie as far apart, either way, were nothing different."""
    if _is_small(strata):
        peers, changed = strata[0]
        ranks = ranked([*peers, *changed])
        return permuted(ranks[: len(peers)], ranks[len(peers) :])
    apart, variance = 0.0, 0.0
    for peers, changed in strata:
        own, pairs, n = sorted(peers), len(peers) * len(changed), len(peers) + len(changed)
        apart += sum(bisect_left(own, value) + bisect_right(own, value) for value in changed) / 2 - pairs / 2
        ties = sum(count**3 - count for count in Counter([*peers, *changed]).values())
        variance += pairs / 12 * (n + 1 - ties / (n * (n - 1)))
    return math.erfc(max(abs(apart) - 0.5, 0) / math.sqrt(2 * variance)) if variance else 1.0


def factor_of(strata: Sequence[Stratum], confidence: float) -> Interval:
    """By which factor the changed ones' values are higher, with the bounds of the same test (Hodges & Lehmann 1963)."""
    logs = [(sorted(map(math.log, peers)), [*map(math.log, changed)]) for peers, changed in strata]
    pairs = sum(len(peers) * len(changed) for peers, changed in strata)
    if _is_small(strata):
        rank = shift_ranks(len(strata[0][0]), len(strata[0][1]), confidence)
    else:
        variance = sum(len(a) * len(b) * (len(a) + len(b) + 1) / 12 for a, b in strata)
        rank = max(math.floor(pairs / 2 - normal_deviate(confidence) * math.sqrt(variance)), 0)
    low, high = (_nth(logs, rank), _nth(logs, pairs + 1 - rank)) if rank else (-math.inf, math.inf)
    middle = (_nth(logs, (pairs + 1) // 2) + _nth(logs, pairs // 2 + 1)) / 2
    return Interval(*map(math.exp, (middle, low, high)))


def _is_small(strata: Sequence[Stratum]) -> bool:
    return len(strata) == 1 and math.comb(sum(map(len, strata[0])), len(strata[0][0])) <= _EXACT


def _nth(logs: Sequence[Stratum], rank: int) -> float:
    """The difference of that rank, from 1, among those of each changed value and each of its peers.

    Of thousands of hosts these are millions: they are counted below a value that is halved in on, and not listed.
    """
    low = min(min(changed) - peers[-1] for peers, changed in logs)
    high = max(max(changed) - peers[0] for peers, changed in logs)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if sum(len(peers) - bisect_left(peers, value - middle) for peers, changed in logs for value in changed) < rank:
            low = middle
        else:
            high = middle
    return high
