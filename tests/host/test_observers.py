"""What a process holds to observe the kernel with, as the running kernel shows it."""

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tunectl.host.observers import DESCRIPTORS, Observer, read_observers
from tunectl.host.openfiles import find_holders
from tunectl.host.sysroot import Sysroot

HOST = Sysroot("/")
_LOAD, _RAW_TRACEPOINT_OPEN = 5, 17  # commands of bpf(2)
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
def attached(fd: int, tracepoint: bytes) -> Iterator[None]:
    """The program runs at this tracepoint."""
    name = ctypes.create_string_buffer(tracepoint)
    link = bpf(_RAW_TRACEPOINT_OPEN, struct.pack("<QI36x", ctypes.addressof(name), fd))
    yield
    os.close(link)


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
