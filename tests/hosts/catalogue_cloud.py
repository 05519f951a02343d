"""Recorded guests of clouds: what tells each provider, and what its hypervisor shows of the CPUs."""

from dataclasses import replace

from tests.hosts.parts import INTEL_IDLE, queues
from tests.hosts.spec import Cpu, Frequency, HostSpec, Nic

_DMI = "sys/class/dmi/id"


def _guest(name: str, vendor: str, product: str, driver: str, **files: str) -> HostSpec:
    return HostSpec(
        name,
        tuple(Cpu(n, n // 2) for n in range(4)),
        kernel="6.12.9-cloud-amd64",
        smt="on",
        clocksources=("kvm-clock", "tsc", "acpi_pm"),
        hypervisor=vendor,
        irqs=queues(24, "eth0-q", 2, [0, 1], "0000:00:05.0"),
        nics=(Nic("eth0", driver, "0000:00:05.0", (24, 25), speed=-1, queues=2),),
        files={f"{_DMI}/product_name": f"{product}\n", **files},
    )


def aws() -> HostSpec:
    """A small Nitro instance: neither P-states nor C-states."""
    return _guest("aws", "Amazon EC2", "c7i.xlarge", "ena")


def awslarge() -> HostSpec:
    """A type whose guest has both, as a metal one has."""
    frequency = Frequency("intel_pstate", ("performance", "powersave"), "powersave", 800000, 3500000, 2900000)
    return replace(_guest("awslarge", "Amazon EC2", "m4.16xlarge", "ena"), frequency=frequency, idle=INTEL_IDLE)


def gcp() -> HostSpec:
    """A Compute Engine instance: neither."""
    return _guest("gcp", "Google", "Google Compute Engine", "gve")


def azure() -> HostSpec:
    """An Azure VM, which its asset tag tells from another Hyper-V."""
    tag = {f"{_DMI}/chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77\n"}
    return _guest("azure", "Microsoft Corporation", "Virtual Machine", "hv_netvsc", **tag)


def kvm() -> HostSpec:
    """A guest of a provider that nothing names, with the paravirtual idle driver."""
    haltpoll = {"sys/devices/system/cpu/cpuidle/current_driver": "haltpoll\n"}
    return _guest("kvm", "Red Hat", "KVM", "virtio_net", **haltpoll)
