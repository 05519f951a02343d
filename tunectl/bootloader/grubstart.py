"""Where GRUB starts on UEFI: the grub.cfg in the EFI system partition, beside the GRUB that the firmware starts.

grub-install and the signed packages write a stub there, which goes on with /boot/grub/grub.cfg. A whole menu there
boots by itself, and no update-grub reaches it. The stub is not run, since it names a file system by its UUID alone:
that it goes on is seen by its last command, and by /etc/fstab that it does so on this system's disk. Without such a
file (an ESP that is not mounted, or that only root may read), GRUB is taken to be as its installer left it.
Source: grub-install(8) and Debian's and Ubuntu's grub2-signed (the stub's three lines: search, set prefix, configfile);
RHEL's and openSUSE's shim packages (the same, with grub2).
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from tunectl.bootloader.grubcfg import LOADERS, Command, Refused, guarded, parse
from tunectl.bootloader.grubmenu import BootEntry, NoEntry, evaluate
from tunectl.bootloader.grubscript import expand
from tunectl.bootloader.owners import matching
from tunectl.host.identity import read_os_ids
from tunectl.host.sysroot import Sysroot

# FAT does not tell capital letters from small ones, and `ls` shows either.
FILES = ("boot/efi/[Ee][Ff][Ii]/*/grub.cfg", "efi/[Ee][Ff][Ii]/*/grub.cfg", "boot/EFI/*/grub.cfg")
_FIRMWARE = "sys/firmware/efi"
_GOES_ON = ("configfile", "source", "normal", ".")
_ENTRIES = "blscfg"
_BOOTS = ("menuentry", *LOADERS, _ENTRIES, "chainloader")
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
    texts = {path: text for path in matching(root, FILES) if (text := root.get_text(path)).strip()}
    files = {path: _commands(text) for path, text in texts.items()}
    home = _home(root)
    away = [path for path, commands in files.items() if not _leads(commands, menu, home, entries=entries)]
    ids = read_os_ids(root)
    vendors = ids | {_VENDORS.get(name, name) for name in ids}
    own = [path for path in files if path.split("/")[-2].lower() in vendors]
    started = own or list(files)
    if not away or (own and not set(own) & set(away)):
        return None
    path = next(path for path in away if path in started)
    if len(started) > 1 and set(started) - set(away):
        why = f"/{path} does not go on with /{menu}, and which file in the ESP is read is not known"
        return Elsewhere(path, NoEntry(why, known=False))
    if not any(command.name in _BOOTS for command in files[path]):
        return Elsewhere(path, NoEntry(f"no command of /{path}, where GRUB starts, goes on with /{menu}", known=False))
    try:
        return Elsewhere(path, evaluate(root, path).entry)
    except OSError as error:
        return Elsewhere(path, NoEntry(f"/{path} cannot be read ({error.strerror})", known=False, errno=error.errno))


def _home(root: Sysroot) -> str:
    """The UUID of the file system that /boot is on, in lower case; "" where /etc/fstab does not name it by one."""
    mounts = {words[1]: words[0] for line in root.get_text("etc/fstab").splitlines() if len(words := line.split()) > 1}
    device = mounts.get("/boot", mounts.get("/", "")).lower().replace('"', "")
    uuid = re.fullmatch(r"(?:uuid=|/dev/disk/by-uuid/)(\S+)", device)
    return uuid[1] if uuid else ""


def _commands(text: str) -> list[Command]:
    """The commands outside of entries, whatever they depend on; none where GRUB takes the text for no script."""
    try:
        return [command for command, _ in guarded(parse(text))]
    except Refused:
        return []


def _leads(commands: Sequence[Command], menu: str, home: str, *, entries: bool) -> bool:
    """Does a file go on with the menu? By its name in the last part of the path, since a device stands before it."""
    tail = "/".join(menu.split("/")[-2:])  # grub/grub.cfg, whether or not /boot is a file system of its own
    variables: dict[str, str] = {}
    searched = ""
    boots = False
    for command in commands:
        first, *words = ["".join(expand(word, variables)) for word in command.words]
        if first.startswith("search") and not searched and ("fs_uuid" in first or "--fs-uuid" in words):
            searched = next((word.lower() for word in words if not word.startswith("-")), "")
            if home and searched not in ("", home):
                return False
        elif first == "set" and words:
            name, _, value = words[0].partition("=")
            variables[name] = value
        elif first in _GOES_ON and not boots and words and words[0].endswith(tail):
            return True
        boots = boots or first in _BOOTS
    return entries and any(command.name == _ENTRIES for command in commands)
