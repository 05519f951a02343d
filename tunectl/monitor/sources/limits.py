"""How fast a CPU may run now, and its base frequency. cpuN/cpufreq/{bios_limit,scaling_max_freq}, max_perf_pct

Source: Documentation/admin-guide/pm/{cpufreq,intel_pstate}.rst. The base frequency is read once and kept: firmware may
lower what base_frequency says, and a base that sinks with the limit would hide it (docs/kernel-facts.md, "Frequency").
"""

from collections.abc import Iterator

from tunectl.host.hardware import read_boost
from tunectl.host.plausible import FREQUENCY, SHARE
from tunectl.monitor.model import CLAMPED, NO_BASE, Freshness, Sample
from tunectl.monitor.open_files import Numbers
from tunectl.monitor.watched_host import Source, WatchedHost

_NAME = "limits"
_FILES = {"bios_limit_khz": "bios_limit", "max_khz": "scaling_max_freq"}
_PSTATE = "sys/devices/system/cpu/intel_pstate"
_PERCENT = "max_perf_pct"
_STEP_KHZ = 100_000  # intel_pstate rounds its limit up to a P-state (intel_pstate_update_perf_limits)
_NO_TURBO = "turbo is off: the highest frequency may be the turbo's, or the base"
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
        self.base = {cpu: _base(host, cpu) for cpu in sorted(host.judged)}
        self.percent = Numbers(host.root, {_PERCENT: f"{_PSTATE}/{_PERCENT}"})

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


def _highest(host: WatchedHost, kept: _Kept) -> Iterator[Sample]:
    """highest_khz of the CPUs whose base is unknown: turbo included, and stale where turbo is off."""
    unknown = {cpu: sample for cpu, sample in kept.base.items() if sample.freshness is Freshness.NO_DATA}
    is_turbo_off = bool(unknown) and read_boost(host.root) is False
    freshness, reason = (Freshness.STALE, _NO_TURBO) if is_turbo_off else (Freshness.FRESH, "")
    for cpu, base in unknown.items():
        if khz := host.cpus[cpu].max_khz:
            yield base._replace(quantity="highest_khz", value=khz, freshness=freshness, reason=reason)


def _max_perf(host: WatchedHost, kept: _Kept) -> Iterator[Sample]:
    """max_perf_khz: what intel_pstate permits all CPUs in percent of their highest; no CPU's own limits show it."""
    kept.percent.refresh()
    percent = kept.percent.value[_PERCENT]
    if _PERCENT in kept.percent.absent or percent == SHARE.most or host.root.get(f"{_PSTATE}/status") == "off":
        return
    if percent is None or not SHARE.holds(percent):
        reason = kept.percent.problem.get(_PERCENT, f"/{_PSTATE}/{_PERCENT} holds {percent}, which is not plausible")
        yield Sample("max_perf_khz", "host", None, _NAME, Freshness.NO_DATA, reason)
        return
    is_turbo_off = read_boost(host.root) is False
    for cpu, base in kept.base.items():
        if khz := host.cpus[cpu].max_khz:
            permitted = min(khz, -(-khz * percent // (100 * _STEP_KHZ)) * _STEP_KHZ)
            # Where turbo is off a kernel may show the base as the highest, and means a share of the turbo's still.
            is_base = is_turbo_off and not (isinstance(base.value, int) and khz > base.value)
            is_least = is_base and permitted < khz * host.config.thermal.min_ratio
            freshness, reason = (Freshness.STALE, _NO_TURBO) if is_least else (Freshness.FRESH, "")
            yield base._replace(quantity="max_perf_khz", value=permitted, freshness=freshness, reason=reason)


def read(host: WatchedHost) -> Iterator[Sample]:
    """base_khz, and where the host has them bios_limit_khz, max_khz and max_perf_khz, of the isolated CPUs."""
    kept = host.keep(_NAME, lambda: _Kept(host), anew=host.cpus_changed)
    moved = kept.moved
    kept.refresh()
    # Read again a snapshot later, too: the kernel changes what follows the limit later, in a work item of its own.
    host.doubtful |= {knob for knob, limit in CLAMPED.items() if limit in moved | kept.moved}
    yield from kept.base.values()
    yield from _highest(host, kept)
    yield from kept.samples.values()
    yield from _max_perf(host, kept)
    for quantity, file in _FILES.items():
        if not any(key[0] == quantity for key in kept.samples):
            reason = f"this host shows no {file} (no cpufreq, or a driver without it)"
            yield Sample(quantity, "host", None, _NAME, Freshness.ABSENT, reason)


SOURCE = Source(
    _NAME,
    (*(f"/sys/devices/system/cpu/cpuN/cpufreq/{file}" for file in _FILES.values()), f"/{_PSTATE}/{_PERCENT}"),
    "nobody: all are kept in memory; the base frequency is asked of housekeeping CPUs only",
    "at once; bios_limit leaves out thermal limits that the firmware keeps to itself",
    read,
)
