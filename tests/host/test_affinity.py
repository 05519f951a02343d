"""A thread's affinity: read from its status file, changed by the system call, shown as a kernel would."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tunectl.host.kernel_emulation import with_affinity
from tunectl.host.scheduling import move_thread, read_affinity
from tunectl.host.sysroot import Sysroot


def test_a_real_thread_is_moved_and_moved_back() -> None:
    home = os.sched_getaffinity(0)
    if len(home) < 2:
        pytest.skip("one CPU")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        path = f"proc/{child.pid}/status"
        before = read_affinity(Sysroot(), path)
        move_thread(path, str(min(home)))
        assert read_affinity(Sysroot(), path) == str(min(home))
        assert before
        move_thread(path, before)
        assert read_affinity(Sysroot(), path) == before
        child.kill()
    with pytest.raises(OSError) as gone:
        move_thread(path, "0")
    assert gone.value.errno == errno.ESRCH
    assert read_affinity(Sysroot(), path) is None


def test_a_recorded_thread_is_shown_elsewhere_and_nothing_else_changes() -> None:
    status = "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0\n"
    assert with_affinity(status, "1") == status.replace("0-3", "1")


def test_a_thread_that_is_gone_has_none(tmp_path: Path) -> None:
    assert read_affinity(Sysroot(str(tmp_path)), "proc/7/status") is None
