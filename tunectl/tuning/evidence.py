"""What an apply left outside of its state directory: it tells of a journal that is gone, or is an older one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tunectl.bootloader.families import FAMILIES, detect
from tunectl.bootloader.grubsettings import DROPIN
from tunectl.host.recorded_paths import MARK
from tunectl.host.sysroot import Sysroot
from tunectl.knobs import KNOBS
from tunectl.knobs.drivers.cpuset import PARTITION_FILE, IsolatedPartition
from tunectl.knobs.drivers.unitfile import LINK, UNIT, WRITTEN_BY_APPLY
from tunectl.model import Finding, Outcome, Scalar, Target
from tunectl.tuning.journal import Journal
from tunectl.wording import few

_HEADS = (WRITTEN_BY_APPLY, "# Written by tunectl: the boot arguments")  # how the files begin that are ours


GONE, OLDER = "gone", "older"


class Missing(NamedTuple):
    """A journal that does not account for what stands of an earlier apply."""

    observed: str  # GONE: it holds no record; OLDER: it ends before the newest apply
    reason: str
    signs: tuple[str, ...]


class Tuned(NamedTuple):
    """A target that may be as tunectl set it: what it shows, and what every kernel starts with where that is known."""

    target: Target
    observed: Scalar
    boots_with: Scalar


def missing(root: Sysroot, journal: Journal, bootloader: str = "") -> Missing | None:
    """What shows that apply ran here and this journal does not tell all of it; None where nothing does.

    `bootloader` as the host file has it.
    """
    if journal.unreadable or (journal.is_new and _is_recording(root, journal)):
        return None
    found = signs(root, bootloader) if journal.is_new else unnamed(root, journal, bootloader)
    if not found:
        return None
    if journal.is_new:
        state = _state(journal.path)
        return Missing(GONE, f"{journal.path} {state}, and tunectl applied here before ({few(found)})", found)
    told = f"it does not name what tunectl wrote here ({few(found)})"
    return Missing(OLDER, f"{journal.path} is not the newest: {told}", found)


def signs(root: Sysroot, bootloader: str = "") -> tuple[str, ...]:
    """The files and boot arguments that apply wrote and that still stand.

    The apply service's unit is none: `tunectl service install` writes it, too.
    """
    return (*_files(root), *_boot_words(root, bootloader))


def unnamed(root: Sysroot, journal: Journal, bootloader: str = "") -> tuple[str, ...]:
    """The signs that this journal does not account for: what it names, and what `--adopt` took for the original."""
    written = [entry for entry in journal.entries.values() if entry.errno is None]
    known = {*journal.adopted, *(f"/{entry.path}" for entry in written)}
    # Of boot arguments only the file is journaled, which may have any name.
    own_words = any(target.knob.startswith("boot.") for entry in written for target in entry.targets)
    found = (*_files(root), *(() if own_words else _boot_words(root, bootloader)))
    return tuple(one for one in found if one not in known)


def own_group(root: Sysroot) -> tuple[str, ...]:
    """The isolated partition, where it is ours. Restore takes away the unit that tells."""
    return (f"/{PARTITION_FILE}",) if IsolatedPartition().stands(root) else ()


def left_standing(root: Sysroot, journal: Journal, group: Iterable[str]) -> tuple[str, ...]:
    """What of ours stands after a restore, and was not in its journal. `group`: own_group() before it."""
    known = {*journal.adopted, *(f"/{entry.path}" for entry in journal.entries.values())}
    groups = (one for one in group if one not in known and root.get(one[1:]).startswith("isolated"))
    return (*unnamed(root, journal), *groups)


def may_be_tuned(findings: Iterable[Finding], restored: Iterable[Target], standing: Iterable[str]) -> list[Tuned]:
    """What is as the host file asks, of which no before-image was known, and which no file in `standing` tells.

    Nobody knows which of them were so before tunectl. What every kernel starts with is not among them.
    """
    known, told = set(restored), set(standing)
    return [
        Tuned(target, one.observed, KNOBS[one.knob].boots_with)
        for one in findings
        if (target := Target(one.knob, one.instance)) not in known
        if one.outcome is Outcome.COMPLIANT and _bears_no_mark(one.knob, told)
        if one.observed is None or one.observed != KNOBS[one.knob].boots_with
    ]


def _bears_no_mark(name: str, told: set[str]) -> bool:
    """Is it a kernel's value, a line of the operator's own file, or the service that he may have installed himself?"""
    return name in KNOBS and not name.startswith("boot.") and told.isdisjoint(KNOBS[name].driver.describe())


def _files(root: Sysroot) -> Iterator[str]:
    described = (path for knob in KNOBS.values() for path in knob.driver.describe())
    for path in dict.fromkeys((*described, f"/{DROPIN}")):
        if path.startswith("/etc/") and path[1:] not in (UNIT, LINK) and _is_ours(root, path[1:]):
            yield path


def _boot_words(root: Sysroot, bootloader: str) -> Iterator[str]:
    family = FAMILIES.get(detect(root, bootloader).name)
    return (f"the boot argument {word}" for word in (family.ours(root, {}) if family else ()))


def _is_recording(root: Sysroot, journal: Journal) -> bool:
    """A snapshot holds no journal. Only where its state directory was made is one missing there."""
    return not root.live and root.exists(MARK) and not os.path.isdir(journal.directory)


def _state(path: str) -> str:
    return "holds no record" if os.path.exists(path) else "is gone"


def _is_ours(root: Sysroot, path: str) -> bool:
    return root.get_text(path).startswith(_HEADS)
