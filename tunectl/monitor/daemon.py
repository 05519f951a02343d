"""The monitor's loop: cycles on a fixed grid, at once after a device event, and an orderly reload and end.

Nothing that goes wrong in one part ends the loop: a sink, the state directory, a source. What goes wrong is said
once, and once more when it is over.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tunectl.errors import TunectlError
from tunectl.monitor.complaints import Complaints
from tunectl.monitor.cycle import Cycle
from tunectl.monitor.model import Alert, Severity, Status
from tunectl.monitor.notify import Notify
from tunectl.monitor.repair import Repair
from tunectl.monitor.state import edges_of, rows_of
from tunectl.monitor.wake import RELOADING, STOPPING, Waker, now_s

DEBOUNCE_S = 0.2  # a NIC announces its queues one by one
LONGEST_BURST_S = 1.0


class Watch(NamedTuple):
    """What one host file asks for, opened: built at the start, and anew by each reload."""

    cycle: Cycle
    interval_s: float
    remember: Callable[[], Mapping[str, Any]]  # the alerts, as they are to be saved
    shows: Mapping[str, Callable[[Status], None]]  # exporters, by name
    tells: Mapping[str, Callable[[Sequence[Alert]], None]]  # notifiers, by name
    close: Callable[[], None]
    repair: Repair | None = None


Opener = Callable[[Mapping[str, Any]], Watch]  # is handed what the alerts remember


class Daemon:
    """Runs one Watch after the other, until a signal or the time ends it."""

    def __init__(
        self,
        prepare: Callable[[], Opener],
        *,
        save: Callable[[Mapping[str, Any]], None],
        notify: Notify | None = None,
        say: Callable[[str], None] = print,
    ) -> None:
        """`prepare` reads and checks the host file, and touches nothing: TunectlError keeps what there is."""
        self._prepare, self._save, self._notify = prepare, save, notify or Notify()
        self._say, self._complaints = say, Complaints(say)
        self.waker = Waker()
        self.status: Status | None = None
        self.fired = 0
        self._dirty = False
        self._healthy = False
        self._status = ""
        self._pinged_s = -1e9

    def run(self, remembered: Mapping[str, Any], duration_s: float | None = None) -> None:
        """Returns when SIGTERM or SIGINT came, or after `duration_s`. TunectlError where it cannot begin."""
        self._opener = self._prepare()
        self._watch = self._opener(remembered)
        end = None if duration_s is None else now_s() + duration_s
        why = "the time is over"
        try:
            if untold := edges_of(remembered.get("untold")):
                self._tell(untold)
                self._dirty = True
            self._cycle()
            self._notify.ready(self._status)
            why = self._loop(end) or why
        finally:
            self._notify.stopping(why)
            self._remember()
            self._watch.close()
            self.waker.close()

    def _loop(self, end: float | None) -> str:
        grid = now_s()
        due, burst = grid + self._watch.interval_s, None
        while True:
            now = now_s()
            if now >= due:
                self._cycle()
                burst, now = None, now_s()
                # Turns that were slept through, or took too long, are left out: the grid stays.
                grid += (now - grid) // self._watch.interval_s * self._watch.interval_s
                due = grid + self._watch.interval_s
            self._ping(now)
            if end is not None and now >= end:
                return ""
            signals, event = self.waker.sleep(self._until(now, due, end))
            if signals & set(STOPPING):
                return f"{signal.Signals(min(signals & set(STOPPING))).name} came"
            if RELOADING in signals:
                self._reload()
                grid = due = now_s()
            if event:
                burst = now_s() if burst is None else burst
                due = min(due, now_s() + DEBOUNCE_S, burst + LONGEST_BURST_S)

    def _until(self, now: float, due: float, end: float | None) -> float:
        times = [due]
        times += [end] if end is not None else []
        times += [self._pinged_s + self._notify.ping_s] if self._notify.ping_s and self._healthy else []
        return max(0.0, min(times) - now)

    def _cycle(self) -> None:
        try:
            self.status, transitions = self._watch.cycle.step()
        except Exception as error:  # a fault of ours: systemd's watchdog ends it where it stays
            self._healthy = False
            self._complaints.about("cycle", f"the cycle failed: {type(error).__name__}: {error}")
            return
        self._healthy = True
        self._complaints.over("cycle")
        self.fired += len(transitions)
        self._dirty |= bool(transitions)
        if transitions:
            self._remember(transitions)
            self._tell(transitions)
        if self._dirty:
            self._remember()
        for name, show in self._watch.shows.items():
            self._guarded(name, lambda show=show, status=self.status: show(status))  # type: ignore[misc]
        if self._watch.repair:
            self._guarded("repair", lambda: self._ask(self._watch.repair))
        self._status = _status(self.status)

    def _tell(self, transitions: Sequence[Alert]) -> None:
        for name, tell in self._watch.tells.items():
            self._guarded(name, lambda tell=tell: tell(transitions))  # type: ignore[misc]

    def _ask(self, repair: Repair | None) -> None:
        if repair and self.status and (said := repair.consider(self.status.firing, now_s())):
            self._say(said)

    def _guarded(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            known = isinstance(error, TunectlError | OSError)
            self._complaints.about(name, f"{name}: {error}" if known else f"{name}: {type(error).__name__}: {error}")
        else:
            self._complaints.over(name)

    def _remember(self, untold: Sequence[Alert] = ()) -> None:
        """Before anybody is told, and after: killed between the two, the same edges are told again, as the same event.

        Told first and saved later, a restart would find them anew, at another time: another event for each receiver.
        """
        try:
            self._save({**self._watch.remember(), **({"untold": rows_of(untold)} if untold else {})})
        except TunectlError as error:
            self._complaints.about("state", str(error))
        else:
            self._dirty = bool(untold)
            self._complaints.over("state")

    def _ping(self, now: float) -> None:
        """Only after a cycle that went well: a loop that turns and sees nothing is not alive."""
        told, status = now >= self._pinged_s + (self._notify.ping_s or 60.0), self._status
        if self._healthy and told:
            self._pinged_s = now
            self._notify.send(**({"WATCHDOG": 1} if self._notify.ping_s else {}), STATUS=status)

    def _reload(self) -> None:
        self._notify.reloading()
        try:
            opener = self._prepare()
        except TunectlError as error:
            self._say(f"reload: {error}: the old settings stay in force")
        else:
            self._swap(opener)
            self._cycle()
        self._notify.ready(self._status)

    def _swap(self, opener: Opener) -> None:
        """The old sinks are closed before the new ones open: they may be the same port and the same spool."""
        remembered = self._watch.remember()
        self._watch.close()
        try:
            self._watch, self._opener = opener(remembered), opener
            self._say("reload: the host file was read anew")
        except TunectlError as error:
            self._say(f"reload: {error}: the old settings stay in force")
            self._watch = self._opener(remembered)


def _status(status: Status) -> str:
    """One line for `systemctl status`."""
    worst = [alert.identity for severity in Severity for alert in status.firing if alert.severity is severity]
    more = f" and {len(worst) - 2} more" if len(worst) > 2 else ""
    said = f"{len(worst)} firing: {', '.join(worst[:2])}{more}" if worst else "nothing fires"
    return f"{said}; {len(status.isolated)} isolated CPUs watched"
