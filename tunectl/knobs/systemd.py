"""What makes runtime values survive a reboot."""

from __future__ import annotations

from tunectl.knobs.codecs import WORD
from tunectl.knobs.drivers.unitfile import ApplyService
from tunectl.knobs.row import Knob
from tunectl.model import Lifetime

KNOBS = (
    Knob(
        "systemd.apply_at_boot",
        ApplyService(),
        WORD,
        Lifetime.RUNTIME,
        why="Values in /proc and /sys die with the boot; this service writes them again, early, at every boot.",
        source="systemd.service(5)",
    ),
)
