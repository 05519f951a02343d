"""GRUB with entries of loader/entries boots one of ours once: by `next_entry`, as any entry of its menu.

Source: Fedora's blscfg.c, create_entry() (an entry's name is its id; grub_users).
"""

from functools import partial

from tunectl.bootloader import grubonce
from tunectl.bootloader.bls import look
from tunectl.bootloader.editor import read
from tunectl.bootloader.entries import Entry, parse_fields, read_entries
from tunectl.bootloader.family import Refusal
from tunectl.bootloader.grubsettings import GRUB2_CFG
from tunectl.bootloader.onceentries import Entries, once_by_entries
from tunectl.host.sysroot import Sysroot


def _default(root: Sysroot) -> Entry | None:
    """The default entry, as the look found it."""
    places = [point.where for point in look(root).upcoming.points[:1]]
    found = (entry for entry in read_entries(root, ("boot",)) if [f"/{entry.path}"] == places and not entry.tried)
    return next(found, None)


def _refusals(root: Sysroot) -> tuple[Refusal, ...]:
    default = _default(root)
    asked = grubonce.asks_for_a_password(root, GRUB2_CFG) if default and _names_users(root, default) else ()
    return (*grubonce.refusals(root, GRUB2_CFG), *asked)


def _names_users(root: Sysroot, entry: Entry) -> bool:
    """Is an entry kept to some users? kernel-install writes the name of a variable there, which is mostly not set."""
    users = parse_fields(read(root, entry.path) or "").get("grub_users", [""])[-1]
    return bool(grubonce.environment(root, GRUB2_CFG).get("grub_users")) if users == "$grub_users" else bool(users)


ONCE = once_by_entries(
    Entries(look, _default, "choose-grub-once", "unchoose-grub-once"),
    _refusals,
    partial(grubonce.armed, menu=GRUB2_CFG),
)
