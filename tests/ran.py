"""A command of the product that has ended, here or in the lab."""

import json
from dataclasses import dataclass
from typing import Any


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
