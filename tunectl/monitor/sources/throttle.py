"""How often a core or a package was throttled for heat. cpuN/thermal_throttle/*_throttle_count

Source: drivers/thermal/intel/therm_throt.c: every CPU counts for itself what its core and its package met; SMT siblings
and the CPUs of a package meet the same event, so it is their largest count.
"""

from __future__ import annotations

from collections.abc import Iterator

from tunectl.cpulist import CpuSet
from tunectl.host.thermal import throttle_path
from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.open_files import Numbers
from tunectl.monitor.watched_host import Source, WatchedHost

_NAME = "throttle"
Key = tuple[str, int]  # ("core", cpu)


class _Kept:
    """The files of the CPUs that are on, and who shares a count."""

    def __init__(self, host: WatchedHost) -> None:
        self.groups: dict[Key, tuple[str, CpuSet]] = {}  # a file's key: its sample's subject, the CPUs it stands for
        for number, members in host.packages.items():
            for cpu in members:
                siblings = host.cpus[cpu].smt_siblings or frozenset({cpu})
                self.groups["core", cpu] = (f"core{min(siblings)}", siblings)
                self.groups["package", cpu] = (f"package{number}", members)
        self.numbers = Numbers(host.root, {key: throttle_path(key[1], key[0]) for key in self.groups})
        self.samples: dict[str, Sample] = {}

    def refresh(self) -> None:
        """Remakes the samples of what changed."""
        subjects = {self.groups[key][0]: key for key in self.numbers.refresh()}
        for subject, key in subjects.items():
            cpus = self.groups[key][1]
            keys = [(key[0], cpu) for cpu in cpus]
            counts = [count for each in keys if (count := self.numbers.value.get(each)) is not None]
            quantity = f"{key[0]}_throttles"
            if counts:
                self.samples[subject] = Sample(quantity, subject, max(counts), _NAME, cpus=cpus)
            elif not self.numbers.absent.issuperset(keys):
                reason = next(self.numbers.problem[each] for each in keys if each in self.numbers.problem)
                self.samples[subject] = Sample(quantity, subject, None, _NAME, Freshness.NO_DATA, reason, cpus)
            elif self.samples.pop(subject, None):
                # It was there: that is not a host without counters.
                reason = f"/{throttle_path(key[1], key[0])} is gone"
                self.samples[subject] = Sample(quantity, subject, None, _NAME, Freshness.NO_DATA, reason, cpus)


def read(host: WatchedHost) -> Iterator[Sample]:
    """core_throttles of each physical core, package_throttles of each package."""
    if host.cpus_changed:
        host.forget(_NAME)
    kept = host.keep(_NAME, lambda: _Kept(host))
    kept.refresh()
    yield from kept.samples.values()
    if not kept.samples:
        reason = "this CPU has no throttle counters (Intel's only, and not in most virtual machines)"
        yield Sample("package_throttles", "host", None, _NAME, Freshness.ABSENT, reason)


SOURCE = Source(
    _NAME,
    ("/sys/devices/system/cpu/cpuN/thermal_throttle/{core,package}_throttle_count",),
    "nobody: the kernel keeps the counts in memory, and counts in the thermal interrupt itself",
    "at once; counts stay 0 where the firmware keeps thermal events to itself (SMI)",
    read,
)
