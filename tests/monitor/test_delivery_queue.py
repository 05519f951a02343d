"""The delivery queue: order, bounds, restarts, kill -9, full disks; each loss said and counted."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.monitor.delivering import Process, until
from tests.monitor.receivers.receiver import receiving
from tests.monitor.receivers.samples import HOST, fired, over, status
from tunectl.address import DeliveryError
from tunectl.hostfile.shape import Webhook
from tunectl.monitor.delivery_queue import Backoff, DeliveryQueue, DeliveryQueues, first_to_go
from tunectl.monitor.model import Alert
from tunectl.monitor.moments import moment_now, shown_by, timestamp
from tunectl.monitor.receivers import Receiver
from tunectl.monitor.receivers.message import delivery_id
from tunectl.monitor.receivers.webhook import open_webhook
from tunectl.monitor.store import FILE, Delivery, Store


class World:
    """A receiver and a clock in this process."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.taken: list[tuple[Alert, ...]] = []
        self.trouble: Exception | None = None
        self.tries = 0

    def deliver(self, alerts: Sequence[Alert]) -> None:
        self.tries += 1
        if self.trouble:
            raise self.trouble
        self.taken.append(tuple(alerts))

    def process(self, place: Path, most: int = 1000, **options: Any) -> Process:
        return Process(place, Receiver("them", self.deliver, **options), lambda: self.now_s, most=most)

    def run(self, process: Process, seconds: float) -> None:
        """Turns the clock by `seconds` and lets the queue do what it wants to do until then."""
        until_s = self.now_s + seconds
        while True:
            pause_s = process.step()
            if self.now_s + pause_s > until_s:
                break
            self.now_s += max(pause_s, 0.001)
        self.now_s = until_s

    @property
    def alerts(self) -> list[Alert]:
        return [alert for alerts in self.taken for alert in alerts]


@pytest.fixture
def world() -> World:
    return World()


def test_back_off_doubles_up_to_its_bound_less_by_chance() -> None:
    backoff = Backoff(1.0, 30.0)
    assert [backoff.delay_s(failures, 0.0) for failures in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]
    assert backoff.delay_s(3, 0.999) == pytest.approx(2, abs=0.01)
    assert backoff.delay_s(10**6, 0.0) == 30


def test_tries_are_rarer_and_what_was_told_is_said_once(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    process = world.process(tmp_path)
    world.trouble = DeliveryError("they answer 503")
    process.post([fired(), over(fired())])
    world.run(process, 300)
    assert 12 <= world.tries <= 15
    assert process.own("depth") == 2
    assert process.own("oldest_seconds") == 300
    assert caplog.text.count("they answer 503") == 1
    world.trouble = None
    world.run(process, 31)
    assert world.taken == [(fired(),), (over(fired()),)]
    assert "delivers again" in caplog.text
    assert process.own("failures_total") == world.tries - 2


def test_the_receivers_own_pause_is_kept(world: World, tmp_path: Path) -> None:
    process = world.process(tmp_path)
    world.trouble = DeliveryError("busy", after_s=100)
    process.post([fired()])
    world.run(process, 99)
    assert world.tries == 1
    world.run(process, 2)
    assert world.tries == 2


def test_what_is_refused_is_lost_aloud_and_holds_up_nobody(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    process = world.process(tmp_path)
    world.trouble = DeliveryError("400", retry=False)
    process.post([fired(1), fired(2)])
    process.step()
    world.trouble = None
    world.run(process, 1)
    assert world.alerts == [fired(2)]
    assert process.own("lost_total") == 1
    assert "lost FrequencyDrop[package1] firing (refused: 400)" in caplog.text


def test_a_receiver_may_give_up(world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    process = world.process(tmp_path, tries=3)
    world.trouble = DeliveryError("status 1")
    process.post([fired(1)])
    world.run(process, 100)
    assert (world.tries, process.own("lost_total"), process.own("depth")) == (3, 1, 0)
    assert "tried often enough" in caplog.text


def test_a_defect_of_a_receiver_says_no_secret_and_loses_nothing(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    process = world.process(tmp_path)
    world.trouble = ValueError("Invalid header value b'Bearer t0ken'")
    process.post([fired()])
    process.step()
    assert "ValueError in the receiver" in caplog.text
    assert "t0ken" not in caplog.text
    world.trouble = None
    world.run(process, 2)
    assert world.alerts == [fired()]


# --- bounds


def test_what_is_over_and_was_never_told_goes_first() -> None:
    entries = [
        Delivery("them", alert, 0) for alert in (over(fired(9)), fired(0), fired(1), over(fired(1)), over(fired(0)))
    ]
    assert first_to_go(entries) == [entries[2], entries[3]]
    assert first_to_go(entries[:3]) == [entries[0]]
    other = [Delivery("them", fired(0), 0), Delivery("them", over(fired(0, since="2026-11-21T08:00:00Z")), 0)]
    assert first_to_go(other) == other[:1], "a resolve of an earlier event is not this one's"


def test_a_full_queue(world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    process = world.process(tmp_path, most=10)
    world.trouble = DeliveryError("dead")
    still = [fired(number) for number in range(5)]
    process.post(still)
    for number in range(100, 140):
        process.post([fired(number)])
        process.post([over(fired(number))])
    assert process.own("depth") <= 10
    lost = process.own("lost_total")
    assert lost == caplog.text.count(": lost ") == 85 - process.own("depth")
    assert lost % 2 == 0
    world.trouble = None
    world.run(process, 60)
    assert world.alerts[:5] == still, "what still fires was kept"
    assert world.alerts[5:] == sorted(world.alerts[5:], key=lambda alert: int(alert.subject.removeprefix("package")))
    process.end()
    assert world.process(tmp_path).own("depth") == 0


def test_the_file_does_not_grow_while_nobody_listens(world: World, tmp_path: Path) -> None:
    process = world.process(tmp_path, most=10)
    world.trouble = DeliveryError("dead")
    for number in range(0, 1000, 5):
        process.post([fired(each) for each in range(number, number + 5)])
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 200_000
    world.trouble = None
    world.run(process, 60)
    assert world.alerts == [fired(number) for number in range(990, 1000)]


class Held:
    """A receiver whose first delivery hangs until `go_on`."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.taken: list[Alert] = []

    def deliver(self, alerts: Sequence[Alert]) -> None:
        self.begun.set()
        self.go_on.wait(60)
        self.taken.extend(alerts)

    def process(self, place: Path, *first: Alert, **options: Any) -> Process:
        """It is delivering the first of these."""
        process = Process(place, Receiver("them", self.deliver), **options)
        process.queue.start()
        process.post(first)
        assert self.begun.wait(60)
        return process


def test_what_is_being_delivered_is_not_dropped(tmp_path: Path) -> None:
    held = Held()
    process = held.process(tmp_path, fired(0), most=2)
    for number in range(1, 6):
        process.post([fired(number)])
    held.go_on.set()
    until(lambda: not process.own("depth"))
    process.end()
    assert held.taken == [fired(0), fired(5)]
    assert process.own("lost_total") == 4


def test_a_reload_while_a_delivery_hangs(tmp_path: Path) -> None:
    """What the old queue is delivering stays the first until it has an end; nothing is overtaken or comes twice."""
    held, now_s = Held(), [0.0]
    process = held.process(tmp_path, fired(0), fired(1), clock=lambda: now_s[0])
    process.queue.close(0.05)
    process.queue = new = DeliveryQueue(Receiver("them", held.deliver), process.store, clock=lambda: now_s[0])
    process.post([fired(2)])
    assert 0 < new.step() < 1, "it does not overtake"
    now_s[0] = 1.0
    held.go_on.set()
    while process.own("depth"):
        time.sleep(min(new.step(), 0.01))
    assert held.taken == [fired(0), fired(1), fired(2)]
    assert process.store.unsaved == []


def test_a_delivery_that_hangs_for_good_holds_up_the_queue_of_the_next_settings_for_a_while_only(
    world: World, tmp_path: Path
) -> None:
    old = world.process(tmp_path)
    old.post([fired(0), fired(1)])
    old.store.waiting("them")[0].is_busy = True  # in a thread that never comes back
    old.queue = DeliveryQueue(Receiver("them", world.deliver), old.store, clock=lambda: world.now_s)
    old.step = old.queue.step
    world.run(old, 10)
    assert world.alerts == []
    world.run(old, 10)
    assert world.alerts == [fired(1)]
    assert old.own("depth") == 1


# --- saying again what fires


def test_what_fires_is_said_again_and_ceases_with_its_resolve(world: World, tmp_path: Path) -> None:
    process = world.process(tmp_path, repeat_s=60)
    process.post([fired()])
    world.run(process, 59)
    assert world.taken == [(fired(),)]
    world.run(process, 2)
    assert world.taken == [(fired(),)] * 2
    process.show(status(firing=(fired(), fired(1))))
    world.run(process, 60)
    assert world.taken[2:] == [(fired(), fired(1))]
    process.post([over(fired())])
    process.show(status(firing=(fired(1),)))
    world.run(process, 61)
    assert world.taken[3:] == [(over(fired()),), (fired(1),)]
    process.post([over(fired(1))])
    world.run(process, 600)
    assert world.taken[5:] == [(over(fired(1)),)]


def test_a_pause_between_two_clocks_is_none_that_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    paused, really = [0.0], time.clock_gettime_ns

    def pausing(clock: int) -> int:
        ns = really(clock)
        if clock == time.CLOCK_REALTIME and not paused[0]:
            paused[0] = 1.5
            time.sleep(1.5)
        return ns

    right = moment_now()
    monkeypatch.setattr(time, "clock_gettime_ns", pausing)
    assert shown_by(moment_now(), right) == right.at
    assert paused[0]


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(hours=-1)])
def test_no_moment_of_a_clock_that_was_set_is_delivered(world: World, tmp_path: Path, ahead: timedelta) -> None:
    now = moment_now()
    wrong = msgspec.structs.replace(now, at=timestamp(datetime.fromisoformat(now.at) + ahead))
    process = world.process(tmp_path)
    process.post([msgspec.structs.replace(alert, began=wrong, came=wrong) for alert in (fired(), over(fired()))])
    world.run(process, 1)
    times = [datetime.fromisoformat(at) for alert in world.alerts for at in (alert.since, alert.at)]
    assert {abs(at - datetime.fromisoformat(now.at)) < timedelta(seconds=1) for at in times} == {True}
    assert len(times) == 4


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_resolve_by_a_clock_that_was_wrong_is_sent_again_once_it_is_set(
    world: World, tmp_path: Path, ahead: timedelta
) -> None:
    """Alertmanager takes an end that is still to come for no end. What fires anew meanwhile is not ended."""
    right = moment_now()
    wrong = msgspec.structs.replace(right, at=timestamp(datetime.fromisoformat(right.at) + ahead))
    shown = [wrong]
    receiver = Receiver("them", world.deliver, repeat_s=60)
    process = Process(tmp_path, receiver, lambda: world.now_s, moment=lambda: shown[-1])
    ended = [over(fired(number)) for number in range(2)]
    process.post([msgspec.structs.replace(alert, began=wrong, came=wrong) for alert in ended])
    world.run(process, 600)
    assert [alert.at for alert in world.alerts] == [wrong.at] * 2
    shown.append(right)
    process.post([fired(1)])
    process.show(status(firing=(fired(1),)))
    world.run(process, 600)
    assert [alert.at for alert in world.alerts[2:] if alert.identity == ended[0].identity] == [right.at]
    assert {alert.status.value for alert in world.alerts[2:] if alert.identity == ended[1].identity} == {"firing"}


def test_what_fires_after_a_restart_wakes_a_queue_that_has_nothing_to_do(world: World, tmp_path: Path) -> None:
    """Its thread sleeps for an hour, and Alertmanager resolves by itself what it does not hear of again."""
    told = threading.Event()
    process = Process(tmp_path, Receiver("them", lambda alerts: told.set(), repeat_s=60))
    process.start()
    thread = process.queue._thread
    assert thread
    while thread.ident is None or sys._current_frames()[thread.ident].f_code is not threading.Condition.wait.__code__:
        time.sleep(0.001)
    process.show(status(firing=(fired(),)))
    assert told.wait(60)
    process.end()


def test_what_fires_is_said_again_however_many_others_come(world: World, tmp_path: Path) -> None:
    """After a restart with one that fires and one that waits, the repeats are a minute apart, not after the last."""
    process = world.process(tmp_path, repeat_s=60)
    process.post([fired(9)])
    process.show(status(firing=(fired(0), fired(9))))
    world.run(process, 50)
    assert world.taken == [(fired(9),)]
    process.post([over(fired(9))])
    world.run(process, 9)
    assert world.taken[1:] == [(over(fired(9)),)]
    world.run(process, 1)
    assert world.taken[2:] == [(fired(0),)]


def test_a_repeat_that_failed_is_tried_again_by_the_back_off(world: World, tmp_path: Path) -> None:
    process = world.process(tmp_path, repeat_s=60)
    world.trouble = DeliveryError("503")
    process.show(status(firing=(fired(),)))
    world.run(process, 2.5)
    assert (world.tries, process.own("failures_total"), process.own("lost_total")) == (2, 2, 0)
    world.trouble = None
    world.run(process, 1)
    assert world.taken == [(fired(),)]


def test_edges_only(world: World, tmp_path: Path) -> None:
    process = world.process(tmp_path)
    process.post([fired()])
    process.show(status(firing=(fired(),)))
    world.run(process, 10_000)
    assert world.taken == [(fired(),)]


# --- restarts and disks


def replace(path: Path) -> None:
    """Somebody puts the same content in another file's place."""
    shutil.copy(path, path.with_name("theirs"))
    path.with_name("theirs").rename(path)


@pytest.mark.parametrize("look", [lambda queues: queues.show(status()), lambda queues: queues._each[0].step()])
@pytest.mark.parametrize("lose", [Path.unlink, replace])
def test_a_file_that_somebody_removed_is_written_again_though_nothing_happens(
    world: World, tmp_path: Path, look: Callable[[DeliveryQueues], object], lose: Callable[[Path], None]
) -> None:
    """By a cycle, and by the thread of a queue."""
    store = Store(str(tmp_path), clock=lambda: world.now_s)
    store.open()
    queues = DeliveryQueues([Receiver("them", world.deliver)], store, clock=lambda: world.now_s)
    queues.add([fired()], {"alerts": 7})
    queues._each[0].step()
    lose(tmp_path / FILE)
    assert not store.is_saved
    look(queues)
    assert store.is_saved
    store.close()
    again = Store(str(tmp_path))
    again.open()
    assert (again.state, again.receivers) == ({"alerts": 7}, [])
    again.close()


def test_while_the_disk_refuses_a_queue_looks_again_soon(world: World, tmp_path: Path) -> None:
    place = tmp_path / "state"
    place.mkdir()
    process = world.process(place)
    assert process.step() == 3600
    shutil.rmtree(place)
    place.write_text("in the way")
    assert process.step() == 10
    assert not process.store.is_saved
    place.unlink()
    world.now_s += 10
    assert process.step() == 3600
    assert process.store.is_saved


def test_a_restart_goes_on_where_it_was(world: World, tmp_path: Path) -> None:
    first = world.process(tmp_path)
    sent = [fired(number) for number in range(4)]
    first.post(sent)
    first.step()
    world.trouble = DeliveryError("dead")
    first.step()
    first.end()
    world.trouble = None
    second = world.process(tmp_path)
    assert second.own("depth") == 3
    second.post([fired(4)])
    world.run(second, 1)
    assert world.alerts == [*sent, fired(4)]


def test_a_damaged_record_is_counted_as_lost(world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = world.process(tmp_path)
    first.post([fired(0), fired(1), fired(2)])
    first.end()
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes().replace(b"package1", b"packageX"))
    second = world.process(tmp_path)
    world.run(second, 1)
    assert world.alerts == [fired(0), fired(2)]
    assert second.own("lost_total") == 1
    assert "1 damaged records" in caplog.text
    second.end()
    assert world.process(tmp_path).own("lost_total") == 0, "once"


def test_somebody_else_has_the_file(world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An administrator's sqlite3, say: alerts are delivered from memory and saved as soon as that is possible."""
    first = world.process(tmp_path)
    world.trouble = DeliveryError("dead")
    first.post([fired(0)])
    first.end()
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        second = world.process(tmp_path)
        second.post([fired(1), fired(2)])
        assert "database is locked; they are kept in memory" in caplog.text
        world.trouble = None
        second.step()
        assert world.alerts == [fired(1)]
    world.run(second, 20)
    assert world.alerts == [fired(1), fired(2), fired(0)]
    assert second.own("depth") == 0


_FULL = """
import errno, os, shutil, sqlite3, sys
from tests.monitor.receivers.samples import fired
from tests.monitor.delivering import Process
from tunectl.address import DeliveryError; from tunectl.monitor.receivers import Receiver
place, taken, dead, now = sys.argv[1], [], True, 0.0
def deliver(alerts):
    if dead: raise DeliveryError("dead")
    taken.extend(alerts)
made = lambda: Process(place, Receiver("them", deliver), lambda: now)
depth = lambda box, name="depth": box.own(name)
box = made()
box.post([fired(number - 40) for number in range(40)])
fill = os.open(f"{place}/fill", os.O_WRONLY | os.O_CREAT)
for size in (65536, 4096, 1):
    try:
        while True: os.write(fill, b"x" * size)
    except OSError as error:
        assert error.errno == errno.ENOSPC
box.post([fired(number) for number in range(40)])  # 16 kB
assert depth(box, "unsaved") == 40, depth(box, "unsaved")
dead = False
box.step()
shutil.copy(box.store.path, sys.argv[2])
left = sqlite3.connect(sys.argv[2]).execute("SELECT count(*) FROM delivery WHERE NOT done").fetchone()
os.unlink(sys.argv[2])
assert left == (39,), left  # acknowledged on a full disk
while depth(box) > 40:
    box.step()
    assert not box.store._acknowledged
dead = True
os.ftruncate(fill, 0)
now = 111.0
box.step()
assert depth(box, "unsaved") == 0
box.end()
dead, box = False, made()
while depth(box): box.step()
assert taken == [fired(number) for number in range(-40, 40)], len(taken)
print("told")
"""


def test_a_full_disk(tmp_path: Path) -> None:
    """A real file system without a free byte: nothing is lost, an acknowledgement is kept, and it is saved later."""
    words = ["unshare", "--map-root-user", "--mount", "sh", "-ec"]
    script = 'mount -t tmpfs -o size=512k none "$1"; exec "$2" -c "$3" "$1" "$4"'
    if not shutil.which("unshare") or subprocess.run([*words[:3], "true"], capture_output=True).returncode:
        pytest.skip("no name spaces for users: cannot mount a small file system")
    root, disk = Path(__file__).parents[2], tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(
        [*words, script, "sh", str(disk), sys.executable, _FULL, str(tmp_path / "copy")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "told\n"), done.stderr
    assert "No space left on device; they are kept in memory" in done.stderr
    assert "saved again" in done.stderr


_VICTIM = """
import sys, time
from tests.monitor.receivers.samples import HOST, fired
from tunectl.monitor.delivery_queue import Backoff, DeliveryQueues
from tunectl.hostfile.shape import Webhook
from tunectl.monitor.receivers.webhook import open_webhook
from tunectl.monitor.store import Store
store = Store(sys.argv[2])
store.open()
box = DeliveryQueues([open_webhook(Webhook(sys.argv[1]), HOST)], store, backoff=Backoff(0.005, 0.01))
box.start()
for number in range(int(sys.argv[3]), 100_000):
    box.add([fired(number)], {"number": number})
    print(number, flush=True)
    time.sleep(0.002)
"""


@pytest.mark.slow
def test_kill_9_in_the_middle(tmp_path: Path) -> None:
    """Killed again and again, at any moment: everything that was promised arrives, in order, under one id each."""
    root = Path(__file__).parents[2]
    following, promised = 0, []
    with receiving() as server:
        for round_ in range(6):
            server.acts = [503, "vanish", 200, 200, 500] * 2
            words = [sys.executable, "-c", _VICTIM, server.url, str(tmp_path), str(following)]
            child = subprocess.Popen(
                words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(root)}
            )
            assert child.stdout is not None
            said = [int(child.stdout.readline()) for _ in range(9)]  # a busy machine needs as long as it needs
            time.sleep(0.05 + round_ * 0.037)
            child.send_signal(signal.SIGKILL)
            said += [int(line) for line in child.stdout.read().split()]
            child.wait()
            promised += said
            following = said[-1] + 2  # the next may have been saved and not promised
        server.acts = []
        process = Process(tmp_path, open_webhook(Webhook(server.url), HOST), time.monotonic)
        while process.own("depth"):
            process.step()
        seen = server.keys()
    everything = [delivery_id(fired(number), HOST) for number in range(following)]
    assert seen == [key for key in everything if key in set(seen)], "in order"
    assert {delivery_id(fired(number), HOST) for number in promised} <= set(seen), "nothing lost"
    assert len(promised) > 50
    assert delivery_id(fired(process.store.state["number"]), HOST) == seen[-1], "the state and its deliveries are one"


def test_queues_of_one_monitor(world: World, tmp_path: Path) -> None:
    def broken(alerts: Sequence[Alert]) -> None:
        raise DeliveryError("dead")

    store = Store(str(tmp_path))
    store.open()
    queues = DeliveryQueues([Receiver("them", world.deliver), Receiver("others", broken)], store)
    queues.start()
    queues.add([fired()], {})
    queues.show(status())
    until(lambda: not queues.own()["outbox_depth[them]"])
    queues.close(1)
    assert world.alerts == [fired()], "a dead receiver holds up no other"
    assert queues.own()["outbox_depth[others]"] == 1
    assert store.receivers == ["others"]


def test_a_receiver_that_was_taken_out_of_the_host_file(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(str(tmp_path))
    store.open()
    store.add("old", [fired()])
    store.remove(store.waiting("done"))
    DeliveryQueues([Receiver("new", world.deliver)], store)
    assert "old: alerts wait for this receiver" in caplog.text
    assert "done" not in caplog.text
