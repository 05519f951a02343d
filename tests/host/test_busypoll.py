"""What another process has the kernel poll busily, asked of real processes."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.starter import DROP
from tunectl.host.openfiles import Polled, read_polled
from tunectl.host.sysroot import Sysroot

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="to poll for longer than the default needs root")
# A line of its own for each thing that the process has; the last one says that it has them all.
PRELUDE = "import fcntl, os, select, socket, struct, sys\nU = (socket.AF_INET, socket.SOCK_DGRAM)\n"
END = "\nsys.stdout.write('x'); sys.stdout.flush(); sys.stdin.read()\n"
POLLED = "a = socket.socket(*U); a.setsockopt(socket.SOL_SOCKET, 46, 77)"


@contextmanager
def running(script: str, *before: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has done what the script says, until the end of the block."""
    argv = [*before, sys.executable, "-c", PRELUDE + script + END]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        assert child.stdout.read(1) == b"x"
        yield child
        child.kill()


@needs_root
@pytest.mark.parametrize(
    ("script", "found"),
    [
        (POLLED, [Polled(is_epoll=False, usecs=77)]),
        (f"{POLLED}; b = a.dup()", [Polled(is_epoll=False, usecs=77)]),  # one socket, two descriptors
        ("a = socket.socket(*U)", []),
        ("a = socket.socket(); a.setsockopt(socket.SOL_SOCKET, 46, 77); a.listen()", []),
        ("a = socket.socket(socket.AF_UNIX); a.setsockopt(socket.SOL_SOCKET, 46, 77)", []),
        ("e = select.epoll()", [Polled(is_epoll=True, usecs=0)]),
        ("f = open('/dev/null')", []),
    ],
)
def test_what_a_process_polls(script: str, found: list[Polled]) -> None:
    with running(script) as child:
        assert read_polled(Sysroot(), child.pid) == found


@needs_root
def test_an_epoll_instance_with_parameters_of_its_own() -> None:
    with running("e = select.epoll(); fcntl.ioctl(e, 0x40088A01, struct.pack('=IHBx', 64, 8, 0))\n") as child:
        assert read_polled(Sysroot(), child.pid) == [Polled(is_epoll=True, usecs=64)]


@needs_root
def test_to_ask_changes_nothing() -> None:
    """Neither flags nor options nor descriptors; and what the process closes afterwards is closed."""
    shown = "fcntl.fcntl(a, 3), a.getsockopt(1, 46), sorted(os.listdir('/proc/self/fd'))"
    ask = f"\nsys.stdin.readline(); print({shown}, flush=True)"
    end = "\na.close(); b = socket.socket(*U); b.bind(('127.0.0.1', port)); print('bound', flush=True)"
    script = f"{POLLED}; a.bind(('127.0.0.1', 0)); port = a.getsockname()[1]" + END.replace("sys.stdin.read()", "0")
    with running(script + ask + ask + end) as child:
        assert child.stdin
        assert child.stdout
        child.stdin.write(b"\n")
        child.stdin.flush()
        before = child.stdout.readline()
        mine = set(os.listdir("/proc/self/fd"))
        assert [one.usecs for one in read_polled(Sysroot(), child.pid)] == [77]
        assert set(os.listdir("/proc/self/fd")) <= mine  # what another test forgot may be closed meanwhile
        child.stdin.write(b"\n")
        child.stdin.flush()
        assert child.stdout.readline() == before
        assert child.stdout.readline() == b"bound\n"


@needs_root
def test_another_user_may_not_ask() -> None:
    """The sockets of a process of root: EACCES for the list of its descriptors already."""
    ask = (
        "import sys; from tunectl.host.openfiles import read_polled; from tunectl.host.sysroot import Sysroot\n"
        "try: read_polled(Sysroot(), int(sys.argv[1]))\nexcept PermissionError as error: print(error.errno)"
    )
    if subprocess.run([*DROP, sys.executable, "-c", "import psutil"], capture_output=True).returncode:
        pytest.skip("another user may not read this virtual environment")
    with running(POLLED) as child:
        done = subprocess.run([*DROP, sys.executable, "-c", ask, str(child.pid)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{errno.EACCES}\n", "")


def test_a_recorded_host_has_no_options(tmp_path: Path) -> None:
    fds = tmp_path / "proc/7/fd"
    fds.mkdir(parents=True)
    (fds / "1").symlink_to("pipe:[5]")
    assert read_polled(Sysroot(str(tmp_path)), 7) == []
    (fds / "3").symlink_to("socket:[6]")
    with pytest.raises(OSError, match="a recorded host has no options of sockets"):
        read_polled(Sysroot(str(tmp_path)), 7)
    with pytest.raises(FileNotFoundError):
        read_polled(Sysroot(str(tmp_path)), 8)


def test_a_process_that_is_gone() -> None:
    with subprocess.Popen(["true"]) as child:
        child.wait()
        with pytest.raises(OSError, match=r"No such"):
            read_polled(Sysroot(), child.pid)
