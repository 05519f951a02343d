"""How long a CPU may take to leave an idle state: of each isolated CPU by its cpuidle states, and of all by a service.

The service keeps /dev/cpu_dma_latency open: the kernel's limit for all CPUs lasts as long as that.
Source: Documentation/ABI/testing/sysfs-devices-system-cpu; drivers/cpuidle/sysfs.c; Documentation/admin-guide/pm/
cpuidle.rst, "Power management quality of service"; kernel/power/qos.c: a write of four bytes is a number as the CPU
holds it, any other length is read as hexadecimal text.
"""

import math
import re
import struct
from collections.abc import Iterator
from typing import Any

from tunectl.host.ask import read_unit_state
from tunectl.host.guest import DRIVER, HALTPOLL, read_cpuidle_driver
from tunectl.host.inifiles import values_of
from tunectl.host.sysroot import ABSENT_ERRNOS, Sysroot
from tunectl.knobs.codecs import SWITCH
from tunectl.knobs.drivers.confined import UNSET
from tunectl.knobs.drivers.ourboot import of_state
from tunectl.knobs.row import Batch, Knob, Step, View, if_readable, missing
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


NAME = "tunectl-latency.service"
UNIT = f"etc/systemd/system/{NAME}"
LINK = f"etc/systemd/system/multi-user.target.wants/{NAME}"
_SYSTEM = "etc/systemd/system"
_DEVICE = "dev/cpu_dma_latency"
_NO_LIMIT = 2**31  # more than the kernel keeps
_GROUP = f"sys/fs/cgroup/system.slice/{NAME}"


def render(limit_us: int) -> str:
    """The unit: one shell that writes four bytes and then is `sleep`, with nothing open but that."""
    octal = "".join(f"\\\\{byte:03o}" for byte in struct.pack("=i", limit_us))
    return f"""\
# Written by `tunectl apply`; `tunectl restore` removes it.
[Unit]
Description=Keep every CPU's exit latency within {limit_us} us
Documentation=man:tunectl-apply(1)

[Service]
# no environment has it run other code
{UNSET}
TimeoutStartSec=30
TimeoutStopSec=10
ExecStart=/bin/sh -c 'exec 3>/dev/cpu_dma_latency && printf "{octal}" >&3 && exec sleep infinity'
# It opens one device, which root owns, and sleeps: it needs no capability, no file and nobody to talk to.
# PrivateDevices= would hide that device.
DevicePolicy=closed
DeviceAllow=/dev/cpu_dma_latency w
CapabilityBoundingSet=
AmbientCapabilities=
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateNetwork=yes
PrivateIPC=yes
ProtectProc=invisible
ProcSubset=pid
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
KeyringMode=private
RestrictAddressFamilies=none
IPAddressDeny=any
UMask=0077
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
MemoryMax=64M
TasksMax=8

[Install]
WantedBy=multi-user.target
"""


def _look(root: Sysroot) -> tuple[float, str]:
    """(the microseconds in the description of a unit that render() made, what keeps it from holding them)."""
    text, state = root.get_text(UNIT), read_unit_state(root, NAME)
    match = re.fullmatch(r".* ([0-9]{1,10}) us", " ".join(values_of(text, "Unit", "Description")))
    limit = int(match[1]) if match else _NO_LIMIT
    if limit >= _NO_LIMIT:
        return math.inf, "nothing holds /dev/cpu_dma_latency for tunectl"
    if text != render(limit):
        return math.inf, f"/{UNIT} is not as tunectl wrote it"
    if not root.exists(LINK):
        return math.inf, f"{NAME} is not enabled"
    if state and (trouble := of_state(NAME, state)) and trouble.fix:
        return math.inf, f"{NAME}: {trouble.reason}"
    if root.live and root.exists("run/systemd/system") and not root.exists(_GROUP):
        return math.inf, f"{NAME} does not run"
    return limit, ""


class LatencyHold:
    """Microseconds; no constraint where the service is not there, not enabled, not running, or not as we wrote it."""

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading. The device is not opened: a request of one's own wakes idle CPUs when it goes."""
        for path in (_SYSTEM, _DEVICE) if view.root.live else (_SYSTEM,):
            if gone := missing(knob.name, view, path):
                yield gone
                return
        with view.root.noting() as denied:
            limit, problem = _look(view.root)
        yield if_readable(Reading(knob.name, "", State.READ, limit, problem), denied)

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """The unit, the link; then systemd is told, and the service takes the new limit."""
        for _, change in batch:
            yield Step("file", UNIT, render(change.value), (change,), commands=("reload-systemd", "hold-latency"))
            yield Step("link", LINK, "/" + UNIT, (change,), commands=("reload-systemd", "hold-latency"))

    def describe(self) -> tuple[str, ...]:
        """The unit and the link."""
        return ("/" + UNIT, "/" + LINK)

    def reads(self) -> tuple[str, ...]:
        """Both."""
        return (UNIT, LINK)
