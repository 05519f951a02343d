"""What the entries of kernels to come are made from: /etc/kernel/cmdline and what stands in for it.

Source: systemd's 90-loaderentry.install, Fedora's 20-grub.install. Without either file both take the running line,
so the arguments of a kernel that was upgraded before the reboot would be lost (or an old test's would stay).
"""

from __future__ import annotations

from tunectl.bootloader.cmdline import parse_cmdline
from tunectl.bootloader.edits import read
from tunectl.bootloader.family import Holder, Point
from tunectl.bootloader.forms import LINE
from tunectl.host.sysroot import Sysroot

CMDLINE = "etc/kernel/cmdline"
_VENDORS = "usr/lib/kernel/cmdline"
# Added anew to every entry: the loader's own, kernel-install's, and TuneD's by way of a variable.
_ADDED = ("BOOT_IMAGE", "initrd", "systemd.machine_id")


def source(root: Sysroot, default_line: str) -> tuple[Holder, Point]:
    """(/etc/kernel/cmdline, what it gives). Where there is none it is made from the vendor's or the default entry's."""
    text = read(root, CMDLINE)
    vendors = read(root, _VENDORS)
    # Also of a file that is there: it may be the one that we made of this.
    new = " ".join((vendors or _portable(default_line)).split())
    if text is not None:
        return Holder(CMDLINE, LINE, new), Point(f"/{CMDLINE}", " ".join(text.split()))
    where = f"/{_VENDORS}" if vendors else f"/{CMDLINE}, which is not there"
    return Holder(CMDLINE, LINE, new), Point(where, new if vendors else "")


def _portable(line: str) -> str:
    """An entry's line without what belongs to that entry alone."""
    words = line.split()
    if '"' in line:  # a quoted value may hold spaces: every word of it stays
        return line
    return " ".join(word for word in words if "$" not in word and parse_cmdline(word)[0].key not in _ADDED)
