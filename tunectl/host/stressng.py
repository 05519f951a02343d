"""stress-ng on the CPUs that are given, and nowhere else, until it is told to end or this process is gone.

What it is started through (but the last of util-linux): `setpriv --pdeathsig` ends it with us, whatever ends us;
`taskset` has set its CPUs before it is there; `prlimit` bounds its files and its address space; `choom` makes it the
first that the kernel ends where memory runs short; `reaper.py` ends what it started and left, in whatever session.
stress-ng ends its own children, and removes its files, on SIGTERM. Its figures go to a file that is in no
directory. Source: stress-ng(1), setpriv(1), taskset(1), prlimit(1), choom(1), memfd_create(2).
"""

import math
import os
import shutil
import stat
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from tunectl import kinds
from tunectl.command import as_data
from tunectl.cpulist import CpuSet, format_cpulist, named_cpus
from tunectl.errors import TunectlError
from tunectl.host import reaper
from tunectl.host.ending import ENDING
from tunectl.host.identity import read_start
from tunectl.host.procs import Thread, read_session
from tunectl.host.run import PATH, Resident, run
from tunectl.host.sysroot import Sysroot

PROGRAM = "stress-ng"
OVERRIDE = "TUNECTL_STRESS_NG"
INSTALL = kinds.install_load()
PLACE = "/var/tmp"  # noqa: S108  # on a disk, as a rule: what is written there is written back
_NAME = "tunectl-load-"  # then the process that made it, and when that began: what it left is known by both
_SPARE = 4  # what is free has to be so many times what the load takes
_MIB = 1 << 20
_LIMITS = ("--core=0", f"--fsize={256 * _MIB}", f"--as={2048 * _MIB}")
_STARTS_S = 10.0
_AT_WORK_S = 0.05  # of CPU time: more than starting takes, a moment's work
_ENDS_S = reaper.PATIENCE_S + 6.0  # its files are removed meanwhile; what is left is killed then
_LOOK_S = 0.05


class Figures(NamedTuple):
    """What one stressor says of itself."""

    bogo_ops: int = 0
    cpu_s: float = 0.0
    max_rss_kib: int = 0


class Ended(NamedTuple):
    """How it ended, and what it did. `status` is None where it did not end when it was told to."""

    status: int | None
    figures: dict[str, Figures]
    said: tuple[str, ...]  # its own words


def find_program() -> str:
    """Path of stress-ng. TunectlError, with the command that installs it, where it is missing."""
    override = os.environ.get(OVERRIDE)
    found = shutil.which(override or PROGRAM, path=PATH)
    if not found:
        raise TunectlError(f"{override or PROGRAM} is not installed, and a load needs it", INSTALL)
    return found


def version_of(program: str) -> str:
    """`stress-ng 0.15.06`, as it says itself."""
    words = run([program, "--version"], timeout_s=10).stdout.split()
    return f"{PROGRAM} {words[2]}" if words[1:2] == ["version"] and len(words) > 2 else f"{PROGRAM} of unknown version"


def check_room(root: Sysroot, memory_mib: int, disk_mib: int) -> None:
    """TunectlError where the load would take more than a quarter of what is free, of memory or of the disk."""
    lines = (line.partition(":") for line in root.get_text("proc/meminfo").splitlines())
    fields = {key: value.split() for key, _, value in lines}
    free_mib = int(fields.get("MemAvailable", ["0"])[0]) // 1024
    if free_mib < memory_mib * _SPARE:
        text = f"the load takes up to {memory_mib:,} MiB of memory, and only {free_mib:,} MiB are available"
        raise TunectlError(text, f"free {memory_mib * _SPARE:,} MiB, or name fewer loads")
    disk = os.statvfs(PLACE)
    free_mib = disk.f_bavail * disk.f_frsize // _MIB
    if free_mib < disk_mib * _SPARE:
        text = f"the load takes up to {disk_mib:,} MiB below {PLACE}, and only {free_mib:,} MiB are free there"
        raise TunectlError(text, f"free {disk_mib * _SPARE:,} MiB, or name fewer loads")


class StressNg:
    """One that runs. Ends with end() or close(), with this object, and with this process."""

    def __init__(self, root: Sysroot, cpus: CpuSet, words: Sequence[str], limit_s: float) -> None:
        """`limit_s` is when it ends by itself. TunectlError where it cannot be started.

        To be called by a thread that lasts (PR_SET_PDEATHSIG).
        """
        self._root, self._cpus = root, cpus
        program = find_program()
        sweep(root)
        self._place = f"{PLACE}/{_NAME}{os.getpid()}-{read_start(root, 'self')}"
        self._figures = os.memfd_create("figures", os.MFD_CLOEXEC)
        argv = ["setpriv", "--pdeathsig", "TERM", "choom", "-n", "1000", "--", "prlimit", *_LIMITS]
        argv += ["taskset", "-c", format_cpulist(cpus)]
        argv += [sys.executable, "-I", "-S", reaper.__file__, program, *words]
        argv += ["--timeout", str(math.ceil(limit_s)), "--temp-path", self._place, "--oomable"]
        argv += ["--metrics", "--yaml", f"/proc/self/fd/{self._figures}"]
        try:
            os.mkdir(self._place, 0o700)
            self._child = Resident(argv, keep=self._figures)
        except OSError as error:
            self._clear()
            raise TunectlError(f"no load can be started: {self._place}: {error.strerror}") from error
        except TunectlError:
            self._clear()
            raise

    def until_at_work(self) -> None:
        """Waits until it works, and nowhere but on its CPUs. TunectlError where it does not."""
        end = time.monotonic() + _STARTS_S
        while True:
            threads = self._threads()
            if why := self._child.ended():
                raise TunectlError(f"the load did not start: {PROGRAM} has ended: {why}")
            if len(threads) > 1 and sum(max(thread.run_s, thread.cpu_s) for thread in threads) > _AT_WORK_S:
                break
            if time.monotonic() > end:
                raise TunectlError(f"the load did not start: {PROGRAM} took no CPU time in {_STARTS_S:g} s")
            with ENDING.awaited():
                time.sleep(_LOOK_S)
        if why := strayed(threads, self._cpus):
            raise TunectlError(f"the load was ended: {why}")

    def stopped(self) -> str:
        """Why it works no more, or works where it must not; "" while all is well."""
        why = self._child.ended()
        if why is not None:
            return f"{PROGRAM} has ended: {why}"
        return strayed(self._threads(), self._cpus)

    def end(self) -> Ended:
        """Ends it, and what it did."""
        status = self._child.finish(_ENDS_S)
        if status == reaper.UNWILLING:
            status = None
        said = (*self._child.lines(), *self._child.words())
        text = os.pread(self._figures, _MIB, 0).decode("utf-8", "replace")
        self.close()
        return Ended(status, figures_of(text), said)

    def close(self) -> None:
        """Ends it, whatever it is at; nothing of it is left. More than once is no harm."""
        self._child.finish(_ENDS_S)
        self._child.close()
        self._clear()

    def _threads(self) -> list[Thread]:
        """Of its session, but for the one that it was started through."""
        return [thread for thread in read_session(self._root, self._child.pid) if thread.pid != self._child.pid]

    def _clear(self) -> None:
        if self._figures >= 0:
            os.close(self._figures)
            self._figures = -1
        shutil.rmtree(self._place, ignore_errors=True)


def strayed(threads: Sequence[Thread], cpus: CpuSet) -> str:
    """Which of them may run elsewhere, in a sentence; "" where none may."""
    for one in threads:
        if one.alive and one.allowed is not None and (outside := one.allowed - cpus):
            thread = f"{as_data(one.comm)} (pid {one.pid})"
            return f"{thread} may run on {named_cpus(outside)}, and was given {named_cpus(cpus)}"
    return ""


def figures_of(text: str) -> dict[str, Figures]:
    """The metrics of --yaml, by stressor."""
    found: dict[str, Figures] = {}
    name = ""
    for line in text.splitlines():
        key, _, value = line.strip().removeprefix("- ").partition(": ")
        if key == "stressor":
            name = value.strip("'\"")
            found[name] = Figures()
            continue
        with suppress(ValueError, KeyError):
            if key == "bogo-ops":
                found[name] = found[name]._replace(bogo_ops=int(float(value)))
            elif key in ("user-time", "system-time"):
                found[name] = found[name]._replace(cpu_s=round(found[name].cpu_s + float(value), 3))
            elif key == "max-rss":
                found[name] = found[name]._replace(max_rss_kib=int(float(value)))
    return found


def sweep(root: Sysroot) -> None:
    """Removes the directories of processes that are no more, where they are ours. Never raises."""
    with suppress(OSError):
        for name in os.listdir(PLACE):
            owner, _, began = name.removeprefix(_NAME).partition("-")
            if not name.startswith(_NAME) or not owner.isdecimal() or read_start(root, owner) == began:
                continue
            path = f"{PLACE}/{name}"
            with suppress(OSError):  # everybody may write there: a link, or what is somebody else's, stays
                found = os.lstat(path)
                if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
                    shutil.rmtree(path, ignore_errors=True)
