"""The programs that must hear of a changed file, by name. The journal holds names, never arguments.

Each row: the name, and the argument lists to try; the first whose program is installed is run.
"""

from __future__ import annotations

from collections.abc import Iterable

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


def run_commands(root: Sysroot, names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Runs each once: (what was not run, what failed), as lines. On a recorded host nothing is run."""
    not_run: list[str] = []
    failed: list[str] = []
    for name in dict.fromkeys(names):
        argv = next((argv for argv in COMMANDS[name] if root.exists(argv[0].lstrip("/"))), None)
        shown = " ".join(argv or COMMANDS[name][0])
        if not root.live:
            not_run.append(shown)
        elif name in _NEEDS_SYSTEMD and not root.exists("run/systemd/system"):
            not_run.append(f"{shown} (systemd does not run here)")
        elif argv is None:
            failed.append(f"{shown}: not installed")
        else:
            done = run(argv, timeout_s=_TIMEOUT_S)
            if done.returncode:
                said = (done.stderr.strip().splitlines() or ["no message"])[-1]
                failed.append(f"{shown}: exit status {done.returncode}: {said}")
    return not_run, failed
