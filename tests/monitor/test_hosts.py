"""Sources, rules and alerts together, on recorded hosts to which something happens."""

from pathlib import Path

import pytest

from tests.monitor.watched import CPU, Watched, watch
from tunectl.host.devices import DeviceEvent
from tunectl.monitor.alerts import Alerts
from tunectl.monitor.model import Alert, Severity
from tunectl.monitor.rules import judge
from tunectl.monitor.rules.history import History, Limits

pytestmark = pytest.mark.slow

# A recorded host is not tuned, and a look at it is not a running host.
_ALWAYS = ("KnobDrift", "SourceLost", "FrequencyUnknown", "MonitorDisturbs")


class Monitor:
    """The daemon without its sinks."""

    def __init__(self, host: Watched) -> None:
        self.host = host
        self.history = History(Limits.of(host.watched_host.config))
        self.alerts = Alerts()

    def step(self, snapshots: int = 1) -> list[Alert]:
        """The transitions of so many snapshots."""
        transitions: list[Alert] = []
        for _ in range(snapshots):
            snapshot = self.host.look()
            self.history.add(snapshot)
            transitions += self.alerts.step(snapshot, judge(self.history))
        return transitions


def names(transitions: list[Alert], *also: str) -> list[str]:
    return [
        f"{transition.identity} {transition.status}"
        for transition in transitions
        if transition.rule not in _ALWAYS or transition.rule in also
    ]


@pytest.fixture
def lab4(tmp_path: Path) -> Monitor:
    """acpi-cpufreq with a bios_limit and the frequencies 3.5, 2.4 and 1.2 GHz."""
    return Monitor(watch(tmp_path, "lab4", {2, 3}))


@pytest.fixture
def xeon(lent_xeon: Path) -> Monitor:
    """Two sockets, throttle counters, base_frequency."""
    return Monitor(Watched(lent_xeon, frozenset({2, 18})))


def test_a_quiet_host_is_quiet(lab4: Monitor, xeon: Monitor) -> None:
    assert {transition.rule for transition in lab4.step(40)} - {*_ALWAYS} == set()
    # irqbalance runs there without a ban, and TuneD with a profile that sets our knobs
    assert {transition.rule for transition in xeon.step(40)} - {*_ALWAYS} == {"ManagerStarted"}


def test_the_firmware_holds_the_clock_down(lab4: Monitor) -> None:
    lab4.step(3)
    for number in (2, 3):
        lab4.host.write(f"{CPU}/cpufreq/policy{number}/bios_limit", 1200000)
    (alert,) = [
        transition for transition in lab4.step() if transition.rule not in _ALWAYS
    ]  # in the first snapshot: within a second
    assert (alert.rule, alert.severity, alert.cpus) == ("FrequencyDrop", Severity.CRITICAL, "2-3")
    assert (alert.observed, alert.expected) == (1200000, 3500000)
    assert names(lab4.step(10)) == []
    for number in (2, 3):
        lab4.host.write(f"{CPU}/cpufreq/policy{number}/bios_limit", 3500000)
    assert names(lab4.step(2)) == []
    assert names(lab4.step()) == [f"{alert.identity} resolved"]  # the third good snapshot: within four seconds


def test_a_cap_that_follows_the_firmwares_limit_is_read_again_when_that_moves(tmp_path: Path) -> None:
    """However seldom knobs are read: a reading that outlives the limit would become a drift that nobody caused."""
    host = Monitor(watch(tmp_path, "lab4", {2, 3}, "[monitor]\ndrift_interval_s = 3600\n"))
    host.step(3)
    transitions = []
    for khz in (1200000, 3500000):
        for number in range(4):
            host.host.write(f"{CPU}/cpufreq/policy{number}/bios_limit", khz)
        transitions += host.step()
        for number in range(4):  # a work of the kernel's own
            host.host.write(f"{CPU}/cpufreq/policy{number}/scaling_max_freq", khz)
        host.host.watched_host.suspicious = khz == 1200000
        transitions += host.step(40)
    assert names(transitions, "KnobDrift") == ["FrequencyDrop[package0] firing", "FrequencyDrop[package0] resolved"]
    host.host.write(f"{CPU}/cpufreq/policy0/scaling_max_freq", 1200000)
    host.host.watched_host.suspicious = True
    assert names(host.step(40), "KnobDrift") == ["KnobDrift[cpufreq.max_khz] firing"]


def test_a_package_is_throttled_once_however_many_cpus_count_it(xeon: Monitor) -> None:
    xeon.step(3)
    for cpu in (*range(8), *range(16, 24)):
        xeon.host.write(f"{CPU}/cpu{cpu}/thermal_throttle/package_throttle_count", 2)
        xeon.host.write(f"{CPU}/cpu{cpu}/thermal_throttle/core_throttle_count", 1)
    assert names(xeon.step(6)) == ["ThermalThrottle[package0] firing", "ThermalThrottle[package0] resolved"]


def test_a_governor_that_somebody_changes(lab4: Monitor) -> None:
    lab4.step(3)
    for number in range(4):
        lab4.host.write(f"{CPU}/cpufreq/policy{number}/scaling_governor", "performance")
    lab4.step(25)
    assert "KnobDrift[cpufreq.governor]" not in {alert.identity for alert in lab4.alerts.firing}
    lab4.host.write(f"{CPU}/cpufreq/policy2/scaling_governor", "powersave")
    transitions = [transition for transition in lab4.step(25) if transition.subject == "cpufreq.governor"]
    assert names(transitions, "KnobDrift") == ["KnobDrift[cpufreq.governor] firing"]
    assert (transitions[0].observed, transitions[0].expected) == ("powersave", "performance")


def test_a_nic_and_a_cpu_come_and_go(lab4: Monitor) -> None:
    lab4.step(3)
    lab4.host.watched_host.announce(DeviceEvent("add", "net", "eth9", "/devices/pci0000:00/0000:00:09.0/net/eth9"))
    assert names(lab4.step()) == ["DeviceChanged[net/eth9] firing"]
    assert names(lab4.step(10)) == ["DeviceChanged[net/eth9] resolved"]
    lab4.host.write(f"{CPU}/online", "0-2")
    assert "CpuOffline[cpu3] firing" in names(lab4.step())
    assert names(lab4.step(30)) == []
    lab4.host.write(f"{CPU}/online", "0-3")
    assert "CpuOffline[cpu3] resolved" in names(lab4.step())


def test_an_interrupt_that_is_moved(lab4: Monitor) -> None:
    lab4.step(3)
    table = (lab4.host.root / "proc/interrupts").read_text().splitlines()
    label = next(line.partition(":")[0].strip() for line in table[1:] if line.strip()[0].isdecimal())
    lab4.host.count(label, 3, 5)
    (alert,) = [transition for transition in lab4.step() if transition.rule not in _ALWAYS]
    assert (alert.identity, alert.observed, alert.cpus) == (f"InterruptOnIsolatedCpu[irq{label}]", 5, "3")
