"""The product in the lab: built here, installed there offline, and called as an operator calls it."""

import compileall
import os
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from tests.ran import Ran

from .lab import PREFIX, Lab
from .platforms import Platform

ROOT = Path(__file__).parent.parent.parent
HOST_FILE = 'profile = "low-latency"\nisolated = "2-3"\n'
# What emulation keeps, where hardware has to keep the profile's limits: QEMU has no CPU to itself, and was away for
# 2.6 s beside another guest. A run has to be long enough for ten interruptions of max_ns: 51 s (docs/probe.md).
EMULATED_BUDGET = {
    "max_ns": 5_000_000_000,
    "p99_9_ns": 5_000_000_000,
    "interruptions_per_s": 1_000_000,
    "stolen_ppm": 995_000,
}
# Everything apply may write, and what must not change because of it.
WRITTEN = (
    "/etc",
    "/boot/grub/grub.cfg",
    "/boot/grub/custom.cfg",
    "/boot/efi/EFI",
    "/boot/efi/loader/entries",
    "/var/lib/tunectl",
)
EXTRAS = "[report,prometheus]"  # the tests use all of it
_PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
_TAGS = ("manylinux_2_28", "manylinux2014", "linux")


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


def _for_the_guest(platform: Platform) -> list[str]:
    """Pip's options for another Python than this one."""
    tags = [word for tag in _TAGS for word in ("--platform", f"{tag}_{platform.machine.architecture}")]
    return ["--only-binary=:all:", "--python-version", platform.python, *tags]


def _compiler(platform: Platform) -> dict[str, str]:
    """The environment, with zig where the guest is of another architecture than this machine.

    The program itself: pip hides what is installed here from what it builds, `python -m ziglang` too.
    """
    machine = platform.machine.architecture
    if machine == os.uname().machine:
        return {**os.environ}
    zig = distribution("ziglang").locate_file("ziglang/zig")
    return {**os.environ, "CC": f"{zig} cc -target {machine}-linux-musl"}


def build_wheels(place: Path, platform: Platform) -> tuple[Path, Path]:
    """The wheel of this tree, and a folder of all the wheels it needs in the guest."""
    wheel_folder, wheelhouse = place / "wheel", place / "wheelhouse"
    subprocess.run([*_PIP, "wheel", "--no-deps", "-w", wheel_folder, ROOT], check=True, env=_compiler(platform))
    (wheel,) = wheel_folder.glob("tunectl_host-*.whl")
    subprocess.run([*_PIP, "download", *_for_the_guest(platform), "-d", wheelhouse, f"{wheel}{EXTRAS}"], check=True)
    return wheel, wheelhouse


def unpack_wheels(place: Path, wheels: tuple[Path, Path], platform: Platform) -> Path:
    """What pip makes of the wheels, made here: in the guest pip takes minutes, nearly all of them for compiling.

    Where this Python is not the guest's release, the guest compiles what it imports, again in each restored state.
    """
    wheel, wheelhouse = wheels
    tree = place / "tree"
    packages = tree / "lib" / f"python{platform.python}" / "site-packages"
    offline = ["--no-index", "--no-compile", f"--find-links={wheelhouse}"]
    subprocess.run(
        [*_PIP, "install", *_for_the_guest(platform), *offline, "--target", packages, f"{wheel}{EXTRAS}"], check=True
    )
    for name in ("bin", "share"):
        (packages / name).rename(tree / name)
    for script in (tree / "bin").iterdir():
        first, newline, rest = script.read_bytes().partition(b"\n")
        if first.startswith(b"#!"):
            script.write_bytes(f"#!{PREFIX}/bin/python3".encode() + newline + rest)
    if f"{sys.version_info.major}.{sys.version_info.minor}" == platform.python:
        compileall.compile_dir(packages, quiet=2, workers=0)
    return tree


def install_package(lab: Lab, package: Path) -> str:
    """Install or replace the .deb, with an operator's own files left as they are; what dpkg said."""
    there = f"/var/tmp/{package.name}"
    lab.put(package, there)
    done = lab.run(f"DEBIAN_FRONTEND=noninteractive dpkg --force-confdef -i {there} && rm {there}", timeout=1200)
    return done.out + done.err


def install(lab: Lab, tree: Path) -> None:
    """The product, and a host file that isolates CPUs 2-3."""
    lab.install_tree(tree)
    lab.run("mkdir -p /etc/tunectl && cat > /etc/tunectl/host.toml", stdin=HOST_FILE)


def back_to_tuned(lab: Lab, moment: str = "tuned") -> None:
    """A moment that was saved after apply and the reboot it asks for."""
    lab.restore(moment)
    # The NVMe controller was plugged in again, perhaps with new interrupts: they are judged by what the kernel
    # makes of a write to them, once.
    tunectl(lab, "apply --yes --runtime -q")
