"""The outbox: order, bounds, restarts, kill -9, full disks; each loss said and counted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.monitor.sinks.receiver import receiving
from tests.monitor.sinks.samples import HOST, board, fired, over
from tunectl.monitor.backlog import Entry, first_to_go
from tunectl.monitor.model import Alert
from tunectl.monitor.outbox import Backoff, Outbox, Outboxes
from tunectl.monitor.sinks.kinds import Notifier, SinkError
from tunectl.monitor.sinks.message import delivery_id


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

    def outbox(self, place: Path, most: int = 1000, **options: object) -> Outbox:
        notifier = Notifier("them", self.deliver, **options)  # type: ignore[arg-type]
        return Outbox(notifier, str(place), most=most, clock=lambda: self.now_s, chance=lambda: 0.0)

    def run(self, outbox: Outbox, seconds: float) -> None:
        """Turns the clock by `seconds` and lets the outbox do what it wants to do until then."""
        until_s = self.now_s + seconds
        while True:
            pause_s = outbox.step()
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


def own(outbox: Outbox, name: str) -> float:
    return outbox.own()[f"outbox_{name}[them]"]


def test_back_off_doubles_up_to_its_bound_less_by_chance() -> None:
    backoff = Backoff(1.0, 30.0)
    assert [backoff.delay_s(failures, 0.0) for failures in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]
    assert backoff.delay_s(3, 0.999) == pytest.approx(2, abs=0.01)
    assert backoff.delay_s(10**6, 0.0) == 30


def test_tries_are_rarer_and_what_was_told_is_said_once(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outbox = world.outbox(tmp_path)
    world.trouble = SinkError("they answer 503")
    outbox.post([fired(), over(fired())])
    world.run(outbox, 300)
    assert 12 <= world.tries <= 15
    assert own(outbox, "depth") == 2
    assert own(outbox, "oldest_seconds") == 300
    assert caplog.text.count("they answer 503") == 1
    world.trouble = None
    world.run(outbox, 31)
    assert world.taken == [(fired(),), (over(fired()),)]
    assert "delivers again" in caplog.text
    assert own(outbox, "failures_total") == world.tries - 2


def test_the_receivers_own_pause_is_kept(world: World, tmp_path: Path) -> None:
    outbox = world.outbox(tmp_path)
    world.trouble = SinkError("busy", after_s=100)
    outbox.post([fired()])
    world.run(outbox, 99)
    assert world.tries == 1
    world.run(outbox, 2)
    assert world.tries == 2


def test_what_is_refused_is_lost_aloud_and_holds_up_nobody(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outbox = world.outbox(tmp_path)
    world.trouble = SinkError("400", retry=False)
    outbox.post([fired(1), fired(2)])
    outbox.step()
    world.trouble = None
    world.run(outbox, 1)
    assert world.alerts == [fired(2)]
    assert own(outbox, "lost_total") == 1
    assert "lost FrequencyDrop[package1] firing (refused: 400)" in caplog.text


def test_a_notifier_may_give_up(world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    outbox = world.outbox(tmp_path, tries=3)
    world.trouble = SinkError("status 1")
    outbox.post([fired(1)])
    world.run(outbox, 100)
    assert (world.tries, own(outbox, "lost_total"), own(outbox, "depth")) == (3, 1, 0)
    assert "tried often enough" in caplog.text


def test_a_defect_of_a_notifier_says_no_secret_and_loses_nothing(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outbox = world.outbox(tmp_path)
    world.trouble = ValueError("Invalid header value b'Bearer t0ken'")
    outbox.post([fired()])
    outbox.step()
    assert "ValueError in the notifier" in caplog.text
    assert "t0ken" not in caplog.text
    world.trouble = None
    world.run(outbox, 2)
    assert world.alerts == [fired()]


# --- bounds


def test_what_is_over_and_was_never_told_goes_first() -> None:
    entries = [Entry(alert, 0) for alert in (over(fired(9)), fired(0), fired(1), over(fired(1)), over(fired(0)))]
    assert first_to_go(entries) == [entries[2], entries[3]]
    assert first_to_go(entries[:3]) == [entries[0]]
    other = [Entry(fired(0), 0), Entry(over(fired(0, since="2026-11-21T08:00:00Z")), 0)]
    assert first_to_go(other) == other[:1], "a resolve of an earlier event is not this one's"


def test_a_full_outbox(world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    outbox = world.outbox(tmp_path, most=10)
    world.trouble = SinkError("dead")
    still = [fired(number) for number in range(5)]
    outbox.post(still)
    for number in range(100, 140):
        outbox.post([fired(number)])
        outbox.post([over(fired(number))])
    assert own(outbox, "depth") <= 10
    lost = own(outbox, "lost_total")
    assert lost == caplog.text.count(": lost ") == 85 - own(outbox, "depth")
    assert lost % 2 == 0
    world.trouble = None
    world.run(outbox, 60)
    assert world.alerts[:5] == still, "what still fires was kept"
    assert world.alerts[5:] == sorted(world.alerts[5:], key=lambda alert: int(alert.subject.removeprefix("package")))
    assert (tmp_path / "them.spool").read_bytes() == b""


def test_the_spool_does_not_grow_while_nobody_listens(world: World, tmp_path: Path) -> None:
    outbox = world.outbox(tmp_path, most=10)
    world.trouble = SinkError("dead")
    for number in range(0, 3000, 5):
        outbox.post([fired(each) for each in range(number, number + 5)])
    assert (tmp_path / "them.spool").stat().st_size < 1_100_000
    world.trouble = None
    world.run(outbox, 60)
    assert world.alerts == [fired(number) for number in range(2990, 3000)]


def test_what_is_being_delivered_is_not_dropped(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()
    taken: list[Alert] = []

    def deliver(alerts: Sequence[Alert]) -> None:
        begun.set()
        go_on.wait(10)
        taken.extend(alerts)

    outbox = Outbox(Notifier("them", deliver), str(tmp_path), most=2)
    outbox.start()
    outbox.post([fired(0)])
    assert begun.wait(10)
    for number in range(1, 6):
        outbox.post([fired(number)])
    go_on.set()
    outbox.close()
    assert taken == [fired(0), fired(5)]
    assert own(outbox, "lost_total") == 4


def test_a_reload_while_a_delivery_hangs(tmp_path: Path) -> None:
    """The old outbox keeps its spool until its delivery has an end; the new one takes over, and nothing comes twice."""
    begun, go_on = threading.Event(), threading.Event()
    taken: list[Alert] = []

    def deliver(alerts: Sequence[Alert]) -> None:
        begun.set()
        go_on.wait(10)
        taken.extend(alerts)

    old = Outbox(Notifier("them", deliver), str(tmp_path))
    old.start()
    old.post([fired(0), fired(1)])
    assert begun.wait(10)
    old.close(0.05)
    now_s = [0.0]
    new = Outbox(Notifier("them", deliver), str(tmp_path), clock=lambda: now_s[0])
    new.post([fired(2)])
    assert new.step() < 1, "it does not overtake"
    go_on.set()
    assert old._thread is not None
    old._thread.join(10)
    now_s[0] = 1.0
    while new.own()["outbox_depth[them]"] or new.own()["outbox_unsaved[them]"]:
        new.step()
    assert taken == [fired(0), fired(1), fired(2)]


def test_a_spool_that_stays_another_monitors_holds_up_nothing(world: World, tmp_path: Path) -> None:
    holder = world.outbox(tmp_path)
    second = world.outbox(tmp_path)
    second.post([fired(1)])
    world.run(second, 10)
    assert world.alerts == []
    world.run(second, 10)
    assert world.alerts == [fired(1)]
    holder.close()


# --- saying again what fires


def test_what_fires_is_said_again_and_ceases_with_its_resolve(world: World, tmp_path: Path) -> None:
    outbox = world.outbox(tmp_path, repeat_s=60)
    outbox.post([fired()])
    world.run(outbox, 59)
    assert world.taken == [(fired(),)]
    world.run(outbox, 2)
    assert world.taken == [(fired(),)] * 2
    outbox.show(board(firing=(fired(), fired(1))))
    world.run(outbox, 60)
    assert world.taken[2:] == [(fired(), fired(1))]
    outbox.post([over(fired())])
    outbox.show(board(firing=(fired(1),)))
    world.run(outbox, 61)
    assert world.taken[3:] == [(over(fired()),), (fired(1),)]
    outbox.post([over(fired(1))])
    world.run(outbox, 600)
    assert world.taken[5:] == [(over(fired(1)),)]


def test_after_a_restart_what_fires_is_said_at_once(world: World, tmp_path: Path) -> None:
    outbox = world.outbox(tmp_path, repeat_s=60)
    outbox.show(board(firing=(fired(),)))
    outbox.step()
    assert world.taken == [(fired(),)]


def test_edges_only(world: World, tmp_path: Path) -> None:
    outbox = world.outbox(tmp_path)
    outbox.post([fired()])
    outbox.show(board(firing=(fired(),)))
    world.run(outbox, 10_000)
    assert world.taken == [(fired(),)]


# --- restarts and disks


def test_a_restart_goes_on_where_it_was(world: World, tmp_path: Path) -> None:
    first = world.outbox(tmp_path)
    sent = [fired(number) for number in range(4)]
    first.post(sent)
    first.step()
    world.trouble = SinkError("dead")
    first.step()
    first.close()
    world.trouble = None
    second = world.outbox(tmp_path)
    assert own(second, "depth") == 3
    second.post([fired(4)])
    world.run(second, 1)
    assert world.alerts == [*sent, fired(4)]


def test_a_damaged_line_is_counted_as_lost(world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = world.outbox(tmp_path)
    first.post([fired(0), fired(1), fired(2)])
    first.close()
    path = tmp_path / "them.spool"
    path.write_bytes(path.read_bytes().replace(b"package1", b"packageX"))
    second = world.outbox(tmp_path)
    world.run(second, 1)
    assert world.alerts == [fired(0), fired(2)]
    assert own(second, "lost_total") == 1
    assert "1 damaged lines" in caplog.text


def test_no_directory_for_a_while(world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = tmp_path / "state"
    place.write_text("a file where the directory should be")
    outbox = world.outbox(place)
    world.trouble = SinkError("dead")
    outbox.post([fired(0)])
    outbox.post([fired(1)])
    assert own(outbox, "unsaved") == 2
    assert caplog.text.count("kept in memory") == 1
    place.unlink()
    world.run(outbox, 20)
    assert own(outbox, "unsaved") == 0
    assert "saved again" in caplog.text
    outbox.close()
    world.trouble = None
    world.run(world.outbox(place), 1)
    assert world.alerts == [fired(0), fired(1)]


def test_another_monitor_has_the_spool(world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = world.outbox(tmp_path)
    world.trouble = SinkError("dead")
    first.post([fired(0)])
    second = world.outbox(tmp_path)
    second.post([fired(1)])
    assert "another monitor holds it" in caplog.text
    first.close()
    world.trouble = None
    world.run(second, 20)
    assert world.alerts == [fired(0), fired(1)]
    assert own(second, "depth") == 0


_FULL = """
import errno, os, sys
from tests.monitor.sinks.samples import fired
from tunectl.monitor.outbox import Outbox
from tunectl.monitor.sinks.kinds import Notifier, SinkError
place, taken, dead, now = sys.argv[1], [], True, 0.0
def deliver(alerts):
    if dead: raise SinkError("dead")
    taken.extend(alerts)
made = lambda: Outbox(Notifier("them", deliver), place, clock=lambda: now)
depth = lambda box, name="depth": box.own()[f"outbox_{name}[them]"]
box = made()
box.post([fired(0)])
fill = os.open(f"{place}/fill", os.O_WRONLY | os.O_CREAT)
for size in (65536, 4096, 1):
    try:
        while True: os.write(fill, b"x" * size)
    except OSError as error:
        assert error.errno == errno.ENOSPC
box.post([fired(number) for number in range(1, 40)])  # 16 kB more than the spool's first page
assert depth(box, "unsaved") == 39, depth(box, "unsaved")
dead = False
box.step()  # acknowledged on a full disk
assert depth(box) == 39
dead = True
os.ftruncate(fill, 0)
now = 11.0
box.step()
assert depth(box, "unsaved") == 0
box.close()
dead, box = False, made()
while depth(box): box.step()
assert taken == [fired(number) for number in range(40)], len(taken)
print("told")
"""


def test_a_full_disk(tmp_path: Path) -> None:
    """A real file system without a free byte: nothing is lost, an acknowledgement is kept, and it is saved later."""
    words = ["unshare", "--map-root-user", "--mount", "sh", "-ec"]
    script = 'mount -t tmpfs -o size=256k none "$1"; exec "$2" -c "$3" "$1"'
    if not shutil.which("unshare") or subprocess.run([*words[:3], "true"], capture_output=True).returncode:
        pytest.skip("no name spaces for users: cannot mount a small file system")
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [*words, script, "sh", str(tmp_path), sys.executable, _FULL],
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
from tests.monitor.sinks.samples import HOST, fired
from tunectl.monitor.outbox import Backoff, Outbox
from tunectl.hostfile.shape import Webhook
from tunectl.monitor.sinks.webhook import open_webhook
box = Outbox(open_webhook(Webhook(sys.argv[1]), HOST), sys.argv[2], backoff=Backoff(0.005, 0.01))
box.start()
for number in range(int(sys.argv[3]), 100_000):
    box.post([fired(number)])
    print(number, flush=True)
    time.sleep(0.002)
"""


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
            said = [int(child.stdout.readline())]
            time.sleep(0.05 + round_ * 0.037)
            child.send_signal(signal.SIGKILL)
            said += [int(line) for line in child.stdout.read().split()]
            child.wait()
            promised += said
            following = said[-1] + 2  # the next may have been saved and not promised
        server.acts = []
        notifier_name = next(tmp_path.glob("*.spool")).stem
        from tunectl.hostfile.shape import Webhook
        from tunectl.monitor.sinks.webhook import open_webhook

        outbox = Outbox(open_webhook(Webhook(server.url), HOST), str(tmp_path))
        assert outbox.name == notifier_name
        while outbox.own()[f"outbox_depth[{outbox.name}]"]:
            outbox.step()
        seen = server.keys()
    everything = [delivery_id(fired(number), HOST) for number in range(following)]
    assert seen == [key for key in everything if key in set(seen)], "in order"
    assert {delivery_id(fired(number), HOST) for number in promised} <= set(seen), "nothing lost"
    assert len(promised) > 50


def test_outboxes_of_one_monitor(world: World, tmp_path: Path) -> None:
    def broken(alerts: Sequence[Alert]) -> None:
        raise SinkError("dead")

    boxes = Outboxes([Notifier("them", world.deliver), Notifier("others", broken)], str(tmp_path))
    boxes.start()
    for tell in boxes.tells.values():
        tell([fired()])
    boxes.show(board())
    boxes.close(1)
    assert world.alerts == [fired()], "a dead receiver holds up no other"
    assert boxes.own()["outbox_depth[others]"] == 1
    assert sorted(path.name for path in (tmp_path / "monitor/spool").iterdir()) == ["others.spool", "them.spool"]


def test_a_receiver_that_was_taken_out_of_the_host_file(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = Outboxes([Notifier("old", world.deliver), Notifier("done", world.deliver)], str(tmp_path))
    old.tells["old"]([fired()])
    old.close()
    Outboxes([Notifier("new", world.deliver)], str(tmp_path)).close()
    assert "old.spool: alerts wait there" in caplog.text
    assert "done.spool" not in caplog.text
