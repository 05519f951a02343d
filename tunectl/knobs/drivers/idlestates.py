"""cpuidle states of a CPU: the value is the longest exit latency that it can still have.

Source: Documentation/ABI/testing/sysfs-devices-system-cpu; drivers/cpuidle/sysfs.c.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tunectl.host.cpuidle import DRIVER, HALTPOLL, read_cpuidle_driver
from tunectl.host.sysroot import ABSENT_ERRNOS
from tunectl.knobs.codecs import SWITCH
from tunectl.knobs.row import Batch, Knob, Step, View
from tunectl.model import Reading, State

_IDLE = "sys/devices/system/cpu/cpu{cpu}/cpuidle"


class IdleStates:
    """The states of the isolated CPUs; those that take longer than the limit to leave are disabled."""

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading a CPU: the exit latency, in microseconds, of the deepest state that is enabled."""
        if read_cpuidle_driver(view.root) == HALTPOLL:
            reason = (
                f"the cpuidle driver is {HALTPOLL}, which polls and then halts: it has none of the machine's states"
            )
            yield Reading(knob.name, "", State.ABSENT, reason=reason)
            return
        readings = [self._read(knob, view, cpu) for cpu in sorted(view.scope.isolated & view.scope.online)]
        if all(reading.state is State.ABSENT for reading in readings):
            yield Reading(knob.name, "", State.ABSENT, reason="the isolated CPUs have no cpuidle states")
            return
        yield from readings

    def _read(self, knob: Knob, view: View, cpu: int) -> Reading:
        directory = _IDLE.format(cpu=cpu)
        deepest = 0
        try:
            states = [name for name in view.root.listdir(directory) if name.startswith("state")]
            for state in states:
                if view.root.read_value(f"{directory}/{state}/disable") != "0":
                    continue
                deepest = max(deepest, int(view.root.read_value(f"{directory}/{state}/latency")))
        except OSError as error:
            state_ = State.ABSENT if error.errno in ABSENT_ERRNOS else State.UNREADABLE
            return Reading(knob.name, str(cpu), state_, reason=f"/{directory}: {error.strerror}", errno=error.errno)
        except ValueError:
            return Reading(knob.name, str(cpu), State.UNREADABLE, reason=f"/{directory}: a latency is not a number")
        if not states:
            return Reading(knob.name, str(cpu), State.ABSENT, reason=f"this host has no /{directory}")
        return Reading(knob.name, str(cpu), State.READ, deepest)

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """One write for every enabled state beyond the limit."""
        for _, change in batch:
            directory = _IDLE.format(cpu=change.instance)
            for state in sorted(view.root.listdir(directory)):
                path = f"{directory}/{state}"
                latency = view.root.get(f"{path}/latency")
                if latency.isdecimal() and int(latency) > change.value and view.root.get(f"{path}/disable") == "0":
                    yield Step("value", f"{path}/disable", "1", (change,), SWITCH)

    def describe(self) -> tuple[str, ...]:
        """The states' files."""
        directory = "/" + _IDLE.format(cpu="N")
        return (f"{directory}/stateM/latency", f"{directory}/stateM/disable")

    def reads(self) -> tuple[str, ...]:
        """The states' files of every CPU."""
        directory = _IDLE.format(cpu="[0-9]*")
        return (f"{directory}/state*/latency", f"{directory}/state*/disable", DRIVER)
