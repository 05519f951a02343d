"""How fast a CPU may run now, and its base frequency. cpuN/cpufreq/{bios_limit,scaling_max_freq}

Source: Documentation/admin-guide/pm/cpufreq.rst. The base frequency is read once and kept: firmware may lower what
base_frequency says, and a base that sinks with the limit would hide it (docs/kernel-facts.md, "Frequency").
"""

from collections.abc import Iterator

from tunectl.host.plausible import FREQUENCY
from tunectl.monitor.model import CLAMPED, NO_BASE, Freshness, Sample
from tunectl.monitor.open_files import Numbers
from tunectl.monitor.watched_host import Source, WatchedHost

_NAME = "limits"
_FILES = {"bios_limit_khz": "bios_limit", "max_khz": "scaling_max_freq"}
Key = tuple[str, int]


def _path(cpu: int, file: str) -> str:
    return f"sys/devices/system/cpu/cpu{cpu}/cpufreq/{file}"


class _Kept:
    """The files of the judged CPUs."""

    def __init__(self, host: WatchedHost) -> None:
        keys = [(quantity, cpu) for quantity in _FILES for cpu in sorted(host.judged)]
        self.numbers = Numbers(host.root, {key: _path(key[1], _FILES[key[0]]) for key in keys})
        self.samples: dict[Key, Sample] = {}
        self.moved: set[str] = set()  # quantities that changed in the last refresh
        self.refresh()
        self.base = [_base(host, cpu) for cpu in sorted(host.judged)]

    def refresh(self) -> None:
        """Remakes the samples of what changed."""
        self.moved = set()
        for key in self.numbers.refresh():
            quantity, cpu = key
            self.moved.add(quantity)
            subject, cpus = f"cpu{cpu}", frozenset({cpu})
            khz = self.numbers.value[key]
            if khz is not None and FREQUENCY.holds(khz):
                self.samples[key] = Sample(quantity, subject, khz, _NAME, cpus=cpus)
            elif key not in self.numbers.absent or self.samples.get(key):
                implausible = f"/{_path(cpu, _FILES[quantity])} holds {khz}, which is not plausible"
                reason = self.numbers.problem.get(key) or implausible
                self.samples[key] = Sample(quantity, subject, None, _NAME, Freshness.NO_DATA, reason, cpus)


def _base(host: WatchedHost, cpu: int) -> Sample:
    """The host file's number, or the first that was read of the host (host/cpus.py says in which order)."""
    known = host.keep(f"{_NAME}.base", dict[int, tuple[int, str]])
    if override := host.config.thermal.base_frequency_khz:
        known[cpu] = (override, "the host file")
    elif cpu not in known and cpu in host.cpus and (khz := host.cpus[cpu].base_khz):
        known[cpu] = (khz, host.cpus[cpu].base_source)
    cpus = frozenset({cpu})
    if cpu not in known:
        return Sample("base_khz", f"cpu{cpu}", None, _NAME, Freshness.NO_DATA, NO_BASE, cpus)
    return Sample("base_khz", f"cpu{cpu}", known[cpu][0], _NAME, reason=known[cpu][1], cpus=cpus)


def read(host: WatchedHost) -> Iterator[Sample]:
    """base_khz, and where the host has them bios_limit_khz and max_khz, of the isolated CPUs."""
    if host.cpus_changed:
        host.forget(_NAME)
    kept = host.keep(_NAME, lambda: _Kept(host))
    moved = kept.moved
    kept.refresh()
    # Read again a snapshot later, too: the kernel changes what follows the limit later, in a work item of its own.
    host.doubtful |= {knob for knob, limit in CLAMPED.items() if limit in moved | kept.moved}
    yield from kept.base
    yield from kept.samples.values()
    for quantity, file in _FILES.items():
        if not any(key[0] == quantity for key in kept.samples):
            reason = f"this host shows no {file} (no cpufreq, or a driver without it)"
            yield Sample(quantity, "host", None, _NAME, Freshness.ABSENT, reason)


SOURCE = Source(
    _NAME,
    tuple(f"/sys/devices/system/cpu/cpuN/cpufreq/{file}" for file in _FILES.values()),
    "nobody: both are kept in memory; the base frequency is asked of housekeeping CPUs only",
    "at once; bios_limit leaves out thermal limits that the firmware keeps to itself",
    read,
)
