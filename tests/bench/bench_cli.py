"""How fast the command line is, as ratios of CPU time within one run: `python tests/bench/bench_cli.py`.

- `tunectl --help` against `python -c pass`
- `tunectl verify`, the whole process, against a C program that opens, reads and closes the same files
- `tunectl show` and `tunectl monitor --once` against `tunectl verify`
- the largest resident memory of `tunectl verify`

on a generated recorded host with 256 CPUs and 4,096 interrupts (`--cpus 64 --irqs 300`: a smaller one). With
`--against REVISION` also `tunectl verify` of this machine against what it was at that revision; 502d7809 is the last
one before systemd and the other owners of settings were asked. Nothing is asserted: times belong to a machine.
"""

import argparse
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.hosts.builder import build, generated
from tunectl.host.sysroot import Sysroot
from tunectl.tuning.inspection import open_inspection

TUNECTL = Path(sysconfig.get_path("scripts")) / "tunectl"
READER = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static char line[4096], buffer[1 << 16];
    FILE *list = fopen(argv[1], "r");
    (void)argc;
    while (list && fgets(line, sizeof line, list)) {
        line[strcspn(line, "\n")] = 0;
        int fd = open(line, O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;
        while (read(fd, buffer, sizeof buffer) == (ssize_t)sizeof buffer) { }
        close(fd);
    }
    return list ? 0 : 1;
}
"""
STARTER = """
import os, resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


class Listing(Sysroot):
    """A root that remembers what was opened."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.opened: list[str] = []

    def open(self, path: str) -> int:
        """One more."""
        if not os.path.isdir(self.path(path)):
            self.opened.append(self.path(path))
        return super().open(path)

    def open_below(self, directory: int, path: str) -> int:
        """One more."""
        self.opened.append(f"{os.readlink(f'/proc/self/fd/{directory}')}/{path}")
        return super().open_below(directory, path)


def main() -> None:
    """Builds, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpus", type=int, default=256)
    parser.add_argument("--irqs", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--against", metavar="REVISION")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        tree = host(work / "host", options.cpus, options.irqs)
        reader, files = c_reader(work, tree)
        verify, show, once = (
            [str(TUNECTL), "--root", str(tree), *words.split()] for words in ("verify", "show", "monitor --once")
        )
        print(
            f"{options.cpus} CPUs, {options.irqs} interrupts, {files} files opened by verify; {options.rounds} rounds"
        )
        bare, helped = alternate([[sys.executable, "-c", "pass"], [str(TUNECTL), "--help"]], options.rounds)
        print(f"--help   {helped * 1e3:7.1f} ms  python -c pass {bare * 1e3:7.1f} ms  ratio {helped / bare:.2f}")
        c, text, json = alternate([reader, verify, [*verify, "--format", "json"]], options.rounds)
        print(f"verify   {text * 1e3:7.1f} ms  C reader       {c * 1e3:7.1f} ms  ratio {text / c:.2f}")
        print(f"  (json) {json * 1e3:7.1f} ms  C reader       {c * 1e3:7.1f} ms  ratio {json / c:.2f}")
        base, shown, watched = alternate([verify, show, once], options.rounds)
        print(f"show     {shown * 1e3:7.1f} ms  verify         {base * 1e3:7.1f} ms  ratio {shown / base:.2f}")
        print(f"--once   {watched * 1e3:7.1f} ms  verify         {base * 1e3:7.1f} ms  ratio {watched / base:.2f}")
        largest = max(memory_mib(verify), memory_mib([*verify, "--format", "json"]))
        print(f"memory   {largest:7.1f} MiB, the larger of verify's two formats")
        if options.against:
            then, now = alternate(live_verifies(work, options.against), options.rounds)
            print(f"live     {now * 1e3:7.1f} ms  {options.against:14} {then * 1e3:7.1f} ms  ratio {now / then:.2f}")


def host(root: Path, cpus: int, irqs: int) -> Path:
    """The recorded host, with a host file that isolates the upper half of each core's CPUs."""
    build(root, generated(cpus, irqs))
    facts = Sysroot(str(root))
    siblings = facts.get("sys/devices/system/cpu/cpu1/topology/thread_siblings_list")
    (root / "etc/tunectl").mkdir(parents=True, exist_ok=True)
    text = f'profile = "low-latency"\nisolated = "{siblings}"\n'
    (root / "etc/tunectl/host.toml").write_text(text)
    return root


def c_reader(work: Path, tree: Path) -> tuple[list[str], int]:
    """The C program and its list: the files that verify opens, in its order."""
    root = Listing(str(tree))
    open_inspection(root, f"{tree}/etc/tunectl/host.toml", f"{tree}/var/lib/tunectl", (), "2026-11-21").assess()
    (work / "files").write_text("".join(f"{path}\n" for path in root.opened))
    (work / "reader.c").write_text(READER)
    subprocess.run(["cc", "-O2", "-o", str(work / "reader"), str(work / "reader.c")], check=True)
    return [str(work / "reader"), str(work / "files")], len(root.opened)


def live_verifies(work: Path, revision: str) -> list[list[str]]:
    """`verify` of this machine, its last CPU isolated: as it was at a revision, and as it is; neither is installed."""
    earlier, now = work / "earlier", Path(__file__).parent.parent.parent
    earlier.mkdir()
    archive = subprocess.run(["git", "archive", revision, "tunectl"], cwd=now, stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "-x", "-C", str(earlier)], input=archive.stdout, check=True)
    asked = work / "host.toml"
    asked.write_text(f'profile = "low-latency"\nisolated = "{max(os.sched_getaffinity(0))}"\n')
    start = "import sys; sys.path.insert(0, sys.argv.pop(1)); from tunectl.cli.start import main; main()"
    words = ["--host", str(asked), "--state", str(work / "state"), "verify"]
    return [[sys.executable, "-c", start, str(place), *words] for place in (earlier, now)]


def alternate(commands: Sequence[Sequence[str]], rounds: int) -> list[float]:
    """The median CPU time of each command in seconds, taken in turns so that all meet the same machine."""
    times: list[list[float]] = [[] for _ in commands]
    # An installed package has its bytecode beside it; an editable one gets it in the first round.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    for number in range(rounds + 1):
        for command, taken in zip(commands, times, strict=True):
            used = cpu_s(command, environment)
            if number:  # the first round fills the caches
                taken.append(used)
    return [statistics.median(taken) for taken in times]


def cpu_s(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """What a process and those that it waited for used, in seconds: a busy machine makes it longer, not larger."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment) as child:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def memory_mib(command: Sequence[str]) -> float:
    """The largest resident size of one run, in MiB.

    The kernel counts what the process was before its exec(2), too: this one, so a smaller one starts it.
    """
    starter = [sys.executable, "-c", STARTER, *command]
    return int(subprocess.run(starter, stdout=subprocess.PIPE, check=True, text=True).stdout) / 1024


if __name__ == "__main__":
    main()
