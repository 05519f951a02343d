"""What came and went: udev's announcements, and the CPUs that are off. /sys/devices/system/cpu/online"""

from __future__ import annotations

from collections.abc import Iterator

from tunectl.monitor.model import Sample
from tunectl.monitor.watched_host import Eyes, Source

_NAME = "events"


class _Kept:
    def __init__(self) -> None:
        self.online: frozenset[int] | None = None


def read(eyes: Eyes) -> Iterator[Sample]:
    """One sample a device: the last that happened to it. An isolated CPU that is off stays named."""
    kept = eyes.keep(_NAME, _Kept)
    before = eyes.online if kept.online is None else kept.online
    kept.online = eyes.online
    found: dict[str, tuple[str, frozenset[int]]] = {}
    for event in eyes.events:
        found[f"{event.subsystem}/{event.name}"] = (event.action, frozenset())
    # Not only by udev: a host without it, or a lost announcement, must not hide a CPU that went off.
    for cpu in sorted((before - eyes.online) | (eyes.isolated - eyes.online)):
        found[f"cpu/cpu{cpu}"] = ("offline", frozenset({cpu}))
    for cpu in sorted(eyes.online - before):
        found[f"cpu/cpu{cpu}"] = ("online", frozenset({cpu}))
    for subject, (action, cpus) in found.items():
        yield Sample("device", subject, action, _NAME, reason=_path(eyes, subject), cpus=cpus)


def _path(eyes: Eyes, subject: str) -> str:
    paths = [event.path for event in eyes.events if f"{event.subsystem}/{event.name}" == subject]
    return paths[-1] if paths else "/sys/devices/system/cpu/online"


SOURCE = Source(
    _NAME,
    ("/sys/devices/system/cpu/online", "the kernel's uevents (netlink)"),
    "nobody: a mask in memory and a socket",
    "always; a device event counts in the look after it",
    read,
)
