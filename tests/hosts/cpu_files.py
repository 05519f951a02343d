"""/sys/devices/system/cpu of a generated host."""

from collections.abc import Callable, Iterable

from tests.hosts.spec import Cpu, Frequency, HostSpec
from tests.hosts.tree import Tree
from tunectl.cpulist import CpuSet, format_cpulist, format_cpumask

_CPU = "sys/devices/system/cpu"
_PREFERENCES = "default performance balance_performance balance_power power"


def write_cpus(tree: Tree, spec: HostSpec) -> None:
    """Every CPU's directory and the files above them."""
    _write_sets(tree, spec)
    _write_idle_drivers(tree, spec)
    siblings = _grouped(spec.cpus, lambda cpu: (cpu.package, cpu.die, cpu.core))
    packages = _grouped(spec.cpus, lambda cpu: cpu.package)
    dies = _grouped(spec.cpus, lambda cpu: (cpu.package, cpu.die))
    for cpu in spec.cpus:
        _write_cpu(tree, spec, cpu)
        if not cpu.online:
            continue
        _write_topology(tree, spec, cpu, siblings[cpu.cpu], dies[cpu.cpu], packages[cpu.cpu])
        _write_idle(tree, spec, cpu.cpu)
        if spec.frequency:
            _write_policy(tree, spec.frequency, cpu, bool(spec.frequency.nominal_mhz))
        if spec.energy_bias is not None:
            tree.value(f"{_CPU}/cpu{cpu.cpu}/power/energy_perf_bias", spec.energy_bias)
        if spec.throttle:
            _write_throttle(tree, cpu.cpu)
    _write_caches(tree, spec, siblings)
    if spec.frequency:
        _write_drivers(tree, spec.frequency)
    for die in spec.uncore:
        clocks = {"min_freq_khz": 800000, "max_freq_khz": 2400000}
        clocks |= {f"initial_{name}": khz for name, khz in clocks.items()}
        tree.values(f"{_CPU}/intel_uncore_frequency/{die}", **clocks)
    _write_kinds(tree, spec)
    if spec.arch == "x86_64":
        flaws = {"meltdown": "Not affected", "spectre_v2": "Mitigation: Enhanced IBRS", "mmio_stale_data": "Vulnerable"}
        tree.values(f"{_CPU}/vulnerabilities", **flaws)


def _grouped(cpus: Iterable[Cpu], key: Callable[[Cpu], object]) -> dict[int, CpuSet]:
    groups: dict[object, set[int]] = {}
    online = [cpu for cpu in cpus if cpu.online]
    for cpu in online:
        groups.setdefault(key(cpu), set()).add(cpu.cpu)
    frozen = {name: frozenset(members) for name, members in groups.items()}
    return {cpu.cpu: frozen[key(cpu)] for cpu in online}


def _write_sets(tree: Tree, spec: HostSpec) -> None:
    tree.directory("sys/bus/cpu")
    isolated = format_cpulist(spec.tuned_boot)
    # Without nohz_full= the kernel prints the mask it never allocated (lib/vsprintf.c).
    nohz_full = isolated if spec.tuned_boot else " " * (spec.nr_cpus // 4) + "(null)"
    tree.values(
        _CPU,
        present=format_cpulist(spec.present),
        online=format_cpulist(spec.online),
        possible=format_cpulist(spec.all_possible),
        offline=format_cpulist(spec.all_possible - spec.online),
        isolated=isolated,
        nohz_full=nohz_full,
        kernel_max=8191,
    )
    cores = {(cpu.package, cpu.die, cpu.core) for cpu in spec.cpus if cpu.online}
    tree.values(f"{_CPU}/smt", control=spec.smt, active=int(spec.smt == "on" and len(spec.online) > len(cores)))


def _write_idle_drivers(tree: Tree, spec: HostSpec) -> None:
    idle = "menu" if spec.idle else "none"
    driver = ("intel_idle" if spec.vendor == "GenuineIntel" else "acpi_idle") if spec.idle else "none"
    tree.values(f"{_CPU}/cpuidle", current_driver=driver, current_governor=idle, current_governor_ro=idle)
    tree.value(f"{_CPU}/cpuidle/available_governors", "menu")


def _write_cpu(tree: Tree, spec: HostSpec, cpu: Cpu) -> None:
    directory = f"{_CPU}/cpu{cpu.cpu}"
    if cpu.cpu or not cpu.online or spec.arch != "x86_64":  # x86 cannot unplug CPU 0, and shows no switch
        tree.value(f"{directory}/online", int(cpu.online))
    tree.values(f"{directory}/power", pm_qos_resume_latency_us=0, control="auto", runtime_status="unsupported")
    tree.link(f"{directory}/subsystem", "../../../../bus/cpu")
    tree.value(f"{directory}/uevent", f"DRIVER=processor\nMODALIAS=cpu:type:{spec.arch}")
    if cpu.online and spec.nodes:
        tree.link(f"{directory}/node{cpu.node}", f"../../node/node{cpu.node}")
    if spec.arch == "aarch64" and cpu.online:
        tree.value(f"{directory}/cpu_capacity", 446 if cpu.efficient else 1024)


def _write_topology(tree: Tree, spec: HostSpec, cpu: Cpu, core: CpuSet, die: CpuSet, package: CpuSet) -> None:
    directory = f"{_CPU}/cpu{cpu.cpu}/topology"
    tree.values(directory, core_id=cpu.core, physical_package_id=cpu.package, die_id=cpu.die, cluster_id=-1)
    sets = {"thread_siblings": core, "core_cpus": core, "core_siblings": package, "package_cpus": package}
    for name, members in {**sets, "die_cpus": die}.items():
        tree.value(f"{directory}/{name}_list", format_cpulist(members))
        tree.value(f"{directory}/{name}", format_cpumask(members, nr_cpus=spec.nr_cpus))


def _write_caches(tree: Tree, spec: HostSpec, siblings: dict[int, CpuSet]) -> None:
    last = _grouped(spec.cpus, lambda cpu: (cpu.package, cpu.l3))
    middle = _grouped(spec.cpus, lambda cpu: (cpu.package, cpu.die, cpu.core) if cpu.l2 is None else ("l2", cpu.l2))
    for cpu in sorted(spec.online):
        shared = {1: siblings[cpu], 2: middle[cpu], 3: last[cpu]}
        for index, cache in enumerate(spec.caches):
            directory = f"{_CPU}/cpu{cpu}/cache/index{index}"
            members = shared[cache.level]
            tree.values(
                directory,
                level=cache.level,
                type=cache.kind,
                size=f"{cache.size_kib}K",
                id=min(members),
                coherency_line_size=64,
                shared_cpu_list=format_cpulist(members),
                shared_cpu_map=format_cpumask(members, nr_cpus=spec.nr_cpus),
            )


def _write_idle(tree: Tree, spec: HostSpec, cpu: int) -> None:
    for number, state in enumerate(spec.idle):
        tree.values(
            f"{_CPU}/cpu{cpu}/cpuidle/state{number}",
            name=state.name,
            desc=state.name,
            latency=state.latency,
            residency=state.residency,
            disable=0,
            default_status="enabled",
            usage=1000 * (cpu + 1),
            time=50000 * (cpu + 1),
            above=number,
            below=number,
            rejected=0,
            power=0,
        )


def _write_policy(tree: Tree, frequency: Frequency, cpu: Cpu, cppc: bool) -> None:
    tree.link(f"{_CPU}/cpu{cpu.cpu}/cpufreq", f"../cpufreq/policy{cpu.cpu}")
    directory = f"{_CPU}/cpufreq/policy{cpu.cpu}"
    high = frequency.efficient_max_khz if cpu.efficient and frequency.efficient_max_khz else frequency.max_khz
    base = frequency.efficient_base_khz if cpu.efficient and frequency.efficient_base_khz else frequency.base_khz
    tree.values(
        directory,
        scaling_driver=frequency.driver,
        scaling_governor=frequency.governor,
        scaling_available_governors=" ".join(frequency.governors),
        scaling_min_freq=frequency.min_khz,
        scaling_max_freq=high,
        scaling_cur_freq=frequency.min_khz,
        cpuinfo_min_freq=frequency.min_khz,
        cpuinfo_max_freq=high,
        cpuinfo_transition_latency=20000,
        related_cpus=cpu.cpu,
        affected_cpus=cpu.cpu,
        scaling_setspeed="<unsupported>",
    )
    if frequency.steps_khz:
        steps = " ".join(str(step) for step in frequency.steps_khz)
        tree.text(f"{directory}/scaling_available_frequencies", f"{steps} \n")
        tree.value(f"{directory}/cpuinfo_cur_freq", frequency.min_khz, 0o400)
    if frequency.bios_limit:
        tree.value(f"{directory}/bios_limit", high)
    if base:
        tree.value(f"{directory}/base_frequency", base)
    if frequency.preferences:
        tree.value(f"{directory}/energy_performance_preference", "balance_performance")
        tree.value(f"{directory}/energy_performance_available_preferences", _PREFERENCES)
    if frequency.driver.startswith("amd-pstate"):
        tree.values(directory, amd_pstate_max_freq=high, amd_pstate_lowest_nonlinear_freq=frequency.min_khz)
    if frequency.policy_boost:
        tree.value(f"{directory}/boost", 1)
    if cppc:
        tree.values(
            f"{_CPU}/cpu{cpu.cpu}/acpi_cppc", nominal_freq=frequency.nominal_mhz, lowest_freq=0, highest_perf=255
        )


def _write_throttle(tree: Tree, cpu: int) -> None:
    for scope in ("core", "package"):
        for name in ("count", "max_time_ms", "total_time_ms"):
            tree.value(f"{_CPU}/cpu{cpu}/thermal_throttle/{scope}_throttle_{name}", 0)


def _write_drivers(tree: Tree, frequency: Frequency) -> None:
    if frequency.driver in ("intel_pstate", "intel_cpufreq"):
        status = "active" if frequency.driver == "intel_pstate" else "passive"
        limits = {"min_perf_pct": 20, "max_perf_pct": frequency.perf_pct}
        tree.values(f"{_CPU}/intel_pstate", status=status, no_turbo=0, turbo_pct=40, **limits)
        if frequency.base_khz:  # with hardware-managed P-states only
            tree.value(f"{_CPU}/intel_pstate/hwp_dynamic_boost", 0)
    if frequency.driver.startswith("amd-pstate"):
        status = frequency.mode or ("active" if frequency.driver.endswith("epp") else "passive")
        tree.values(f"{_CPU}/amd_pstate", status=status, prefcore="enabled")
    if frequency.boost:
        tree.value(f"{_CPU}/cpufreq/boost", 1)


def _write_kinds(tree: Tree, spec: HostSpec) -> None:
    efficient = frozenset(cpu.cpu for cpu in spec.cpus if cpu.efficient)
    if efficient and spec.arch == "x86_64":
        tree.value("sys/devices/cpu_core/cpus", format_cpulist(spec.online - efficient))
        tree.value("sys/devices/cpu_atom/cpus", format_cpulist(spec.online & efficient))
    elif spec.arch == "x86_64":
        tree.value("sys/devices/cpu/type", 4)
