"""The loop: on its grid, woken by events and signals, and ended by nothing but the signal that is meant to."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.monitor.parts import alert, opener, snapshot
from tunectl.errors import TunectlError, UsageError
from tunectl.monitor.daemon import Daemon, Opener
from tunectl.monitor.model import Alert, AlertState, Sample, Snapshot, Status
from tunectl.monitor.notify import Notify
from tunectl.monitor.repair import Repair
from tunectl.monitor.state import rows_of


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    """The test's process gets its signals back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class Rig:
    """A daemon of real parts, and everything it did."""

    def __init__(self, source: Callable[[], Snapshot] | None = None, **changed: Any) -> None:
        self.told: list[Alert] = []
        self.said: list[str] = []
        self.closed: list[str] = []
        self.saved: list[Mapping[str, Any]] = []
        self.source = source or (lambda: snapshot(0))
        self.changed = changed
        self.prepare: Callable[[], Opener] = self.opener
        self.daemon = Daemon(
            lambda: self.prepare(), save=self.saved.append, notify=changed.pop("notify", None), say=self.said.append
        )

    def opener(self) -> Opener:
        return opener(self.source, self.told, self.closed, **self.changed)

    def run(self, seconds: float = 0.2, remembered: Mapping[str, Any] | None = None) -> None:
        self.daemon.waker.catch()
        self.daemon.run(remembered or {}, seconds)

    def later(self, seconds: float, work: Callable[[], object]) -> threading.Timer:
        timer = threading.Timer(seconds, work)
        timer.start()
        return timer


def counted(values: Iterator[int]) -> Callable[[], Snapshot]:
    return lambda: snapshot(next(values))


def test_each_edge_is_told_and_saved_once() -> None:
    rig = Rig(counted(itertools.chain([0, 0, 1, 1, 1], itertools.repeat(0))))
    rig.run(0.5)
    assert [alert.status for alert in rig.told] == [AlertState.FIRING, AlertState.RESOLVED]
    fired, firing = [["ThermalThrottle", "package0"]], rows_of([alert()])
    over = rows_of([alert()._replace(status=AlertState.RESOLVED)])
    # Before anybody is told, and after; and at the end.
    assert rig.saved == [
        {"firing": fired, "untold": firing},
        {"firing": fired},
        {"firing": [], "untold": over},
        {"firing": []},
        {"firing": []},
    ]
    assert (rig.closed, rig.said) == (["closed"], [])


def test_what_fired_before_a_restart_does_not_fire_again_and_is_resolved() -> None:
    rig = Rig(counted(itertools.chain([1, 1, 1], itertools.repeat(0))))
    rig.run(0.5, {"firing": [["ThermalThrottle", "package0"]]})
    assert [alert.status for alert in rig.told] == [AlertState.RESOLVED]


def test_killed_before_anybody_was_told() -> None:
    """The state knows of the alert, nobody else does: it is told as the event it was."""
    rig = Rig(lambda: snapshot(1))
    rig.run(0.1, {"firing": [["ThermalThrottle", "package0"]], "untold": [*rows_of([alert()]), {"rule": "x"}, 1]})
    assert rig.told == [alert()]
    assert rig.saved[0] == {"firing": [["ThermalThrottle", "package0"]]}


def test_the_grid_does_not_drift() -> None:
    at: list[float] = []

    def slow() -> Snapshot:
        at.append(time.monotonic())
        time.sleep(0.015)
        return snapshot(0)

    rig = Rig(slow, interval_s=0.05)
    rig.run(1.0)
    assert 15 <= len(at) <= 21
    offsets = [(one - at[0]) % 0.05 for one in at[1:]]
    assert sorted(min(offset, 0.05 - offset) for offset in offsets)[len(offsets) // 2] < 0.02


def test_turns_that_were_missed_are_left_out() -> None:
    calls = itertools.count()
    rig = Rig(lambda: time.sleep(0.3 if next(calls) == 1 else 0) or snapshot(0), interval_s=0.05)  # type: ignore[func-returns-value]
    rig.run(0.6)
    assert next(calls) <= 10  # not twelve, caught up in a burst


def test_an_event_is_looked_at_soon_and_a_burst_once() -> None:
    calls = itertools.count()
    rig = Rig(lambda: snapshot(next(calls) * 0), interval_s=60)
    timers = [rig.later(0.1 + number / 100, rig.daemon.waker.poke) for number in range(10)]
    rig.run(0.8)
    assert next(calls) == 2  # the first one, and one for the burst
    assert not any(timer.is_alive() for timer in timers)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(number: int) -> None:
    rig = Rig(interval_s=60)
    rig.later(0.1, lambda: os.kill(os.getpid(), number))
    began = time.monotonic()
    rig.run(30)
    assert time.monotonic() - began < 5
    assert rig.closed == ["closed"]
    assert rig.saved == [{"firing": []}]


def test_reload_keeps_what_fires_and_closes_the_old_before_the_new(tmp_path: Path) -> None:
    rig = Rig(lambda: snapshot(1))
    rig.later(0.1, lambda: os.kill(os.getpid(), signal.SIGHUP))
    rig.run(0.4)
    assert [alert.status for alert in rig.told] == [AlertState.FIRING]
    assert rig.said == ["reload: the host file was read anew"]
    assert rig.closed == ["closed", "closed"]


def test_a_bad_host_file_keeps_the_old_settings() -> None:
    rig = Rig(lambda: snapshot(1))

    def spoil() -> None:
        def refuse() -> Opener:
            raise UsageError("/etc/tunectl/host.toml: isolated: no CPU is named", "this host has CPUs 0-3")

        rig.prepare = refuse
        os.kill(os.getpid(), signal.SIGHUP)

    rig.later(0.1, spoil)
    rig.run(0.4)
    assert rig.said == [
        "reload: /etc/tunectl/host.toml: isolated: no CPU is named (this host has CPUs 0-3): "
        "the old settings stay in force"
    ]
    assert rig.closed == ["closed"]


def test_settings_that_cannot_be_opened_give_way_to_the_old_ones() -> None:
    rig = Rig(lambda: snapshot(1))

    def spoil() -> None:
        def refuse(remembered: Mapping[str, Any]) -> Any:
            raise TunectlError("port 9750 is taken")

        rig.prepare = lambda: refuse
        os.kill(os.getpid(), signal.SIGHUP)

    rig.later(0.1, spoil)
    rig.run(0.4)
    assert rig.said == ["reload: port 9750 is taken: the old settings stay in force"]
    assert [alert.status for alert in rig.told] == [AlertState.FIRING]
    assert rig.closed == ["closed", "closed"]


def test_a_part_that_fails_is_said_once_and_ends_nothing() -> None:
    broken = itertools.count()

    def show(status: Status) -> None:
        if next(broken) < 5:
            raise OSError(28, "No space left on device")

    def tell(alerts: object) -> None:
        raise ValueError("our fault")

    shown: list[Status] = []
    rig = Rig(lambda: snapshot(1), shows={"textfile": show, "other": shown.append}, tells={"webhook": tell})
    rig.run(0.4)
    assert rig.said == [
        "webhook: ValueError: our fault",
        "textfile: [Errno 28] No space left on device",
        "textfile: works again",
    ]
    assert len(shown) > 5


def test_a_state_that_cannot_be_saved_is_said_once_and_tried_again() -> None:
    rig = Rig(lambda: snapshot(1))
    tries = itertools.count()

    def save(content: Mapping[str, Any]) -> None:
        if next(tries) < 3:
            raise TunectlError("cannot save alerts.json: No space left on device")
        rig.saved.append(content)

    rig.daemon._save = save
    rig.run(0.3)
    assert rig.said == ["cannot save alerts.json: No space left on device", "state: works again"]
    assert rig.saved[0] == {"firing": [["ThermalThrottle", "package0"]]}


def test_systemd_is_told_and_the_watchdog_only_by_a_healthy_loop(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sick = threading.Event()

        def source() -> Snapshot:
            if sick.is_set():
                raise ValueError("our fault")
            return snapshot(0)

        rig = Rig(source, notify=Notify(str(tmp_path / "notify"), 0.1))
        rig.later(0.4, sick.set)
        rig.later(0.8, lambda: os.kill(os.getpid(), signal.SIGTERM))
        rig.run(5)
        sock.setblocking(False)
        got = []
        try:
            while True:
                got.append(sock.recv(4096).decode())
        except BlockingIOError:
            pass
    assert got[0] == "READY=1\nSTATUS=nothing fires; 2 isolated CPUs watched"
    assert got[-1] == "STOPPING=1\nSTATUS=SIGTERM came"
    pings = [one for one in got if one.startswith("WATCHDOG=1")]
    assert 5 <= len(pings) <= 10  # for 0.4 s, every 0.05 s
    assert rig.said == ["the cycle failed: ValueError: our fault"]


def test_a_long_interval_does_not_starve_the_watchdog(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        rig = Rig(notify=Notify(str(tmp_path / "notify"), 0.2), interval_s=60)
        rig.run(0.55)
        sock.setblocking(False)
        got = []
        try:
            while True:
                got.append(sock.recv(4096))
        except BlockingIOError:
            pass
    assert sum(one.startswith(b"WATCHDOG=1") for one in got) >= 5


def test_a_drifted_knob_asks_for_repair_and_nothing_else_does(tmp_path: Path) -> None:
    drifted = Snapshot(0.0, "", (Sample("knob", "irq.affinity[42]", 1, "drift"),))
    rig = Rig(lambda: drifted, repair=Repair(str(tmp_path)))
    rig.run(0.1)
    assert (tmp_path / "repair-request").exists()
    assert rig.said == ["repair: asked for apply, because of KnobDrift[irq.affinity[42]]"]
    (tmp_path / "repair-request").unlink()
    Rig(lambda: snapshot(1), repair=Repair(str(tmp_path))).run(0.1)
    Rig(lambda: drifted).run(0.1)  # off by default
    assert not (tmp_path / "repair-request").exists()
