"""The systemd service that applies the host file at every boot: a unit file, and the link that enables it.

Source: systemd.unit(5), systemd.service(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from tunectl.host.inifiles import values_of
from tunectl.knobs.drivers.pseudofile import ReadResult
from tunectl.knobs.row import Batch, Knob, Step, View
from tunectl.model import Reading, State

_SYSTEM = "etc/systemd/system"
UNIT = f"{_SYSTEM}/tunectl-apply.service"
WRITTEN_BY_APPLY = "# Written by `tunectl apply`"  # how each file begins that is ours as a whole
LINK = f"{_SYSTEM}/multi-user.target.wants/tunectl-apply.service"


def render(invocation: tuple[str, ...]) -> str:
    """The unit. It runs after what sets sysctls, and before irqbalance may move an interrupt."""
    command = " ".join(quoted(word) for word in invocation)
    return f"""\
# Written by `tunectl apply`; `tunectl restore` removes it.
[Unit]
Description=Put the runtime settings of tunectl's host file in force
After=local-fs.target systemd-modules-load.service systemd-sysctl.service systemd-udev-trigger.service tuned.service
After=cpupower.service cpufrequtils.service loadcpufreq.service ksm.service sysfsutils.service
Before=irqbalance.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={command} apply --yes --runtime
# 4: everything is in force but what waits for the next boot
SuccessExitStatus=4

[Install]
WantedBy=multi-user.target
"""


def quoted(word: str) -> str:
    """One word of ExecStart= as systemd reads it back (systemd.service(5), "Command lines")."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if re.search(r"[\s'\"\\;]", word) else escaped


def _split(command: str) -> list[str]:
    import shlex  # only where the unit is there

    try:
        return shlex.split(command)
    except ValueError:
        return []


def _but_command(text: str) -> list[str]:
    return [line for line in text.split("\n") if not line.startswith("ExecStart=")]


def host_file_of(words: Sequence[str]) -> str:
    """The host file a command line names; "" for the default."""
    return next((after for word, after in pairwise(words) if word == "--host"), "")


def read_service(view: View, unit: str, companion: str, ours: str) -> ReadResult:
    """The state of a service of ours, or why it is not known. `companion` is the file that has it started.

    `enabled`: both files are there, for this host file, and the program too. Otherwise `disabled`, `outdated` (it
    applies another host file, or is not `ours`, this version's unit, but for the command it starts) or `broken`
    (its program is gone).
    """
    root = view.root
    try:
        text = root.read_text(unit) if root.exists(unit) else ""
    except OSError as error:
        return ReadResult(State.UNREADABLE, "", f"/{unit}: {error.strerror}", error.errno)
    command = next(iter(values_of(text, "Service", "ExecStart")), "")
    words = [word.replace("%%", "%").replace("$$", "$") for word in _split(command)]
    if not text or not root.exists(companion):
        return ReadResult(State.READ, "disabled")
    if not words or "apply" not in words or (root.live and not root.exists(words[0].lstrip("/"))):
        return ReadResult(State.READ, "broken")
    current = _but_command(text) == _but_command(ours) and host_file_of(words) == host_file_of(view.invocation)
    return ReadResult(State.READ, "enabled" if current else "outdated")


class ApplyService:
    """The service that multi-user.target starts."""

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading."""
        if not view.root.exists(_SYSTEM):
            yield Reading(knob.name, "", State.ABSENT, reason="this host has no /etc/systemd/system")
            return
        yield Reading(knob.name, "", *read_service(view, UNIT, LINK, render(())))

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """The unit, then the link, then systemd is told."""
        for _, change in batch:
            yield Step("file", UNIT, render(view.invocation or ("/usr/bin/tunectl",)), (change,))
            yield Step("link", LINK, "/" + UNIT, (change,), commands=("reload-systemd",))

    def describe(self) -> tuple[str, ...]:
        """The unit and the link."""
        return ("/" + UNIT, "/" + LINK)

    def reads(self) -> tuple[str, ...]:
        """Both."""
        return (UNIT, LINK)
