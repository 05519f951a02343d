"""What came and went, announced or not."""

from __future__ import annotations

from pathlib import Path

from tests.monitor.watched import CPU, of, watch
from tunectl.host.devices import DeviceEvent


def test_an_event_counts_in_one_look(tmp_path: Path) -> None:
    host = watch(tmp_path, "lab4", {2, 3})
    assert of(host.look(), "device") == {}
    host.watched_host.announce(DeviceEvent("add", "net", "eth1", "/devices/eth1"))
    host.watched_host.announce(DeviceEvent("add", "queues", "rx-0", "/devices/eth1/queues/rx-0"))
    host.watched_host.announce(DeviceEvent("remove", "net", "eth1", "/devices/eth1"))
    found = of(host.look(), "device")
    assert {name: one.value for name, one in found.items()} == {"net/eth1": "remove", "queues/rx-0": "add"}
    assert found["net/eth1"].path == "/devices/eth1"
    assert of(host.look(), "device") == {}


def test_a_cpu_that_goes_off_is_seen_without_udev_and_an_isolated_one_stays_named(tmp_path: Path) -> None:
    host = watch(tmp_path, "lab4", {2, 3})
    host.look()
    host.write(f"{CPU}/online", "0,2")
    found = of(host.look(), "device")
    assert {name: one.value for name, one in found.items()} == {"cpu/cpu1": "offline", "cpu/cpu3": "offline"}
    assert found["cpu/cpu3"].cpus == {3}
    assert list(of(host.look(), "device")) == ["cpu/cpu3"]
    host.write(f"{CPU}/online", "0-3")
    found = of(host.look(), "device")
    assert {name: one.value for name, one in found.items()} == {"cpu/cpu1": "online", "cpu/cpu3": "online"}
    assert of(host.look(), "device") == {}


def test_a_mask_that_is_gone_or_rubbish_changes_nothing(tmp_path: Path) -> None:
    host = watch(tmp_path, "lab4", {2, 3})
    host.look()
    host.write(f"{CPU}/online", "0-x")
    assert of(host.look(), "device") == {}
    host.remove(f"{CPU}/online")
    assert of(host.look(), "device") == {}


def test_a_storm_of_events_is_bounded(tmp_path: Path) -> None:
    host = watch(tmp_path, "lab4", {2, 3})
    for number in range(5000):
        host.watched_host.announce(DeviceEvent("change", "net", f"eth{number}", ""))
    assert len(of(host.look(), "device")) == 1000
