"""What an apply left outside of its state directory: it tells of a journal that is gone, or is an older one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from tunectl.bootloader.families import FAMILIES, detect
from tunectl.bootloader.grubsettings import DROPIN
from tunectl.host.recorded_paths import MARK
from tunectl.host.sysroot import Sysroot
from tunectl.knobs import KNOBS
from tunectl.knobs.drivers.cpuset import PARTITION_FILE, IsolatedPartition
from tunectl.knobs.drivers.unitfile import LINK, UNIT, WRITTEN_BY_APPLY
from tunectl.model import Finding, Outcome, Target
from tunectl.tuning.journal import Journal, few

_HEADS = (WRITTEN_BY_APPLY, "# Written by tunectl: the boot arguments")  # how the files begin that are ours


def signs(root: Sysroot, bootloader: str = "") -> tuple[str, ...]:
    """The files and boot arguments that apply wrote and that still stand. `bootloader` as the host file has it.

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


def journal_lost(root: Sysroot, journal: Journal, bootloader: str = "", *, in_full: bool = False) -> str:
    """What is wrong where apply ran here and its journal is gone or holds no record; "" where nothing is missing."""
    if not journal.is_new or _is_recording(root, journal):
        return ""
    found = signs(root, bootloader)
    names = ", ".join(found) if in_full else few(found)
    return f"{journal.path} {_state(journal.path)}, and tunectl applied here before ({names})" if found else ""


def journal_short(root: Sysroot, journal: Journal, bootloader: str = "") -> str:
    """What is wrong where the journal is an older one, which ends before the newest apply; "" where nothing is."""
    if journal.is_new or journal.unreadable:
        return ""
    found = unnamed(root, journal, bootloader)
    return f"{journal.path} is not the newest: it does not name what tunectl wrote here ({few(found)})" if found else ""


def own_group(root: Sysroot) -> tuple[str, ...]:
    """The isolated partition, where it is ours. Restore takes away the unit that tells."""
    return (f"/{PARTITION_FILE}",) if IsolatedPartition().stands(root) else ()


def left_standing(root: Sysroot, journal: Journal, group: Iterable[str]) -> tuple[str, ...]:
    """What of ours stands after a restore, and was not in its journal. `group`: own_group() before it."""
    known = {*journal.adopted, *(f"/{entry.path}" for entry in journal.entries.values())}
    groups = (one for one in group if one not in known and root.get(one[1:]).startswith("isolated"))
    return (*unnamed(root, journal), *groups)


def may_be_tuned(findings: Iterable[Finding], restored: Iterable[Target], standing: Iterable[str]) -> list[Target]:
    """What is as the host file asks, of which no before-image was known, and which no file in `standing` tells.

    Nobody knows which of them were so before tunectl.
    """
    known, told = set(restored), set(standing)
    return [
        target
        for one in findings
        if (target := Target(one.knob, one.instance)) not in known
        if one.outcome is Outcome.COMPLIANT and _bears_no_mark(one.knob, told)
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
    return root.exists(path) and root.get_text(path).startswith(_HEADS)
