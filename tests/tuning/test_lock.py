"""The lock: no user keeps root out, of two at once one has it, and who holds it is what the kernel says."""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import TUNECTL
from tests.nobody import at_work, needs_root
from tests.ran import Ran
from tests.starter import DROP
from tests.trees import differences, picture
from tests.tuned import apply, inspection_on, restore, state_of
from tunectl.errors import TunectlError
from tunectl.host import lockfile
from tunectl.host.identity import read_identity
from tunectl.host.procs import hidden_threads
from tunectl.host.sysroot import Sysroot
from tunectl.host.writable import WritableSysroot
from tunectl.monitor.store import Store
from tunectl.tuning.lock import hold
from tunectl.tuning.transaction import Undone, run_apply, run_restore

Run = Callable[..., Ran]
HOLDS = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""
# The open file is on its way to nobody, in a socket: no process has it.
SENDS = """
import fcntl, os, socket, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(fd, fcntl.LOCK_EX)
pair = socket.socketpair()
socket.send_fds(pair[0], [b"x"], [fd])
os.close(fd)
print("held", flush=True)
sys.stdin.read()
"""
# A program of root's that a user started has both users.
IS_STARTED_BY_NOBODY = ("setpriv", "--ruid=65534", "--euid=0")
TAKES_TURNS = """
import os, sys, time
from tunectl.host import lockfile
path, inside, turns = sys.argv[1], sys.argv[1] + ".inside", 0
while turns < 20:
    fd = lockfile.take(path)
    if fd is None:
        time.sleep(0.001)
        continue
    os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
    os.unlink(inside)
    if turns % 2:
        lockfile.remove(path)
    else:
        os.chmod(path, 0o644)
    os.close(fd)
    turns += 1
"""


def left_open(directory: Path) -> Path:
    """The lock that a killed tunectl of an earlier version left: anybody may read it."""
    directory.mkdir(parents=True, exist_ok=True)
    lock = directory / "lock"
    lock.touch()
    lock.chmod(0o644)
    return lock


# --- who may hold it


def test_the_lock_is_private_whatever_the_umask_and_the_directory_is_not(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with hold(str(tmp_path), 0):
            assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)
    assert list(tmp_path.iterdir()) == []


@needs_root
def test_nobody_can_open_it(public: Path) -> None:
    with hold(str(public), 0), pytest.raises(AssertionError, match="ended"), at_work(HOLDS, public / "lock"):
        pass


def unseen() -> str:
    """Why it cannot be said here that no process of root's has a file; "" where it can."""
    try:
        for pid in filter(str.isdecimal, os.listdir("/proc")):
            with suppress(FileNotFoundError, ProcessLookupError):
                os.listdir(f"/proc/{pid}/fdinfo")
    except PermissionError as error:
        return str(error)
    return hidden_threads(Sysroot("/"))


@needs_root
@pytest.mark.parametrize("script", [HOLDS, SENDS], ids=["held", "on its way"])
@pytest.mark.parametrize("user", [DROP, IS_STARTED_BY_NOBODY], ids=["nobody", "set-user-ID"])
def test_a_lock_that_a_user_holds_is_replaced(public: Path, script: str, user: Sequence[str]) -> None:
    lock = left_open(public)
    if script == SENDS and (why := unseen()):
        pytest.skip(why)
    with at_work(script, lock, drop=user):
        with hold(str(public), 0):
            assert lock.stat().st_mode & 0o777 == 0o600
            with pytest.raises(TunectlError, match=f"process {os.getpid()} "), hold(str(public), 0):
                pass
        assert list(public.iterdir()) == []


@needs_root
def test_an_open_lock_that_root_holds_is_respected_and_root_is_named(public: Path) -> None:
    lock = left_open(public)
    lock.write_text("process 4711 (tunectl apply)\n")
    with at_work(HOLDS, lock, drop=()) as pid:
        with pytest.raises(TunectlError) as raised, hold(str(public), 0):
            pass
        assert raised.value.message.startswith(f"another tunectl is at work: {lock} is held by process {pid} ('python")
        assert raised.value.message.endswith("', uid 0)")
        assert raised.value.hint == "wait for it to end"
    with hold(str(public), 0):  # free, and openable: a private one takes its place
        assert lock.stat().st_mode & 0o777 == 0o600


@needs_root
def test_a_holder_that_cannot_be_seen_is_respected(public: Path) -> None:
    """From another PID namespace: it may be root's."""
    lock = left_open(public)
    script = (
        "import sys\nfrom tunectl.errors import TunectlError\nfrom tunectl.tuning.lock import hold\n"
        "try:\n    with hold(sys.argv[1], 0):\n        print('taken')\n"
        "except TunectlError as error:\n    print(error.message, error.hint, sep='\\n')\n"
    )
    inside = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", script, str(public)]
    with at_work(HOLDS, lock, drop=()):
        ran = subprocess.run(inside, capture_output=True, text=True)
    if "unshare" in ran.stderr:
        pytest.skip(ran.stderr)
    assert ran.stdout.splitlines() == [
        f"another tunectl is at work: {lock} is held by a process that cannot be seen from here",
        f"wait for it to end, or remove {lock} where no tunectl is at work",
    ]


@pytest.mark.slow
@needs_root
def test_of_several_that_replace_a_lock_at_once_one_at_a_time_has_it(public: Path) -> None:
    """Each makes it openable again or removes it, so that the next must replace it or make it."""
    lock = left_open(public)
    with at_work(HOLDS, lock):
        several = [subprocess.Popen([sys.executable, "-c", TAKES_TURNS, str(lock)]) for _ in range(4)]
        assert [process.wait() for process in several] == [0] * 4


@needs_root
def test_apply_and_the_monitor_work_though_a_user_holds_their_locks(tunectl: Run, lab4: Path, public: Path) -> None:
    tree = public / "host"
    subprocess.run(["cp", "-a", lab4, tree], check=True)
    state = tree / "var/lib/tunectl"
    with at_work(HOLDS, left_open(state)), at_work(HOLDS, left_open(state / "monitor")):
        store = Store(str(state / "monitor"))
        store.open()
        assert (state / "monitor/lock").stat().st_mode & 0o777 == 0o600
        store.close()
        assert tunectl("apply", "--yes", "--wait", "0", "--root", tree).code in (0, 4)
        assert tunectl("restore", "--wait", "0", "--root", tree).code == 0
    assert not (state / "lock").exists()


# --- what waits for it


@pytest.mark.slow
def test_two_restores_at_once_are_both_done(lab4: Path) -> None:
    before = picture(lab4)
    apply(lab4)
    argv = [sys.executable, str(TUNECTL), "restore", "--wait", "60", "--root", str(lab4)]
    both = [subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert not differences(before, lab4)


def waiting_for_the_lock(work: Callable[[], object]) -> threading.Thread:
    """A thread that does the work, from when it waits for the lock on."""
    thread = threading.Thread(target=work)
    thread.start()
    names: set[str] = set()
    while "hold" not in names or "sleep" in names:
        assert thread.is_alive()
        frame = sys._current_frames().get(thread.ident or 0)
        names = set()
        while frame:
            names.add(frame.f_code.co_name)
            frame = frame.f_back
        time.sleep(0.01)
    return thread


def gone_while_held(host: Path, work: Callable[[WritableSysroot, str], object]) -> None:
    """Works while another holds the lock, who takes the state directory away before anybody can look."""
    root = WritableSysroot(str(host))
    state = state_of(root)
    with hold(state, 0):
        thread = waiting_for_the_lock(lambda: work(root, state))
        os.rename(state, f"{state}.gone")
        shutil.rmtree(f"{state}.gone")
    thread.join()


def test_a_restore_that_waited_for_the_one_that_did_it_all_has_nothing_left_to_do(lab4: Path) -> None:
    apply(lab4)
    restore(lab4)
    Path(state_of(WritableSysroot(str(lab4)))).mkdir(parents=True)
    done: list[Undone] = []
    boot_id = read_identity(WritableSysroot(str(lab4))).boot_id
    gone_while_held(lab4, lambda root, state: done.append(run_restore(root, state, boot_id, wait_s=60)))
    assert (done[0].complete, done[0].notes) == (True, ["nothing left to restore: another restore did it"])


def test_an_apply_that_waited_for_a_restore_applies(lab4: Path) -> None:
    Path(state_of(WritableSysroot(str(lab4)))).mkdir(parents=True)
    inspection = inspection_on(lab4)
    gone_while_held(lab4, lambda root, state: run_apply(inspection, root, state, runtime_only=False, wait_s=60))
    assert (lab4 / "proc/sys/vm/swappiness").read_text() == "1\n"
    assert restore(lab4).complete


def test_a_lock_that_is_gone_has_no_holder(tmp_path: Path) -> None:
    assert lockfile.holder_of(str(tmp_path / "lock")) == lockfile.UNSEEN
    assert list(tmp_path.iterdir()) == []
