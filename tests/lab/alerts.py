"""What the monitor said in the guest, by the guest's own journal."""

import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from .lab import Lab
from .ssh import time_left

MONITOR = "tunectl-monitor.service"


class Edge(NamedTuple):
    """One entry of the monitor in the guest's journal."""

    at_s: float  # since 1970, the guest's clock
    rule: str
    subject: str
    status: str
    fields: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.rule}[{self.subject}]"


def edges(lab: Lab) -> list[Edge]:
    """Everything the monitor said since its service started, oldest first."""
    found = []
    for line in lab.run("journalctl -q -o json SYSLOG_IDENTIFIER=tunectl").out.splitlines():
        entry = json.loads(line)
        if "TUNECTL_RULE" in entry:
            rule, subject, status = (entry[f"TUNECTL_{name}"] for name in ("RULE", "SUBJECT", "STATUS"))
            found.append(Edge(int(entry["__REALTIME_TIMESTAMP"]) / 1e6, rule, subject, status, entry))
    return found


def wait_for(lab: Lab, wanted: Callable[[list[Edge]], bool], seconds: float) -> list[Edge]:
    """The edges, once they are as wanted; AssertionError after so many seconds in which the guest had a CPU."""
    left = time_left(seconds, lab.vm.waited_s)
    while not wanted(found := edges(lab)):
        assert left() > 0, f"not within {seconds:g} s: {[edge[:4] for edge in found]}\n{log(lab)}"
        time.sleep(0.2)
    return found


def named(name: str, status: str, count: int = 1) -> Callable[[list[Edge]], bool]:
    """Was this alert `name`[...] seen with this status so often?"""
    return lambda found: sum(edge.status == status and edge.name.startswith(name) for edge in found) >= count


def log(lab: Lab) -> str:
    return lab.run(f"journalctl -q -u {MONITOR} -n 30 -o cat", check=False).out
