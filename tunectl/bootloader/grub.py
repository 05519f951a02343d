"""The file tunectl owns among GRUB's settings: /etc/default/grub.d/99-tunectl.cfg, rendered and parsed back. Pure.

It appends to GRUB_CMDLINE_LINUX_DEFAULT, which recovery entries do not get: they boot un-isolated
(grub-mkconfig's 10_linux). The name sorts behind what cloud images put there, since a later file overwrites.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tunectl.errors import UsageError

DROPIN = "etc/default/grub.d/99-tunectl.cfg"
_HEAD = (
    "# Written by tunectl: the boot arguments that isolate the trading CPUs.\n"
    "# Edits are lost with the next 'tunectl apply'; 'tunectl restore' removes this file.\n"
)
_VARIABLE = "GRUB_CMDLINE_LINUX_DEFAULT"
# Means itself in sh, in GRUB's script language and on the kernel's command line, in quotes and out of them.
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,:=/@%+-]*")
_LINE = re.compile(rf'{_VARIABLE}="\$\{{{_VARIABLE}\}} (?P<args>[^"\n]+)"\n')


def render_dropin(args: Sequence[str]) -> str:
    """The whole file for one or more arguments. UsageError for none, and for one that would need quoting."""
    if not args:
        raise UsageError("there is no boot argument to write", "without one the file is removed, not left empty")
    for arg in args:
        if not _SAFE.fullmatch(arg):
            raise UsageError(
                f"boot argument '{arg}' has a character that a shell or GRUB would change",
                "letters, digits and _ . , : = / @ % + - are passed on as they are",
            )
    return f'{_HEAD}{_VARIABLE}="${{{_VARIABLE}}} {" ".join(args)}"\n'


def parse_dropin(text: str) -> tuple[str, ...] | None:
    """The arguments of a file that render_dropin() wrote; None for any other text, an edited one too."""
    found = _LINE.fullmatch(text.removeprefix(_HEAD)) if text.startswith(_HEAD) else None
    args = tuple(found["args"].split(" ")) if found else ()
    return args if args and all(_SAFE.fullmatch(arg) for arg in args) else None
