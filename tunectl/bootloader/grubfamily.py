"""GRUB whose grub.cfg is made by grub-mkconfig: Debian and Ubuntu, SUSE, Arch.

Where grub-mkconfig reads /etc/default/grub.d, a file of our own there; else our words in GRUB_CMDLINE_LINUX_DEFAULT of
/etc/default/grub. Either way recovery entries stay as they are, and grub-mkconfig makes the menu anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from tunectl.bootloader.dropin import confirm, plan_dropin, unmet
from tunectl.bootloader.edits import our_words, plan_edits, read, without_ours
from tunectl.bootloader.family import BootPlan, Family, Holder, Journaled, Look, Point, Upcoming, Write
from tunectl.bootloader.forms import variable
from tunectl.bootloader.grub import DROPIN, parse_dropin
from tunectl.bootloader.mkconfig import configured
from tunectl.bootloader.nextboot import next_boot, next_length_problem
from tunectl.bootloader.release import DEBIAN, system_ids
from tunectl.bootloader.settings import DEFAULT, DIRECTORY, MAIN
from tunectl.bootloader.sourcing import source_live
from tunectl.bootloader.words import Desired, Same
from tunectl.host.sysroot import Sysroot


def reads_dropins(root: Sysroot) -> bool:
    """Does this distribution's grub-mkconfig read /etc/default/grub.d? Debian's does; elsewhere the directory tells."""
    system = system_ids(root)
    return not system or bool(system & DEBIAN) or root.exists(DIRECTORY)


def look(root: Sysroot) -> Look:
    """/etc/default/grub, as a file to be edited."""
    return Look((Holder(MAIN, variable(DEFAULT)),), Upcoming((), configured(root).problem or ""))


def _upcoming(root: Sysroot) -> Upcoming:
    found = next_boot(root)
    return Upcoming((Point(found.source, found.line),), found.problem or "", found.note)


def _plan(root: Sysroot, desired: Sequence[Desired], same: Same, journaled: Journaled) -> BootPlan:
    if reads_dropins(root):
        plan = plan_dropin(root, desired, same)
        if plan.content is None:
            writes = (Write("removal", DROPIN, ""),) if root.exists(DROPIN) and not plan.problem else ()
        else:
            writes = (Write("file", DROPIN, plan.content),)
        return BootPlan(writes, plan.conflicts, plan.problem or "")
    return _plan_edit(root, desired, same, journaled)


def _plan_edit(root: Sysroot, desired: Sequence[Desired], same: Same, journaled: Journaled) -> BootPlan:
    edits = plan_edits(look, root, desired, same, journaled)
    if edits.problem:
        return edits
    after = configured(root, overlay={write.path: write.content for write in edits.writes})
    too_long = next_length_problem(root, after.line) or ""
    return BootPlan(edits.writes, unmet(after, desired, same), after.problem or too_long)


def _ours(root: Sysroot, journaled: Journaled) -> tuple[str, ...]:
    return parse_dropin(root.get_text(DROPIN)) or our_words(look, root, journaled)


def _stripped(root: Sysroot, journaled: Journaled) -> tuple[Write, ...]:
    return without_ours(look, root, journaled) if read(root, MAIN) is not None else ()


def _confirm(root: Sysroot, desired: Sequence[Desired], same: Same) -> str | None:
    return confirm(source_live(root) if root.live else configured(root), desired, same)


FAMILY = Family(_upcoming, _plan, _ours, _stripped, ("update-grub",), "sudo update-grub", _confirm)
