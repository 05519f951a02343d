"""The boot of an entry of ours, once: what all families share. Only reads.

A tried line has an id on it, by which the boot that was tried knows itself, and words that have a kernel that panicked
or an initramfs that stopped at its prompt boot again: the next boot is then the old one.
Source: kernel-parameters.txt (panic=); kernel/params.c, unknown_bootoption(): a word with a dot in its key is taken for
a module's, and handed to nobody; initramfs-tools(7), panic; dracut.cmdline(7), rd.shell, rd.emergency.
"""

import re
from collections.abc import Sequence

from tunectl.bootloader.cmdline import kernel_args, length_problem, parse_cmdline
from tunectl.bootloader.family import Family, Refusal
from tunectl.bootloader.started import boots_next
from tunectl.bootloader.words import Desired, Same, append, merge
from tunectl.host.sysroot import Sysroot

PREFIX = "tunectl-try-"  # of an entry's name
KEY = "tunectl.try"
_ID = re.compile(r"[0-9a-f]{8}")
_PANIC = "panic=30"  # seconds
_DRACUT = ("usr/lib/dracut", "usr/bin/dracut")
_DRACUTS = ("rd.shell=0", "rd.emergency=reboot")


def entry_name(trial_id: str) -> str:
    """The name of a trial's entry, wherever it stands."""
    assert _ID.fullmatch(trial_id)
    return PREFIX + trial_id


def is_our_entry(name: str) -> bool:
    """Is this the name of a trial's entry, with or without the suffix of its file?"""
    return name.startswith(PREFIX) and _ID.fullmatch(name.removeprefix(PREFIX).partition(".")[0]) is not None


def tried_id(line: str) -> str:
    """The id of the trial whose line this boot has; "" for none."""
    found = [arg.value or "" for arg in kernel_args(parse_cmdline(line)) if arg.key == KEY]
    return found[-1] if found and _ID.fullmatch(found[-1]) else ""


def tried_line(root: Sysroot, line: str, desired: Sequence[Desired], same: Same, trial_id: str) -> str:
    """The default entry's line with our words as apply would put them, and the trial's.

    UsageError for a desired argument that would need quoting.
    """
    words = [f"{KEY}={trial_id}"]
    if not _reboots_after_panic(line):
        words.append(_PANIC)
    if any(map(root.exists, _DRACUT)):
        words += _DRACUTS
    return append(merge((line,), desired, same), " ".join(words))[0]


def _reboots_after_panic(line: str) -> bool:
    """Has the operator's own line a panic= that boots again? 0 waits for ever, a negative number for no time."""
    values = [arg.value or "" for arg in kernel_args(parse_cmdline(line)) if arg.key == "panic"]
    return bool(values and re.fullmatch(r"-?[1-9][0-9]*", values[-1]))


def refusals(root: Sysroot, family: Family | None, name: str) -> tuple[Refusal, ...]:
    """Why the boot loader `name` cannot try a line for one boot on this host; () where it can."""
    if family is None or family.once is None:
        return (Refusal(f"tunectl cannot have {name} boot an entry once"),)
    other = boots_next(root)
    return (*((Refusal(other),) if other else ()), *family.once.refusals(root))


def length_refusal(lead: str, line: str) -> tuple[Refusal, ...]:
    """A line that the kernel would cut, with what the loader puts in front of it."""
    too_long = length_problem(f"{lead} {line}".strip())
    return (Refusal(too_long),) if too_long else ()
