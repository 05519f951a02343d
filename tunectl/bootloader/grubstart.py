"""Where GRUB starts on UEFI: the grub.cfg in the EFI system partition, beside the GRUB that the firmware starts.

grub-install and the signed packages write a stub there, which goes on with /boot/grub/grub.cfg. A whole menu there
boots by itself, and no update-grub reaches it. The stub is not run, since it names a file system by its UUID alone:
that it goes on is seen by its last command, and by /etc/fstab that it does so on this system's disk. Without such a
file (an ESP that is not mounted, or that only root may read), GRUB is taken to be as its installer left it.
Source: grub-install(8) and Debian's and Ubuntu's grub2-signed (the stub's three lines: search, set prefix, configfile);
RHEL's and openSUSE's shim packages (the same, with grub2).
"""

import re
from typing import NamedTuple

from tunectl.bootloader.grubmenu import BootEntry, NoEntry, evaluate
from tunectl.bootloader.owners import matching
from tunectl.host.identity import read_os_ids
from tunectl.host.sysroot import Sysroot

# FAT does not tell capital letters from small ones, and `ls` shows either.
FILES = ("boot/efi/[Ee][Ff][Ii]/*/grub.cfg", "efi/[Ee][Ff][Ii]/*/grub.cfg", "boot/EFI/*/grub.cfg")
_FIRMWARE = "sys/firmware/efi"
# What goes on with another file, and the path's end; `normal` does it, too.
_GOES_ON = re.compile(r"^[ \t]*(?:configfile|source|normal|\.)[ \t]+(?P<path>\S+)", re.MULTILINE)
_BOOTS = re.compile(r"^[ \t]*(?:menuentry|linux(?:16|efi)?|blscfg|chainloader)\b(?P<rest>.*)", re.MULTILINE)
_PREFIX = re.compile(r"^[ \t]*set[ \t]+prefix=(?P<path>\S+)", re.MULTILINE)
_ENTRIES = re.compile(r"^[ \t]*blscfg\b", re.MULTILINE)
# Directories of the ESP by the id in os-release, where they differ.
_VENDORS = {"rhel": "redhat", "opensuse-tumbleweed": "opensuse", "opensuse-leap": "opensuse", "sles": "sles"}


class Elsewhere(NamedTuple):
    """A file in the ESP that does not go on with the menu of /boot: its path, and what boots by it."""

    path: str
    entry: BootEntry | NoEntry


def starts_elsewhere(root: Sysroot, menu: str, *, entries: bool = False) -> Elsewhere | None:
    """The ESP's grub.cfg where it does not lead to `menu`; None where it does, and where nothing speaks against it.

    With `entries` GRUB's menu are the files of loader/entries: to read these leads there as well.
    """
    if root.live and not root.exists(_FIRMWARE):
        return None
    found = [path for path in dict.fromkeys(matching(root, FILES)) if root.get_text(path).strip()]
    stays = _home(root)
    away = [path for path in found if not _leads(root.get_text(path), menu, stays, entries=entries)]
    own = [path for path in found if path.split("/")[-2].lower() in _own(root)]
    started = own or found
    if not away or (own and not set(own) & set(away)):
        return None
    path = next(path for path in away if path in started)
    if len(started) > 1 and set(started) - set(away):
        why = f"/{path} does not go on with /{menu}, and which file in the ESP is read is not known"
        return Elsewhere(path, NoEntry(why, known=False))
    return Elsewhere(path, _entry(root, path, menu))


def _home(root: Sysroot) -> str:
    """The UUID of the file system that /boot is on, in lower case; "" where /etc/fstab does not name it by one."""
    mounts = {words[1]: words[0] for line in root.get_text("etc/fstab").splitlines() if len(words := line.split()) > 1}
    device = mounts.get("/boot", mounts.get("/", "")).lower().replace('"', "")
    uuid = re.fullmatch(r"(?:uuid=|/dev/disk/by-uuid/)(\S+)", device)
    return uuid[1] if uuid else ""


def _searched(text: str) -> str:
    """The UUID that a stub looks for first, in lower case; "" for none."""
    match = re.search(r"^[ \t]*search\.?(?P<rest>.*\bfs[-_]uuid\b.*)$", text, re.MULTILINE)
    words = match["rest"].split() if match else []
    return next((word.lower() for word in words if not word.startswith("-") and "fs_uuid" not in word), "")


def _leads(text: str, menu: str, home: str, *, entries: bool) -> bool:
    """Does a file go on with the menu? By its name in the last part of the path, since a device stands before it."""
    if home and (searched := _searched(text)) and searched != home:
        return False
    tail = "/".join(menu.split("/")[-2:])  # grub/grub.cfg, whether or not /boot is a file system of its own
    prefix = next((match["path"] for match in reversed(list(_PREFIX.finditer(text)))), "")
    paths = [re.sub(r"\$\{?prefix\}?", lambda _: prefix, found["path"]) for found in _GOES_ON.finditer(text)]
    names = [re.sub(r"[\"']", "", path) for path in paths]
    if any(name.endswith(tail) for name in names):
        boots = _BOOTS.search(text)
        return not boots or _GOES_ON.search(text, 0, boots.start()) is not None
    return entries and _ENTRIES.search(text) is not None


def _own(root: Sysroot) -> set[str]:
    ids = read_os_ids(root)
    return {_VENDORS.get(name, name) for name in ids} | ids


def _entry(root: Sysroot, path: str, menu: str) -> BootEntry | NoEntry:
    """What a file that goes on with no menu boots by itself."""
    if not _BOOTS.search(root.get_text(path)):
        return NoEntry(f"no command of /{path}, where GRUB starts, goes on with /{menu}", known=False)
    try:
        return evaluate(root, path).entry
    except OSError as error:
        return NoEntry(f"/{path} cannot be read ({error.strerror})", known=False, errno=error.errno)
