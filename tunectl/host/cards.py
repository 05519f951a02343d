"""The PCI cards that matter to a trader, the way to each, and what the links on that way were trained to.

A link joins a port and what is plugged into it, and trains to the best that both ends can do
(Documentation/ABI/testing/sysfs-bus-pci; drivers/pci/pci-sysfs.c). So the port says what a slot is wired for: below a
riser or a bifurcated slot it can do less than the card, and nothing is wrong.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from tunectl.command import as_data
from tunectl.host.hardware import hypervisor_of
from tunectl.host.plausible import LINK_SPEEDS, LINK_WIDTHS
from tunectl.host.sysroot import Sysroot

DEVICES = "sys/bus/pci/devices"
_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ROOT = re.compile(r"pci[0-9a-f]{4,}:[0-9a-f]{2}")
# Base classes of PCI's code and ID assignment: display controllers, processing accelerators.
_KINDS = {"0x03": "graphics card", "0x12": "accelerator"}


class Card(NamedTuple):
    """One card: the host file's name of its interface, or its address."""

    name: str
    kind: str  # network card, graphics card, accelerator
    way: tuple[str, ...]  # addresses, from the port of the root complex to the card; empty: not a PCI device

    @property
    def links(self) -> list[tuple[str, str]]:
        """Port and end of each link on the way: within a switch there is none, so every second pair is one."""
        return list(zip(self.way[::2], self.way[1::2], strict=False))


class Link(NamedTuple):
    """What one link runs at and what both of its ends can do; or why nobody knows."""

    port: str
    end: str
    width: int = 0
    best_width: int = 0
    speed: float = 0.0  # GT/s
    best_speed: float = 0.0
    unknown: str = ""


def trading_cards(root: Sysroot, interfaces: Iterable[str]) -> tuple[Card, ...]:
    """The network cards of these interfaces, and all graphics cards and accelerators. Never raises."""
    cards = [Card(name, "network card", _way(root, f"sys/class/net/{name}/device")) for name in interfaces]
    for address in sorted(root.listdir(DEVICES)):
        if kind := _KINDS.get(root.get(f"{DEVICES}/{address}/class")[:4]):
            cards.append(Card(address, kind, _way(root, f"{DEVICES}/{address}")))
    return tuple(cards)


def _way(root: Sysroot, path: str) -> tuple[str, ...]:
    """The addresses on the way to a device. A virtual function has no link of its own: its card's way is its own."""
    if root.exists(f"{path}/physfn"):
        path = f"{path}/physfn"
    if "/../" in path or not root.exists(path):
        return ()
    try:
        parts = root.real(path).split("/")
    except OSError:  # links in a circle
        return ()
    # VMD and the like begin a hierarchy of their own below a device.
    start = max((place for place, part in enumerate(parts) if _ROOT.fullmatch(part)), default=-1)
    return tuple(part for part in parts[start + 1 :] if _ADDRESS.fullmatch(part))


def read_links(root: Sysroot, card: Card) -> list[Link]:
    """Every link between the root complex and the card; none where no end of a pair has link files. Never raises."""
    return [_link(root, *pair) for pair in card.links if any(_has_files(root, address) for address in pair)]


def _has_files(root: Sysroot, address: str) -> bool:
    return root.exists(f"{DEVICES}/{address}/current_link_width")


def _link(root: Sysroot, port: str, end: str) -> Link:
    for address in (port, end):
        # The registers of a device that sleeps are all ones; newer kernels wake it to read them.
        if root.get(f"{DEVICES}/{address}/power/runtime_status") in ("suspended", "suspending"):
            return Link(port, end, unknown=f"{address} is suspended: its link is not looked at, for that would wake it")
        if not _has_files(root, address):
            return Link(port, end, unknown=f"{address} has no link files")
    ends = ((end, "current"), (port, "current"), (end, "max"), (port, "max"))
    said = [_figure(root, address, which, kind) for kind in _FIGURES for address, which in ends]
    if wrong := next((each for each in said if isinstance(each, str)), ""):
        return Link(port, end, unknown=wrong)
    width, width_at_port, end_width, port_width, speed, speed_at_port, end_speed, port_speed = map(float, said)
    if (width, speed) != (width_at_port, speed_at_port):
        at_end, at_port = said_of(int(width), speed), said_of(int(width_at_port), speed_at_port)
        return Link(port, end, unknown=f"{end} says that its link runs {at_end}, and {port} says {at_port}")
    link = Link(port, end, int(width), int(min(end_width, port_width)), speed, min(end_speed, port_speed))
    if width > link.best_width or speed > link.best_speed:
        return Link(port, end, unknown=f"{end} says that its link runs at more than both of its ends can do")
    return link


def said_of(width: int, speed: float) -> str:
    """x8 at 16 GT/s"""
    return f"x{width} at {speed:g} GT/s"


# What each file holds, and what of it can be. Of a speed `8.0 GT/s PCIe`, before 5.7 `8 GT/s`.
_FIGURES = {
    "width": (re.compile(r"([0-9]{1,3})"), LINK_WIDTHS),
    "speed": (re.compile(r"([0-9]{1,3}(?:\.[0-9])?) GT/s(?: PCIe)?"), LINK_SPEEDS),
}


def _figure(root: Sysroot, address: str, which: str, kind: str) -> float | str:
    """Lanes or GT/s; a text says why that is not known."""
    path, (shape, known) = f"{DEVICES}/{address}/{which}_link_{kind}", _FIGURES[kind]
    text = root.get(path)
    number = shape.fullmatch(text)
    if number and float(number[1]) in known:
        return float(number[1])
    return f"/{path} says {as_data(text[:40])}, which no link is" if text else f"/{path} cannot be read"


def no_links(root: Sysroot) -> str:
    """Why the ports of this machine say nothing of its slots; "" where they do."""
    if hypervisor_of(root, root.get_text("proc/cpuinfo")):
        return (
            "this is a virtual machine: its ports are the hypervisor's, and the slots of the machine below do not show"
        )
    return ""
