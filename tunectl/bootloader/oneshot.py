"""The boot of an entry of ours, once: what all families share. Only reads.

A tried line has an id on it, by which the boot that was tried knows itself.
"""

import re
from collections.abc import Sequence

from tunectl.bootloader.cmdline import kernel_args, parse_cmdline
from tunectl.bootloader.family import Family, Refusal
from tunectl.bootloader.words import Desired, Same, merge
from tunectl.host.sysroot import Sysroot

KEY = "tunectl.try"
_ID = re.compile(r"[0-9a-f]{8}")


def tried_id(line: str) -> str:
    """The id of the trial whose line this boot has; "" for none."""
    found = [arg.value or "" for arg in kernel_args(parse_cmdline(line)) if arg.key == KEY]
    return found[-1] if found and _ID.fullmatch(found[-1]) else ""


def tried_line(root: Sysroot, line: str, desired: Sequence[Desired], same: Same, trial_id: str) -> str:
    """The default entry's line with our words as apply would put them, and the trial's."""
    del root
    return f"{merge((line,), desired, same)[0]} {KEY}={trial_id}"


def refusals(root: Sysroot, family: Family | None, name: str) -> tuple[Refusal, ...]:
    """Why the boot loader `name` cannot try a line for one boot on this host; () where it can."""
    if family is None or family.once is None:
        return (Refusal(f"tunectl cannot have {name} boot an entry once"),)
    return family.once.refusals(root)
