"""The programs that steer the clock of this host, as they run now, and what each was told to steer.

A name is no identity: only a process of root's, of the daemon's own unit, or of its own user counts.
Source: chronyd(8), -x and -Q; ptp4l(8), free_running and time_stamping; phc2sys(8), -a, -r and -c.
"""

import getopt
import os
import re
import time
from collections.abc import Iterable
from typing import NamedTuple

from tunectl.host.datagrams import users_named
from tunectl.host.procs import is_daemon, parse_stat, read_comms, users_of
from tunectl.host.sysroot import Sysroot


class Program(NamedTuple):
    """A program that can steer the clock: its name, the units and the accounts that it runs under."""

    name: str
    units: tuple[str, ...]
    accounts: tuple[str, ...] = ()


PROGRAMS = {  # by the name that the kernel keeps
    "chronyd": Program("chronyd", ("chrony.service", "chronyd.service"), ("_chrony", "chrony")),
    "systemd-timesyn": Program("systemd-timesyncd", ("systemd-timesyncd.service",), ("systemd-timesync",)),
    "ptp4l": Program("ptp4l", ("ptp4l.service",)),
    "phc2sys": Program("phc2sys", ("phc2sys.service",)),
    # Whom nobody can ask here; they steer all the same.
    "ntpd": Program("ntpd", ("ntp.service", "ntpd.service", "ntpsec.service"), ("ntp", "ntpsec", "_ntp", "openntpd")),
    "sfptpd": Program("sfptpd", ("sfptpd.service",)),
    "ptpd2": Program("ptpd2", ("ptpd2.service", "ptpd.service")),
}
_WATCHES = re.compile(r"-[46dnqQsRUx]*[xQ][46dnqQsRUx]*")  # chronyd's: it measures, and sets nothing
_PHC2SYS = "arc:d:s:E:P:I:S:F:R:N:O:L:M:i:u:wn:xz:l:t:mqvhf:"
_PTP4L = "AEP246HSLf:i:p:sl:mqvh"


class Timekeeper(NamedTuple):
    """One that runs. `args` are its arguments without its name."""

    name: str
    pid: int
    args: tuple[str, ...] = ()
    since_s: float = 0.0  # how long it has run

    def __str__(self) -> str:
        """As a finding names it."""
        return f"{self.name} (pid {self.pid}, for {_span(self.since_s)})"

    @property
    def sets_system_clock(self) -> bool:
        """Was it told to? What ptp4l does depends on its port, which it is asked for (host/linuxptp.py)."""
        if self.name == "chronyd":
            return not any(_WATCHES.fullmatch(word) for word in self.args)
        if self.name == "phc2sys":
            said = self.options()
            target = said.get("-c", ["" if "-a" in said else "CLOCK_REALTIME"])
            return "-r" in said if "-a" in said else "CLOCK_REALTIME" in target
        return self.name != "ptp4l"

    def options(self) -> dict[str, list[str]]:
        """Its short options, each with what it was given; none where they are not understood."""
        words = [word for word in self.args if not word.startswith("--")]
        try:
            pairs, _ = getopt.gnu_getopt(words, _PHC2SYS if self.name == "phc2sys" else _PTP4L)
        except getopt.GetoptError:
            return {}
        found: dict[str, list[str]] = {}
        for option, value in pairs:
            found.setdefault(option, []).append(value)
        return found


def read_timekeepers(root: Sysroot) -> list[Timekeeper]:
    """Those that run. The helper that a daemon starts is no second one."""
    found = {pid: comm for pid, comm in read_comms(root) if comm in PROGRAMS and _is(root, pid, PROGRAMS[comm])}
    return [one for pid, comm in found.items() if (one := _read(root, pid, PROGRAMS[comm].name, found))]


def _is(root: Sysroot, pid: int, program: Program) -> bool:
    users = users_of(root, pid)
    own = users_named(root, *program.accounts) - {0}
    return is_daemon(root, pid, program.units) or bool(users and users <= own)


def _read(root: Sysroot, pid: int, name: str, others: Iterable[int]) -> Timekeeper | None:
    first = parse_stat(root.get(f"proc/{pid}/stat"), pid)
    if first and (first.parent in others or not first.alive):
        return None
    args = root.get_text(f"proc/{pid}/cmdline").split("\0")[1:-1]
    ticks = int(first.began) if first and first.began.isdecimal() else 0
    since = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK") if root.live and ticks else 0.0
    return Timekeeper(name, pid, tuple(args), max(since, 0.0))


def _span(seconds: float) -> str:
    """`3 s`, `12 min`, `5 h`, `9 days`."""
    sizes = ((86400 * 2, 86400, "days"), (7200, 3600, "h"), (120, 60, "min"))
    return next(
        (f"{seconds // size:.0f} {unit}" for least, size, unit in sizes if seconds >= least), f"{seconds:.0f} s"
    )
