"""The monitor's loop: cycles on a fixed grid, at once after a device event, and an orderly reload and end.

Nothing that goes wrong in one part ends the loop: a receiver, the state directory, a source. What goes wrong is said
once, and once more when it is over.
"""

import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tunectl.errors import TunectlError
from tunectl.monitor.model import Alert, Severity, Snapshot, Status
from tunectl.monitor.notify import Notify
from tunectl.monitor.repair import Repair
from tunectl.monitor.wakeup import RELOADING, STOPPING, Wakeup
from tunectl.monitor.watcher import Cycle
from tunectl.wording import few

DEBOUNCE_S = 0.2  # a NIC announces its queues one by one


class Watch(NamedTuple):
    """What one host file asks for, opened: built at the start, and again by each reload."""

    cycle: Cycle
    interval_s: float
    remember: Callable[[], Mapping[str, Any]]  # the state of the alerts, for the next Watch
    shows: Mapping[str, Callable[[Status], None]]  # exporters, by name
    notify: Callable[[Sequence[Alert]], None]  # keeps transitions, with the state, for every receiver
    close: Callable[[], None]
    repair: Repair | None = None


Opener = Callable[[Mapping[str, Any]], Watch]  # is handed what the alerts remember


class FaultLog:
    """One line when a part begins to fail, one when it fails in another way, one when it works again."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._open: dict[str, str] = {}

    def fails(self, part: str, text: str) -> None:
        """This part fails, for this reason."""
        line = " ".join(text.split())
        if self._open.get(part) != line:
            self._open[part] = line
            self._say(line)

    def works(self, part: str) -> None:
        """This part works."""
        if self._open.pop(part, None) is not None:
            self._say(f"{part}: works again")


class Daemon:
    """Runs one Watch after the other, until a signal or the time ends it."""

    def __init__(
        self,
        prepare: Callable[[], Opener],
        *,
        systemd: Notify | None = None,
        wakeup: Wakeup | None = None,
        reloads: bool = True,
        say: Callable[[str], None] = print,
    ) -> None:
        """`prepare` reads and checks the host file, and touches nothing: TunectlError keeps what there is.

        `reloads`: SIGHUP reads the host file again; otherwise a terminal has gone, and the loop ends.
        """
        self._prepare, self._systemd = prepare, systemd or Notify()
        self._ending = set(STOPPING) if reloads else {*STOPPING, RELOADING}
        self._say, self._faults = say, FaultLog(say)
        self.wakeup = wakeup or Wakeup()
        self.first: Snapshot | None = None
        self.status: Status | None = None
        self.fired = 0
        self._healthy = False
        self._status = ""
        self._pinged_s = -1e9

    def run(self, remembered: Mapping[str, Any], duration_s: float | None = None) -> None:
        """Returns when a signal that ends it came, or after `duration_s`. TunectlError where it cannot begin."""
        self._opener = self._prepare()
        self._watch = self._opener(remembered)
        end = None if duration_s is None else self.wakeup.now_s() + duration_s
        why = "the time is over"
        try:
            self._cycle()
            self._systemd.ready(self._status)
            why = self._loop(end) or why
        finally:
            self._systemd.stopping(why)
            self._watch.close()
            self.wakeup.close()

    def _loop(self, end: float | None) -> str:
        now_s = self.wakeup.now_s
        grid = now_s()
        due = grid + self._watch.interval_s
        while True:
            now = now_s()
            if now >= due:
                self._cycle()
                now = now_s()
                # Turns that were slept through, or took too long, are left out: the grid stays.
                interval = self._watch.interval_s
                grid += (now - grid) // interval * interval
                due = grid + interval
                if self._watch.cycle.is_in_doubt:  # a core that may be slow: until the second look nobody is told
                    due = min(due, now + interval / 2)
            self._ping(now)
            if end is not None and now >= end:
                return ""
            signals, event = self.wakeup.sleep(self._until(now, due, end))
            if ending := signals & self._ending:
                return f"{signal.Signals(min(ending)).name} came"
            if RELOADING in signals:
                self._reload()
                grid = due = now_s()
            if event:
                due = min(due, now_s() + DEBOUNCE_S)

    def _until(self, now: float, due: float, end: float | None) -> float:
        times = [due]
        times += [end] if end is not None else []
        times += [self._pinged_s + self._systemd.ping_s] if self._systemd.ping_s and self._healthy else []
        return max(0.0, min(times) - now)

    def _cycle(self) -> None:
        try:
            self.status, transitions = self._watch.cycle.step()
        except Exception as error:  # a fault of ours: systemd's watchdog ends it where it stays
            self._healthy = False
            self._faults.fails("cycle", f"the cycle failed: {type(error).__name__}: {error}")
            return
        self._healthy = True
        self.first = self.first or self.status.snapshot
        self._faults.works("cycle")
        self.fired += len(transitions)
        if transitions:
            self._guarded("alerts", self._watch.notify, transitions)
        for name, show in self._watch.shows.items():
            self._guarded(name, show, self.status)
        if self._watch.repair:
            self._guarded("repair", self._repair, self._watch.repair, self.status)
        self._status = _status(self.status)

    def _repair(self, repair: Repair, status: Status) -> None:
        if asked := repair.consider(status.firing, self.wakeup.now_s()):
            self._say(asked)

    def _guarded(self, part: str, work: Callable[..., None], *given: object) -> None:
        try:
            work(*given)
        except Exception as error:
            known = isinstance(error, TunectlError | OSError)
            self._faults.fails(part, f"{part}: {error}" if known else f"{part}: {type(error).__name__}: {error}")
        else:
            self._faults.works(part)

    def _ping(self, now: float) -> None:
        """Only after a cycle that went well: a loop that turns and sees nothing is not alive."""
        ping_s = self._systemd.ping_s
        if self._healthy and now >= self._pinged_s + (ping_s or 60.0):
            self._pinged_s = now
            self._systemd.send(**({"WATCHDOG": 1} if ping_s else {}), STATUS=self._status)

    def _reload(self) -> None:
        self._systemd.reloading()
        try:
            opener = self._prepare()
        except TunectlError as error:
            self._say(f"reload: {error}: the old settings stay in force")
        else:
            self._swap(opener)
            self._cycle()
        self._systemd.ready(self._status)

    def _swap(self, opener: Opener) -> None:
        """The old receivers are closed before the new ones open: they may have the same port and the same queue."""
        remembered = self._watch.remember()
        self._watch.close()
        try:
            self._watch, self._opener = opener(remembered), opener
            self._say("reload: the host file was read again")
        except TunectlError as error:
            self._say(f"reload: {error}: the old settings stay in force")
            self._watch = self._opener(remembered)


def _status(status: Status) -> str:
    """One line for `systemctl status`."""
    worst = [alert.identity for severity in Severity for alert in status.firing if alert.severity is severity]
    said = f"{len(worst)} firing: {few(worst, 2)}" if worst else "nothing fires"
    return f"{said}; {len(status.isolated)} isolated CPUs watched"
