"""The programs that must hear of a changed file, by name. The journal holds names, never arguments.

Each row: the name, and the argument lists to try; the first whose program is installed is run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tunectl.errors import TunectlError
from tunectl.host.run import run
from tunectl.host.sysroot import Sysroot

COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "update-grub": (
        ("/usr/sbin/update-grub",),
        ("/usr/sbin/grub-mkconfig", "-o", "/boot/grub/grub.cfg"),
        ("/usr/bin/grub-mkconfig", "-o", "/boot/grub/grub.cfg"),
    ),
    "reload-systemd": (("/usr/bin/systemctl", "daemon-reload"),),
    "restart-irqbalance": (("/usr/bin/systemctl", "try-restart", "irqbalance.service"),),
}
# systemctl without a running systemd (a container, a chroot) has nobody to tell.
_NEEDS_SYSTEMD = ("reload-systemd", "restart-irqbalance")
_TIMEOUT_S = 300


class Told(NamedTuple):
    """What became of the programs: lines for people, and the names of those that did not do their work."""

    not_run: list[str]
    failed: dict[str, str]


def run_commands(root: Sysroot, names: Iterable[str]) -> Told:
    """Runs each once. On a recorded host nothing is run."""
    told = Told([], {})
    for name in dict.fromkeys(names):
        argv = next((argv for argv in COMMANDS[name] if root.exists(argv[0].lstrip("/"))), None)
        shown = " ".join(argv or COMMANDS[name][0])
        if not root.live:
            told.not_run.append(shown)
        elif name in _NEEDS_SYSTEMD and not root.exists("run/systemd/system"):
            told.not_run.append(f"{shown} (systemd does not run here)")
        elif problem := _run(argv):
            told.failed[name] = f"{shown}: {problem}"
    return told


def _run(argv: tuple[str, ...] | None) -> str:
    """What went wrong, or ""."""
    if argv is None:
        return "not installed"
    try:
        done = run(argv, timeout_s=_TIMEOUT_S)
    except TunectlError as error:
        return error.message
    if not done.returncode:
        return ""
    return f"exit status {done.returncode}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
