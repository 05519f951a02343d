"""One turn of the monitor: take a snapshot, judge it, compare with the alerts that fire. It does no I/O of its own."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable

from tunectl.cpulist import CpuSet
from tunectl.model import HostId
from tunectl.monitor.alerts import Alerts
from tunectl.monitor.model import Alert, Condition, Freshness, Snapshot, Status
from tunectl.monitor.moments import told

RECENT = 20  # transitions that are kept to be shown
_UNNAMED = HostId()


class Cycle:
    """The snapshot, the rules and the alerts of one host, joined."""

    def __init__(
        self,
        take: Callable[[], Snapshot],
        judge: Callable[[Snapshot], Iterable[Condition]],
        alerts: Alerts,
        *,
        isolated: CpuSet = frozenset(),
        housekeeping: CpuSet = frozenset(),
        host: HostId = _UNNAMED,
    ) -> None:
        self._take, self._judge, self._alerts = take, judge, alerts
        self._whose = isolated, housekeeping, host
        self._recent: deque[Alert] = deque(maxlen=RECENT)
        self._cycles = 0

    @property
    def is_in_doubt(self) -> bool:
        """Is the next look worth more than to wait for its time?"""
        return self._alerts.is_in_doubt

    def step(self) -> tuple[Status, tuple[Alert, ...]]:
        """One cycle: everything there is to show, and the alerts that fired or were resolved in it."""
        wall, cpu = time.perf_counter(), time.thread_time()
        snapshot = self._take()
        conditions = tuple(self._judge(snapshot))
        transitions = self._alerts.step(snapshot, conditions)
        self._recent.extendleft(transitions)
        self._cycles += 1
        known = Counter(sample.freshness for sample in snapshot.samples)
        own = {
            "cycles_total": float(self._cycles),
            "cycle_seconds": time.perf_counter() - wall,
            "cycle_cpu_seconds": time.thread_time() - cpu,
            "cpu_seconds_total": time.process_time(),
            **{f"samples_{freshness.value.replace('-', '_')}": float(known[freshness]) for freshness in Freshness},
        }
        firing, recent = (
            tuple(told(alert, snapshot.moment) for alert in alerts) for alerts in (self._alerts.firing, self._recent)
        )
        return Status(snapshot, conditions, firing, recent, own, *self._whose), transitions
