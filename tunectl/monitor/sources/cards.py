"""What goes wrong on the way to memory and to the wire: PCI Express, memory, links, and what network cards lost.

Every count is one that the kernel or a driver keeps anyway. A subject that goes takes its counts along.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tunectl.host.cards import DEVICES, trading_cards
from tunectl.host.counters import INTERRUPTS, THROTTLES
from tunectl.host.niccounters import CORRECTED, CORRUPT, LOST, meanings
from tunectl.host.nics import read_driver
from tunectl.host.plausible import COUNT
from tunectl.host.sysroot import Sysroot
from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.sources.rising import Rising
from tunectl.monitor.watched_host import Source, WatchedHost
from tunectl.wording import few

_NAME = "cards"
_EVERY_S = 10.0
_STATISTICS_S = 60.0  # a driver may ask its card's firmware for them
_EDAC, _NET = "sys/devices/system/edac/mc", "sys/class/net"
_NO_COUNT = "/{} holds no count"
_GONE = "it had risen in the last ten minutes, and is not there any more"
Subject = tuple[str, str]  # quantity, subject
_BITS = {
    "pcie_errors": THROTTLES,
    "memory_errors": INTERRUPTS,
    "carrier_changes": INTERRUPTS,
}  # as wide as the kernel's
_QUANTITIES = (*_BITS, "nic_lost", "nic_paused", "nic_corrupt")


class _Seen(NamedTuple):
    """What one subject held, by counter; or why that could not be read. `kind` says what else it is."""

    counts: Mapping[str, int]
    problem: str = ""
    kind: str = ""


class _Kept:
    """What rose, subject by subject, and the samples of the last look."""

    def __init__(self) -> None:
        self.rising: dict[Subject, Rising] = {}
        self.samples: dict[Subject, Sample] = {}
        self.next_at = self.next_statistics = 0.0

    def take(self, now: float, seen: Mapping[Subject, _Seen], *, of_drivers: bool) -> None:
        """Samples of what was looked at; what is not there any more begins anew if it comes back.

        It is forgotten, but where it had risen: a card that fell off its bus has mended nothing.
        """
        looked_at = {key for key in self.samples if key[0].startswith("nic_") == of_drivers}
        for key in looked_at - seen.keys():
            if key in self.rising and self.rising[key].lose(now):
                self.samples[key] = Sample(*key, None, _NAME, Freshness.NO_DATA, _GONE, kind=self.samples[key].kind)
            else:
                self.samples.pop(key)
                self.rising.pop(key, None)
        for key, (counts, problem, kind) in seen.items():
            if problem:
                self.samples[key] = Sample(*key, None, _NAME, Freshness.NO_DATA, problem, kind=kind)
                continue
            rising = self.rising.setdefault(key, Rising(_BITS.get(key[0], THROTTLES)))
            rising.add(now, counts)
            self.samples[key] = rising.sample(now, *key, _NAME, kind)


def read(host: WatchedHost) -> Iterator[Sample]:
    """pcie_errors, memory_errors, carrier_changes, nic_lost, nic_paused, nic_corrupt: how far in ten minutes."""
    kept, now = host.keep(_NAME, _Kept), host.taken_at
    always = host.is_once or not host.root.live
    if always or now >= kept.next_at:
        kept.next_at = now + _EVERY_S
        kept.take(now, dict(_kernels(host.root, host.config.interfaces)), of_drivers=False)
    if always or now >= kept.next_statistics:
        kept.next_statistics = now + _STATISTICS_S
        kept.take(now, dict(_drivers(host.root, host.config.interfaces)), of_drivers=True)
    yield from kept.samples.values()
    spoken = {quantity for quantity, _ in kept.samples}
    for quantity in _QUANTITIES:
        if quantity not in spoken:
            yield Sample(quantity, "host", None, _NAME, Freshness.ABSENT, "this host counts none")


def _kernels(root: Sysroot, interfaces: tuple[str, ...]) -> Iterator[tuple[Subject, _Seen]]:
    """What the kernel counts: memory is all that is read for it."""
    ways = {address: card.name for card in trading_cards(root, interfaces) for address in card.way}
    for address in root.listdir(DEVICES):
        path = f"{DEVICES}/{address}/aer_dev_correctable"
        if root.exists(path):
            counts = _errors(root.get_text(path))
            kind = f"on the way to {ways[address]}" if address in ways else ""
            yield ("pcie_errors", address), _Seen(counts, "" if counts else _NO_COUNT.format(path), kind)
    for controller in root.listdir(_EDAC):
        place = f"{_EDAC}/{controller}"
        if root.exists(f"{place}/ce_count"):
            kind = few([f"{name} {count:,}" for name, count in _modules(root, place) if count])
            yield ("memory_errors", controller), _number(root, f"{place}/ce_count")._replace(kind=kind)
    for nic in interfaces:
        if root.exists(f"{_NET}/{nic}/carrier_changes"):
            yield ("carrier_changes", nic), _number(root, f"{_NET}/{nic}/carrier_changes")


def _modules(root: Sysroot, controller: str) -> Iterator[tuple[str, int]]:
    """Each module's label and all that it mended: `dimm0`, of drivers that know rows alone `rank0`.

    Some errors are of no module that the hardware named, so what the controller counts is judged.
    """
    for name in sorted(root.listdir(controller)):
        if _is_count(count := root.get(f"{controller}/{name}/dimm_ce_count")):
            yield root.get(f"{controller}/{name}/dimm_label")[:40] or name, int(count)


def _errors(text: str) -> dict[str, int]:
    """`BadTLP 3` a line, of older kernels `Bad TLP 3`; the total at the end counts messages, each of several errors."""
    rows = (line.rpartition(" ") for line in text.splitlines())
    return {name[:40]: int(n) for name, _, n in rows if _is_count(n) and name and not name.startswith("TOTAL_")}


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 20 and COUNT.holds(int(text))


def _number(root: Sysroot, path: str) -> _Seen:
    text = root.get(path)
    return _Seen({"": int(text)}) if _is_count(text) else _Seen({}, _NO_COUNT.format(path))


def _drivers(root: Sysroot, interfaces: tuple[str, ...]) -> Iterator[tuple[Subject, _Seen]]:
    """What a card's driver counts, by what it means; of a driver that tells nothing, what every driver has."""
    for nic in interfaces:
        rows = (line.rpartition(" ") for line in root.get_text(f"ethtool/{nic}/statistics").splitlines())
        known = meanings(read_driver(root, nic), {name: int(n) for name, _, n in rows if _is_count(n)})
        corrected = known.pop(CORRECTED, {})
        missed = root.get(f"{_NET}/{nic}/statistics/rx_missed_errors")
        if LOST not in known and _is_count(missed):
            known[LOST] = {"rx_missed_errors": int(missed)}
        for meaning, counts in known.items():
            told = f"{sum(corrected.values()):,} mended so far" if meaning == CORRUPT and corrected else ""
            yield (f"nic_{meaning}", nic), _Seen(counts, kind=told)


SOURCE = Source(
    _NAME,
    (
        "/sys/bus/pci/devices/*/aer_dev_correctable",
        "/sys/devices/system/edac/mc/mcN/ce_count",
        "/sys/devices/system/edac/mc/mcN/dimmN/dimm_ce_count",
        "/sys/class/net/N/carrier_changes",
        "/sys/class/net/N/statistics/rx_missed_errors",
        "ethtool's statistics of the interfaces in [network]",
    ),
    "nobody: counts in memory, and once a minute a question to the driver of a trading card",
    "within ten seconds, of drivers within a minute; the difference of two looks",
    read,
)
