"""Behavioural checks: pytest modules run on the host. What a check may import is here.

A check that returns is `compliant`; `assert` or `failing()` makes it `drifted`; `unsupported()` says that the
machine has no such thing, `unknown()` that it could not be found out.
"""

from tunectl.checking.outcomes import Settled, compliant, failing, unknown, unsupported

__all__ = ["Settled", "compliant", "failing", "unknown", "unsupported"]
