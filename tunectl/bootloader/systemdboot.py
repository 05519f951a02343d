"""systemd-boot: entries in loader/entries, unified kernel images in EFI/Linux, /etc/kernel/cmdline for what is to come.

Entries are edited as they stand. The line of an image is inside it and may be signed: kernel-install builds a new one.
Source: loader.conf(5), systemd-boot(7), the Boot Loader Interface (EFI variables), kernel-install(8).
"""

from __future__ import annotations

import fnmatch
from collections import Counter

from tunectl.bootloader.cmdline import parse_cmdline
from tunectl.bootloader.editor import Look, files_family, read
from tunectl.bootloader.entries import (
    CMDLINE,
    PLACES,
    Entry,
    entry_files,
    in_order,
    parse_fields,
    read_entries,
    rescue_chosen,
    source_of_entries,
)
from tunectl.bootloader.family import Family, Point, Upcoming, cannot_read
from tunectl.bootloader.uki import kernel_of, read_images, rebuild_refusal
from tunectl.command import argv, as_data
from tunectl.fix import NOTHING, Fix, to_decide, to_type
from tunectl.host.sysroot import Sysroot

_LOADER_CONF = tuple(f"{place}/loader/loader.conf" for place in PLACES)
_VARIABLE = "sys/firmware/efi/efivars/{}-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"


def look(root: Sysroot) -> Look:
    """The entries and images, the one that is booted next, and the source of those to come."""
    try:
        texts = read_entries(root)
        images = read_images(root, PLACES)
        default = default_entry(root, in_order([*texts, *images]))
        kernel_cmdline, made_from = source_of_entries(root, default.line if default else "")
    except OSError as error:
        return Look((), cannot_read(error))
    if default is None:
        return Look((), Upcoming((), "there is no boot entry in loader/entries and no image in EFI/Linux"))
    holders = (kernel_cmdline, *(entry.holder for entry in texts if not entry.rescue))
    problem, again = rescue_chosen(default)
    point = Point(f"/{default.path}", default.line)
    if default not in images:
        return Look(holders, Upcoming((point, made_from), problem, again=again))
    refusal = rebuild_refusal(root, default)
    if root.live:
        stale, fix = ("", NOTHING) if refusal else _stale(root, default, made_from.line or "")
        return Look(holders, Upcoming((point, made_from), problem, fix=fix, unmade=stale), refusal)
    # kernel-install is never run for a recorded host: there the source says what the next image will have.
    note = (
        ""
        if point.line == made_from.line
        else f"{as_data(f'/{default.path}')} holds another line until kernel-install has run"
    )
    return Look(holders, Upcoming((made_from,), problem, note), refusal)


def _stale(root: Sysroot, image: Entry, source: str) -> tuple[str, Fix]:
    """(what the image that boots next lacks of its source, the command that builds it again); or nothing."""
    lacking = Counter(parse_cmdline(source)) - Counter(parse_cmdline(image.line))
    if not lacking:
        return "", NOTHING
    words, place = " ".join(map(as_data, lacking)), as_data(f"/{image.path}")
    mend = to_type(argv("sudo", "kernel-install", "add", of=(image.kernel, f"/{kernel_of(root, image)}")))
    return (
        f"kernel-install has not run since it was configured: {place} lacks {words} (/{CMDLINE})",
        mend,
    )


def default_entry(root: Sysroot, entries: list[Entry]) -> Entry | None:
    """What systemd-boot boots: chosen for one boot, by `bootctl set-default`, by loader.conf, or the menu's first."""
    for wanted in (_variable(root, "LoaderEntryOneShot"), _variable(root, "LoaderEntryDefault"), _configured(root)):
        if wanted == "@saved":
            wanted = _variable(root, "LoaderEntryLastBooted")
        if wanted:
            for entry in entries:
                names = (entry.id.lower(), entry.id.lower().removesuffix(".conf"))
                if any(fnmatch.fnmatchcase(name, wanted.lower()) for name in names):
                    return entry
    return entries[0] if entries else None


def _configured(root: Sysroot) -> str:
    for path in _LOADER_CONF:
        if wanted := parse_fields(read(root, path) or "").get("default"):
            return wanted[0]
    return ""


def _variable(root: Sysroot, name: str) -> str:
    """An EFI variable of the Boot Loader Interface: four bytes of attributes, then UTF-16 with a NUL at its end.

    Reading one calls the firmware, which may stop every CPU for that time. Asking for one that is not set does not.
    """
    path = _VARIABLE.format(name)
    try:
        return root.read_bytes(path)[4:].decode("utf-16-le", "replace").rstrip("\0")
    except PermissionError as error:
        error.filename = root.path(path)
        raise
    except OSError:
        return ""


FAMILY: Family = files_family(
    look,
    (*entry_files(), *_LOADER_CONF),
    ("kernel-install",),
    to_decide("run `kernel-install add` for the kernel that will boot"),
)
