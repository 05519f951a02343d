"""The disks that GRUB boots from: its own images on one, an ext2 file system of a few files on the other."""

import os
import select
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from tests.lab.shell import LabError, missing_programs, run, tail

HERE = Path(__file__).parent
IMAGES = Path("/usr/lib/grub/i386-pc")
PROGRAMS = ("qemu-system-x86_64", "grub-mkimage", "mke2fs", "debugfs", "gcc")
UUID = "6f0d9b3a-6a55-4f4d-8a3c-2a4a2c1d5f3c"
# Made-up configurations number theirs.
KERNELS = ("boot/vmlinuz-6.1.0-39-amd64", "boot/vmlinuz-5.10.0-9-amd64", "kx", "other", *(f"k{n}" for n in range(60)))
INITRDS = ("i", "boot/initrd.img-6.1.0-39-amd64")
_MODULES = "biosdisk ext2 normal linux configfile echo test search search_fs_uuid loadenv serial terminal eval true"
# Nobody waits in front of this screen, and what a configuration says of the time to wait is not what is tested.
_EARLY = (
    "serial --unit=0 --speed=115200\nterminal_input serial\nterminal_output serial\nset timeout=0\nexport timeout\n"
)
_BOOTED = b"\n@@booted<"
_END = b">booted@@"
# GRUB has tried what it may try, and waits for somebody at the keyboard.
_WAITS = (b"Failed to boot both", b"grub>", b"Minimal BASH-like", b"GNU GRUB  version")
_PAUSE = b"Press any key to continue"  # for ten seconds, after an error; then it goes on
_PATIENCE_S = 120.0


def missing() -> list[str]:
    """What this machine lacks."""
    return missing_programs(PROGRAMS) + ([] if (IMAGES / "boot.img").exists() else ["grub-pc-bin"])


class Parts:
    """What is the same for every configuration: GRUB's disk, and the kernel."""

    def __init__(self, place: Path) -> None:
        early, core, self.kernel, self.disk = (place / name for name in ("early.cfg", "core.img", "kernel", "grub.img"))
        early.write_text(_EARLY)
        run(["grub-mkimage", "-O", "i386-pc", "-d", IMAGES, "-p", "(hd1)/boot/grub", "-c", early, "-o", core,
             *_MODULES.split()])  # fmt: skip
        # boot.img looks for core.img in the next sector, unless grub-install has told it otherwise.
        image = (IMAGES / "boot.img").read_bytes() + core.read_bytes()
        self.disk.write_bytes(image.ljust(1 << 20, b"\0"))
        run(["gcc", "-m32", "-nostdlib", "-static", "-Wl,-Ttext=0,--build-id=none,--oformat=binary", "-o", self.kernel,
             HERE / "kernel.S"])  # fmt: skip


class GrubDisk:
    """A tree of files, boot/grub/grub.cfg among them, and its disk."""

    def __init__(self, parts: Parts, place: Path) -> None:
        self.tree = place / "tree"
        self._parts = parts
        self._image = place / "files.img"
        self._own = place / "grub.img"
        self._own.write_bytes(parts.disk.read_bytes())

    def fill(self) -> None:
        """Add the kernels to the tree, and put it on the disk; what an earlier boot wrote is gone."""
        for name in KERNELS:
            self._add(name, self._parts.kernel.read_bytes())
        for name in INITRDS:
            self._add(name, b"initrd\n")
        self._image.unlink(missing_ok=True)
        run(["mke2fs", "-q", "-t", "ext2", "-U", UUID, "-d", self.tree, self._image, "8M"])

    def _add(self, name: str, data: bytes) -> None:
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def boot(self) -> str | None:
        """The command line that a kernel got, the image's name in front; None where GRUB boots none by itself."""
        argv = ["nice", "-n", "5", "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none"]
        argv += ["-machine", "pc", "-accel", "tcg", "-m", "64", "-no-reboot", "-serial", "stdio"]
        argv += ["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]
        for number, image in enumerate((self._own, self._image)):
            argv += ["-drive", f"file={image},format=raw,if=ide,index={number},cache=unsafe"]
        pipe = subprocess.PIPE
        with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, bufsize=0) as qemu:
            try:
                shown = _shown(qemu)
            finally:
                qemu.kill()
        _, booted, line = shown.partition(_BOOTED)
        return line.partition(_END)[0].decode(errors="replace") if booted else None

    def refresh(self) -> None:
        """Take back into the tree what GRUB wrote: the environment block is all that it can write."""
        block = self.tree / "boot/grub/grubenv"
        if block.exists():
            run(["debugfs", "-R", f"dump /boot/grub/grubenv {block}", self._image])


def _shown(qemu: subprocess.Popen[bytes]) -> bytes:
    """Everything on the serial port until a kernel has ended QEMU, or until GRUB waits for a key."""
    assert qemu.stdin
    assert qemu.stdout
    shown, paused, deadline = b"", 0, time.monotonic() + _PATIENCE_S
    while not any(mark in shown for mark in (_END, *_WAITS)):
        ready, _, _ = select.select([qemu.stdout], [], [], max(deadline - time.monotonic(), 0))
        more = os.read(qemu.stdout.fileno(), 1 << 16) if ready else b""
        if not more:
            raise LabError(f"GRUB neither boots nor waits:\n{tail(shown.decode(errors='replace'))}")
        shown += more
        if shown.count(_PAUSE) > paused:
            paused += 1
            with suppress(BrokenPipeError):  # it went on by itself, and QEMU has ended
                qemu.stdin.write(b" ")
    return shown
