"""The systemd service that applies the host file at every boot: a unit file, and the link that enables it.

Source: systemd.unit(5), systemd.service(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tunectl.knobs.row import Batch, Knob, Step, View
from tunectl.model import Reading, State

_SYSTEM = "etc/systemd/system"
UNIT = f"{_SYSTEM}/tunectl-apply.service"
LINK = f"{_SYSTEM}/multi-user.target.wants/tunectl-apply.service"
_EXEC = re.compile(r'^ExecStart="?([^"\s]+)"?(?: .*)? apply(?: |$)', re.MULTILINE)


def render(invocation: tuple[str, ...]) -> str:
    """The unit. It runs after what sets sysctls, and before irqbalance may move an interrupt."""
    command = " ".join(f'"{word}"' if re.search(r"\s", word) else word for word in invocation)
    return f"""\
# Written by `tunectl apply`; `tunectl restore` removes it.
[Unit]
Description=Put the runtime settings of tunectl's host file in force
After=local-fs.target systemd-modules-load.service systemd-sysctl.service systemd-udev-trigger.service tuned.service
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


class ApplyService:
    """`enabled`: the unit is there, its program too, and multi-user.target wants it. Else `disabled` or `broken`."""

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading."""
        root = view.root
        if not root.exists(_SYSTEM):
            yield Reading(knob.name, "", State.ABSENT, reason="this host has no /etc/systemd/system")
            return
        try:
            text = root.read_text(UNIT) if root.exists(UNIT) else ""
        except OSError as error:
            yield Reading(knob.name, "", State.UNREADABLE, reason=f"/{UNIT}: {error.strerror}")
            return
        program = _EXEC.search(text)
        if not text or not root.exists(LINK):
            value = "disabled"
        elif program and (not root.live or root.exists(program[1].lstrip("/"))):
            value = "enabled"
        else:
            value = "broken"
        yield Reading(knob.name, "", State.READ, value)

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """The unit, then the link, then systemd is told."""
        for _, change in batch:
            yield Step("file", UNIT, render(view.invocation or ("/usr/bin/tunectl",)), (change,))
            yield Step("link", LINK, "/" + UNIT, (change,), commands=("reload-systemd",))

    def describe(self) -> tuple[str, ...]:
        """The unit and the link."""
        return ("/" + UNIT, "/" + LINK)
