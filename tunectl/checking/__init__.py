"""Behavioural checks: pytest modules run on the host. What a check may import is here.

A check that returns is `compliant`; `assert` or `failing()` makes it `drifted`; `unsupported()` says that the
machine has no such thing, `unknown()` that it could not be found out. `@costs(Severity.STALL)` says how bad it is,
`@watches(1.0)` for how many seconds the host has to be watched at least before silence proves anything, and
`@needs_sight` that it takes what it does not find for absent: proof only where every thread of the host can be seen.
`failing(..., desired=10, match=Match.AT_MOST)` says that what is desired is a bound. A fix is made of the functions of
`tunectl.fix`; a plain text is something to decide.
"""

from tunectl.checking.outcomes import Settled, compliant, costs, failing, needs_sight, unknown, unsupported, watches
from tunectl.model import Match, Severity

__all__ = [
    "Match",
    "Settled",
    "Severity",
    "compliant",
    "costs",
    "failing",
    "needs_sight",
    "unknown",
    "unsupported",
    "watches",
]
