"""The programs that must be run once a file has changed, by name. The journal holds names, never arguments.

Each row: the name, and the argument lists to try; the first whose program is installed is run. `_FOR_EACH` are
programs that are run once for each thing of a host.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tunectl.bootloader import grubonce, grubtry, kexec, systemdboot
from tunectl.bootloader.entries import PLACES
from tunectl.bootloader.grubsettings import GRUB2_CFG, GRUB_CFG
from tunectl.bootloader.uki import kernel_of, read_images
from tunectl.durable import checkpoint, sync_file
from tunectl.errors import TunectlError, words_of
from tunectl.host.run import run
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import groups_of, unit_names
from tunectl.knobs.drivers import exitlatency, hotplug
from tunectl.knobs.drivers.systemdcpus import unsettled_slices
from tunectl.units import APPLY, DEADLINE, TRY_TIMER

MONITOR = "tunectl-monitor.service"
COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "update-grub": (
        ("/usr/sbin/update-grub",),
        ("/usr/sbin/grub-mkconfig", "-o", "/boot/grub/grub.cfg"),
        ("/usr/bin/grub-mkconfig", "-o", "/boot/grub/grub.cfg"),
        ("/usr/sbin/grub2-mkconfig", "-o", "/boot/grub2/grub.cfg"),
        ("/usr/bin/grub2-mkconfig", "-o", "/boot/grub2/grub.cfg"),
    ),
    "reload-systemd": (("/usr/bin/systemctl", "daemon-reload"),),
    "restart-irqbalance": (("/usr/bin/systemctl", "try-restart", "irqbalance.service"),),
    "reexec-systemd": (("/usr/bin/systemctl", "daemon-reexec"),),  # a reload alone does not read system.conf
    "hold-latency": (("/usr/bin/systemctl", "restart", exitlatency.NAME),),
    "reload-monitor": (("/usr/bin/systemctl", "try-reload-or-restart", MONITOR),),  # starts none
    "stop-try": (("/usr/bin/systemctl", "stop", TRY_TIMER),),
    "reboot": (("/usr/bin/systemctl", "reboot"),),
    "start-deadline": (("/usr/bin/systemctl", "start", DEADLINE),),  # never named in the journal
}
# Once the file is gone (restore removed it) the other program is run: a unit that is not there cannot be restarted.
_ONCE_GONE = {"hold-latency": (exitlatency.UNIT, ("/usr/bin/systemctl", "stop", exitlatency.NAME))}


def _kernel_installs(root: Sysroot) -> list[tuple[str, ...]]:
    """kernel-install add, for every kernel of which it made a unified image; none where there are only entries."""
    found = {image.kernel: path for image in read_images(root, PLACES) if (path := kernel_of(root, image))}
    return [("/usr/bin/kernel-install", "add", version, f"/{path}") for version, path in sorted(found.items())]


# By itself, and not through D-Bus (--wait would need it): the program has ended when the start of a oneshot has.
_START = ("/usr/bin/systemd-run", "--quiet", "--property=Type=oneshot", "--property=DefaultDependencies=no")


def _starts_in_slices(root: Sysroot) -> list[tuple[str, ...]]:
    """systemd gives a slice its CPUs when something next starts there: `true` does, in each that has others yet."""
    return [(*_START, f"--slice={name}", "true") for name in unsettled_slices(root)] if root.live else []


# A unit's file -> by which name a boot starts it.
_STARTED = {DEADLINE: DEADLINE, APPLY: APPLY, hotplug.UNIT.rpartition("/")[2]: "tunectl-reapply@*"}


def _starts_no_more(root: Sysroot) -> list[tuple[str, ...]]:
    """Early in a boot: systemd is to start what was ours, and would call it failed once its file is gone."""
    standing = unit_names(root, ".service")
    gone = [started for file, started in _STARTED.items() if file not in standing]
    return [("/usr/bin/systemctl", "--no-block", "stop", *gone)] if gone else []


_FOR_EACH: dict[str, Callable[[Sysroot], list[tuple[str, ...]]]] = {
    "kernel-install": _kernel_installs,
    "start-in-slices": _starts_in_slices,
    "stop-what-is-gone": _starts_no_more,
    # an entry of ours for one boot: which, the file of the entry tells
    "choose-grub-once": grubtry.choosing,
    "unchoose-grub-once": grubonce.unchoosing,
    "choose-systemd-boot-once": systemdboot.choosing,
    "unchoose-systemd-boot-once": systemdboot.unchoosing,
    "load-kexec": kexec.loading,
    "unload-kexec": kexec.unloading,
}
# What they make for the next boot; none of them syncs it, and we note as done what has to outlive a loss of power.
_MADE: dict[str, Callable[[Sysroot], Iterable[str]]] = {
    "update-grub": lambda root: filter(root.exists, (GRUB_CFG, GRUB2_CFG)),
    "kernel-install": lambda root: (image.path for image in read_images(root, PLACES)),
}
# Early in a boot services are still to be started, and read then what was written; a job for one would wait for the
# boot, which waits for us. And systemd is told last, by whoever wrote.
_NOT_EARLY = frozenset(
    ("restart-irqbalance", "hold-latency", "reload-monitor", "start-in-slices", "reload-systemd", "reexec-systemd")
)
KNOWN = frozenset((*COMMANDS, *_FOR_EACH))
# Without a running systemd (a container, a chroot) systemctl reaches nobody.
_BY_SYSTEMD = {name for name, rows in COMMANDS.items() if rows[0][0] == "/usr/bin/systemctl"}
_NEEDS_SYSTEMD = frozenset((*_BY_SYSTEMD, "start-in-slices", "stop-what-is-gone"))
_TIMEOUT_S = 300


class Notified(NamedTuple):
    """What became of the programs: lines for people, and the names of those that did not do their work."""

    not_run: list[str]
    failed: dict[str, str]


def run_commands(root: Sysroot, names: Iterable[str], *, early: bool = False) -> Notified:
    """Runs each once. On a recorded host nothing is run; `early` in a boot nothing of systemd's is."""
    notified = Notified([], {})
    for name in dict.fromkeys(names):
        if early and name in _NOT_EARLY:
            continue
        if name in _FOR_EACH:
            for each in _FOR_EACH[name](root):
                _notify(root, name, each, each, notified)
            continue
        path, once_gone = _ONCE_GONE.get(name, ("", ()))
        wanted = (once_gone,) if path and not root.exists(path) else COMMANDS[name]
        argv = next((argv for argv in wanted if root.exists(argv[0].lstrip("/"))), None)
        _notify(root, name, argv, argv or wanted[0], notified)
    return notified


def reload_monitor(root: Sysroot) -> Notified:
    """A monitor that runs reads its host file again: it would go on to watch for what an earlier one asked for."""
    return run_commands(root, ["reload-monitor"] if groups_of(root, MONITOR) else [])


def _notify(root: Sysroot, name: str, argv: tuple[str, ...] | None, named: tuple[str, ...], notified: Notified) -> None:
    shown = " ".join(named)
    if not root.live:
        notified.not_run.append(shown)
    elif name in _NEEDS_SYSTEMD and not root.exists("run/systemd/system"):
        notified.not_run.append(f"{shown} (systemd does not run here)")
    elif problem := _run(argv) or _unsynced(root, name):
        notified.failed[name] = f"{shown}: {problem}"


def _unsynced(root: Sysroot, name: str) -> str:
    """Why what the program made may not be on the disk, or ""."""
    try:
        for path in _MADE[name](root) if name in _MADE else ():
            place = root.resolve(path)
            sync_file(place)
            checkpoint(place)
    except OSError as error:
        return f"what it made may not be on the disk: {error.strerror}"
    return ""


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
    return f"exit status {done.returncode}: {words_of(done.stderr) or 'no message'}"
