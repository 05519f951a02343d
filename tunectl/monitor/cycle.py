"""One turn of the monitor: look, judge, compare with what fires already. It does no I/O of its own."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from tunectl.cpulist import CpuSet
from tunectl.monitor.model import Alert, Board, Condition, Health, Look

RECENT = 20  # edges that are kept to be shown


class AlertBook(Protocol):
    """What fires: monitor/alerts.py."""

    @property
    def firing(self) -> Sequence[Alert]: ...

    def step(self, look: Look, conditions: Iterable[Condition]) -> tuple[Alert, ...]: ...


class Cycle:
    """The look, the rules and the alerts of one host, joined."""

    def __init__(
        self,
        look: Callable[[], Look],
        judge: Callable[[Look], Iterable[Condition]],
        alerts: AlertBook,
        *,
        isolated: CpuSet = frozenset(),
        housekeeping: CpuSet = frozenset(),
    ) -> None:
        self._look, self._judge, self._alerts = look, judge, alerts
        self._isolated, self._housekeeping = isolated, housekeeping
        self._recent: deque[Alert] = deque(maxlen=RECENT)
        self._cycles = 0

    def step(self) -> tuple[Board, tuple[Alert, ...]]:
        """One cycle: everything there is to show, and the alerts that fired or were resolved in it."""
        wall, cpu = time.perf_counter(), time.thread_time()
        look = self._look()
        conditions = tuple(self._judge(look))
        edges = self._alerts.step(look, conditions)
        self._recent.extendleft(edges)
        self._cycles += 1
        own = {
            "cycles_total": float(self._cycles),
            "cycle_seconds": time.perf_counter() - wall,
            "cycle_cpu_seconds": time.thread_time() - cpu,
            "cpu_seconds_total": time.process_time(),
            **_healths(look),
        }
        firing, recent = tuple(self._alerts.firing), tuple(self._recent)
        return Board(look, conditions, firing, recent, own, self._isolated, self._housekeeping), edges


def _healths(look: Look) -> dict[str, float]:
    counts = Counter(sample.health for sample in look.samples)
    return {f"samples_{health.value.replace('-', '_')}": float(counts[health]) for health in Health}
