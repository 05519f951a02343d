"""An entry of ours in loader/entries, which one boot takes: made of the default entry, with another line.

It has no version and no key to be sorted by, and a name that is below all others: where nothing chooses it, it is the
menu's last. A unified image is started by such an entry, too: its own line counts only where none is handed to it, or
under Secure Boot.
Source: UAPI Group, Boot Loader Specification; systemd-stub(7), .cmdline; systemd's stub.c (load options, addons).
"""

import os
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tunectl.bootloader.cmdline import length_problem
from tunectl.bootloader.editor import Look, line_without_ours, read
from tunectl.bootloader.entries import PLACES, Entry, loaded_files, place_of, unloadable
from tunectl.bootloader.family import Default, Journaled, Once, OnceEntry, Refusal, Write
from tunectl.bootloader.oneshot import entry_name, is_our_entry
from tunectl.bootloader.uki import read_sections
from tunectl.command import as_data
from tunectl.errors import UsageError
from tunectl.host.sysroot import Sysroot

# What names and sorts the default entry; the line is another one.
_OF_THE_DEFAULT = ("title", "version", "sort-key", "machine-id", "id", "options")
# A cluster of the largest FAT file system is 64 KiB: the entry, the file that replaces it, and its directory.
_NEEDED = 256 << 10  # bytes


class Entries(NamedTuple):
    """A family whose menu has the files of loader/entries."""

    look: Callable[[Sysroot], Look]
    default: Callable[[Sysroot], Entry | None]  # as it is where nothing is chosen for one boot
    arm: str
    disarm: str


def once_by_entries(
    family: Entries, own: Callable[[Sysroot], tuple[Refusal, ...]], armed: Callable[[Sysroot], str]
) -> Once:
    """What such a family does; `own` are the reasons that its loader has besides."""
    return Once(
        lambda root: (*own(root), *_refusals(family, root)),
        partial(_default, family),
        partial(_entry, family),
        armed,
    )


def _refusals(family: Entries, root: Sysroot) -> tuple[Refusal, ...]:
    """Why no entry of ours can stand beside the default one; () where it can."""
    found, standing = family.look(root), family.default(root)
    why = found.upcoming.problem or found.refusal
    if standing is None:
        return (Refusal(why or "which entry is the default is not known"),)
    # Where every try is used up, the default one is below all others, and ours would be the first.
    used_up = f"every try of {as_data(f'/{standing.path}')} is used up" if standing.exhausted else ""
    told = [why, used_up, unloadable(root, standing), _without_space(root, place_of(standing))]
    return tuple(map(Refusal, filter(None, told)))


def _without_space(root: Sysroot, place: str) -> str:
    try:
        about = os.statvfs(root.resolve(place))
    except OSError as error:
        return f"cannot tell how much space /{place} has: {error.strerror}"
    free = about.f_bavail * about.f_frsize
    return f"/{place} has {free} bytes left, and an entry needs up to {_NEEDED}" if free < _NEEDED else ""


def _default(family: Entries, root: Sysroot, journaled: Journaled) -> Default | None:
    """The default entry, its line without our words; of an image without what addons put behind it."""
    entry = family.default(root)
    if entry is None:
        return None
    line = entry.line if entry.loads else read_sections(root, entry.path).get(".cmdline", "")
    return Default(line_without_ours(family.look, root, " ".join(line.split()), journaled), loaded_files(root, entry))


def _entry(family: Entries, root: Sysroot, trial_id: str, line: str) -> OnceEntry:
    """The file of the entry. UsageError where the kernel would cut the line, or the loader not take its letters."""
    made_of = family.default(root)
    assert made_of  # nothing refused
    place = place_of(made_of)
    loads = [f"efi {made_of.path.removeprefix(place)}"]  # an image
    if made_of.loads:  # what these are, and who may start it, as its file has it
        lines = map(str.strip, (read(root, made_of.path) or "").splitlines())
        loads = [words for words in lines if words and words[0] != "#" and words.split()[0] not in _OF_THE_DEFAULT]
    text = "\n".join((f"title tunectl tries {trial_id}", *loads, f"options {line}", ""))
    problem = length_problem(f"{made_of.lead} {line}".strip())
    if problem or not text.isascii():  # the loaders do not agree on what other letters are
        raise UsageError(
            problem or f"{as_data(f'/{made_of.path}')} has more than ASCII in what it loads or in its line"
        )
    path = f"{place}/loader/entries/{entry_name(trial_id)}.conf"
    return OnceEntry((Write("file", path, text),), family.arm, family.disarm)


def standing_names(root: Sysroot) -> tuple[str, ...]:
    """The names of our entries that are there, with the suffix of their files."""
    folders = (root.listdir(f"{place}/loader/entries") for place in PLACES)
    return tuple(dict.fromkeys(name for names in folders for name in names if is_our_entry(name)))
