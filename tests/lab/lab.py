"""The lab as tests and the command line see it: one host, by name."""

import shlex
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from . import fresh, times
from .checkpoint import Checkpoint
from .guest import Guest
from .image import locked
from .machine import FIRST_EXTRA_SLOT, LAST_EXTRA_SLOT, Nic
from .platforms import LOADERS, Platform, chosen
from .shell import EmulatorError, LabError, cache
from .vm import Vm

HOT, COOL = 95, 45
PREFIX = "/opt/tunectl"


class Lab(Guest):
    """A Debian host in QEMU, by default of four CPUs. Everything in the guest runs as root unless a user is named.

    >>> lab = Lab("demo")
    >>> lab.up()
    >>> lab.run("cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_driver").out
    'acpi-cpufreq\\n'
    """

    def __init__(self, name: str = "default", states: str = "", platform: Platform | None = None) -> None:
        """states: the name under which moments are saved and found; the host's own, unless several hosts share them."""
        super().__init__(Vm(name, fresh.image(platform or chosen())))
        self._states = states or name
        self.only_looked_at = ""  # the moment that it is in, as long as every test since only looked
        if (self.vm.folder / "nics.json").exists():
            self.vm.nics = list(Checkpoint.load(self.vm.folder).nics)

    @property
    def platform(self) -> Platform:
        """What it is."""
        return self.vm.image.platform

    # -- power

    def up(self) -> None:
        """A fresh host, booted and settled, in seconds; what it held is gone, except its saved states."""
        self._resume(fresh.booted(self.vm.image))

    def boot(self) -> None:
        """Power on the disk as it is and boot through GRUB: after kill, or after down(keep=True)."""
        with self.explained(), times.noted(self.vm, "(boot)"):
            self.vm.power_on()
            fresh.settle(self.vm)

    def reboot(self) -> None:
        """Reboot as an operator does, and wait until the host has settled again."""
        with self.explained(), times.noted(self.vm, "(reboot)"):
            with self.vm.qmp() as qmp:
                self._leave("reboot")
                qmp.wait_event(lambda event: event["event"] == "RESET", "the reboot", 600)
            self._disconnect()
            fresh.settle(self.vm)

    def reboot_twice(self, within_s: float) -> None:
        """Reboot into a boot that ends by itself, and wait until the one after it has settled.

        What boots says so on the console. QEMU tells of a reset more than once, and settle() makes one.
        """
        with self.explained(), times.noted(self.vm, "(reboots)"):
            before = self._boots()
            self._leave("reboot")
            self._wait_for_boots(before + 2, within_s)
            self._disconnect()
            fresh.settle(self.vm)

    def reboot_into_hang(self, within_s: float) -> None:
        """Reboot into a boot that hangs for so long, reset the machine from outside, and wait until it has settled."""
        with self.explained(), times.noted(self.vm, "(reset)"):
            before = self._boots()
            self._leave("reboot")
            self._wait_for_boots(before + 1, 600)
            self._disconnect()
            time.sleep(within_s)
            if self._boots() != before + 1 or fresh.connect(self.vm).greets():
                raise LabError("the boot did not hang")
            with self.vm.qmp() as qmp:
                qmp.execute("system_reset")
            self._wait_for_boots(before + 2, 600)
            fresh.settle(self.vm)

    def kexec(self) -> None:
        """Start the kernel that is loaded, as an operator does, and wait until it has settled: no firmware runs."""
        with self.explained(), times.noted(self.vm, "(kexec)"):
            self._leave("kexec")
            self._disconnect()
            deadline = time.monotonic() + 600
            while fresh.connect(self.vm).greets():  # until its ssh server has stopped
                if time.monotonic() > deadline:
                    raise LabError("the kernel that is loaded was not started")
                time.sleep(0.3)
            fresh.settle(self.vm)

    def kill(self) -> None:
        """Power loss. boot() starts the host again from what had reached its disk."""
        self.vm.kill()
        self._disconnect()

    def down(self, keep: bool = False) -> None:
        """Throw the host away, as it runs; with keep, shut it down in order and keep its disk for boot()."""
        if keep and self.vm.alive():
            with self.explained():
                self._leave("poweroff")
                if not self.vm.wait_off(600):
                    raise LabError("the guest did not power off")
        self.kill()
        if not keep:
            if self._states == self.vm.name:
                shutil.rmtree(self._saved, ignore_errors=True)
            shutil.rmtree(self.vm.folder, ignore_errors=True)

    # -- saved states

    def save(self, name: str) -> None:
        """Keep this very moment under a new name, and go on."""
        if self.saved(name):
            # The disk in use, or another saved one, may build on it.
            raise LabError(f"there is a saved state {name!r} already; take another name, or start with down")
        checkpoint = Checkpoint(self._saved / name, tuple(self.vm.nics))
        shutil.rmtree(checkpoint.folder, ignore_errors=True)
        checkpoint.folder.mkdir(parents=True)
        with self.explained(), times.noted(self.vm, "(save)"):
            self._disconnect()
            self.vm.save(checkpoint)
        self._resume(checkpoint)

    def restore(self, name: str) -> None:
        """Go back to a saved moment: memory, disk, cards."""
        self._resume(Checkpoint.load(self._saved / name))

    @contextmanager
    def saving(self, name: str) -> Iterator[bool]:
        """Whether the moment is still to be made and saved here; others that share it wait meanwhile."""
        with locked(self._saved / f"{name}.lock"):
            yield not self.saved(name)

    def saved(self, name: str) -> bool:
        """Whether there is a moment of that name."""
        return (self._saved / name / "nics.json").exists()

    # -- the product

    def install(self, wheel: Path, wheelhouse: Path) -> None:
        """Install a wheel, offline, with what it needs of a folder of wheels: in /opt/tunectl, on PATH."""
        wheels = "/var/tmp/wheels"
        self.put(wheelhouse, wheels)
        self.put(wheel, f"{wheels}/{wheel.name}")
        # Debian's pip installs into the environment from outside: one of its own would take half a minute.
        self.run(
            f"python3 -m venv --without-pip {PREFIX}"
            f" && python3 -m pip --python {PREFIX}/bin/python install --quiet --no-index"
            f" --find-links {wheels} {wheels}/{shlex.quote(wheel.name)}"
            f" && ln -sf {PREFIX}/bin/tunectl /usr/local/bin/tunectl && rm -rf {wheels}",
            timeout=600,
        )

    def install_tree(self, tree: Path) -> None:
        """The same from a folder that holds what pip would have made of the wheels."""
        self.run(f"python3 -m venv --without-pip {PREFIX} && ln -sf {PREFIX}/bin/tunectl /usr/local/bin/tunectl")
        self.put(tree, PREFIX)

    # -- hardware

    def heat(self, celsius: int = HOT) -> None:
        """Set the firmware's thermometer: from 90 degrees on it allows 1.2 GHz only, within two seconds."""
        octal = f"\\{celsius:03o}"
        self.run(f"printf '{octal}' | dd of=/dev/port bs=1 seek=135 conv=notrunc status=none")

    def cool(self) -> None:
        """The fan works again."""
        self.heat(COOL)

    def nic_add(self, name: str = "nic1", model: str = "virtio-net-pci") -> str:
        """Plug in a network card and wait until its interface is up; returns the interface's name."""
        taken = {nic.slot for nic in self.vm.nics}
        slot = next(slot for slot in range(FIRST_EXTRA_SLOT, LAST_EXTRA_SLOT) if slot not in taken)
        nic = Nic(name, model, slot)
        with self.explained():
            self.vm.plug(nic)
        self._remember_nics()
        # udev renames the interface first, and systemd-networkd then brings it up.
        find = f"cd /sys/class/net && card=$(dirname $(grep -l {nic.mac} */address)) && grep -qx up $card/operstate"
        self.wait_for(find)
        return self.run(f"{find} && echo $card").out.strip()

    def nic_del(self, name: str = "nic1") -> None:
        """Pull a card that nic_add plugged in."""
        nic = next((nic for nic in self.vm.nics if nic.name == name), None)
        if nic is None:
            raise LabError(f"no card {name!r} is plugged in; there are {[nic.name for nic in self.vm.nics]}")
        with self.explained():
            self.vm.unplug(nic)
        self._remember_nics()

    def nvme_add(self, number: int, queues: int = 1) -> None:
        """Plug in NVMe controller 1, 2, ... until the host is thrown away or goes back to a saved state.

        With fewer queues than CPUs a queue serves several, and its managed interrupt may go to any of them.
        """
        with self.explained():
            self.vm.plug_nvme(f"nvme{number}", LAST_EXTRA_SLOT - number, queues)
        self.wait_for(f"test -e /dev/nvme{number}n1 && udevadm settle")

    def rewrite_card(self, address: str, changes: Mapping[int, bytes]) -> None:
        """Change what a PCI card says of itself, in registers that nobody can write; until the host goes back.

        QEMU trains each link to what both of its ends say. A card that is changed afterwards says that it can do more
        than it was trained to, as one does that lost its lanes.
        """
        with self.explained():
            header = self.get(f"/sys/bus/pci/devices/{address}/config")[:64]
            self.vm.poke(header, changes)

    def watchdog_add(self) -> None:
        """Plug in a watchdog of 30 seconds (i6300ESB) for each boot's driver, until the host goes to a saved state.

        Debian keeps drivers of watchdogs from being loaded by themselves. What nobody feeds resets the machine.
        """
        with self.explained(), self.vm.qmp() as qmp:
            address = f"{LAST_EXTRA_SLOT:#x}"
            qmp.execute("device_add", {"driver": "i6300esb", "id": "watchdog", "bus": "pci.0", "addr": address})
        self.run("echo i6300esb >/etc/modules-load.d/watchdog.conf && modprobe i6300esb")
        self.wait_for("grep -qx inactive /sys/class/watchdog/watchdog0/state")

    # -- within

    def _leave(self, how: str) -> None:
        """Ask the host to go down; its ssh server may be gone before it has said that it was asked."""
        try:
            self.run(f"systemctl --no-block {how}")
        except LabError as error:
            if isinstance(error, EmulatorError) or "the connection broke" not in str(error):
                raise

    def _boots(self) -> int:
        """How often it has begun to boot, since the machine was made or resumed."""
        return self.vm.console().count(LOADERS[self.platform.loader].boots)

    def _wait_for_boots(self, number: int, within_s: float) -> None:
        deadline = time.monotonic() + within_s
        while self._boots() < number:
            if time.monotonic() > deadline:
                raise LabError(f"the boot has not ended by itself within {within_s:.0f} s")
            time.sleep(1)

    @property
    def _saved(self) -> Path:
        return cache() / "run" / f"{self._states}.saved"

    def _resume(self, checkpoint: Checkpoint) -> None:
        self.only_looked_at = ""
        self._disconnect()
        with self.explained(), times.noted(self.vm, "(resume)"):
            self.vm.resume(checkpoint)
            self._remember_nics()
            fresh.connect(self.vm).wait(60, self.vm.alive)
        # The guest's clock stood still meanwhile, and its NVMe controller was just plugged in.
        self.run(f"date -s @{time.time():.3f} >/dev/null")
        if self.platform.machine.board.plugs:
            self.wait_for("test -e /dev/nvme0n1 && udevadm settle")

    def _remember_nics(self) -> None:
        Checkpoint(self.vm.folder, tuple(self.vm.nics)).save()

    def _disconnect(self) -> None:
        if (self.vm.folder / "port").exists():
            fresh.connect(self.vm).close()
