"""What ends a hang of the next boot, phase by phase. What precedes the first watchdog nothing ends, but a BMC's timer.

Most drivers stop their watchdog for a reboot, and a reset switches the others off (QEMU's i6300esb). A BMC's timer that
runs is set anew for the reboot and goes on through the reset, if the firmware leaves it alone.
Source: drivers/watchdog/watchdog_core.c, watchdog_stop_on_reboot(); drivers/char/ipmi/ipmi_watchdog.c,
wdog_reboot_handler(); initramfs-tools(7), panic; dracut.cmdline(7), rd.shell, rd.emergency; systemd(1),
systemd.watchdog_sec.
"""

import re
from typing import Literal, NamedTuple

from tunectl.bootloader.cmdline import kernel_args, parse_cmdline
from tunectl.host.sysroot import Sysroot
from tunectl.host.watchdog import Watchdog, is_fed_by_systemd, read_watchdogs

PANIC = "panic=30"  # seconds
DRACUT = "rd.shell=0 rd.emergency=reboot"
_DRACUTS = ("usr/lib/dracut", "usr/bin/dracut")
_INITRAMFS_TOOLS = ("usr/share/initramfs-tools", "usr/sbin/update-initramfs")
_SHORTEST_S = 30  # a boot that is only slow must not be taken for a hang

Phase = Literal["loader", "kernel", "panic", "initramfs", "userspace"]
By = Literal["watchdog", "bmc", "line", "nothing", "unknown"]


class Cover(NamedTuple):
    """What boots the host again where it hangs in one phase of a boot.

    `by`: a `watchdog` that somebody feeds, the `bmc`, words that `--try-boot` puts on the `line`, or `nothing`.
    """

    phase: Phase
    by: By
    what: str = ""  # the watchdog's own name, or the words
    seconds: int | None = None


def covers(root: Sysroot) -> list[Cover]:
    """Each phase, from the reset on; nothing of a recording that does not tell who feeds a watchdog."""
    if not root.live and is_fed_by_systemd(root) is None:
        return []
    watchdogs = read_watchdogs(root)
    early = Cover("loader", "nothing")
    bmcs = next((watchdog for watchdog in watchdogs if watchdog.of_the_bmc), None)
    if bmcs and bmcs.active is not False:
        early = Cover("loader", "bmc" if bmcs.active else "unknown", bmcs.identity)
    panic = own_panic(root.get_text("proc/cmdline")) or PANIC
    # At the prompt of an initramfs panic= has initramfs-tools boot again, and other words dracut.
    prompt = [panic] if any(map(root.exists, _INITRAMFS_TOOLS)) else []
    prompt += [DRACUT] if has_dracut(root) else []
    return [
        early,
        early._replace(phase="kernel"),  # until something opens a watchdog
        Cover("panic", "line", panic, max(int(panic.partition("=")[2]), 0)),
        Cover("initramfs", "line" if prompt else "unknown", " ".join(prompt)),
        _running(root, watchdogs),
    ]


def is_uncovered(root: Sysroot, phase: Phase) -> bool:
    """Does nothing end a hang in this phase of a boot that is tried? Not where that is not known."""
    return any((cover.phase, cover.by) == (phase, "nothing") for cover in covers(root))


def own_panic(line: str) -> str:
    """The operator's own panic= that has a kernel boot again; "" for none. 0 waits for ever, -1 for no time."""
    words = [str(arg) for arg in kernel_args(parse_cmdline(line)) if arg.key == "panic"]
    return words[-1] if words and re.fullmatch(r"panic=-?[1-9][0-9]*", words[-1]) else ""


def _running(root: Sysroot, watchdogs: tuple[Watchdog, ...]) -> Cover:
    fed = next((one for one in watchdogs if one.active and one.is_hardware), None)
    if fed:
        return Cover("userspace", "watchdog", fed.identity, fed.timeout_s)
    if words := arming(root):
        return Cover("userspace", "line", words, int(words.partition("=")[2]))
    hidden = next((one for one in watchdogs if one.active is None), None)
    return Cover("userspace", "unknown", hidden.identity) if hidden else Cover("userspace", "nothing")


def arming(root: Sysroot) -> str:
    """The word by which systemd feeds a watchdog that nobody feeds now; "" where there is none that it may have.

    With the timeout that its driver has already, since it need not take another.
    """
    if is_fed_by_systemd(root) is not False:
        return ""
    watchdogs = [one for one in read_watchdogs(root) if one.is_hardware]
    free = [one.timeout_s or 0 for one in watchdogs if one.active is False]
    return f"systemd.watchdog_sec={free[0]}" if len(watchdogs) == len(free) == 1 and free[0] >= _SHORTEST_S else ""


def has_dracut(root: Sysroot) -> bool:
    """Are this host's initrds dracut's, or may they be?"""
    return any(map(root.exists, _DRACUTS))
