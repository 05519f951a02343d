"""What the tests of a trial share: what waits on a host, what is left behind, and how a boot is tried.

What differs from one boot loader to the next is a row of LOADERS. The faults of a tried boot are on its line: `armed`
has tunectl make its entry of a default entry that holds them.
"""

import json
import re
from typing import Any, NamedTuple

from .lab import Lab
from .product import WRITTEN, findings, tunectl, verify
from .shell import HERE
from .story import difference, restored, volatile

RECORD = "/var/lib/tunectl/trial.json"
UNITS = "/etc/systemd/system/tunectl-return.service /etc/systemd/system/tunectl-deadline.service"
WATCHED_BY_NOBODY = "--without-watchdog"
TRY_UNITS = "/etc/systemd/system/tunectl-try.timer /etc/systemd/system/tunectl-try.service"


class Loader(NamedTuple):
    """Where a boot loader has what a try is about."""

    default: str  # the file with the default entry's line
    edit: str  # has sed(1) edit that line
    source: str  # the file that every boot's line comes from
    loads: str  # what the default entry loads, and an upgrade makes anew
    entry: str  # ours
    chosen: str  # prints what the next boot alone takes
    unchoose: str  # somebody takes that back


_GRUB = Loader(
    default="/boot/grub/grub.cfg",
    edit="sed -i '/^[[:space:]]*linux/ {{ {sed} }}' /boot/grub/grub.cfg",
    source="/boot/grub/grub.cfg",
    loads="/boot/initrd.img-$(uname -r)",
    entry="/boot/grub/custom.cfg",
    chosen="grub-editenv /boot/grub/grubenv list | grep '^next_entry=.'",
    unchoose="grub-editenv /boot/grub/grubenv unset next_entry",
)
_IMAGE = "/boot/efi/EFI/Linux/*.efi"
_SYSTEMD_BOOT = Loader(
    default=_IMAGE,
    edit=f"python3 - '{{sed}}' {_IMAGE}",  # unified.py
    source="/etc/kernel/cmdline",
    loads=_IMAGE,
    entry="/boot/efi/loader/entries/A-tunectl*",
    chosen="cat /sys/firmware/efi/efivars/LoaderEntryOneShot-*",
    unchoose="bootctl set-oneshot ''",
)
LOADERS = {"grub": _GRUB, "grub-efi": _GRUB, "systemd-boot": _SYSTEMD_BOOT}


def loader(lab: Lab) -> Loader:
    """The row of what boots this host."""
    return LOADERS[lab.platform.loader]


def trial(lab: Lab) -> Any:
    """The record of the change that was made last."""
    return json.loads(lab.read(RECORD))


def logged(lab: Lab) -> str:
    """What our units said in this boot."""
    return lab.run("journalctl -b --no-pager -o cat -t tunectl; journalctl -b --no-pager -u 'tunectl-*'").out


def left_of(lab: Lab, before: dict[str, str]) -> set[str]:
    """The files that are not as before; what the state directory holds is the record of what happened."""
    left = difference(before, lab.fingerprint(*WRITTEN))
    return {path for path in left if not path.startswith("/var/lib/tunectl") and not volatile(path)}


def nothing_waits(lab: Lab) -> None:
    """No unit and no entry of a try is there, and no boot is chosen."""
    of_a_try = f"ls {UNITS} {TRY_UNITS} {loader(lab).entry} 2>/dev/null; {loader(lab).chosen} 2>/dev/null"
    assert lab.run(of_a_try, check=False).out == ""


def came_back(lab: Lab, before: dict[str, str]) -> Any:
    """The host is as before, and nothing of ours is left but the record of it, which is returned."""
    assert left_of(lab, before) == set(), logged(lab)
    nothing_waits(lab)
    assert "tunectl" not in lab.run("systemctl list-units --failed --no-legend").out, logged(lab)
    assert "unconfirmed" not in verify(lab)
    ended = trial(lab)
    assert ended["status"] == "returned"
    return ended


def has_the_old_line(lab: Lab) -> None:
    """And the runtime values of the kernel's own defaults."""
    assert not re.search(r"isolcpus|nohz_full|tunectl\.try", lab.read("/proc/cmdline"))
    assert lab.read("/proc/sys/vm/swappiness") == "60"


def is_tuned(lab: Lab) -> None:
    """The permanent line has the set, and so has this boot."""
    assert "tunectl.try" not in lab.read("/proc/cmdline")
    judged = verify(lab)
    isolated = lab.read("/sys/devices/system/cpu/isolated")
    assert (judged["verdict"], isolated) == ("compliant", "2-3"), findings(judged, "drifted", "refused", "unreadable")
    nothing_waits(lab)
    assert trial(lab)["status"] == "confirmed"


def armed(lab: Lab, words: str = "", root: str = "root=", options: str = WATCHED_BY_NOBODY) -> str:
    """The id of the try that the next boot is. Its line has these words, too, and another root= where one is given."""
    default, edit = loader(lab).default, loader(lab).edit
    lab.run(f"cp -p {default} /root/default")
    if words or root != "root=":
        lab.run(edit.format(sed=f"s|$| {words}|; s|root=|{root}|"), stdin=(HERE / "unified.py").read_bytes())
    assert tunectl(lab, f"apply --try-boot {options}").code == 4
    lab.run(f"cp -p /root/default {default} && rm /root/default")
    return str(trial(lab)["id"])


def proves_itself(lab: Lab, trial_id: str) -> None:
    """This is the boot that is tried, and it does."""
    assert f"tunectl.try={trial_id}" in lab.read("/proc/cmdline")
    assert lab.read("/sys/devices/system/cpu/isolated") == "2-3"
    lab.wait_for(f'grep -q \'"proved_at":"2\' {RECORD}', timeout=300)


def is_confirmed(lab: Lab, before: dict[str, str]) -> None:
    """The set that was tried is in force; and from there the way back leads to the same byte."""
    is_tuned(lab)
    restored(lab)
    assert left_of(lab, before) == set()
