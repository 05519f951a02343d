"""What an apply left outside of its state directory: it tells of a journal that is gone, or is an older one."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from tunectl.bootloader.families import FAMILIES, detect
from tunectl.bootloader.family import Journaled
from tunectl.bootloader.grubsettings import DROPIN
from tunectl.bootloader.words import split
from tunectl.host.sysroot import MARK, Sysroot
from tunectl.knobs import KNOBS
from tunectl.knobs.drivers.bootargs import loaded_by
from tunectl.knobs.drivers.bootline import given_at
from tunectl.knobs.drivers.cpuset import PARTITION_FILE, IsolatedPartition
from tunectl.knobs.drivers.unitfile import LINK, UNIT, WRITTEN_BY_APPLY
from tunectl.knobs.row import View
from tunectl.model import Finding, Outcome, Scalar, Target
from tunectl.tuning.journal import Journal
from tunectl.tuning.newest import Newest
from tunectl.units import DEADLINE, DIRECTORY, RETURN
from tunectl.wording import few

_HEADS = (WRITTEN_BY_APPLY, "# Written by tunectl: the boot arguments")  # how the files begin that are ours


GONE, OLDER = "gone", "older"
VALUES = "values of the running kernel"


class Missing(NamedTuple):
    """A journal that does not account for what stands of an earlier apply."""

    observed: str  # GONE: it holds no record; OLDER: it ends before the newest apply
    reason: str
    signs: tuple[str, ...]
    aside: tuple[str, ...] = ()  # those that are journals which lost some of it


class Tuned(NamedTuple):
    """A target that may be as tunectl set it: what it shows, and what every kernel starts with where that is known.

    Of a boot argument, what the next boot has, and the lines that give it.
    """

    target: Target
    observed: Scalar
    boots_with: Scalar
    given_at: tuple[str, ...] = ()


def missing(root: Sysroot, journal: Journal, bootloader: str = "") -> Missing | None:
    """What shows that apply ran here and this journal does not tell all of it; None where nothing does.

    `bootloader` as the host file has it.
    """
    if journal.unreadable or (journal.is_new and _is_recording(root, journal)):
        return None
    if journal.is_new:
        aside = journal.lossy()
        found = (*signs(root, journal, bootloader), *aside)
        reason = f"{journal.path} {_state(journal.path)}, and tunectl applied here before ({few(found)})"
        return Missing(GONE, reason, found, aside) if found else None
    found = unnamed(root, journal, bootloader)
    reason = f"{journal.path} is not the newest: it does not name what tunectl wrote here ({few(found)})"
    return Missing(OLDER, reason, found) if found else None


def signs(root: Sysroot, journal: Journal, bootloader: str = "") -> tuple[str, ...]:
    """What apply wrote and still stands, where a journal is gone."""
    return (*lasting(root, journal, bootloader), *_of_this_boot(root, journal.newest))


def lasting(root: Sysroot, journal: Journal, bootloader: str = "") -> tuple[str, ...]:
    """Those that outlive the boot: files, the service, and boot arguments."""
    files = (*_files(root), *((f"/{UNIT}",) if _is_ours(root, UNIT) else ()))
    words = dict.fromkeys((*own_words(root, {}, bootloader), *_still_given(root, journal.newest.words, bootloader)))
    # What is enabled alone tells of nobody's apply.
    link = (f"/{LINK}",) if (files or words) and _is_enabled(root, f"/{UNIT}" in files) else ()
    return (*files, *link, *_as_arguments(words))


def _is_enabled(root: Sysroot, unit_is_ours: bool) -> bool:
    """Does our link stand? Where that cannot be known, the rest tells that apply ran."""
    with suppress(OSError):
        return root.link_target(LINK) == f"/{UNIT}" and (unit_is_ours or not root.exists(UNIT))
    return False


def unnamed(root: Sysroot, journal: Journal, bootloader: str = "") -> tuple[str, ...]:
    """The signs that this journal does not account for: what it names, and what `--adopt` took for the original.

    The apply service may be there by `service install` of an earlier version: it is one only where the journal is known
    to be older.
    """
    written = [entry for entry in journal.entries.values() if entry.errno is None]
    known = {*journal.adopted, *(f"/{entry.path}" for entry in written)}
    if journal.is_older:
        known |= set(_as_arguments(own_words(root, journal.edits(), bootloader)))
        found = signs(root, journal, bootloader)
    else:
        # Of boot arguments only the file is journaled, which may have any name.
        are_known = any(target.knob.startswith("boot.") for entry in written for target in entry.targets)
        found = (*_files(root), *(() if are_known else _as_arguments(own_words(root, {}, bootloader))))
    return tuple(one for one in found if one not in known)


def own_group(root: Sysroot) -> tuple[str, ...]:
    """The isolated partition, where it is ours. Restore takes away the unit that tells."""
    return (f"/{PARTITION_FILE}",) if IsolatedPartition().stands(root) else ()


def left_standing(root: Sysroot, journal: Journal, group: Iterable[str]) -> tuple[str, ...]:
    """What of ours stands after a restore, and was not in its journal. `group`: own_group() before it."""
    known = {*journal.adopted, *(f"/{entry.path}" for entry in journal.entries.values())}
    groups = (one for one in group if one not in known and root.get(one[1:]).startswith("isolated"))
    return (*unnamed(root, journal), *groups)


def may_be_tuned(
    view: View, findings: Iterable[Finding], restored: Iterable[Target], standing: Iterable[str]
) -> list[Tuned]:
    """What is as the host file asks, of which no before-image was known, and which nothing in `standing` tells.

    Nobody knows which of them were so before tunectl. What every kernel starts with is not among them.
    """
    known, told = set(restored), set(standing)
    rest = [
        finding for finding in findings if finding.knob in KNOBS and Target(finding.knob, finding.instance) not in known
    ]
    return [tuned for finding in rest if (tuned := _tuned_boot(view, finding, told) or _tuned_now(finding, told))]


def _tuned_now(one: Finding, told: set[str]) -> Tuned | None:
    knob = KNOBS[one.knob]
    starts = one.observed is not None and one.observed == knob.boots_with
    named = not told.isdisjoint(knob.driver.describe())
    if one.outcome is not Outcome.COMPLIANT or one.points or named or starts:
        return None
    return Tuned(Target(one.knob, one.instance), one.observed, knob.boots_with)


def _tuned_boot(view: View, one: Finding, told: set[str]) -> Tuned | None:
    """A boot argument that the next boot has exactly as it is asked for, wherever somebody wrote it."""
    key, asked = one.knob.removeprefix("boot."), (one.points or {}).get("asked")
    named = not told.isdisjoint(_as_arguments(_upcoming_words(view, key)))
    if named or asked is None or (one.points or {}).get("next_boot") != asked:
        return None
    return Tuned(Target(one.knob, one.instance), asked, None, given_at(view, key))


def _upcoming_words(view: View, key: str) -> Iterator[str]:
    """The words of the next boot's lines that give this argument."""
    upcoming = loaded_by(view).next
    lines = [point.line or "" for point in upcoming.points] if upcoming else []
    return (word for line in lines for word in split(line) if word.partition("=")[0] == key)


def _files(root: Sysroot) -> Iterator[str]:
    described = (path for knob in KNOBS.values() for path in knob.driver.describe())
    units = (f"/{DIRECTORY}/{name}" for name in (RETURN, DEADLINE))
    for path in dict.fromkeys((*described, *units, f"/{DROPIN}")):
        if path.startswith("/etc/") and path[1:] not in (UNIT, LINK) and _is_ours(root, path[1:]):
            yield path


def own_words(root: Sysroot, journaled: Journaled, bootloader: str) -> tuple[str, ...]:
    """Our boot arguments, as they stand in the configuration; `journaled` tells them from the operator's."""
    family = FAMILIES.get(detect(root, bootloader).name)
    return family.ours(root, journaled) if family else ()


def _still_given(root: Sysroot, words: tuple[str, ...], bootloader: str) -> Iterator[str]:
    """Those of these boot arguments that the next boot has."""
    family = FAMILIES.get(detect(root, bootloader).name) if words else None
    points = family.upcoming(root).points if family else ()
    given = {word for point in points for word in split(point.line or "")}
    return (word for word in words if word in given)


def _as_arguments(words: Iterable[str]) -> Iterator[str]:
    return (f"the boot argument {word}" for word in words)


def _of_this_boot(root: Sysroot, newest: Newest) -> tuple[str, ...]:
    """Values of the running kernel bear no mark, and end with the boot."""
    here = newest.run and newest.boot_id == root.get("proc/sys/kernel/random/boot_id")
    return (VALUES,) if here else ()


def _is_recording(root: Sysroot, journal: Journal) -> bool:
    """A snapshot holds no journal. Only where its state directory was made is one missing there."""
    return not root.live and root.exists(MARK) and not os.path.isdir(journal.directory)


def _state(path: str) -> str:
    return "holds no record" if os.path.exists(path) else "is gone"


def _is_ours(root: Sysroot, path: str) -> bool:
    return root.get_text(path).startswith(_HEADS)
