"""Settings of the NICs that the host file names: files of /sys/class/net, and ethtool's settings (host/ethtool.py)."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tunectl.command import as_data
from tunectl.host.ethtool import PREFIX
from tunectl.host.nics import read_vectors
from tunectl.host.sysroot import Sysroot
from tunectl.knobs.drivers.pseudofile import read_value
from tunectl.knobs.row import Batch, Knob, Step, View
from tunectl.model import Match, Reading, State

_NET = "sys/class/net"


class NicFile(NamedTuple):
    """One value of each interface, or, where the path holds `{rx}` or `{tx}`, of each of its queues."""

    path: str
    most: str = ""  # the path of the largest value the device takes, for which "hardware-max" stands
    resets: bool = False  # a write makes drivers set up new queues and interrupts

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """A reading for each interface (`eth0`) or queue (`eth0/rx-3`)."""
        for nic, problem in interfaces(view):
            if problem:
                yield Reading(knob.name, nic, absent(nic), reason=problem)
                continue
            instances = self._instances(view.root, nic)
            if not instances:
                yield Reading(knob.name, nic, State.ABSENT, reason=f"{as_data(nic)} has no such queues")
            for instance in instances:
                yield self._read(knob, view, instance, want)

    def _instances(self, root: Sysroot, nic: str) -> list[str]:
        kind = next((kind for kind in ("rx", "tx") if f"{{{kind}}}" in self.path), "")
        if not kind:
            return [nic]
        names = root.listdir(f"{_NET}/{nic}/queues")
        numbers = [name[3:] for name in names if name.startswith(f"{kind}-")]
        return [f"{nic}/{kind}-{number}" for number in sorted(filter(str.isdecimal, numbers), key=int)]

    def _file(self, instance: str, path: str = "") -> str:
        nic, _, queue = instance.partition("/")
        return (path or self.path).format(nic=nic, rx=queue, tx=queue)

    def _read(self, knob: Knob, view: View, instance: str, want: Any) -> Reading:
        path = self._file(instance)
        read_result = read_value(view.root, path, knob.codec)
        if read_result.state is State.ABSENT and path.startswith(PREFIX):
            reason = f"the driver of {as_data(instance)} has no {self._named()} to set"
            read_result = read_result._replace(reason=reason)
        if read_result.state is not State.READ:
            return Reading(knob.name, instance, *read_result)
        value = read_result.value
        if isinstance(value, frozenset):
            value &= view.scope.present
        write = value & want if knob.match is Match.NO_OTHER else None  # wanted CPUs that an operator added stay
        wanted, blocked = self._limit(knob, view, instance, want)
        return Reading(knob.name, instance, State.READ, value, wanted=wanted, write=write, blocked=blocked)

    def _limit(self, knob: Knob, view: View, instance: str, want: Any) -> tuple[Any, str]:
        """What "hardware-max" stands for, and why a number cannot be had."""
        if not self.most:
            return None, ""
        most = read_value(view.root, self._file(instance, self.most), knob.codec)
        if want == "hardware-max":
            return most.value, most.reason
        if most.state is State.READ and want > most.value:
            return None, f"{instance} takes at most {most.value}"
        return None, ""

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """One write a change."""
        for knob, change in batch:
            assert isinstance(knob.driver, NicFile)
            path = knob.driver._file(change.instance)
            resets = queue_files(view.root, change.instance) if knob.driver.resets else ()
            yield Step("value", path, knob.codec.encode(change.value), (change,), knob.codec, resets=resets)

    def _named(self) -> str:
        return " ".join(self.path.split("/")[2:])

    def describe(self) -> tuple[str, ...]:
        """The path of an interface N; or the netlink message and its attribute."""
        if self.path.startswith(PREFIX):
            return (f"ethtool netlink: {self._named()}",)
        return ("/" + self.path.format(nic="N", rx="rx-M", tx="tx-M"),)

    def reads(self) -> tuple[str, ...]:
        """The files of every interface. The settings of ethtool are no files; each recording holds all of them."""
        paths = (self.path, "sys/class/net/{nic}/operstate")
        return tuple(path.format(nic="*", rx="rx-*", tx="tx-*") for path in paths if not path.startswith(PREFIX))


def queue_files(root: Sysroot, nic: str) -> tuple[str, ...]:
    """The settings of single queues and interrupts of an interface, which are lost when the driver sets up new ones."""
    names = {"rx": ("rps_cpus", "rps_flow_cnt"), "tx": ("xps_cpus", "xps_rxqs", "tx_maxrate")}
    queues = sorted(root.listdir(f"{_NET}/{nic}/queues"))
    files = [f"{_NET}/{nic}/queues/{queue}/{name}" for queue in queues for name in names.get(queue[:2], ())]
    return (*files, *(f"proc/irq/{irq}/smp_affinity_list" for irq in read_vectors(root, nic)))


def absent(nic: str) -> State:
    """Of an interface that is named and not there; or of none that is named."""
    return State.ABSENT if nic else State.MOOT


def interfaces(view: View) -> Iterator[tuple[str, str]]:
    """Each interface the host file names, and why there is nothing to read of it, or ""."""
    if not view.interfaces:
        yield "", "the host file names no interface in [network]"
    for nic in view.interfaces:
        there = "/" not in nic and view.root.exists(f"{_NET}/{nic}/operstate")
        yield nic, "" if there else f"this host has no interface {as_data(nic)}"
