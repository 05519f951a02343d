"""What a process holds to observe the kernel with, as the running kernel shows it."""

import ctypes
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.nobody import needs_root
from tunectl.checking.residue import of_pins
from tunectl.host.observers import DESCRIPTORS, Observer, read_observers, read_pins
from tunectl.host.openfiles import find_holders
from tunectl.host.sysroot import Sysroot

HOST = Sysroot("/")
_LOAD, _PIN, _RAW_TRACEPOINT_OPEN = 5, 6, 17  # commands of bpf(2)
_RAW_TRACEPOINT, _CGROUP_DEVICE = 17, 15  # kinds of programs
# r0 = 0; exit
_INSTRUCTIONS = struct.pack("<BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0)
_NUMBERS = {"x86_64": 321, "aarch64": 280}


def bpf(command: int, attributes: bytes) -> int:
    """A descriptor of bpf(2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = _NUMBERS.get(os.uname().machine, -1)
    fd: int = libc.syscall(ctypes.c_long(number), ctypes.c_int(command), attributes, ctypes.c_uint(len(attributes)))
    if fd < 0:
        pytest.skip(f"bpf(2) is refused here: {os.strerror(ctypes.get_errno())}")
    return fd


@contextmanager
def program(kind: int) -> Iterator[int]:
    """A loaded program that does nothing."""
    code, licence = ctypes.create_string_buffer(_INSTRUCTIONS), ctypes.create_string_buffer(b"GPL")
    fd = bpf(_LOAD, struct.pack("<IIQQ100x", kind, 2, ctypes.addressof(code), ctypes.addressof(licence)))
    yield fd
    os.close(fd)


@contextmanager
def attached(fd: int, tracepoint: bytes) -> Iterator[int]:
    """The program runs at this tracepoint, as long as its link is held."""
    name = ctypes.create_string_buffer(tracepoint)
    link = bpf(_RAW_TRACEPOINT_OPEN, struct.pack("<QI36x", ctypes.addressof(name), fd))
    yield link
    os.close(link)


def pin(fd: int, path: Path) -> None:
    name = ctypes.create_string_buffer(os.fsencode(path))
    bpf(_PIN, struct.pack("=QII", ctypes.addressof(name), fd, 0))


@pytest.fixture
def bpffs(tmp_path: Path) -> Iterator[Path]:
    done = subprocess.run(["mount", "-t", "bpf", "bpf", tmp_path], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"bpffs cannot be mounted here: {done.stderr.strip()}")
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


def own() -> list[Observer]:
    holders = find_holders(HOST, DESCRIPTORS).found
    return [one for one in read_observers(HOST, holders) if one.holder.pid == os.getpid()]


def test_a_program_at_a_tracepoint_is_seen_with_its_name() -> None:
    with ExitStack() as held:
        fd = held.enter_context(program(_RAW_TRACEPOINT))
        assert own() == []  # it is loaded, and runs nowhere
        held.enter_context(attached(fd, b"sched_process_exit"))
        assert [one.links for one in own()] == [("raw_tracepoint sched_process_exit",)]
    assert own() == []


def test_a_program_of_a_control_group_observes_nothing() -> None:
    with program(_CGROUP_DEVICE):
        assert own() == []


@needs_root
def test_a_link_that_is_pinned_is_seen_without_a_process_and_ends_with_its_file(bpffs: Path) -> None:
    (bpffs / "engine").mkdir()
    with program(_RAW_TRACEPOINT) as fd:
        pin(fd, bpffs / "engine/program")
        assert read_pins(HOST, str(bpffs).lstrip("/")) == []  # it runs nowhere
        with attached(fd, b"sched_process_exit") as link:
            pin(link, bpffs / "engine/link")
    (found,) = read_pins(HOST, str(bpffs).lstrip("/"))
    assert (found.path, found.link) == (str(bpffs / "engine/link"), "raw_tracepoint sched_process_exit")
    (residue,) = of_pins([found])
    assert str(residue.fix).startswith(f"sudo rm {found.path}")
    (bpffs / "engine/link").unlink()
    assert (read_pins(HOST, str(bpffs).lstrip("/")), of_pins([])) == ([], [])
