"""systemd-boot: entries in loader/entries, unified kernel images in EFI/Linux, /etc/kernel/cmdline for what is to come.

Entries are edited as they stand. The line of an image is inside it and may be signed: kernel-install builds a new one.
Source: loader.conf(5), systemd-boot(7), the Boot Loader Interface (EFI variables), kernel-install(8).
"""

import fnmatch
from collections import Counter
from collections.abc import Sequence

from tunectl.bootloader.cmdline import parse_cmdline
from tunectl.bootloader.editor import Holder, Look, files_family, read
from tunectl.bootloader.entries import (
    CMDLINE,
    PLACES,
    Entry,
    entry_files,
    entry_point,
    in_order,
    made_by_kernel_install,
    own_line,
    parse_fields,
    read_entries,
    source_of_entries,
    wrongly_chosen,
)
from tunectl.bootloader.family import Family, Point, Refusal, Upcoming, cannot_read
from tunectl.bootloader.onceentries import Entries, once_by_entries, standing_names
from tunectl.bootloader.oneshot import is_our_entry
from tunectl.bootloader.owners import ENTRY_MAKERS, IMAGE_MAKERS, maker, source_of
from tunectl.bootloader.started import is_secure_boot, read_start, takes_one_shots, variable
from tunectl.bootloader.uki import is_of_kernel_install, kernel_of, read_images, rebuild_refusal
from tunectl.command import argv, as_data
from tunectl.fix import NOTHING, Fix, to_decide, to_type
from tunectl.host.sysroot import Sysroot

BOOTCTL = "usr/bin/bootctl"
LOADER_CONF = tuple(f"{place}/loader/loader.conf" for place in PLACES)


def look(root: Sysroot) -> Look:
    """The entries and images, the one that is booted next, and the source of those to come."""
    try:
        texts = read_entries(root)
        images = read_images(root, PLACES)
        default = default_entry(root, in_order([*texts, *images]))
        if default is None:
            return Look((), Upcoming((), "there is no boot entry in loader/entries and no image in EFI/Linux"))
        return _of_image(root, default, texts) if default in images else _of_entries(root, default, texts)
    except OSError as error:
        return Look((), cannot_read(error))


def _default(root: Sysroot) -> Entry | None:
    """The default entry, as it is where none is chosen for one boot."""
    entries = [entry for entry in (*read_entries(root), *read_images(root, PLACES)) if not entry.tried]
    return default_entry(root, in_order(entries), once=False)


def _once_refusals(root: Sysroot) -> tuple[Refusal, ...]:
    told = []
    if read_start(root).loader != "systemd-boot":
        told.append("this boot did not come from systemd-boot, which LoaderInfo would tell")
    elif not takes_one_shots(root):
        told.append("this systemd-boot boots no entry once (LoaderFeatures)")
    default = _default(root)
    if default and not default.loads and is_secure_boot(root):
        told.append(f"Secure Boot holds {as_data(f'/{default.path}')} to the line inside it")
    if not root.exists(BOOTCTL):
        told.append(f"there is no /{BOOTCTL}, which chooses an entry for one boot")
    return tuple(map(Refusal, told))


def _armed(root: Sysroot) -> str:
    return variable(root, "LoaderEntryOneShot")


def choosing(root: Sysroot) -> list[tuple[str, ...]]:
    """What has the next boot take our entry."""
    return [(f"/{BOOTCTL}", "set-oneshot", name) for name in standing_names(root)]


def unchoosing(root: Sysroot) -> list[tuple[str, ...]]:
    """What takes that back, where it is still ours."""
    return [(f"/{BOOTCTL}", "set-oneshot", "")] if is_our_entry(_armed(root)) else []


def _of_entries(root: Sysroot, default: Entry, texts: Sequence[Entry]) -> Look:
    """The entries are edited, and what their maker makes them from; one made by hand is its own source."""
    holders = tuple(entry.holder for entry in texts if entry.ours)
    problem, again = wrongly_chosen(default)
    point = entry_point(root, default)
    if owner := maker(root, ENTRY_MAKERS):
        source = source_of(root, owner)
        place = source._replace(where=f"{owner.source}, from which {owner.carry} makes the entries")
        own = (Holder(owner.sources[0], owner.form),) if owner.form else ()
        return Look((*own, *holders), Upcoming((point, place), problem, again=again))
    if not made_by_kernel_install(default):
        return Look(holders, Upcoming((point,), problem, again=again))
    kernel_cmdline, made_from = source_of_entries(root, own_line(texts, default))
    return Look((kernel_cmdline, *holders), Upcoming((point, made_from), problem, again=again))


def _of_image(root: Sysroot, default: Entry, texts: Sequence[Entry]) -> Look:
    """The line is in the image: its maker builds a new one from his source."""
    problem, _ = wrongly_chosen(default)
    point = Point(f"/{default.path}", default.line)
    foreign = not is_of_kernel_install(default)
    if foreign and (owner := maker(root, IMAGE_MAKERS)):
        refusal = f"{owner.name} makes {as_data(f'/{default.path}')}: add the arguments {owner.advice}"
        return Look((), Upcoming((point, source_of(root, owner)), problem), refusal)
    refusal = rebuild_refusal(root, default)
    if foreign:
        return Look((), Upcoming((point,), problem), refusal)
    kernel_cmdline, made_from = source_of_entries(root, default.line)
    holders = (kernel_cmdline, *(entry.holder for entry in texts if entry.ours))
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


def default_entry(root: Sysroot, entries: list[Entry], *, once: bool = True) -> Entry | None:
    """What systemd-boot boots: chosen for one boot, by `bootctl set-default`, by loader.conf, or the menu's first.

    Not `once`: whatever is chosen for one boot. That our own entry is, for the boot that is tried, never counts.
    """
    chosen = _armed(root) if once else ""
    for wanted in ("" if is_our_entry(chosen) else chosen, variable(root, "LoaderEntryDefault"), _configured(root)):
        if wanted == "@saved":
            wanted = variable(root, "LoaderEntryLastBooted")
        if wanted:
            for entry in entries:
                names = (entry.id.lower(), entry.id.lower().removesuffix(".conf"))
                if any(fnmatch.fnmatchcase(name, wanted.lower()) for name in names):
                    return entry
    return entries[0] if entries else None


def _configured(root: Sysroot) -> str:
    for path in LOADER_CONF:
        if wanted := parse_fields(read(root, path) or "").get("default"):
            return wanted[0]
    return ""


_ENTRIES = Entries(look, _default, "choose-systemd-boot-once", "unchoose-systemd-boot-once")
FAMILY: Family = files_family(
    look,
    (*entry_files(), *LOADER_CONF),
    ("kernel-install",),
    to_decide("run `kernel-install add` for the kernel that will boot"),
)._replace(once=once_by_entries(_ENTRIES, _once_refusals, _armed))
# openSUSE's grub2-bls: its GRUB reads the same entries in the same order (bli and blscfg), and no /etc/default/grub.
SUSE_BLS: Family = files_family(look, (*entry_files(), *LOADER_CONF))
