"""A virtual machine's life: power on, power loss, save, resume, and what is plugged into it.

A machine's folder in the cache holds all that is known of it, so that `python -m tests.lab` finds it again.
"""

import re
import shlex
import shutil
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import firmware, machine, process
from .checkpoint import Checkpoint
from .image import Image
from .machine import Nic
from .qmp import Qmp
from .shell import LabError, cache, run, tail

SOCKET_PATH_LIMIT = 90
RUNSTATE_TIMEOUT = 600.0
PORTS = 5


@dataclass
class Vm:
    """One machine by name; only one at a time runs in its folder."""

    name: str
    image: Image
    nics: list[Nic] = field(default_factory=list)

    @property
    def machine(self) -> machine.Machine:
        """What it is made of."""
        return self.image.platform.machine

    @property
    def folder(self) -> Path:
        return cache() / "run" / self.name

    @property
    def disk(self) -> Path:
        return self.folder / "disk.qcow2"

    @property
    def port(self) -> int:
        """The loopback port that leads to the guest's ssh server."""
        return int((self.folder / "port").read_text())

    def alive(self) -> bool:
        """Whether its QEMU runs."""
        owned = process.load(self.folder / "process.json")
        return owned is not None and owned.alive()

    def clear(self, backing: Path, backing_format: str) -> None:
        """Forget everything written so far: a new, empty overlay over an image or a checkpoint."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        if len(str(self.folder / "ssh-root.0123456789abcdef")) > SOCKET_PATH_LIMIT:
            raise LabError(f"{self.folder} is too long for a socket; set TUNECTL_LAB_CACHE to a shorter path")
        self.overlay(backing, backing_format)

    def overlay(self, backing: Path, backing_format: str) -> None:
        """A new disk that starts as a copy of backing."""
        run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", backing, "-F", backing_format, self.disk])

    def power_on(self, extra: Sequence[str] = (), nvme: bool = True, uefi: bool = True) -> None:
        """Start QEMU on the disk as it is; returns while the firmware runs. Not `uefi`: QEMU itself loads a kernel."""
        if self.alive():
            raise LabError(f"the machine {self.name!r} already runs")
        table = firmware.compiled(self.machine) if self.machine.board.powered else None
        for left in reversed(range(PORTS)):
            (self.folder / "port").write_text(str(_free_port()))
            argv = machine.argv(
                self.machine,
                self.folder,
                table,
                self.disk,
                "qcow2",
                self.port,
                self.nics,
                nvme and self.machine.board.plugs,
                self._variables() if uefi else None,
            )
            try:
                # The lab yields to whoever works at this machine.
                run(["nice", "-n", "5", *argv, *extra], timeout=300)
                break
            except LabError as error:
                if not left or "host forwarding" not in str(error):  # else another has taken the port meanwhile
                    raise
        pid = int((self.folder / "pid").read_text())
        owned = process.claim(pid, f"tunectl-lab-{self.name}")
        if owned is None:
            raise LabError(f"QEMU ended at once\n{self.console_tail()}")
        process.save(owned, self.folder / "process.json")

    def _variables(self) -> Path | None:
        """The UEFI variables, in a file of the machine's own; None where it boots by its BIOS."""
        if not self.image.platform.uefi:
            return None
        own = self.folder / "variables.fd"
        if not own.exists():
            shutil.copyfile(self.machine.board.uefi[1], own)
        return own

    def kill(self) -> None:
        """Power loss: QEMU ends between two instructions. Data the guest had not flushed is gone."""
        owned = process.load(self.folder / "process.json")
        if owned is not None:
            owned.kill()
            (self.folder / "process.json").unlink()

    def wait_off(self, timeout: float) -> bool:
        """Wait until the guest has powered itself off."""
        owned = process.load(self.folder / "process.json")
        return owned is None or owned.wait(timeout)

    def cpu_s(self) -> float:
        """CPU seconds that its QEMU has used; 0 while there is none. Other work hardly changes them."""
        owned = process.load(self.folder / "process.json")
        return owned.cpu_s() if owned else 0.0

    def waited_s(self) -> float:
        """Seconds for which its slowest CPU has waited for one of this machine; 0 while there is no QEMU."""
        owned = process.load(self.folder / "process.json")
        return owned.waited_s() if owned else 0.0

    def qmp(self) -> Qmp:
        """A conversation with its QEMU."""
        return Qmp(self.folder / "qmp")

    def look(self) -> Qmp:
        """A second conversation, for a look at the machine during the first."""
        return Qmp(self.folder / "look", timeout=10)

    def plug(self, nic: Nic) -> None:
        """Plug in a network card while the guest runs."""
        with self.qmp() as qmp:
            qmp.execute("netdev_add", nic.netdev())
            qmp.execute("device_add", nic.device())
        self.nics.append(nic)

    def plug_nvme(self, name: str, slot: int, queues: int) -> None:
        """Plug in an NVMe controller while the guest runs."""
        with self.qmp() as qmp:
            qmp.execute("blockdev-add", machine.nvme_backend(name))
            qmp.execute("device_add", machine.nvme_device(queues, name, slot))

    def unplug(self, nic: Nic, timeout: float = 120) -> None:
        """Ask the guest to let a card go, and wait until it has."""
        self._eject(nic.name, timeout)
        with self.qmp() as qmp:
            qmp.execute("netdev_del", {"id": f"{nic.name}-net"})
        self.nics.remove(nic)

    def save(self, checkpoint: Checkpoint) -> None:
        """Write memory and disk as a checkpoint; the machine is off afterwards, and its disk belongs to that.

        QEMU cannot save an NVMe controller, so the guest ejects it first; resume plugs it in again.
        """
        plugs = self.machine.board.plugs
        if plugs:
            self._eject("nvme0", 120)
        with self.qmp() as qmp:
            if plugs:
                qmp.execute("blockdev-del", {"node-name": "nvme0-disk"})
            qmp.execute("stop")
            # 0 would mean "default"; the default is made for networks, not for a local file.
            qmp.execute("migrate-set-parameters", {"max-bandwidth": 1 << 40})
            qmp.execute("migrate", {"uri": f"exec:cat > {shlex.quote(str(checkpoint.memory))}"})
            _wait_migrated(qmp)
            qmp.execute("quit")
        self.wait_off(120)
        self.kill()
        self.disk.rename(checkpoint.disk)
        checkpoint.save()

    def resume(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint at the instruction it was saved at, on a new overlay of its disk."""
        self.clear(checkpoint.disk, "qcow2")
        self.nics = list(checkpoint.nics)
        self.power_on(["-incoming", f"exec:cat {shlex.quote(str(checkpoint.memory))}"], nvme=False)
        with self.qmp() as qmp:
            _wait_resumed(qmp)
            if not self.machine.board.plugs:
                return
            qmp.execute("blockdev-add", machine.nvme_backend())
            qmp.execute("device_add", machine.nvme_device(self.machine.cpus))

    def poke(self, block: bytes, changes: Mapping[int, bytes]) -> None:
        """Change what its QEMU keeps of a device: where its memory holds exactly this block, and at these offsets."""
        owned = process.load(self.folder / "process.json")
        if owned is None or not owned.alive():
            raise LabError(f"the machine {self.name!r} does not run")
        found = [at for start, text in _heap(owned.pid) for at in _places(text, block, start)]
        if len(found) != 1:
            raise LabError(f"QEMU holds that block {len(found)} times")
        with Path(f"/proc/{owned.pid}/mem").open("r+b", buffering=0) as memory:
            for offset, value in changes.items():
                memory.seek(found[0] + offset)
                memory.write(value)

    def console_tail(self, lines: int = 30) -> str:
        """The last lines the guest wrote to its serial console."""
        return f"the console of {self.name!r} ends with:\n{tail(self.console(), lines) or '(it is empty)'}"

    def console(self) -> str:
        """All that the guest wrote to its serial console, over boots, since the machine was made or resumed."""
        try:
            return (self.folder / "console.log").read_text(errors="replace").replace("\r", "")
        except FileNotFoundError:
            return ""

    def _eject(self, device: str, timeout: float) -> None:
        with self.qmp() as qmp:
            qmp.execute("device_del", {"id": device})
            qmp.wait_event(
                lambda event: event["event"] == "DEVICE_DELETED" and event["data"].get("device") == device,
                f"ejecting {device}",
                timeout,
            )


def _heap(pid: int) -> Iterator[tuple[int, bytes]]:
    """What a process has allocated in small pieces, and where: the guest's own memory is not among it."""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            if line.endswith("[heap]"):
                start, end = (int(word, 16) for word in line.split()[0].split("-"))
                memory.seek(start)
                yield start, memory.read(end - start)


def _places(text: bytes, block: bytes, start: int) -> Iterator[int]:
    return (start + match.start() for match in re.finditer(re.escape(block), text))


def _wait_migrated(qmp: Qmp) -> None:
    deadline = time.monotonic() + RUNSTATE_TIMEOUT
    while (status := qmp.execute("query-migrate"))["status"] != "completed":
        if status["status"] in ("failed", "cancelled") or time.monotonic() > deadline:
            raise LabError(f"QEMU could not save the machine: {status}")
        time.sleep(0.05)


def _wait_resumed(qmp: Qmp) -> None:
    """The machine was stopped when it was saved, so it is stopped when all of it has come back."""
    deadline = time.monotonic() + RUNSTATE_TIMEOUT
    while (status := qmp.execute("query-status")["status"]) != "paused":
        if status != "inmigrate" or time.monotonic() > deadline:
            raise LabError(f"QEMU could not resume the machine: it is {status}")
        time.sleep(0.05)
    qmp.execute("cont")


def _free_port() -> int:
    """A loopback port nobody listens on now; QEMU takes it a moment later."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
