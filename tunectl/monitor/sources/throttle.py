"""How often a core or a package was throttled for heat. cpuN/thermal_throttle/*_throttle_count

Source: drivers/thermal/intel/therm_throt.c: every CPU counts for itself what its core and its package met. Siblings
need not count the same: each CPU's count is a sample, and names its core or package as the whole it counts for.
"""

from collections.abc import Iterator

from tunectl.cpulist import CpuSet
from tunectl.host.plausible import COUNT, plausible
from tunectl.host.thermal import throttle_path
from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.open_files import Numbers
from tunectl.monitor.watched_host import Source, WatchedHost

_NAME = "throttle"
Key = tuple[str, int]  # ("core", cpu)


class _Kept:
    """The files of the CPUs that are on, and for what each counts."""

    def __init__(self, host: WatchedHost) -> None:
        self.wholes: dict[Key, tuple[str, CpuSet]] = {}  # with the CPUs that are slowed together
        for number, members in host.packages.items():
            for cpu in members:
                siblings = host.cpus[cpu].smt_siblings or frozenset({cpu})
                self.wholes["core", cpu] = (f"core{min(siblings)}", siblings)
                self.wholes["package", cpu] = (f"package{number}", members)
        self.numbers = Numbers(host.root, {key: throttle_path(key[1], key[0]) for key in self.wholes})
        self.samples: dict[Key, Sample] = {}

    def refresh(self) -> None:
        """Remakes the samples of what changed."""
        for key in self.numbers.refresh():
            # A file that was there and is gone is no CPU without counters.
            if key not in self.numbers.absent or key in self.samples:
                quantity, subject = f"{key[0]}_throttles", f"cpu{key[1]}"
                whole, cpus = self.wholes[key]
                count = plausible(self.numbers.value[key], COUNT)
                problem = self.numbers.problem.get(key, "" if count is not None else "a count below 0 is not plausible")
                freshness = Freshness.FRESH if count is not None else Freshness.NO_DATA
                sample = Sample(quantity, subject, count, _NAME, freshness, problem, cpus, whole=whole)
                self.samples[key] = sample


def read(host: WatchedHost) -> Iterator[Sample]:
    """core_throttles and package_throttles of each CPU."""
    kept = host.keep(_NAME, lambda: _Kept(host), anew=host.cpus_changed)
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
