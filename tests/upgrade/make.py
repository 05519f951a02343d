"""Makes the fixtures from an installed earlier version: see README.md. Runs in a checkout of that version.

python -m tests.upgrade.make OUT: the trees before.tar.xz, applied.tar.xz, watched.tar.xz and fleet.tar.xz, and
waiting.json, in the directory OUT.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import zlib
from contextlib import closing
from pathlib import Path

from tests.hosts.builder import build_named

PROGRAM = Path(sys.prefix) / "bin/tunectl"
ROOT = Path("/tmp/host")  # it stands in the journal: tests put their own in its place
WORK = Path("/tmp/host-work")  # where the hook runs
# The hook takes nothing until somebody makes the file `taking` in the monitor's working directory.
HOST_FILE = """\
profile = "low-latency"
isolated = "2-3"
[monitor]
log = "none"
interval_s = 0.1
[[monitor.hooks]]
command = ["/bin/sh", "-c", "test -e taking && cat >>taken"]
[[monitor.webhooks]]
url = "http://127.0.0.1:9/alerts"
"""


def main(out: Path) -> None:
    """Writes every fixture."""
    out.mkdir(parents=True, exist_ok=True)
    for place in (ROOT, WORK):
        shutil.rmtree(place, ignore_errors=True)
    WORK.mkdir()
    build_named(ROOT, "lab4", tuned_boot=frozenset({2, 3}))
    (ROOT / "etc/tunectl").mkdir(parents=True, exist_ok=True)
    (ROOT / "etc/tunectl/host.toml").write_text(HOST_FILE)
    _pack(ROOT, out / "before.tar.xz")
    tunectl("apply", "--yes", "--root", str(ROOT))
    for service in ("monitor", "repair"):
        tunectl("service", "install", service, "--root", str(ROOT))
    _pack(ROOT, out / "applied.tar.xz")
    _watch()
    (out / "waiting.json").write_text(json.dumps(_waiting(), indent=1) + "\n")
    _pack(ROOT, out / "watched.tar.xz")
    _fleet(out)
    for place in (ROOT, WORK):
        shutil.rmtree(place)


def tunectl(*words: str, stdin: str = "") -> str:
    """The installed program."""
    done = subprocess.run([PROGRAM, *words], input=stdin, capture_output=True, text=True, cwd=WORK)
    assert not done.stderr or "monitor" in words, done.stderr
    return done.stdout


def _watch() -> None:
    """Two monitors whose receivers take nothing; what the second fired goes on."""
    monitor = ("monitor", "--root", str(ROOT), "--duration", "1.5")
    limits = [ROOT / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_max_freq" for cpu in (2, 3)]
    before = [limit.read_text() for limit in limits]
    limits[0].write_text("1200000\n")
    (ROOT / "proc/sys/vm/swappiness").write_text("60\n")
    tunectl(*monitor)
    limits[0].write_text(before[0])
    limits[1].write_text("1200000\n")
    tunectl(*monitor)
    limits[1].write_text(before[1])


def _waiting() -> dict[str, list[dict[str, str]]]:
    """What waits for each receiver, oldest first, as the store's file says."""
    found: dict[str, list[dict[str, str]]] = {}
    with closing(sqlite3.connect(ROOT / "var/lib/tunectl/monitor/monitor.sqlite3")) as database:
        for receiver, record in database.execute("SELECT receiver, alert FROM delivery WHERE NOT done ORDER BY id"):
            found.setdefault(receiver, []).append(_record(record))
    assert len(found) == 2, found
    names = ("rule", "subject", "status", "since", "at")
    return {receiver: [{name: row[name] for name in names} for row in rows] for receiver, rows in found.items()}


def _record(line: bytes) -> dict[str, str]:
    crc, _, body = line.partition(b" ")
    assert int(crc, 16) == zlib.crc32(body)
    record: dict[str, str] = json.loads(body)
    return record


def _fleet(out: Path) -> None:
    """A session of three hosts: one was reached, one was not, one is silent."""
    store = WORK / "store"
    hosts = json.dumps(["lab4", "gone", "silent"])
    root = ("--root", str(ROOT))
    tunectl("fleet", "open", "--store", str(store), "--hosts", "-", "--name", "morning", *root, stdin=hosts)
    document = tunectl("preflight", "--window", "0.1", "--format", "json", *root)
    tunectl("fleet", "record", str(store / "morning"), "lab4", stdin=document)
    tunectl("fleet", "record", str(store / "morning"), "gone", "--unreachable", "No route to host")
    _pack(store, out / "fleet.tar.xz")


def _pack(tree: Path, archive: Path) -> None:
    """The tree, with nothing in it of who made it or when."""

    def plain(one: tarfile.TarInfo) -> tarfile.TarInfo:
        one.uid = one.gid = one.mtime = 0
        one.uname = one.gname = ""
        return one

    with tarfile.open(archive, "w:xz") as out:
        for path in sorted(tree.rglob("*")):
            out.add(path, str(path.relative_to(tree)), recursive=False, filter=plain)


if __name__ == "__main__":
    os.umask(0o022)
    main(Path(sys.argv[1]).absolute())
