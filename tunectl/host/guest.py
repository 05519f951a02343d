"""A virtual machine: whose it is, which settings its guest does not own, and what the provider documents of them.

What the guest owns is what its kernel shows (cpufreq, cpuidle), whoever the provider is; the provider is told by DMI,
which everybody may read. docs/kernel-facts.md, "In a cloud's guest", has the sources.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from tunectl.host.sysroot import Sysroot

_DMI = "sys/class/dmi/id"
_CPU = "sys/devices/system/cpu"
# Azure's own value of chassis_asset_tag; Hyper-V elsewhere has another.
_AZURE_TAG = "7783-7084-3265-9085-8269-3286-77"
FREQUENCY, IDLE, FIRMWARE = "governor and frequency", "idle states", "firmware"
# Words with which this kernel itself does without: then nothing says what the host would have shown.
_REFUSES = {
    FREQUENCY: ("cpufreq.off", "intel_pstate", "amd_pstate"),
    IDLE: ("cpuidle.off", "idle", "intel_idle.max_cstate", "processor.max_cstate"),
}
_REFUSES_ANY = ("acpi", "module_blacklist", "modprobe.blacklist", "initcall_blacklist")
_FACILITIES = {FREQUENCY: ("cpufreq", "uncore"), IDLE: ("cpuidle",)}


class Document(NamedTuple):
    """What a provider says of one kind of setting, in our words, and where."""

    says: str
    source: str


_AWS_STATES = "Amazon EC2 User Guide, Processor state control for Amazon EC2 Linux instances"
_AWS_CPUS = "Amazon EC2 API Reference, ModifyInstanceCpuOptions"
_GCP_CPUS = "Google Compute Engine documentation, CPU platforms"
_AZURE_MODE = "Azure Python SDK reference, azure.mgmt.compute.models.ProcessorMode"
PROVIDERS: Mapping[str, Mapping[str, Document]] = {
    "AWS": {
        FREQUENCY: Document(
            "P-states are the guest's on listed large types and on metal; Graviton's clock is fixed", _AWS_STATES
        ),
        IDLE: Document("C-states are the guest's on listed types and on metal; never on Graviton", _AWS_STATES),
        FIRMWARE: Document("threads a core are chosen for a stopped instance, from outside", _AWS_CPUS),
    },
    "Google Cloud": {
        FREQUENCY: Document("the guest is shown the base clock, whatever clock it runs at", _GCP_CPUS),
        FIRMWARE: Document("threads a core are chosen for the instance, from outside", _GCP_CPUS),
    },
    "Azure": {
        FREQUENCY: Document(
            "the VM's processor mode, deterministic or opportunistic, is set from outside", _AZURE_MODE
        ),
    },
}


class Lack(NamedTuple):
    """One kind of setting that this guest does not own."""

    what: str
    shown: str  # what the kernel shows of it, which is how it is known
    documented: Document | None  # None where nothing is known of this provider


class Guest(NamedTuple):
    """A virtual machine as its guest sees it."""

    provider: str  # a key of PROVIDERS; "" for another, or one that does not say
    hypervisor: str  # as Drivers.hypervisor has it
    evidence: tuple[str, ...]  # the files that tell the provider, with a leading slash
    lacks: tuple[Lack, ...]

    @property
    def reasons(self) -> Mapping[str, str]:
        """By facility of the knobs why this guest cannot have them."""
        whose = f" of {self.provider}" if self.provider else ""
        found = {}
        for lack in self.lacks:
            why = f"in this virtual machine{whose} {lack.what} are the host's to set (`tunectl show` says more)"
            found.update(dict.fromkeys(_FACILITIES.get(lack.what, ()), why))
        return MappingProxyType(found)


def read_guest(root: Sysroot, hypervisor: str) -> Guest | None:
    """The guest below `root`; None on bare metal. `hypervisor` is hardware.hypervisor_of's. Never raises."""
    if not hypervisor:
        return None
    provider, evidence = _provider(root)
    documents = PROVIDERS.get(provider, {})
    shown = {}
    if _is_hidden(root, FREQUENCY, "cpufreq"):
        shown[FREQUENCY] = "the kernel has no cpufreq here"
    if read_cpuidle_driver(root) == HALTPOLL:
        shown[IDLE] = f"the kernel's cpuidle driver is {HALTPOLL}, which has none of them"
    elif _is_hidden(root, IDLE, "cpuidle"):
        shown[IDLE] = "the kernel has no cpuidle states here"
    shown[FIRMWARE] = "a guest has none of the machine's own"
    lacks = tuple(Lack(what, how, documents.get(what)) for what, how in shown.items())
    return Guest(provider, hypervisor, evidence, lacks)


def is_metal(root: Sysroot) -> bool:
    """Is this an EC2 instance without a hypervisor? Its product name is its type, such as c7g.metal or m7i.metal-24xl.

    On aarch64 nothing else tells: /proc/cpuinfo has no hypervisor flag there.
    """
    product = root.get(f"{_DMI}/product_name")
    return root.get(f"{_DMI}/sys_vendor") == "Amazon EC2" and ".metal" in product


def _provider(root: Sysroot) -> tuple[str, tuple[str, ...]]:
    def read(name: str) -> str:
        return root.get(f"{_DMI}/{name}")

    vendor = read("sys_vendor")
    if vendor == "Amazon EC2":
        return "AWS", (f"/{_DMI}/sys_vendor",)
    if vendor == "Xen" and read("bios_version").endswith("amazon"):  # the types before Nitro: 4.11.amazon
        return "AWS", (f"/{_DMI}/bios_version",)
    if vendor == "Google" and read("product_name") == "Google Compute Engine":
        return "Google Cloud", (f"/{_DMI}/sys_vendor", f"/{_DMI}/product_name")
    if vendor == "Microsoft Corporation" and read("chassis_asset_tag") == _AZURE_TAG:
        return "Azure", (f"/{_DMI}/sys_vendor", f"/{_DMI}/chassis_asset_tag")
    return "", ()


def _is_hidden(root: Sysroot, what: str, directory: str) -> bool:
    """Has no CPU this directory, though this boot's command line took it from none?"""
    keys = {word.partition("=")[0].replace("-", "_") for word in root.get("proc/cmdline").split()}
    if not keys.isdisjoint({*_REFUSES[what], *_REFUSES_ANY}):
        return False
    cpus = (name for name in root.listdir(_CPU) if name[3:].isdecimal())
    return not any(root.listdir(f"{_CPU}/{cpu}/{directory}") for cpu in cpus)


# Which driver knows the machine's idle states. Source: Documentation/admin-guide/pm/cpuidle.rst.
DRIVER = "sys/devices/system/cpu/cpuidle/current_driver"
# It polls and then halts (Documentation/virt/guest-halt-polling.rst): its latencies are its own, not the machine's.
HALTPOLL = "haltpoll"


def read_cpuidle_driver(root: Sysroot) -> str:
    """Its name; "" where none is in charge, and a CPU that waits halts."""
    name = root.get(DRIVER)
    return "" if name == "none" else name
