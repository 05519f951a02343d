"""Threads that cannot be seen, by a user under hidepid= or root of another PID namespace: their absence is no proof."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.places import PROGRAM, environment, needs_mounts, unprivileged
from tunectl.checking.runner import shipped_checks
from tunectl.host.procs import hidden_threads
from tunectl.host.sysroot import Sysroot

pytestmark = [
    needs_mounts,
    pytest.mark.slow,
    pytest.mark.pins,
    pytest.mark.skipif(bool(hidden_threads(Sysroot())), reason="not every thread can be seen here"),
]

CPU = max(os.sched_getaffinity(0))
HOST_FILE = f"""profile = "low-latency"
isolated = "{CPU}"
[knobs]
"kthread.affinity" = "housekeeping"
"kthread.node_affinity" = "housekeeping"
[[threads]]
name = "rx"
command = "tt-stranger"
cpu = {CPU}
"""
USER = 60_000 + os.getpid() % 5_000  # he sees his own alone, whatever another test starts as nobody
NAMESPACE = ["unshare", "-m", "-p", "-f", "--mount-proc"]
CHECKS = ("test_threads.py", "test_tuners.py", "test_trading.py")
_STRANGER = f"""
import os, sys
os.sched_setaffinity(0, {{{CPU}}})
open("/proc/self/comm", "w").write("tt-stranger")
print(flush=True)
sys.stdin.read()
"""


def hidepid() -> list[str]:
    """The words in front of a command that is to be the user's, where /proc shows each his own."""
    return ["unshare", "-m", "sh", "-ec", 'mount -t proc -o hidepid=2 proc /proc; exec "$@"', "sh", *unprivileged(USER)]


@contextmanager
def stranger(*prefix: str) -> Iterator[None]:
    """Somebody's thread that is pinned to the CPU, and sleeps."""
    argv = [*prefix, sys.executable, "-c", _STRANGER]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        assert child.stdin
        child.stdout.readline()
        yield
        child.stdin.close()


def said(prefix: list[str], command: str, *words: object, declared: bool = False) -> dict[str, dict[str, Any]]:
    """The findings of a command by target."""
    place = Path(tempfile.mkdtemp())
    try:
        place.chmod(0o755)  # pytest's own temporary directory is closed to others
        host = place / "host.toml"
        host.write_text(HOST_FILE if declared else HOST_FILE.partition("[[")[0])
        argv = [*prefix, *PROGRAM, command, *words, "--host", host, "--format", "json"]
        done = subprocess.run(
            [*map(str, argv)], env=environment(), cwd="/", capture_output=True, text=True, timeout=120
        )
        assert done.stdout, done.stderr
        return {one["target"]: one for one in json.loads(done.stdout)["findings"]}
    finally:
        shutil.rmtree(place)


def checked(prefix: list[str], declared: bool = False) -> dict[str, dict[str, Any]]:
    paths = [shipped_checks() / one for one in CHECKS]
    return said(prefix, "check", "--window", "1", *paths, declared=declared)


@pytest.mark.parametrize("where", ["hidepid", "namespace"])
def test_a_stranger_that_cannot_be_seen_leaves_the_answer_unknown(where: str) -> None:
    with stranger():
        found = checked(hidepid() if where == "hidepid" else NAMESPACE, declared=True)
    for target in (f"check.movable_threads[{CPU}]", "check.trading_alone[rx]", "check.trading_thread[rx]"):
        assert found[target]["outcome"] == "unreadable", found[target]
        assert "not every thread of this host can be seen here (hidepid= of /proc" in found[target]["reason"]
        assert found[target]["fix"] == "run as root on the host itself, outside of containers"
    tuners = [one for target, one in found.items() if target.startswith("check.other_tuners")]
    assert tuners
    assert "compliant" not in {one["outcome"] for one in tuners}


def test_a_stranger_that_is_seen_all_the_same_is_named() -> None:
    with stranger(*unprivileged(USER)):
        found = checked(hidepid())[f"check.movable_threads[{CPU}]"]
    assert found["outcome"] == "drifted", found
    assert "thread tt-stranger" in found["reason"]


def test_a_user_who_sees_all_threads_has_his_answer() -> None:
    with stranger():
        found = checked(unprivileged(USER), declared=True)
    named = found[f"check.movable_threads[{CPU}]"]
    assert "can be seen" not in named["reason"], named
    assert "can be seen" not in found["check.trading_thread[rx]"]["reason"]


def test_kernel_threads_that_cannot_be_seen_are_unreadable_not_unsupported() -> None:
    knobs = ("kthread.affinity", "kthread.node_affinity")
    for prefix, fix in ((NAMESPACE, ""), (hidepid(), "run tunectl as root: this user may not read it all")):
        found = said(prefix, "verify")
        assert [found[one]["outcome"] for one in knobs] == ["unreadable", "unreadable"]
        assert {found[one]["reason"].partition(" (")[0] for one in knobs} == {
            "not every thread of this host can be seen here"
        }
        assert {found[one]["fix"] for one in knobs} == {fix}
    reasons = [one["reason"] for one in said([], "verify").values() if one["target"].startswith("kthread.")]
    assert reasons
    assert not any("can be seen" in one for one in reasons)
