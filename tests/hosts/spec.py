"""What a recorded host is generated from: a small description, and what follows from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tunectl.cpulist import CpuSet, format_cpulist


@dataclass(frozen=True)
class Cpu:
    """One present CPU. CPUs that agree in (package, die, core) are SMT siblings."""

    cpu: int
    core: int
    package: int = 0
    die: int = 0
    node: int = 0
    l3: int = 0  # CPUs that agree in it share the last level cache
    l2: int | None = None  # None: an L2 for each core
    online: bool = True
    efficient: bool = False


@dataclass(frozen=True)
class Frequency:
    """cpufreq, the same for all CPUs but for the efficient ones. kHz."""

    driver: str
    governors: tuple[str, ...]
    governor: str
    min_khz: int
    max_khz: int
    base_khz: int = 0  # base_frequency, shown by intel_pstate with HWP only
    steps_khz: tuple[int, ...] = ()  # scaling_available_frequencies
    nominal_mhz: int = 0  # acpi_cppc/nominal_freq
    efficient_max_khz: int = 0
    efficient_base_khz: int = 0
    preferences: bool = False  # energy_performance_preference
    boost: bool = False  # there is a cpufreq/boost
    bios_limit: bool = False
    policy_boost: bool = False  # each policy has a boost of its own
    perf_pct: int = 100  # intel_pstate/max_perf_pct
    mode: str = ""  # active | passive | guided, where the driver's name does not say


@dataclass(frozen=True)
class Idle:
    """One cpuidle state; microseconds."""

    name: str
    latency: int
    residency: int


@dataclass(frozen=True)
class Cache:
    """One cache of every CPU."""

    level: int
    kind: str
    size_kib: int


@dataclass(frozen=True)
class Irq:
    """One interrupt. Without `affinity` it may go anywhere; `count` has been delivered to `effective`."""

    irq: int
    action: str
    effective: int
    chip: str = "PCI-MSIX-0000:00:1f.0"
    hwirq: int = 0
    affinity: CpuSet | None = None
    node: int = 0
    managed: bool = False
    count: int = 0


@dataclass(frozen=True)
class Nic:
    """One network interface."""

    name: str
    driver: str
    bus: str  # PCI address
    irqs: tuple[int, ...]
    node: int = 0
    speed: int = 10000
    queues: int = 1
    virtio: bool = False
    up: bool = True
    # Its settings as ethtool's netlink interface shows them: "rings/rx" -> 1024. What is not here, the driver lacks.
    ethtool: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Node:
    """One NUMA node; it may have no CPU."""

    node: int
    memory_mib: int
    distances: tuple[int, ...]


@dataclass(frozen=True)
class HostSpec:
    """One host. `tuned_boot` is what it was booted with: isolcpus, nohz_full and the rest, in force."""

    name: str
    cpus: tuple[Cpu, ...]
    kernel: str = "6.1.0-39-amd64"
    arch: str = "x86_64"
    os: str = "debian"  # one of tests/hosts/user_files.py
    loader: str = "grub"  # one of tests/hosts/boot_files.py
    vendor: str = "GenuineIntel"
    model: str = "Intel(R) Xeon(R) CPU @ 3.50GHz"
    tsc_mhz: int = 3500
    possible: CpuSet = frozenset()  # empty: 0 to the last present CPU
    smt: str = "notsupported"
    frequency: Frequency | None = None
    idle: tuple[Idle, ...] = ()
    caches: tuple[Cache, ...] = (
        Cache(1, "Data", 32),
        Cache(1, "Instruction", 32),
        Cache(2, "Unified", 1024),
        Cache(3, "Unified", 16384),
    )
    nodes: tuple[Node, ...] = (Node(0, 16000, (10,)),)
    irqs: tuple[Irq, ...] = ()
    nics: tuple[Nic, ...] = ()
    thermal_zones: tuple[tuple[str, int], ...] = ()
    hwmon: tuple[str, ...] = ()
    uncore: tuple[str, ...] = ()  # dies with an uncore clock of their own, as the kernel names them
    energy_bias: int | None = None  # Intel's energy_perf_bias
    throttle: bool = False  # Intel's thermal_throttle counters
    clocksources: tuple[str, ...] = ("tsc", "hpet", "acpi_pm")
    hypervisor: str = ""
    daemons: tuple[str, ...] = ()  # units that are enabled and run
    files: Mapping[str, str] = field(default_factory=dict)  # whatever else this host has
    tuned_boot: CpuSet = frozenset()

    @cached_property
    def present(self) -> CpuSet:
        """Every CPU described."""
        return frozenset(cpu.cpu for cpu in self.cpus)

    @cached_property
    def online(self) -> CpuSet:
        """Those switched on."""
        return frozenset(cpu.cpu for cpu in self.cpus if cpu.online)

    @cached_property
    def all_possible(self) -> CpuSet:
        """What the kernel made room for."""
        return self.possible or frozenset(range(max(self.present) + 1))

    @property
    def nr_cpus(self) -> int:
        """nr_cpu_ids."""
        return max(self.all_possible) + 1

    @property
    def housekeeping(self) -> CpuSet:
        """The online CPUs this boot did not isolate."""
        return self.online - self.tuned_boot

    @property
    def kernel_version(self) -> tuple[int, int]:
        """(6, 12) of 6.12.3-whatever."""
        major, minor = self.kernel.split(".")[:2]
        return int(major), int(minor.split("-")[0])

    def boot_words(self) -> list[str]:
        """The boot arguments of a tuned boot; none of a stock one."""
        if not self.tuned_boot:
            return []
        tuned, rest = format_cpulist(self.tuned_boot), format_cpulist(self.present - self.tuned_boot)
        lists = [f"isolcpus=managed_irq,domain,{tuned}", f"nohz_full={tuned}", f"rcu_nocbs={tuned}"]
        return [*lists, f"irqaffinity={rest}", "skew_tick=1", "nosoftlockup", "tsc=reliable"]

    def placed(self, irq: Irq) -> tuple[CpuSet, int]:
        """(affinity, effective CPU) of an interrupt, as this boot's irqaffinity= and managed_irq leave it."""
        asked = self.online if irq.affinity is None else irq.affinity
        if irq.managed:
            where = asked & self.online & self.housekeeping or asked & self.online
        else:
            asked = where = asked & self.housekeeping or self.housekeeping
        effective = irq.effective if irq.effective in where or not where else min(where)
        return asked, effective
