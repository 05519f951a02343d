"""What came and went: udev's announcements, and the CPUs that are off. /sys/devices/system/cpu/online"""

from collections.abc import Iterator

from tunectl.monitor.model import Sample
from tunectl.monitor.watched_host import Source, WatchedHost

_NAME = "events"


class _Kept:
    def __init__(self) -> None:
        self.online: frozenset[int] | None = None


def read(host: WatchedHost) -> Iterator[Sample]:
    """One sample a device: the last that happened to it. An isolated CPU that is off stays named."""
    kept = host.keep(_NAME, _Kept)
    before = host.online if kept.online is None else kept.online
    kept.online = host.online
    found: dict[str, tuple[str, frozenset[int]]] = {}
    for event in host.events:
        found[f"{event.subsystem}/{event.name}"] = (event.action, frozenset())
    # Not only by udev: a host without it, or a lost announcement, must not hide a CPU that went off.
    for cpu in sorted((before - host.online) | (host.isolated - host.online)):
        found[f"cpu/cpu{cpu}"] = ("offline", frozenset({cpu}))
    for cpu in sorted(host.online - before):
        found[f"cpu/cpu{cpu}"] = ("online", frozenset({cpu}))
    for subject, (action, cpus) in found.items():
        yield Sample("device", subject, action, _NAME, cpus=cpus, path=_path(host, subject))


def _path(host: WatchedHost, subject: str) -> str:
    paths = [event.path for event in host.events if f"{event.subsystem}/{event.name}" == subject]
    return paths[-1] if paths else "/sys/devices/system/cpu/online"


SOURCE = Source(
    _NAME,
    ("/sys/devices/system/cpu/online", "the kernel's uevents (netlink)"),
    "nobody: a mask in memory and a socket",
    "always; a device event counts in the snapshot after it",
    read,
)
