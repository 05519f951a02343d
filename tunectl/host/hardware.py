"""Drivers and firmware that decide how fast and how quiet the host can be, and how often an SMI stopped it.

MSR_SMI_COUNT is read on a CPU that does not measure. Source: Intel SDM volume 4, MSR 34H; docs/kernel-facts.md.
"""

import os
import re
import struct
import time
from collections.abc import Callable, Collection, Iterable

from tunectl.cpulist import CpuSet
from tunectl.fix import to_decide
from tunectl.host.counters import rise
from tunectl.host.cpus import Cpu
from tunectl.host.cpusets import ISOLATED, NOHZ_FULL, read_cpu_list
from tunectl.host.guest import is_metal, read_cpuidle_driver
from tunectl.host.shellvars import last_value
from tunectl.host.sysroot import Sysroot
from tunectl.shapes import LIMITS, SMIS, Drivers, Flaw, IdleState, Smis

_CPU = "sys/devices/system/cpu"
# DMI strings of machines that are not machines; the hypervisor flag alone does not name it.
_VIRTUAL_VENDORS = ("QEMU", "VMware", "Xen", "Amazon EC2", "Google", "Microsoft Corporation", "innotek", "Parallels")


def read_drivers(root: Sysroot, cpus: Iterable[Cpu]) -> Drivers:
    """What runs this host. Never raises for what it lacks."""
    cpuinfo = root.get_text("proc/cpuinfo")
    first = next((cpu.cpu for cpu in cpus if cpu.online), 0)
    clock = "sys/devices/system/clocksource/clocksource0"
    status = root.get(f"{_CPU}/intel_pstate/status") or root.get(f"{_CPU}/amd_pstate/status")
    governor = root.get(f"{_CPU}/cpuidle/current_governor_ro")
    flaws, idle = f"{_CPU}/vulnerabilities", f"{_CPU}/cpu{first}/cpuidle"
    numbers = sorted(int(name[5:]) for name in root.listdir(idle) if re.fullmatch(r"state\d+", name))
    states = ((root.get(f"{idle}/state{n}/name"), root.get(f"{idle}/state{n}/latency")) for n in numbers)
    return Drivers(
        model=cpuinfo_field(cpuinfo, "model name"),
        cpufreq=root.get(f"{_CPU}/cpu{first}/cpufreq/scaling_driver"),
        cpufreq_status=status,
        boost=read_boost(root),
        cpuidle=read_cpuidle_driver(root),
        cpuidle_governor="" if governor == "none" else governor,
        idle_states=tuple(IdleState(name, int(latency)) for name, latency in states if latency.isdecimal()),
        clocksource=root.get(f"{clock}/current_clocksource"),
        clocksources=tuple(root.get(f"{clock}/available_clocksource").split()),
        smt=root.get(f"{_CPU}/smt/control"),
        hypervisor=hypervisor_of(root, cpuinfo),
        lockdown=parse_choice(root.get("sys/kernel/security/lockdown")),
        os=parse_os_release(root.get_text("etc/os-release") or root.get_text("usr/lib/os-release")),
        # `Not affected`, `Vulnerable` or `Mitigation: ...` (ABI/testing/sysfs-devices-system-cpu)
        vulnerabilities=tuple(Flaw(name, root.get(f"{flaws}/{name}")) for name in sorted(root.listdir(flaws))),
    )


def cpuinfo_field(cpuinfo: str, name: str) -> str:
    """The first CPU's field of that name in /proc/cpuinfo; "" where it has none."""
    match = re.search(rf"^{re.escape(name)}\s*:\s*(.*)$", cpuinfo, re.MULTILINE)
    return match[1].strip() if match else ""


def read_boost(root: Sysroot) -> bool | None:
    """intel_pstate has its own switch, in the other sense; the generic file does not work there."""
    if no_turbo := root.get(f"{_CPU}/intel_pstate/no_turbo"):
        return no_turbo == "0"
    boost = root.get(f"{_CPU}/cpufreq/boost")
    return boost == "1" if boost else None


def hypervisor_of(root: Sysroot, cpuinfo: str) -> str:
    """The DMI vendor, or what /sys/hypervisor says; the CPU flag is proof without a name."""
    vendor = root.get("sys/class/dmi/id/sys_vendor")
    if kind := root.get("sys/hypervisor/type"):
        return kind
    virtual = any(vendor.startswith(name) for name in _VIRTUAL_VENDORS)
    flagged = "hypervisor" in cpuinfo_field(cpuinfo, "flags").split()
    if vendor and flagged:
        return vendor
    if flagged:
        return "unknown"
    if is_metal(root):
        return ""
    # No flag on aarch64; on x86 a bare-metal cloud machine bears the vendor and no flag.
    return vendor if virtual and not cpuinfo_field(cpuinfo, "flags") else ""


def parse_choice(text: str) -> str:
    """The chosen word of `none [integrity] confidentiality`."""
    match = re.search(r"\[([^\]]+)\]", text)
    return match[1] if match else text.strip()


def parse_os_release(text: str) -> str:
    """PRETTY_NAME of os-release(5)."""
    return last_value(text, "PRETTY_NAME")


FEWER_SMIS = to_decide(
    "find what in the firmware asks for them: BIOS (USB legacy support, power capping, patrol scrub, corrected "
    "errors by firmware first), BMC polling; then `tunectl probe jitter --attribute` says how long each lasts"
)
_COUNT = 0x34
_BITS, _ONES = (1 << 32) - 1, (1 << 64) - 1  # the upper half is reserved
MOST_SMIS_PER_S = LIMITS[SMIS].ceiling  # that a host can have


def smis_between(before: Smis, after: Smis, seconds: float = 0.0) -> Smis:
    """How many came between the two, so many seconds apart. A count that fell, or rose too far, is of no use."""
    if after.count is None or before.count is None:
        return Smis(None, after.reason or before.reason)
    count = rise(before.count, after.count)
    if count is None or (seconds and count > seconds * MOST_SMIS_PER_S):
        return Smis(None, f"their count went from {before.count:,} to {after.count:,}, and began anew meanwhile")
    return Smis(count, seconds=round(seconds, 3))


def counting_smis(root: Sysroot, cpus: Collection[int]) -> Callable[[], Smis]:
    """How many came from now on until it is called, as `read_smis` counts."""
    before, began = read_smis(root, cpus), time.monotonic()

    def since() -> Smis:
        after = before if before.count is None else read_smis(root, cpus)
        return smis_between(before, after, time.monotonic() - began)

    return since


def read_smis(root: Sysroot, cpus: Collection[int]) -> Smis:
    """Since the host was switched on, as the first of these CPUs says that is not isolated; none of them measures."""
    if why := never_smis(root):
        return Smis(None, why)
    spared = frozenset(cpus) - read_cpu_list(root, ISOLATED) - read_cpu_list(root, NOHZ_FULL)
    return count_smis(root, spared)


def never_smis(root: Sysroot) -> str:
    """Why this machine never shows its SMIs; "" where it may."""
    cpuinfo = root.get_text("proc/cpuinfo")
    if cpuinfo_field(cpuinfo, "vendor_id") != "GenuineIntel":
        return "only Intel's CPUs count them"
    if hypervisor_of(root, cpuinfo):
        return "this is a virtual machine, and those of the machine below do not show"
    return ""


def count_smis(root: Sysroot, spared: CpuSet) -> Smis:
    """As the first of these CPUs says, none of which measures or is isolated."""
    if not spared:
        return Smis(None, "no CPU is left that neither measures nor is isolated")
    path = f"dev/cpu/{min(spared)}/msr"
    try:
        fd = root.open_device(path) if root.live else root.open(path)
        try:
            (count,) = struct.unpack("<Q", os.pread(fd, 8, _COUNT))
        finally:
            os.close(fd)
        return Smis(None, f"/{path} reads as all ones, which is no count") if count == _ONES else Smis(count & _BITS)
    except FileNotFoundError:
        if root.exists("sys/module/msr"):
            return Smis(None, f"the module msr is there, and this service is not given /{path} (docs/cards.md)")
        return Smis(None, f"there is no /{path} (sudo modprobe msr)")
    except PermissionError:
        return Smis(None, f"only root may read /{path}, with CAP_SYS_RAWIO")
    except (OSError, struct.error) as error:
        return Smis(None, f"/{path} cannot be read: {error}")
