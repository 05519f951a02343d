"""A service that reaches its time limit: SIGTERM, then SIGKILL. `restore` takes the journal that is left.

The command line is the unit's. strace sends the signal at the n-th call of a kind, so that nothing here is a race.
"""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.test_service_environment import APPLY, command, unit_of
from tests.hosts.builder import HostFactory
from tests.trees import differences, picture
from tests.tuned import restore
from tests.tuning.hosts import small_host

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
PLACES = [("fsync", 2), ("fsync", 9), ("fsync", 24), ("rename", 1), ("rename", 3), ("flock", 1)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize(("call", "when"), PLACES)
def test_what_a_time_limit_ends_is_restored(
    host_root: HostFactory, tmp_path: Path, number: signal.Signals, call: str, when: int
) -> None:
    tree = small_host(host_root, tmp_path)
    before = picture(tree)
    inject = ["-e", f"trace={call}", "-e", f"inject={call}:signal={number.name}:when={when}"]
    strace = ["strace", "-f", "-qq", *inject, "-o", "/dev/null"]
    done = subprocess.run(
        [*strace, *command(unit_of(APPLY), "--root", tree)], capture_output=True, cwd="/", timeout=120
    )
    assert done.returncode == -number, done.stderr.decode()
    undone = restore(tree)
    assert undone.complete, undone
    assert not differences(before, tree)
