"""A network namespace of its own, with a veth pair v0 and v1 and a tap device tap0, for tests of what they say."""

import functools
import os
import shutil
import subprocess

import pytest

OUTSIDE = ["unshare", "--net", "--mount"]
DEVICES = """
mount -t sysfs sysfs /sys
ip link add v0 numrxqueues 4 numtxqueues 4 type veth peer name v1 numrxqueues 4 numtxqueues 4
ip link set v0 up
ip link set v1 up
ip tuntap add mode tap tap0
"""


@functools.cache
def lacking() -> str:
    """Why there can be no such namespace here; "" where there can."""
    if os.geteuid() or not shutil.which("unshare"):
        return "not root, or no unshare"
    tried = subprocess.run([*OUTSIDE, "sh", "-ec", DEVICES], capture_output=True, text=True)
    return f"it ended with {tried.returncode}: {tried.stderr.strip()}" if tried.returncode else ""


def namespace(script: str, *words: str) -> str:
    """What a shell says that has the devices to itself; skips where there can be no such namespace."""
    if why := lacking():
        pytest.skip(f"needs root, unshare, ip, veth and tap: {why}")
    argv = [*OUTSIDE, "sh", "-ec", DEVICES + script, "sh", *words]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
