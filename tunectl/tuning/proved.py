"""What proves a boot: is the set in force in one that is tried, and was the next boot's line tried, with its kernel?

Tried is a boot that proved itself and was confirmed (docs/commit-confirmed.md), as long as nothing has become another
since: every word of the next boot's line was on the line that was tried, and the default entry loads the same files.
What kexec started proves nothing of the boot loader.
"""

import datetime
import os
from collections import Counter
from collections.abc import Iterable

from tunectl import kinds
from tunectl.bootloader.cmdline import parse_cmdline
from tunectl.bootloader.family import Default, Once
from tunectl.bootloader.kexec import KEXEC
from tunectl.errors import UsageError
from tunectl.fix import APPLY, to_type
from tunectl.host.sysroot import Sysroot
from tunectl.knobs import KNOBS
from tunectl.knobs.codecs import satisfies
from tunectl.knobs.drivers.bootargs import loaded_by
from tunectl.knobs.row import View
from tunectl.model import NEXT_BOOT, Finding, NextBoot, Outcome, Proved
from tunectl.tuning.trial import Trial, TriedBy, Tries

_FAILS = (Outcome.DRIFTED, Outcome.PENDING_REBOOT, Outcome.UNREADABLE)


def once_of(view: View, by: TriedBy) -> Once | None:
    """How one boot takes an entry; None for a boot loader that cannot have it do so."""
    family = loaded_by(view).family
    return KEXEC if by == "kexec" else family.once if family else None


def default_of(view: View, by: TriedBy) -> Default | None:
    """What the default entry boots, or this boot's kernel for kexec, without our words; None where it is not known."""
    once = once_of(view, by)
    return once.default(view.root, view.journaled) if once else None


def mark_tried(findings: tuple[Finding, ...], view: View, trial: Trial | None) -> tuple[Finding, ...]:
    """The findings, `tried` where the next boot has what is asked for because that very boot was tried."""
    tries = trial.tries if trial and trial.status == "confirmed" else None
    asked = any(finding.next is NextBoot.SAME for finding in findings)
    if tries is None or not asked or not _stands(tries, view):
        return findings
    return tuple(
        finding._replace(proved=Proved.TRIED) if finding.next is NextBoot.SAME else finding for finding in findings
    )


def mark_proved(findings: tuple[Finding, ...], trial: Trial | None, boot_id: str) -> tuple[Finding, ...]:
    """The findings; in a boot that is tried and proved, what the next one lacks is confirmed, and not applied. Pure."""
    tries = trial.tries if trial and not trial.is_over else None
    if trial is None or tries is None or not tries.proved_at or tries.boot_id != boot_id:
        return findings
    fix = to_type(kinds.confirm(trial.id))
    return tuple(
        finding._replace(fix=fix) if finding.fix == APPLY and _is_of_next_boot(finding) else finding
        for finding in findings
    )


def _stands(tries: Tries, view: View) -> bool:
    """Is the next boot the one that was tried?"""
    upcoming = loaded_by(view).next
    line = upcoming.points[0].line if upcoming and upcoming.points else None
    if tries.by != "loader" or not tries.proved_at or line is None:
        return False
    if Counter(parse_cmdline(line)) - Counter(parse_cmdline(tries.line)):
        return False
    proved_s = datetime.datetime.fromisoformat(tries.proved_at).timestamp()
    try:
        default = default_of(view, "loader")
        same = default is not None and set(default.loads) == set(tries.loads)
        return same and not any(_changed_since(view.root, path, proved_s) for path in tries.loads)
    except OSError:
        return False


def _changed_since(root: Sysroot, path: str, when_s: float) -> bool:
    """By the time of its inode, which no package sets back: nothing of a kernel is read for it."""
    return os.stat(root.resolve(path)).st_ctime > when_s + 1  # the second that was noted is cut off


def unproved(findings: Iterable[Finding]) -> list[str]:
    """The targets that are not in force now. Pure."""
    return [finding.target for finding in of_this_boot(findings) if finding.outcome in _FAILS]


def of_this_boot(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """What a boot that is tried is judged by. What the next one will have is not asked: it has the old line. Pure."""
    return tuple(finding for finding in findings if not _is_of_next_boot(finding))


def _is_of_next_boot(finding: Finding) -> bool:
    """Is only the permanent configuration another? Then what this boot has of the argument is as it was asked for."""
    if finding.knob == NEXT_BOOT:
        return True
    if not finding.points or finding.outcome is not Outcome.DRIFTED or finding.observed is None:
        return False
    decode = KNOBS[finding.knob].codec.decode
    try:
        return satisfies(finding.match, decode(str(finding.observed)), decode(str(finding.desired)))
    except (ValueError, UsageError):  # in words: what this boot has is undone
        return finding.observed == finding.desired
