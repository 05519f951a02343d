"""Who else tunes this host now: irqbalance, TuneD and the others of tuners/table.py, as they start and stop.

Each snapshot looks only for their control groups. Processes started by hand are searched when new processes were
started, and only as often as costs a thousandth of a CPU. Ban lists and profiles are read when something has changed.
"""

import time
from collections.abc import Iterator

from tunectl.host.procs import read_pids
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import SYSTEM_SLICES
from tunectl.monitor.model import CONTESTED, Freshness, Sample
from tunectl.monitor.watched_host import Source, WatchedHost
from tunectl.tuners.conflicts import FoundTuner, objection, stranger, unseen
from tunectl.tuners.find import read_programs, tuner_of
from tunectl.tuners.table import PROGRAMS

_NAME = "managers"
_SHARE = 0.001
_AGAIN_S = 60.0  # a ban list may be edited while nothing starts
_YOUNG = 3  # a process may become another program (execve) soon after it was made


class _Processes:
    """The processes of tuners, without looking again at old ones."""

    def __init__(self, root: Sysroot) -> None:
        self._root = root
        self._seen: dict[int, int] = {}  # pid: how often it was looked at
        self._found: dict[int, str] = {}
        self._last = ""
        self._next_at = 0.0
        self._young = False

    def look(self, now: float) -> frozenset[tuple[int, str]]:
        """(pid, name) of those that run now."""
        last = self._root.get("proc/loadavg").rpartition(" ")[2]  # the pid that was given out last
        is_alive = all(self._root.exists(f"proc/{pid}/comm") for pid in self._found)
        still = last == self._last and bool(last) and not self._young and is_alive
        if now >= self._next_at and not still:
            start = time.thread_time()
            self._last = last
            self._scan()
            self._next_at = now + (time.thread_time() - start) / _SHARE
        return frozenset(self._found.items())

    def _scan(self) -> None:
        pids = set(read_pids(self._root))
        self._seen = {pid: self._seen.get(pid, 0) for pid in pids}
        self._found = {pid: name for pid, name in self._found.items() if pid in pids}
        self._young = False
        for pid, times in self._seen.items():
            if times < _YOUNG:
                self._seen[pid] += 1
                self._young = self._young or times + 1 < _YOUNG
                if tuner := tuner_of(self._root, pid, self._root.get(f"proc/{pid}/comm")):
                    self._found[pid] = tuner.name
                else:
                    self._found.pop(pid, None)


class _Kept:
    """What was found last, and what shows that it has changed."""

    def __init__(self, host: WatchedHost) -> None:
        self.processes = _Processes(host.root)
        self.units = {unit for tuner in PROGRAMS for unit in tuner.units}
        self.state: object = None
        self.read_at = 0.0
        self.samples: dict[str, Sample] = {}


def read(host: WatchedHost) -> Iterator[Sample]:
    """One sample a tuner that is installed or was seen to run: inactive, active, active against us, or not known."""
    kept = host.keep(_NAME, lambda: _Kept(host))
    running = [frozenset(kept.units.intersection(host.root.listdir(place))) for place in SYSTEM_SLICES]
    state = (running, kept.processes.look(host.taken_at))
    if state != kept.state or host.taken_at - kept.read_at >= _AGAIN_S:
        if kept.state is not None and state != kept.state:
            host.suspicious = True  # what started may have written already
        kept.state, kept.read_at = state, host.taken_at
        found = {program.name: program for program in read_programs(host.root)}
        # One that was removed is inactive, not unknown.
        kept.samples = {name: _sample(host, name, found.get(name)) for name in {**kept.samples, **found}}
    yield from kept.samples.values()


def _sample(host: WatchedHost, name: str, tuner: FoundTuner | None) -> Sample:
    """As check.other_tuners judges; only a balancer that somebody started by hand is told before its list is known."""
    if tuner is None or not tuner.active:
        return Sample("manager", name, "inactive", _NAME)
    wanted = {setting.knob: setting.value for setting in host.config.settings}
    against = objection(tuner, wanted, host.isolated, host.facts) or stranger(tuner)
    if against is None and (hidden := unseen(tuner, wanted)):
        why = f"what may overwrite our knobs here is not known: {hidden}"
        return Sample("manager", name, None, _NAME, Freshness.NO_DATA, why)
    if against is None:
        detail = f" ({tuner.detail})" if tuner.detail else ""
        return Sample("manager", name, "active", _NAME, reason=f"leaves alone what is asked for here{detail}")
    return Sample("manager", name, CONTESTED, _NAME, seen=against)


SOURCE = Source(
    _NAME,
    ("/sys/fs/cgroup/system.slice/*.service", "/proc/loadavg", "/proc/N/comm"),
    "nobody: directory entries and process names",
    "at once for what systemd started, within seconds for what was started by hand",
    read,
)
