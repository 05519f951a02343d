"""SmiOnHost from the counter to the alert and back, played on a recorded host whose MSR is a file."""

import struct
from pathlib import Path

import pytest

from tests.monitor.process import running
from tests.monitor.watched import Watched, watch
from tests.nobody import as_nobody, close, needs_root, open_to_all
from tests.trees import write
from tunectl.monitor.alerts import Alerts
from tunectl.monitor.model import AlertState, Condition, Snapshot
from tunectl.monitor.rules import RULES, judge
from tunectl.monitor.rules.history import History
from tunectl.monitor.watcher import Cycle

ONES = (1 << 64) - 1
MODULE = "sys/module/msr/parameters/allow_writes"
SMI, LOST = "SmiOnHost[host]", "SourceLost[smi]"


class Played:
    """The monitor over this host: a look each ten seconds, and each edge of the two alerts with its second."""

    def __init__(self, host: Watched) -> None:
        self.host, self.history, self.alerts = host, History(), Alerts(RULES)
        self.cycle = Cycle(lambda: host.look(10), self._judge, self.alerts)
        self.began = host.clock
        self.edges: list[tuple[float, str, str]] = []

    def _judge(self, snapshot: Snapshot) -> tuple[Condition, ...]:
        self.history.add(snapshot)
        return judge(self.history)

    def count(self, count: int | None, cpu: int = 0) -> None:
        """The counter of a CPU shows this; None: there is no such file."""
        path = self.host.root / f"dev/cpu/{cpu}/msr"
        if count is None:
            path.unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(0x34) + struct.pack("<Q", count))

    def look(self, times: int = 1) -> str:
        """So many looks more; what the condition of SMIs says at the last."""
        for _ in range(times):
            status, transitions = self.cycle.step()
            at = self.host.clock - self.began
            self.edges += [(at, one.status.value, one.identity) for one in transitions if one.identity in (SMI, LOST)]
        (said,) = [one.summary for one in status.conditions if one.rule == "SmiOnHost"] or ["absent"]
        return said

    def firing(self) -> set[str]:
        return {alert.identity for alert in self.alerts.firing} & {SMI, LOST}


@pytest.fixture
def played(tmp_path: Path) -> Played:
    """A bare Intel server that has had 7 SMIs; 2 and 18 are isolated, and are never asked."""
    host = watch(tmp_path, "xeon2s", {2, 18})
    played = Played(host)
    played.count(7)
    played.count(10**6, cpu=2)
    played.look(2)
    assert played.edges == []
    return played


def test_it_fires_with_its_rate_and_is_over_ten_minutes_after_the_last(played: Played) -> None:
    played.count(19)
    said = played.look()
    assert said == ("SMIs stopped all CPUs of the host: 12 in the last 20 s, 0.6/s, 12 of them in the last minute")
    played.look(39)
    played.count(22)
    assert "15 in the last 7 minutes, 0.036/s, 3 of them in the last minute" in played.look()
    played.look(70)
    # The last came at 430 s: it counts up to 1030 s, and three good looks end the alert.
    assert played.edges == [(30, "firing", SMI), (1060, "resolved", SMI)]


def test_one_that_goes_on_stays_one_alert(played: Played) -> None:
    for count in range(8, 108):
        played.count(count)
        played.look()
    assert played.edges == [(30, "firing", SMI)]


def test_a_counter_that_is_lost_neither_fires_nor_ends_anything(played: Played) -> None:
    """The module was taken away for a quarter of an hour, and the count went on meanwhile."""
    played.count(8)
    played.look()
    played.count(None)
    assert played.look(4) == "there is no /dev/cpu/0/msr (sudo modprobe msr)"
    assert played.firing() == {SMI}
    played.look(86)
    assert played.firing() == {SMI, LOST}
    played.count(9)
    assert "1 in the last 10 minutes" in played.look()
    played.look(70)
    assert [edge[1:] for edge in played.edges] == [
        ("firing", SMI),
        ("firing", LOST),
        ("resolved", LOST),
        ("resolved", SMI),
    ]


@pytest.mark.parametrize(
    ("shows", "risen"),
    [
        (3, 0),  # a reset
        (7 + (1 << 32), 0),  # the upper half is reserved
        (7 + 10**7, 10**7),  # an SMI takes a microsecond, and ten seconds have passed
        (8 + 10**7, 0),
        ((1 << 32) - 1, 0),
    ],
)
def test_a_jump_that_is_no_rise_invents_no_smi_and_what_comes_then_counts(
    played: Played, shows: int, risen: int
) -> None:
    played.count(shows)
    played.look()
    assert played.edges == ([(30, "firing", SMI)] if risen else [])
    played.count(shows + 2)
    assert f"{risen + 2:,} in the last 30 s" in played.look()


def test_a_register_of_ones_is_no_count(played: Played) -> None:
    played.count(ONES)
    assert played.look() == "/dev/cpu/0/msr reads as all ones, which is no count"
    played.count(9)
    assert "2 in the last 30 s" in played.look()


def test_another_housekeeping_cpu_has_a_count_of_its_own(played: Played) -> None:
    """CPU 0 goes offline, and CPU 1 has had 5,000: what each says is compared with its own word alone."""
    online = played.host.root / "sys/devices/system/cpu/online"
    before = online.read_text()
    played.count(5000, cpu=1)
    played.count(8)
    online.write_text(before.replace("0-", "1-", 1))
    played.look()
    played.count(5001, cpu=1)
    assert "1 in the last 30 s" in played.look()
    online.write_text(before)
    played.look()
    played.count(9)
    assert "2 in the last 50 s" in played.look()
    assert played.edges == [(40, "firing", SMI)]


def test_where_only_isolated_cpus_are_left_nobody_is_asked(played: Played) -> None:
    (played.host.root / "sys/devices/system/cpu/online").write_text("2,18\n")
    assert played.look() == "no CPU is left that neither measures nor is isolated"


def test_a_kernel_that_is_locked_down_still_counts(played: Played) -> None:
    """Lockdown refuses writes to MSRs alone."""
    write(played.host.root, "sys/kernel/security/lockdown", "none integrity [confidentiality]\n")
    played.count(8)
    assert "1 in the last 20 s" in played.look()


@pytest.mark.slow
def test_the_monitor_that_runs_tells_of_it(tmp_path: Path) -> None:
    host = watch(tmp_path, "xeon2s", {2, 18}, '[monitor]\nlog = "none"\ninterval_s = 0.1\n')
    played = Played(host)
    played.count(7)
    with running(host.root, tmp_path / "run") as monitor:
        monitor.wait_for(lambda: bool(monitor.transitions()))
        assert SMI not in {name for _, name in monitor.transitions()}
        played.count(9)
        monitor.wait_for(lambda: (AlertState.FIRING.value, SMI) in monitor.transitions())
        (line,) = [line for line in monitor.out.read_text().splitlines() if "SmiOnHost" in line]
        assert "2 in the last " in line
        played.count(None)
        write(host.root, MODULE, "default\n")
        monitor.wait_for(lambda: (AlertState.FIRING.value, LOST) in monitor.transitions())
        (line,) = [line for line in monitor.out.read_text().splitlines() if LOST[:10] in line and '"smi"' in line]
        assert "is not given /dev/cpu/0/msr" in line
        assert monitor.end() == 0
        assert (AlertState.RESOLVED.value, SMI) not in monitor.transitions()


@needs_root
@pytest.mark.slow
def test_who_may_not_read_it_is_told_so(public: Path) -> None:
    played = Played(watch(public, "xeon2s", {2, 18}))
    played.count(7)
    open_to_all(public)
    close(played.host.root / "dev/cpu/0/msr")
    found = as_nobody(played.host.root, "monitor", "--once", "--interval", "0.05").json["sources"]
    (smi,) = [source for source in found if source["name"] == "smi"]
    assert (smi["stale"], smi["reasons"]) == (1, ["smis: only root may read /dev/cpu/0/msr, with CAP_SYS_RAWIO"])
