"""The real chronyd and the real ptp4l in namespaces: what is said of the clock that each keeps, or does not."""

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.host.clock.world import CASES, HOSTILE

pytestmark = pytest.mark.slow

PROGRAMS = ("unshare", "ip", "chronyd", "ptp4l", "pmc", "gcc")
OUTSIDE = ("unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child")
TRY = "mount -t tmpfs tmpfs /run; ip link set lo up; ip netns add far; ip link add v0 type veth peer name v1 netns far"


@functools.cache
def lacking() -> str:
    """Why there can be no such world here; "" where there can."""
    if missing := [name for name in PROGRAMS if not shutil.which(name)]:
        return f"there is no {', '.join(missing)}"
    if os.geteuid():
        return "not root"
    tried = subprocess.run([*OUTSIDE, "sh", "-ec", TRY], capture_output=True, text=True)
    return f"it ended with {tried.returncode}: {tried.stderr.strip()}" if tried.returncode else ""


@pytest.fixture(scope="session")
def noclock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What keeps a daemon from the machine's clock."""
    built = tmp_path_factory.mktemp("noclock") / "noclock.so"
    source = Path(__file__).with_name("noclock.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", built, source], check=True)
    return built


def told(case: str, noclock: Path) -> dict[str, Any]:
    """What the look says that the case waited for."""
    env = {**os.environ, "NOCLOCK": str(noclock)}
    argv = [*OUTSIDE, sys.executable, "-m", "tests.host.clock.world", case]
    ran = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr[-3000:]
    found: dict[str, Any] | None = json.loads(ran.stdout)
    assert found, f"it was not seen; at last: {ran.stderr[-1000:]}"
    return found


WORDS = {
    "nobody": ("unreadable", "not every thread of this host can be seen here"),  # of the namespace
    "chrony_right": ("compliant", "steers the clock by 10.5.0.2: it is off by"),
    "chrony_stopped": ("unreadable", ""),
    "chrony_hangs": ("unreadable", "gave no answer within 2 s at 127.0.0.1:323"),
    "chrony_source_gone": ("drifted", "10.5.0.2 has not answered for"),
    "chrony_without_source": ("drifted", "it follows no source"),
    "chrony_by_itself": ("drifted", "it follows its own clock (`local`), and no source"),
    "chrony_hour": ("drifted", "finds the clock off by 3,600 s"),
    "chrony_stepped": ("drifted", "and moved it"),
    "chrony_watches": ("unreadable", "only watches the clock"),
    "chrony_watches_itself": ("unreadable", "only watches the clock (-x): it follows its own clock"),
    "chrony_at_its_path": ("compliant", "steers the clock by 10.5.0.2"),
    "two_chronyds": ("drifted", "steer one clock"),
    "ptp_right": ("compliant", "steers the clock by grandmaster"),
    "ptp_unvouched": ("unreadable", "its grandmaster does not vouch for its time"),
    "ptp_source_gone": ("drifted", "it follows nobody: its port v0 is"),
    "ptp_sync_gone": ("drifted", "it has heard no Sync for"),
    "ptp_hangs": ("unreadable", "gave no answer within 2 s at /var/run/ptp4l"),
    "ptp_full": ("unreadable", "gave no answer within 2 s at /var/run/ptp4l"),
    "ptp_and_chrony": ("drifted", "steer one clock"),
    "ptp_beside_chrony": ("compliant", "chronyd (pid"),
    "free_port": ("unreadable", "any user may listen there"),
    "true_answer": ("compliant", "steers the clock by 10.5.0.2"),
    "answer_of_the_future": ("drifted", "the clock was set back since its last update"),
    **dict.fromkeys(HOSTILE, ("unreadable", "chronyd does not say: ")),
}


def test_every_case_is_told() -> None:
    assert WORDS.keys() == CASES.keys()


@pytest.mark.parametrize("case", WORDS)
def test_what_is_said_of_it(case: str, noclock: Path) -> None:
    if why := lacking():
        pytest.skip(f"needs root, namespaces, chrony and linuxptp: {why}")
    outcome, words = WORDS[case]
    found = told(case, noclock)
    assert found["outcome"] == outcome
    assert words in found["reason"]
    assert bool(found["fix"]) == (outcome != "compliant")


@pytest.mark.parametrize(("case", "name"), [("chrony_hangs", "chronyd"), ("ptp_hangs", "ptp4l"), ("ptp_full", "ptp4l")])
def test_who_is_root_already_is_told_to_start_it_again(case: str, name: str, noclock: Path) -> None:
    if why := lacking():
        pytest.skip(f"needs root, namespaces, chrony and linuxptp: {why}")
    fix = told(case, noclock)["fix"]
    assert fix.startswith(f"see in its log why {name} gives no answer")
    assert "start it again" in fix


def test_it_says_by_how_much_and_by_how_much_at_most(noclock: Path) -> None:
    if why := lacking():
        pytest.skip(f"needs root, namespaces, chrony and linuxptp: {why}")
    found = told("chrony_right", noclock)
    assert 0 <= found["offset_ns"] <= found["bound_ns"] <= 50e6
