"""Pieces that several generated hosts share."""

from collections.abc import Sequence

from tests.hosts.spec import Idle, Irq

INTEL_IDLE = (Idle("POLL", 0, 0), Idle("C1", 2, 2), Idle("C1E", 10, 20), Idle("C6", 133, 600))

# What drivers offer by ethtool's netlink interface, as they come up.
VIRTIO_NET = {
    "features/rx-gro": 1,
    "rings/rx-max": 256,
    "rings/tx-max": 256,
    "rings/rx": 256,
    "rings/tx": 256,
    "channels/combined-max": 1,
    "channels/combined-count": 1,
    "coalesce/rx-usecs": 0,
    "coalesce/rx-max-frames": 1,
    "coalesce/tx-usecs": 0,
    "coalesce/tx-max-frames": 1,
    "coalesce/use-adaptive-rx": 0,
}
MLX5 = {
    "features/rx-gro": 1,
    "features/rx-lro": 0,
    "features/rx-ntuple-filter": 0,
    "rings/rx-max": 8192,
    "rings/tx-max": 8192,
    "rings/rx": 1024,
    "rings/tx": 1024,
    "channels/combined-max": 16,
    "channels/combined-count": 8,
    "coalesce/rx-usecs": 8,
    "coalesce/rx-max-frames": 128,
    "coalesce/tx-usecs": 8,
    "coalesce/tx-max-frames": 128,
    "coalesce/use-adaptive-rx": 1,
    "coalesce/use-adaptive-tx": 1,
}
# Receive and transmit queues that are counted apart.
APART = {"channels/rx-max": 4, "channels/tx-max": 4, "channels/rx-count": 4, "channels/tx-count": 4}


def queues(
    first: int,
    name: str,
    count: int,
    cpus: Sequence[int],
    bus: str,
    *,
    node: int = 0,
    managed: bool = False,
    start: int = 0,
) -> tuple[Irq, ...]:
    """`count` queue interrupts spread over `cpus`; managed ones are bound to their share, as the kernel does."""
    made = []
    for number in range(count):
        cpu = cpus[number * len(cpus) // count]
        share = frozenset(cpus[number * len(cpus) // count : (number + 1) * len(cpus) // count] or [cpu])
        action = f"{name}{number + start}"
        affinity = share if managed else None
        chip = f"PCI-MSIX-{bus}"
        made.append(Irq(first + number, action, cpu, chip, number + start, affinity, node, managed, 1000 + 7 * number))
    return tuple(made)


def platform(*names: str) -> tuple[Irq, ...]:
    known = {"timer": (0, 2), "rtc0": (8, 8), "acpi": (9, 9), "i8042": (1, 1), "ttyS0": (4, 4)}
    return tuple(Irq(known[name][0], name, 0, "IO-APIC", known[name][1], count=40) for name in names)
