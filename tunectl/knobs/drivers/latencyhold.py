"""A service that keeps /dev/cpu_dma_latency open: the kernel's latency limit for all CPUs lasts as long as that.

Source: Documentation/admin-guide/pm/cpuidle.rst, "Power management quality of service"; kernel/power/qos.c: a write of
four bytes is a number as the CPU holds it, any other length is read as hexadecimal text.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any

from tunectl.host.inifiles import values_of
from tunectl.host.sysroot import Sysroot
from tunectl.knobs.drivers.environment import UNSET
from tunectl.knobs.row import Batch, Knob, Step, View, if_readable, missing
from tunectl.model import Reading, State

NAME = "tunectl-latency.service"
UNIT = f"etc/systemd/system/{NAME}"
LINK = f"etc/systemd/system/multi-user.target.wants/{NAME}"
_SYSTEM = "etc/systemd/system"
_DEVICE = "dev/cpu_dma_latency"
_GROUP = f"sys/fs/cgroup/system.slice/{NAME}"


def render(limit_us: int) -> str:
    """The unit: one shell that writes four bytes and then is `sleep`, with nothing open but that."""
    octal = "".join(f"\\\\{byte:03o}" for byte in struct.pack("=i", limit_us))
    return f"""\
# Written by `tunectl apply`; `tunectl restore` removes it.
[Unit]
Description=Keep every CPU's exit latency within {limit_us} us

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


def _limit_of(unit: str) -> int | None:
    """The microseconds in the description of a unit that render() made."""
    words = " ".join(values_of(unit, "Unit", "Description")).split()
    return int(words[-2]) if words[-1:] == ["us"] and words[-2].isdecimal() else None


class LatencyHold:
    """Microseconds; no constraint where the service is not there, not enabled, not running, or not as we wrote it."""

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading. The device is not opened: a request of one's own wakes idle CPUs when it goes."""
        for path in (_SYSTEM, _DEVICE) if view.root.live else (_SYSTEM,):
            if gone := missing(knob.name, view, path):
                yield gone
                return
        with view.root.noting() as denied:
            found = self._look(knob, view.root)
        yield if_readable(found, denied)

    def _look(self, knob: Knob, root: Sysroot) -> Reading:
        text = root.get_text(UNIT)
        limit = _limit_of(text)
        problem = ""
        if limit is None:
            problem = "nothing holds /dev/cpu_dma_latency for tunectl"
        elif text != render(limit):
            problem = f"/{UNIT} is not as tunectl wrote it"
        elif not root.exists(LINK):
            problem = f"{NAME} is not enabled"
        elif root.live and root.exists("run/systemd/system") and not root.exists(_GROUP):
            problem = f"{NAME} does not run"
        return Reading(knob.name, "", State.READ, math.inf if problem else limit, problem)

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
