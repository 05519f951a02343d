"""What came and went: udev's announcements, and the CPUs that are off. /sys/devices/system/cpu/online"""

from collections.abc import Iterator

from tunectl.monitor.model import Sample
from tunectl.monitor.watched_host import ONLINE, Source, WatchedHost

_NAME = "events"


def read(host: WatchedHost) -> Iterator[Sample]:
    """One sample a device: the last that happened to it. An isolated CPU that is off stays named."""
    kept = host.keep(_NAME, lambda: {"online": host.online})
    before, kept["online"] = kept["online"], host.online
    found: dict[str, tuple[str, frozenset[int]]] = {}
    paths: dict[str, str] = {}
    for event in host.events:
        subject = f"{event.subsystem}/{event.name}"
        found[subject], paths[subject] = (event.action, frozenset()), event.path
    # Not only by udev: a host without it, or a lost announcement, must not hide a CPU that went off.
    for cpu in sorted((before - host.online) | (host.isolated - host.online)):
        found[f"cpu/cpu{cpu}"] = ("offline", frozenset({cpu}))
    for cpu in sorted(host.online - before):
        found[f"cpu/cpu{cpu}"] = ("online", frozenset({cpu}))
    for subject, (action, cpus) in found.items():
        yield Sample("device", subject, action, _NAME, cpus=cpus, path=paths.get(subject, f"/{ONLINE}"))


SOURCE = Source(
    _NAME,
    (f"/{ONLINE}", "the kernel's uevents (netlink)"),
    "nobody: a mask in memory and a socket",
    "always; a device event counts in the snapshot after it",
    read,
)
