"""What a whole cage costs the controller: `python tests/bench/bench_fleet.py [--hosts 10,50,100,200] [--canned BYTES]`.

ansible-playbook runs preflight.yml over simulated hosts (recorded roots, a local connection, forks 50, strategy free):

- wall time and processor time in all and for each host, and what one more host costs (marginal) between two sizes:
  growth is linear or better where that does not rise
- memory: the largest resident size of ansible-playbook itself and of a fork, the largest sum over all of them (PSS)

Here the targets' work runs on the controller, too. `--canned BYTES` replaces it by printing a made document of that
size with a measurement in it: what remains is the controller's own share, and there are outliers to be found.
Nothing is asserted: times belong to a machine. Give ratios.
"""

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.fleet.cage import TUNECTL, Cage
from tests.fleet.made import preflight

MIB = 1 << 20


@dataclass
class Cost:
    """One round over so many hosts."""

    hosts: int
    wall_s: float
    cpu_s: float
    main_mib: float = 0.0
    fork_mib: float = 0.0
    pss_mib: float = 0.0


class Watch(threading.Thread):
    """Looks at ansible-playbook and its forks, but not at what they start, until told to stop."""

    def __init__(self, pid: int, every_s: float = 0.3) -> None:
        super().__init__(daemon=True)
        self.main = psutil.Process(pid)
        self.every_s = every_s
        self.done = threading.Event()
        self.main_mib = self.fork_mib = self.pss_mib = 0.0

    def run(self) -> None:
        """Samples; a fork that ended between two samples is missed, its like are not."""
        while not self.done.wait(self.every_s):
            with suppress(psutil.NoSuchProcess):
                self.main_mib = max(self.main_mib, peak_mib(self.main.pid))
                forks = [one for one in self.main.children(recursive=True) if is_ansible(one)]
                self.fork_mib = max([self.fork_mib, *(peak_mib(one.pid) for one in forks)])
                self.pss_mib = max(self.pss_mib, sum(pss_mib(one.pid) for one in [self.main, *forks]))


def is_ansible(process: psutil.Process) -> bool:
    """A fork has its parent's words; a target's program has its own."""
    with suppress(psutil.Error):
        return any("ansible-playbook" in word for word in process.cmdline())
    return False


def peak_mib(pid: int) -> float:
    """VmHWM."""
    return _kib(f"/proc/{pid}/status", "VmHWM:") / 1024


def pss_mib(pid: int) -> float:
    """What it shares is shared out."""
    return _kib(f"/proc/{pid}/smaps_rollup", "Pss:") / 1024


def _kib(path: str, name: str) -> int:
    with suppress(OSError):
        for line in Path(path).read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1])
    return 0


def measured(cage: Cage, count: int, forks: int, session: str) -> Cost:
    """One round, and what it took."""
    words = cage.words(session, "-e", "tunectl_fleet_accepted=['go','no-go','unknown','pending-reboot']", first=count)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with (cage.place / "log").open("w") as log:
        play = subprocess.Popen(words, env=cage.environment(forks), cwd=cage.place, stdout=log, stderr=log)
        watch = Watch(play.pid)
        watch.start()
        code = play.wait()
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    watch.done.set()
    if code:
        sys.exit((cage.place / "log").read_text()[-4000:])
    body = cage.report(session)
    assert body["counts"]["hosts"] == count
    assert all(one["answer"] == "document" for one in body["hosts"])
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(count, wall, cpu, watch.main_mib, watch.fork_mib, watch.pss_mib)


def documents(count: int, size: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Documents of about `size` bytes: hosts that spread by a quarter, one of fifty four times as slow."""
    rng = random.Random(1)
    for number in range(count):
        name = f"h{number:03}"
        longest = 4000 * rng.lognormvariate(0, 0.25) * (4 if number % 50 == 7 else 1)
        made = preflight(name, at="2099-01-01T00:00:00Z", max_ns=longest)
        (cpu,) = made["probe"]["cpus"]
        gaps = max(size // 40, 50)
        cpu["events"] = [[10_000 + 1000 * n, 10_100 + 1000 * n, ""] for n in range(gaps)]
        cpu["interruptions"], cpu["histogram"] = gaps, [[int(longest), int(longest), gaps]]
        yield name, made


def target_cpu_s(root: Path) -> float:
    """What one preflight takes by itself: the target's share, which a real target bears."""
    words = [str(TUNECTL), "--root", str(root), "preflight", "--window", "0.1", "--format", "json"]
    subprocess.run(words, stdout=subprocess.DEVNULL)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(5):
        subprocess.run(words, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 5


def report_cost(cage: Cage, session: str) -> tuple[float, float]:
    """(CPU seconds, MiB) of `tunectl fleet report` alone."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    starter = "import resource,subprocess,sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); " + (
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    words = [sys.executable, "-c", starter, str(TUNECTL), "fleet", "report", str(cage.place / "sessions" / session)]
    done = subprocess.run([*words, "--save"], stdout=subprocess.PIPE, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, int(done.stdout) / 1024


def show(costs: list[Cost]) -> None:
    """The table, and what one more host costs from each size to the next."""
    print("hosts   wall s  s/host  marginal    CPU s  s/host  marginal   main MiB  fork MiB  all (PSS) MiB")
    last: Cost | None = None
    for cost in costs:
        more = cost.hosts - last.hosts if last else cost.hosts
        walls = (cost.wall_s - last.wall_s) / more if last else float("nan")
        cpus = (cost.cpu_s - last.cpu_s) / more if last else float("nan")
        times = f"{cost.wall_s:7.2f} {cost.wall_s / cost.hosts:7.3f}  {walls:8.3f}"
        work = f"{cost.cpu_s:7.2f} {cost.cpu_s / cost.hosts:7.3f}  {cpus:8.3f}"
        print(f"{cost.hosts:5}  {times}  {work}  {cost.main_mib:9.1f} {cost.fork_mib:9.1f} {cost.pss_mib:10.1f}")
        last = cost
    first, final = costs[0], costs[-1]
    ratio = final.hosts / first.hosts
    growth = final.wall_s / first.wall_s, final.cpu_s / first.cpu_s
    print(f"{ratio:.3g} times the hosts: {growth[0]:.3g} times the wall time, {growth[1]:.3g} times the CPU time")


def main() -> None:
    """Builds, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", default="10,50,100,200")
    parser.add_argument("--forks", type=int, default=50)
    parser.add_argument("--canned", type=int, metavar="BYTES")
    options = parser.parse_args()
    sizes = sorted(map(int, options.hosts.split(",")))
    with tempfile.TemporaryDirectory() as place:
        cage = Cage(Path(place))
        if options.canned:
            cage.canned(dict(documents(sizes[-1], options.canned)))
        else:
            cage.recorded(sizes[-1])
            print(f"one preflight by itself, on the target: {target_cpu_s(cage.place / 'h000'):.3f} s of CPU")
        measured(cage, 1, options.forks, "warm")  # compiles, and fills the caches
        load = os.getloadavg()[0]
        show([measured(cage, count, options.forks, f"n{count}") for count in sizes])
        cpu, mib = report_cost(cage, f"n{sizes[-1]}")
        print(f"tunectl fleet report, {sizes[-1]} hosts: {cpu:.2f} s of CPU, {mib:.0f} MiB; load before: {load:.1f}")


if __name__ == "__main__":
    main()
