"""The tried line by kexec: what is loaded, what is refused, and the host as before."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bootloader.onceparts import ID, NAME, enter
from tests.bootloader.trees import write
from tests.trees import differences, picture
from tests.tuned import restore
from tunectl.bootloader.family import OnceEntry
from tunectl.bootloader.kexec import KEXEC
from tunectl.bootloader.oneshot import refusals
from tunectl.errors import UsageError
from tunectl.host.sysroot import Sysroot
from tunectl.tuning.commands import run_commands

RELEASE = "6.1.0-39-amd64"
KERNEL, INITRD = f"boot/vmlinuz-{RELEASE}", f"boot/initrd.img-{RELEASE}"
LOADED, LOCKDOWN = "sys/kernel/kexec_loaded", "sys/kernel/security/lockdown"


def a_host(below: Path) -> Sysroot:
    """One whose kernel can be started again."""
    return write(
        below,
        {
            "proc/cmdline": f"BOOT_IMAGE=/{KERNEL} root=/dev/sda2 ro quiet\n",
            "proc/sys/kernel/osrelease": f"{RELEASE}\n",
            "proc/sys/kernel/kexec_load_disabled": "0\n",
            LOADED: "0\n",
            LOCKDOWN: "[none] integrity confidentiality\n",
            KERNEL: "kernel",
            INITRD: "initrd",
            "usr/sbin/kexec": "",
        },
    )


def tried(root: Sysroot, words: str = "isolcpus=2-3") -> OnceEntry:
    """What is loaded for this boot's line with more words."""
    assert refusals(root, KEXEC, "kexec") == ()
    default = KEXEC.default(root, {})
    assert default
    assert default.loads == (KERNEL, INITRD)
    return KEXEC.entry(root, ID, f"{default.line} {words}")


def test_the_running_kernel_is_loaded_with_the_tried_line(tmp_path: Path) -> None:
    root = a_host(tmp_path)
    before = picture(tmp_path)
    entry = tried(root)
    assert run_commands(root, [entry.arm, entry.disarm]).not_run == []
    enter(tmp_path, entry)
    line = "root=/dev/sda2 ro quiet isolcpus=2-3"
    (loading,) = run_commands(root, [entry.arm]).not_run
    assert loading == f"/usr/sbin/kexec --load --initrd=/{INITRD} --command-line={line} /{KERNEL}"
    write(tmp_path, {LOADED: "1\n"})
    assert KEXEC.armed(root) == f"{NAME}.conf"
    assert run_commands(root, [entry.disarm]).not_run == ["/usr/sbin/kexec --unload"]
    write(tmp_path, {LOADED: "0\n"})
    assert restore(tmp_path).complete
    assert not differences(before, tmp_path)


SABOTAGES: dict[str, Callable[[Sysroot], object]] = {
    "no program": lambda root: Path(root.path("usr/sbin/kexec")).unlink(),
    "switched off": lambda root: write(Path(root.root), {"proc/sys/kernel/kexec_load_disabled": "1\n"}),
    "not built in": lambda root: Path(root.path(LOADED)).unlink(),
    "locked down": lambda root: write(Path(root.root), {LOCKDOWN: "none [integrity] confidentiality\n"}),
    "no initrd": lambda root: Path(root.path(INITRD)).unlink(),
    "somebody's kernel": lambda root: write(Path(root.root), {LOADED: "1\n"}),
}


@pytest.mark.parametrize("name", SABOTAGES)
def test_what_is_refused(name: str, tmp_path: Path) -> None:
    root = a_host(tmp_path)
    SABOTAGES[name](root)
    assert [refusal.attended for refusal in refusals(root, KEXEC, "kexec")] == [False]


def test_a_line_that_the_kernel_would_cut(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        tried(a_host(tmp_path), "x" * 2048)
