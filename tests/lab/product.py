"""The product in the lab: built here, installed there offline, and called as an operator calls it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.ran import Ran

from .lab import Lab

ROOT = Path(__file__).parent.parent.parent
HOST_FILE = 'profile = "low-latency"\nisolated = "2-3"\n'
# Everything apply may write, and what must not change because of it.
WRITTEN = ("/etc", "/boot/grub/grub.cfg", "/var/lib/tunectl")
GUEST_PYTHON = "3.11"  # Debian 12


def tunectl(lab: Lab, words: str, *, user: str = "root", timeout: float = 300) -> Ran:
    """Runs `tunectl WORDS` in the guest. A traceback is a failure whatever the test expects."""
    done = lab.run(f"tunectl {words}", user=user, check=False, timeout=timeout)
    assert "Traceback" not in done.err, done.err
    return Ran(done.code, done.out, done.err)


def verify(lab: Lab) -> Any:
    """The tunectl.verify/1 document of now."""
    return tunectl(lab, "verify --format json").json


def findings(document: Any, *outcomes: str) -> dict[str, Any]:
    """target -> finding, of these outcomes."""
    return {one["target"]: one for one in document["findings"] if one["outcome"] in outcomes}


def build_wheels(place: Path) -> tuple[Path, Path]:
    """The wheel of this tree, and a folder of all the wheels it needs in the guest."""
    wheel_folder, wheelhouse = place / "wheel", place / "wheelhouse"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", wheel_folder, ROOT], check=True)
    (wheel,) = wheel_folder.glob("tunectl-*.whl")
    target = ["--only-binary=:all:", "--python-version", GUEST_PYTHON, "--platform", "manylinux_2_28_x86_64"]
    target += ["--platform", "manylinux2014_x86_64", "--platform", "linux_x86_64"]
    subprocess.run([*pip, "download", *target, "-d", wheelhouse, wheel], check=True)
    return wheel, wheelhouse


def install(lab: Lab, wheels: tuple[Path, Path]) -> None:
    """The product, and a host file that isolates CPUs 2-3."""
    lab.install(*wheels)
    lab.run("mkdir -p /etc/tunectl && cat > /etc/tunectl/host.toml", stdin=HOST_FILE)


def back_to_tuned(lab: Lab) -> None:
    """The moment that was saved after apply and the reboot it asks for."""
    lab.restore("tuned")
    # The NVMe controller was plugged in again, perhaps with new interrupts: they are judged by what the kernel
    # makes of a write to them, once.
    tunectl(lab, "apply --yes --runtime -q")
