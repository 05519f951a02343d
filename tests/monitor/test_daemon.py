"""The loop: on its grid, woken by events and signals, and ended by nothing but the signal that is meant to.

Time is the test's own: no test here waits, but those of the real wakeup, for some milliseconds.
"""

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.monitor.parts import RULES, DrivenWakeup, judge, opener, snapshot
from tests.monitor.process import Systemd
from tunectl.errors import TunectlError, UsageError
from tunectl.monitor.alerts import Alerts
from tunectl.monitor.daemon import Daemon, Opener
from tunectl.monitor.model import Alert, AlertState, Sample, Snapshot, Status
from tunectl.monitor.notify import Notify
from tunectl.monitor.repair import Repair
from tunectl.monitor.wakeup import RELOADING, STOPPING, Wakeup


class Rig:
    """A daemon of real parts, and everything it did."""

    def __init__(self, source: Callable[[], Snapshot] | None = None, **changed: Any) -> None:
        self.told: list[Alert] = []
        self.said: list[str] = []
        self.closed: list[str] = []
        self.looks: list[float] = []  # when, in seconds since the begin
        self.source = source or (lambda: snapshot(0))
        self.time = DrivenWakeup()
        self.prepare: Callable[[], Opener] = self.opener
        systemd, reloads = changed.pop("systemd", None), changed.pop("reloads", True)
        self.changed = changed
        self.daemon = Daemon(
            lambda: self.prepare(), systemd=systemd, wakeup=self.time, reloads=reloads, say=self.said.append
        )

    def opener(self) -> Opener:
        return opener(self.look, self.told, self.closed, **self.changed)

    def look(self) -> Snapshot:
        self.looks.append(self.took_s)
        return self.source()

    def spend(self, seconds: float) -> Snapshot:
        """A look that takes so long."""
        self.time.spend(seconds)
        return snapshot(0)

    def run(self, seconds: float = 10.0, remembered: Mapping[str, Any] | None = None) -> None:
        self.daemon.run(remembered or {}, seconds)

    @property
    def took_s(self) -> float:
        return self.time.clock_s - self.time.began_s


@pytest.fixture
def systemd(tmp_path: Path) -> Systemd:
    return Systemd(tmp_path / "notify")


def counted(values: Iterator[int]) -> Callable[[], Snapshot]:
    return lambda: snapshot(next(values))


def test_each_transition_is_told_once() -> None:
    rig = Rig(counted(itertools.chain([0, 0, 1, 1, 1], itertools.repeat(0))))
    rig.run()
    assert [(one.identity, one.status) for one in rig.told] == [
        ("ThermalThrottle[package0]", AlertState.FIRING),
        ("ThermalThrottle[package0]", AlertState.RESOLVED),
    ]
    assert (rig.closed, rig.said) == (["closed"], [])
    assert rig.took_s == 10


def test_what_fired_before_a_restart_does_not_fire_again_and_is_resolved() -> None:
    rig = Rig(counted(itertools.chain([1, 1, 1], itertools.repeat(0))))
    before = Alerts(RULES)
    before.step(snapshot(1), judge(snapshot(1)))
    rig.run(10, before.save())
    assert [alert.status for alert in rig.told] == [AlertState.RESOLVED]


def test_the_grid_does_not_drift() -> None:
    rig = Rig(lambda: rig.spend(0.3))
    rig.run(20)
    # The grid begins when the first look is over.
    assert rig.looks == pytest.approx([0, *(0.3 + second for second in range(1, 20))])


def test_turns_that_were_missed_are_left_out() -> None:
    rig = Rig(lambda: rig.spend(6.4 * (len(rig.looks) == 2)))
    rig.run(12)
    assert rig.looks == pytest.approx([0, 1, 8, 9, 10, 11, 12])  # caught up in no burst, and still on the grid


@pytest.mark.parametrize(
    ("quantity", "looks"), [("package_throttles", [0, 1, 2, 2.5, 3, 4, 5]), ("knob", [0, 1, 2, 3, 4, 5])]
)
def test_a_doubt_has_one_more_look_in_half_the_time(quantity: str, looks: list[float]) -> None:
    """Only when it begins, and only of a rule that says so; a doubt that stays has the looks that all have."""
    values = itertools.chain([0, 0], itertools.repeat(-1))
    rig = Rig(lambda: snapshot(next(values), quantity=quantity))
    rig.run(5)
    assert rig.looks == pytest.approx(looks)
    assert rig.told == []


def test_an_event_is_looked_at_soon_and_a_burst_once() -> None:
    rig = Rig(interval_s=60)
    for number in range(10):
        rig.time.after(5 + number / 100, rig.time.poke)
    rig.run(30)
    assert rig.looks == pytest.approx([0, 5.2])  # DEBOUNCE_S after its first


@pytest.mark.parametrize(("number", "reloads"), [*((number, True) for number in STOPPING), (RELOADING, False)])
def test_a_signal_ends_it_cleanly(number: signal.Signals, reloads: bool) -> None:
    rig = Rig(interval_s=60, reloads=reloads)
    rig.time.after(7, number)
    rig.run(300)
    assert rig.took_s == 7
    assert rig.closed == ["closed"]


def test_reload_keeps_what_fires_and_closes_the_old_before_the_new() -> None:
    rig = Rig(lambda: snapshot(1))
    rig.time.after(3.5, RELOADING)
    rig.run()
    assert [alert.status for alert in rig.told] == [AlertState.FIRING]
    assert rig.said == ["reload: the host file was read again"]
    assert rig.closed == ["closed", "closed"]


def test_a_bad_host_file_keeps_the_old_settings() -> None:
    rig = Rig(lambda: snapshot(1))

    def refuse() -> Opener:
        raise UsageError("/etc/tunectl/host.toml: isolated: no CPU is named", "this host has CPUs 0-3")

    rig.time.after(3, lambda: setattr(rig, "prepare", refuse))
    rig.time.after(3.5, RELOADING)
    rig.run()
    assert rig.said == [
        "reload: /etc/tunectl/host.toml: isolated: no CPU is named (this host has CPUs 0-3): "
        "the old settings stay in force"
    ]
    assert rig.closed == ["closed"]


def test_settings_that_cannot_be_opened_give_way_to_the_old_ones() -> None:
    rig = Rig(lambda: snapshot(1))

    def refuse(remembered: Mapping[str, Any]) -> Any:
        raise TunectlError("port 9750 is taken")

    rig.time.after(3, lambda: setattr(rig, "prepare", lambda: refuse))
    rig.time.after(3.5, RELOADING)
    rig.run()
    assert rig.said == ["reload: port 9750 is taken: the old settings stay in force"]
    assert [alert.status for alert in rig.told] == [AlertState.FIRING]
    assert rig.closed == ["closed", "closed"]


def test_a_part_that_fails_is_said_once_and_ends_nothing() -> None:
    broken = itertools.count()

    def show(status: Status) -> None:
        if next(broken) < 5:
            raise OSError(28, "No space left on device")

    def notify(transitions: Sequence[Alert]) -> None:
        raise ValueError("our fault")

    shown: list[Status] = []
    rig = Rig(lambda: snapshot(1), shows={"textfile": show, "other": shown.append}, notify=notify)
    rig.run()
    assert rig.said == [
        "alerts: ValueError: our fault",
        "textfile: [Errno 28] No space left on device",
        "textfile: works again",
    ]
    assert len(shown) == 11


def test_systemd_is_told_and_the_watchdog_only_by_a_healthy_loop(systemd: Systemd) -> None:
    sick = threading.Event()

    def source() -> Snapshot:
        if sick.is_set():
            raise ValueError("our fault")
        return snapshot(0)

    rig = Rig(source, systemd=Notify(str(systemd.path), 4.0))
    rig.time.after(10.5, sick.set)
    rig.time.after(30, signal.SIGTERM)
    rig.run(500)
    told = systemd.read()
    assert told[0] == "READY=1\nSTATUS=nothing fires; 2 isolated CPUs watched"
    assert told[-1] == "STOPPING=1\nSTATUS=SIGTERM came"
    assert sum(one.startswith("WATCHDOG=1") for one in told) == 6  # for 10.5 s, each 2 s, and at once
    assert rig.said == ["the cycle failed: ValueError: our fault"]


def test_a_long_interval_does_not_starve_the_watchdog(systemd: Systemd) -> None:
    rig = Rig(systemd=Notify(str(systemd.path), 20), interval_s=60)
    rig.run(55)
    assert sum(one.startswith("WATCHDOG=1") for one in systemd.read()) == 6
    assert rig.time.sleeps < 10


def test_a_drifted_knob_asks_for_repair_and_nothing_else_does(tmp_path: Path) -> None:
    drifted = Snapshot(0.0, "", (Sample("knob", "irq.affinity[42]", 1, "drift"),))
    rig = Rig(lambda: drifted, repair=Repair(str(tmp_path)))
    rig.run()
    assert (tmp_path / "repair-request").exists()
    assert rig.said == ["repair: asked for apply, because of KnobDrift[irq.affinity[42]]"]
    (tmp_path / "repair-request").unlink()
    Rig(lambda: snapshot(1), repair=Repair(str(tmp_path))).run()
    Rig(lambda: drifted).run()  # off by default
    assert not (tmp_path / "repair-request").exists()


# --- the real wakeup


@pytest.fixture
def wakeup() -> Iterator[Wakeup]:
    """This process gets its signals back."""
    before = {number: signal.getsignal(number) for number in (*STOPPING, RELOADING)}
    wakeup = Wakeup()
    wakeup.catch((*STOPPING, RELOADING))
    yield wakeup
    wakeup.close()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [*STOPPING, RELOADING])
def test_a_signal_ends_a_sleep(wakeup: Wakeup, number: signal.Signals) -> None:
    os.kill(os.getpid(), number)
    assert wakeup.sleep(30) == ({number}, False)
    assert wakeup.sleep(0) == (set(), False)


def test_another_thread_ends_a_sleep(wakeup: Wakeup) -> None:
    thread = threading.Timer(0.01, wakeup.poke)
    thread.start()
    assert wakeup.sleep(30) == (set(), True)
    thread.join()


def test_a_sleep_is_never_shorter_than_it_was_asked_to_be(wakeup: Wakeup) -> None:
    began_s, began = wakeup.now_s(), time.monotonic()
    assert wakeup.sleep(0.0103) == (set(), False)
    assert wakeup.now_s() - began_s >= 0.0103
    assert time.monotonic() - began >= 0.0103
