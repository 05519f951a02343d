"""Programs of another architecture, run by QEMU's user emulation, for the time in which an image is made.

The kernel has to know the emulator (binfmt_misc). It is told so in a user namespace of its own, which Linux can since
6.7: for the rest of this machine nothing changes. Run as a program: foreign.py ARCHITECTURE PROGRAM ARGUMENT...
"""

import ctypes
import os
import platform
import sys
from pathlib import Path

_BINFMT = Path("/proc/sys/fs/binfmt_misc")
_NEW_NAMESPACES = 0x10000000 | 0x00020000 | 0x20000000  # CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID
_PRIVATE = 0x40000 | 0x4000  # MS_PRIVATE, MS_REC
_EMULATORS = {"aarch64": "/usr/bin/qemu-aarch64-static"}
_ELF_MACHINES = {"aarch64": 0xB7}
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def is_native(architecture: str) -> bool:
    """Does this machine run such programs by itself?"""
    return platform.machine() == architecture


def emulator(architecture: str) -> tuple[str, ...]:
    """The program that this needs beside the lab's; none where the machine needs none."""
    return () if is_native(architecture) else (Path(_EMULATORS[architecture]).name,)


def chroot(architecture: str, root: Path, *words: str) -> list[str | Path]:
    """A command that runs words in the root of that architecture.

    debootstrap is told that it runs in a container: in a user namespace nobody can make devices, and it has made them.
    """
    within = ["env", "-i", f"PATH={_PATH}", "LC_ALL=C", "INITRD=No", "DEBIAN_FRONTEND=noninteractive"]
    if is_native(architecture):
        return [*within, "chroot", root, *words]
    return [sys.executable, Path(__file__), architecture, *within, "container=lxc", "chroot", root, *words]


def _rule(architecture: str) -> bytes:
    """By the head of an ELF program: 64 bits, little endian, for that machine. F: opened now, from outside the root."""
    number = _ELF_MACHINES[architecture]
    magic = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00" + rf"\x{number:02x}\x00"
    mask = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
    return f":{architecture}:M::{magic}:{mask}:{_EMULATORS[architecture]}:F".encode()


def _run(architecture: str, words: list[str]) -> int:
    """Run words where the kernel knows the emulator; their exit code."""
    inside, mapped = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        _within(architecture, words, inside[1], mapped[0])
    os.read(inside[0], 1)
    for name in ("uid_map", "gid_map"):  # as outside, so that the files have their owners
        Path(f"/proc/{child}/{name}").write_text("0 0 65536\n")
    os.write(mapped[1], b"1")
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _within(architecture: str, words: list[str], told: int, mapped: int) -> None:
    """The child: in namespaces of its own, and after it has been given its users. Does not return."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NAMESPACES) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    os.write(told, b"1")
    os.read(mapped, 1)
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    if libc.mount(None, b"/", None, _PRIVATE, None) or libc.mount(b"none", bytes(_BINFMT), b"binfmt_misc", 0, None):
        raise OSError(ctypes.get_errno(), f"mount {_BINFMT}")
    (_BINFMT / "register").write_bytes(_rule(architecture))
    if (program := os.fork()) == 0:  # only a child is in the new namespace of processes
        os.execvp(words[0], words)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(program, 0)[1]) & 0xFF)


if __name__ == "__main__":
    sys.exit(_run(sys.argv[1], sys.argv[2:]))
