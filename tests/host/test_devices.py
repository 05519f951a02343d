"""Device events: the monitor starts and stops on a real kernel, or says why it cannot."""

import pytest

from tunectl.errors import TunectlError
from tunectl.host.devices import DeviceEvent, DeviceMonitor


def test_start_and_stop() -> None:
    seen: list[DeviceEvent] = []
    try:
        monitor = DeviceMonitor(seen.append)
    except TunectlError as error:
        pytest.skip(str(error))
    monitor.start()
    monitor.stop()
    assert seen == []
