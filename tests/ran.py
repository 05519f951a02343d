"""A command of the product that has ended, here or in the lab."""

import json
from dataclasses import dataclass
from typing import Any

# The command that measures this machine's own CPUs. Two test processes run side by side, and each pins threads: the
# guard would rightly refuse to measure beside them (tests/probe/test_guard.py and test_beside_engines.py are about it).
JITTER = ("probe", "jitter", "--intrude")


@dataclass(frozen=True)
class Ran:
    """Its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output, parsed; where there is none, what it complained about."""
        assert self.out, f"exit {self.code}: {self.err}"
        return json.loads(self.out)
