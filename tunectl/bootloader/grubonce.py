"""What GRUB needs to boot an entry once: `next_entry` in its environment block, which it clears before it boots.

GRUB writes that block in place, to the disk's own sectors: it cannot where something lies between the file and them.
Then the entry would be taken at every boot.
Source: GRUB manual, 15.2 (environment block); grub-mkconfig's 00_header (next_entry, boot_once) and 41_custom;
grub-core/commands/loadenv.c, check_blocklists(); Debian's and Fedora's 00_header (for which they write no save_env).
"""

import re

from tunectl.bootloader.family import Refusal
from tunectl.bootloader.grubcfg import BLOCK, parse_grubenv, section_at, section_marks
from tunectl.bootloader.grubsettings import DEFAULT_GRUBENV, menu_path
from tunectl.bootloader.oneshot import is_our_entry
from tunectl.command import as_data
from tunectl.host.filesystem import read_place
from tunectl.host.sysroot import Sysroot

# grub-mkconfig writes `set default="${next_entry}"`, and takes next_entry back before anything boots.
_TAKES = re.compile(r'^[ \t]*set[ \t]+default="\$\{next_entry\}"', re.MULTILINE)
_CLEARS = re.compile(r"^[ \t]*save_env[ \t]+next_entry\b", re.MULTILINE)
_DEFAULT = re.compile(r"^(?!.*\"x\$default\" = ).*\bdefault=", re.MULTILINE)  # not 10_linux's mending of old titles
_HEADER = "/etc/grub.d/00_header"
_ENTRIES = re.compile(r"^[ \t]*(?:menuentry|submenu|blscfg)\b", re.MULTILINE)
_PASSWORD = re.compile(r"^[ \t]*set[ \t]+superusers=", re.MULTILINE)
_SIZE = 1024  # bytes of an environment block
_EDITORS = ("usr/bin/grub-editenv", "usr/bin/grub2-editenv")
_WRITTEN = ("ext2", "ext3", "ext4", "xfs", "vfat")  # GRUB writes a block in place here


def environment(root: Sysroot, menu: str) -> dict[str, str]:
    """The variables of the environment block beside the grub.cfg `menu`; none where there is none."""
    return parse_grubenv(root.get_text(DEFAULT_GRUBENV[menu]))


def armed(root: Sysroot, menu: str) -> str:
    """The entry that the next boot alone takes; "" for none."""
    return environment(root, menu).get("next_entry", "")


def refusals(root: Sysroot, menu: str) -> tuple[Refusal, ...]:
    """Why GRUB would not take an entry once, and once only, by this grub.cfg; () where it would."""
    text, block = root.read_text(menu), DEFAULT_GRUBENV[menu]
    told: list[Refusal] = []
    if not (_TAKES.search(text) and _CLEARS.search(text)):
        told.append(Refusal(f"/{menu} has no code for next_entry, as grub-mkconfig writes it"))
    elif by := _chosen_later(root, menu) or _chosen_later(root, custom_cfg(root)):
        told.append(Refusal(f"{by} chooses an entry after next_entry was taken"))
    held = root.get_text(block)
    if len(held) != _SIZE or not held.startswith(BLOCK):
        told.append(Refusal(f"/{block} is no environment block of {_SIZE} bytes (`grub-editenv - create` makes one)"))
    elif "env_block" in environment(root, menu):  # SUSE's GRUB on btrfs: next_entry is not in the file
        told.append(Refusal(f"/{block} has GRUB keep its variables elsewhere (env_block), where tunectl does not look"))
    elif why := _cannot_clear(root, block):
        told.append(Refusal(f"GRUB could not clear next_entry, and each boot would take it: {why}", attended=True))
    return tuple(told)


def _chosen_later(root: Sysroot, path: str) -> str:
    """Where, as FILE:LINE, something behind the script that takes next_entry names an entry; "" for nowhere."""
    text = root.get_text(path)
    marks, taken = section_marks(text), _TAKES.search(text)
    entries = _ENTRIES.search(text, taken.end()) if taken else None
    for match in _DEFAULT.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        behind = not taken or (entries and match.start() > entries.start())
        if behind or section_at(marks, line) not in (_HEADER, ""):
            return f"/{path}:{line}"
    return ""


def _cannot_clear(root: Sysroot, block: str) -> str:
    place = read_place(root, block)
    if place is None:
        return f"the file system of /{block} is not known"
    if place.read_only:
        return f"/{block} is on a file system that is mounted read-only"
    if place.layers:
        return f"/{block} is on {' on '.join(place.layers)}"
    return "" if place.kind in _WRITTEN else f"/{block} is on {as_data(place.kind)}"


def asks_for_a_password(root: Sysroot, menu: str) -> tuple[Refusal, ...]:
    """An entry that is kept to some users: GRUB asks for a password where it knows superusers."""
    where = next((path for path in (menu, custom_cfg(root)) if _PASSWORD.search(root.get_text(path))), "")
    why = f"/{where} sets superusers, and GRUB would ask for a password before it boots the entry"
    return (Refusal(why, attended=True),) if where else ()


def choosing(root: Sysroot, name: str) -> tuple[str, ...]:
    """What has the next boot take an entry."""
    return (*_editing(root), "set", f"next_entry={name}")


def unchoosing(root: Sysroot) -> list[tuple[str, ...]]:
    """What takes that back, where the entry is ours."""
    return [(*_editing(root), "unset", "next_entry")] if is_our_entry(armed(root, menu_path(root))) else []


def _editing(root: Sysroot) -> tuple[str, str]:
    return f"/{next(filter(root.exists, _EDITORS), _EDITORS[0])}", f"/{DEFAULT_GRUBENV[menu_path(root)]}"


def custom_cfg(root: Sysroot) -> str:
    """The operator's file, beside grub.cfg, that grub.cfg goes on with."""
    return f"{menu_path(root).rpartition('/')[0]}/custom.cfg"
