"""A recorded host under watch: a clock that stands until it is moved, and the last snapshot's samples by name."""

import dataclasses
from pathlib import Path

from tests.hosts.builder import build, named
from tests.hosts.spec import HostSpec
from tunectl.cpulist import format_cpulist
from tunectl.host.sysroot import Sysroot
from tunectl.monitor.model import Sample, Snapshot
from tunectl.monitor.sources import take_snapshot
from tunectl.monitor.watched_host import WatchedHost
from tunectl.tuning.inspection import open_inspection

CPU = "sys/devices/system/cpu"
TODAY = "2026-11-21"


class Watched:
    """A recorded host, what watches it, and the files it is made of."""

    def __init__(self, root: Path, isolated: frozenset[int], more: str = "") -> None:
        self.root = root
        host_file = root / "etc/tunectl/host.toml"
        host_file.parent.mkdir(parents=True, exist_ok=True)
        host_file.write_text(f'profile = "low-latency"\nisolated = "{format_cpulist(isolated)}"\n{more}')
        self.clock = 1000.0
        inspection = open_inspection(Sysroot(str(root)), str(host_file), str(root / "var/lib/tunectl"), (), TODAY)
        self.watched_host = WatchedHost(inspection, now=lambda: self.clock)

    def look(self, after: float = 1.0) -> Snapshot:
        """One snapshot, a second after the one before."""
        self.clock += after
        return take_snapshot(self.watched_host)

    def write(self, path: str, value: object) -> None:
        """A kernel attribute takes another value."""
        (self.root / path).write_text(f"{value}\n")

    def remove(self, path: str) -> None:
        """A file is gone."""
        (self.root / path).unlink()

    def count(self, label: str, cpu: int, more: int) -> None:
        """A row of /proc/interrupts rises on one CPU."""
        table = self.root / "proc/interrupts"
        text = table.read_text()
        column = text.split("\n", 1)[0].split().index(f"CPU{cpu}")
        lines = text.split("\n")
        number = next(n for n, line in enumerate(lines) if line.partition(":")[0].strip() == label)
        start = lines[number].index(":") + 1 + 11 * column
        cell = int(lines[number][start : start + 11])
        lines[number] = f"{lines[number][:start]} {cell + more:>10}{lines[number][start + 11 :]}"
        table.write_text("\n".join(lines))


def watch(tmp_path: Path, name: str, isolated: set[int], more: str = "", **changes: object) -> Watched:
    """A host of the catalogue, booted with these CPUs isolated."""
    spec: HostSpec = dataclasses.replace(named(name, tuned_boot=frozenset(isolated)), **changes)  # type: ignore[arg-type]
    return Watched(build(tmp_path / name, spec), frozenset(isolated), more)


def of(snapshot: Snapshot, quantity: str) -> dict[str, Sample]:
    """{subject: sample} of one quantity."""
    return {sample.subject: sample for sample in snapshot.of(quantity)}
