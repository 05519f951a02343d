"""The watchdogs of a machine, and who feeds them. None is opened: that alone would start it.

Source: Documentation/ABI/testing/sysfs-class-watchdog (identity, state, timeout; with CONFIG_WATCHDOG_SYSFS);
drivers/char/ipmi/ipmi_watchdog.c, which is in no class and shows its state nowhere; systemd-system.conf(5),
RuntimeWatchdogSec=.
"""

from typing import NamedTuple

from tunectl.host.ask import WATCHDOG, ask
from tunectl.host.sysroot import Sysroot

_CLASS = "sys/class/watchdog"
_OF_THE_BMC, _IPMI = "IPMI", ("sys/module/ipmi_watchdog", "sys/class/misc/watchdog")
_SOFTWARE = "Software Watchdog"  # drivers/watchdog/softdog.c: a timer of the very kernel that may hang


class Watchdog(NamedTuple):
    """One device."""

    identity: str  # the driver's words: "iTCO_wdt", "i6300ESB timer"
    active: bool | None  # is it running, with somebody who feeds it? None where the kernel does not show it
    timeout_s: int | None

    @property
    def of_the_bmc(self) -> bool:
        """Is it a timer of the BMC, which a reset of the machine does not stop?"""
        return self.identity == _OF_THE_BMC

    @property
    def is_hardware(self) -> bool:
        """Does it end a hang of the kernel, too?"""
        return self.identity != _SOFTWARE


def read_watchdogs(root: Sysroot) -> tuple[Watchdog, ...]:
    """Every watchdog that has a driver now."""
    found = []
    for name in sorted(root.listdir(_CLASS)):
        identity, state, timeout = (root.get(f"{_CLASS}/{name}/{file}") for file in ("identity", "state", "timeout"))
        active = state == "active" if state else None
        found.append(Watchdog(identity or name, active, int(timeout) if timeout.isdecimal() else None))
    if all(map(root.exists, _IPMI)) and not any(one.of_the_bmc for one in found):
        found.append(Watchdog(_OF_THE_BMC, None, None))
    return tuple(found)


def is_fed_by_systemd(root: Sysroot) -> bool | None:
    """Does systemd feed a watchdog, as RuntimeWatchdogSec= says? None where it does not answer."""
    answer = ask(root, WATCHDOG)
    return None if answer is None else answer.strip().partition("=")[2] not in ("", "0", "off")
