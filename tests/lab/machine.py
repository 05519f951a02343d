"""The machine as QEMU's command line: the only place that knows what hardware the lab has.

Every PCI device has a fixed slot: a saved machine can only be resumed into the same layout.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

# acpi-cpufreq leaves AMD family 15, QEMU's default, to another driver; hence an Intel processor. Keep svm:
# without it services failed at boot, three times of three under QEMU 7.2, for a reason not found.
#
# Without ERMS the kernel copies eight bytes in each step of `rep movs`, with it one; without LA57 a walk through the
# page tables has four steps instead of five. Emulation does each step in software.
CPU_MODEL = "max,vendor=GenuineIntel,family=6,model=85,stepping=7,-erms,-la57"


class Board(NamedTuple):
    """What QEMU emulates for one architecture."""

    debian: str  # what Debian calls the architecture
    program: str
    machine: str
    cpu: str
    console: str  # the serial port, as Linux calls it
    uefi: tuple[Path, Path]  # the firmware's code, and its variables as they are in a new machine
    powered: bool  # firmware.asl completes its ACPI
    plugs: bool  # devices can be plugged in and out; the NVMe controller has to be, when a machine is saved


# An aarch64 with the fewest instructions that QEMU emulates slowly. Its PCI bus is an express one: cards cannot be
# plugged into that.
BOARDS = {
    "x86_64": Board(
        debian="amd64",
        program="qemu-system-x86_64",
        machine="pc-i440fx-7.2",
        cpu=CPU_MODEL,
        console="ttyS0",
        uefi=(Path("/usr/share/OVMF/OVMF_CODE_4M.fd"), Path("/usr/share/OVMF/OVMF_VARS_4M.fd")),
        powered=True,
        plugs=True,
    ),
    "aarch64": Board(
        debian="arm64",
        program="qemu-system-aarch64",
        machine="virt-7.2,gic-version=3",
        cpu="cortex-a72",
        console="ttyAMA0",
        uefi=(Path("/usr/share/AAVMF/AAVMF_CODE.fd"), Path("/usr/share/AAVMF/AAVMF_VARS.fd")),
        powered=False,
        plugs=False,
    ),
}


# Emulation shows itself as a hypervisor, below which a machine's slots and SMIs do not show: this one says nothing.
EXPRESS_MACHINE, EXPRESS_CPU = "pc-q35-7.2", f"{CPU_MODEL},-hypervisor"


class Port(NamedTuple):
    """A root port of PCI Express, what its slot is wired for, and the card in it."""

    card: str  # QEMU's model: its own link is one lane of 2.5 GT/s
    width: int
    speed: str  # as QEMU says it: 2_5, 5, 8, 16
    is_switched: bool = False  # the card hangs on a switch, which hangs on the port


@dataclass(frozen=True)
class Machine:
    """What can differ from one machine to the next."""

    architecture: str = "x86_64"
    sockets: int = 1
    cores: int = 4  # of each socket
    threads: int = 1  # of each core; siblings have neighbouring numbers
    nodes: int = 1  # NUMA; each has as many CPUs and as much memory as the next
    memory_mib: int = 1024
    ports: tuple[Port, ...] = ()  # with these it has an express bus, into which no other cards are plugged

    @property
    def cpus(self) -> int:
        return self.sockets * self.cores * self.threads

    @property
    def board(self) -> Board:
        board = BOARDS[self.architecture]
        return board._replace(machine=EXPRESS_MACHINE, cpu=EXPRESS_CPU, plugs=False) if self.ports else board

    def words(self) -> list[str]:
        """QEMU's words for processors and memory."""
        topology = f"{self.cpus},sockets={self.sockets},cores={self.cores},threads={self.threads}"
        words = ["-machine", self.board.machine, "-cpu", self.board.cpu, "-smp", topology, "-m", str(self.memory_mib)]
        if self.nodes == 1:
            return words
        cpus, memory = self.cpus // self.nodes, self.memory_mib // self.nodes
        for node in range(self.nodes):
            words += ["-object", f"memory-backend-ram,id=node{node},size={memory}M"]
            words += ["-numa", f"node,nodeid={node},cpus={node * cpus}-{(node + 1) * cpus - 1},memdev=node{node}"]
        return words


SMALLEST = Machine()
NVME_SLOT = 0x5
FIRST_EXTRA_SLOT = 0x8
LAST_EXTRA_SLOT = 0x1E
ROOT_PORT_SLOT = 0x10
NETWORK_CARDS = ("e1000e", "igb")


@dataclass(frozen=True)
class Nic:
    """A network card that was plugged in: QEMU's name for it, its model and its PCI slot."""

    name: str
    model: str = "virtio-net-pci"
    slot: int = FIRST_EXTRA_SLOT

    @property
    def mac(self) -> str:
        """An address of its own, derived from the slot."""
        return f"52:54:00:00:01:{self.slot:02x}"

    def netdev(self) -> dict[str, object]:
        """QMP arguments of the network behind the card: isolated, and nobody else on it."""
        return {"type": "user", "id": f"{self.name}-net", "restrict": True}

    def device(self) -> dict[str, object]:
        """QMP arguments of the card."""
        return {
            "driver": self.model,
            "id": self.name,
            "netdev": f"{self.name}-net",
            "mac": self.mac,
            "bus": "pci.0",
            "addr": f"{self.slot:#x}",
            "romfile": "",
        }


def nvme_backend(name: str = "nvme0") -> dict[str, object]:
    """QMP arguments of an NVMe disk's contents: zeroes, kept nowhere; the lab needs only its queues."""
    return {"driver": "null-co", "node-name": f"{name}-disk", "size": 64 << 20, "read-zeroes": True}


def nvme_device(queues: int, name: str = "nvme0", slot: int = NVME_SLOT) -> dict[str, object]:
    """QMP arguments of an NVMe controller: one managed IRQ for each I/O queue."""
    return {
        "driver": "nvme",
        "id": name,
        "drive": f"{name}-disk",
        "serial": name,
        "max_ioqpairs": queues,
        "bus": "pci.0",
        "addr": f"{slot:#x}",
    }


def argv(
    machine: Machine,
    run_dir: Path,
    firmware: Path | None,
    disk: Path,
    disk_format: str,
    ssh_port: int,
    nics: Sequence[Nic] = (),
    nvme: bool = True,
    variables: Path | None = None,
) -> list[str]:
    """QEMU's command line for a machine whose files live in run_dir; with the file of its variables it boots by UEFI.

    cache=unsafe: at a guest's flush QEMU does not wait for the real disk, but still hands the data and its
    own tables to this host's kernel. Killing QEMU therefore keeps what the guest had flushed and loses what
    it had not handed over: what a power cut does, as long as this host itself stays up.
    """
    words = [
        machine.board.program,
        "-name",
        f"tunectl-lab-{run_dir.name}",
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        *machine.words(),
        "-accel",
        "tcg,thread=multi,tb-size=512",
        *(["-acpitable", f"file={firmware}"] if firmware else []),
        "-chardev",
        f"socket,id=console,path={run_dir}/console,server=on,wait=off,logfile={run_dir}/console.log,logappend=on",
        "-serial",
        "chardev:console",
        "-qmp",
        f"unix:{run_dir}/qmp,server=on,wait=off",
        # A second conversation: whoever looks for the cause of a failure may do so during the first.
        "-qmp",
        f"unix:{run_dir}/look,server=on,wait=off",
        "-drive",
        f"if=none,id=root,file={disk},format={disk_format},cache=unsafe,discard=unmap",
        "-device",
        "virtio-blk-pci,drive=root,addr=0x4,bootindex=1",
        "-netdev",
        f"user,id=net0,restrict=on,hostfwd=tcp:127.0.0.1:{ssh_port}-:22",
        "-device",
        "virtio-net-pci,netdev=net0,mac=52:54:00:00:00:01,addr=0x3,romfile=",
        "-pidfile",
        f"{run_dir}/pid",
        "-daemonize",
    ]
    if variables:
        words += ["-drive", f"if=pflash,unit=0,format=raw,readonly=on,file={machine.board.uefi[0]}"]
        words += ["-drive", f"if=pflash,unit=1,format=raw,file={variables}"]
    for nic in nics:
        words += ["-netdev", _comma(nic.netdev()), "-device", _comma(nic.device())]
    for number, port in enumerate(machine.ports, 1):
        words += _port(port, number)
    if nvme:
        words += ["-blockdev", _comma(nvme_backend()), "-device", _comma(nvme_device(machine.cpus))]
    return words


def _port(port: Port, number: int) -> list[str]:
    """A root port and what is behind it. All its network cards are on one wire."""
    place = f"id=port{number},chassis={number},addr={ROOT_PORT_SLOT + number:#x}"
    words = ["-device", f"pcie-root-port,{place},x-width={port.width},x-speed={port.speed}"]
    bus = f"port{number}"
    if port.is_switched:
        words += ["-device", f"x3130-upstream,id=switch{number},bus={bus}"]
        words += ["-device", f"xio3130-downstream,id=down{number},bus=switch{number},chassis={number + 100}"]
        bus = f"down{number}"
    card = f"{port.card},id=card{number},bus={bus}"
    if port.card in NETWORK_CARDS:
        words += ["-netdev", f"hubport,id=card{number}-net,hubid=1"]
        card += f",netdev=card{number}-net,mac=52:54:00:00:02:{number:02x},romfile="
    return [*words, "-device", card]


def _comma(options: dict[str, object]) -> str:
    """QMP arguments as QEMU's command line wants them; the driver or type stands first, and bare."""
    first, *rest = options.items()
    spelled = {True: "on", False: "off"}
    pairs = [f"{key}={spelled[value] if isinstance(value, bool) else value}" for key, value in rest]
    head = f"driver={first[1]}" if "node-name" in options else str(first[1])
    return ",".join([head, *pairs])
