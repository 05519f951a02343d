"""What an earlier apply left outside of its state directory: it tells that there was a journal once."""

from __future__ import annotations

import os
from collections.abc import Iterable

from tunectl.bootloader.families import FAMILIES, detect
from tunectl.host.sysroot import Sysroot
from tunectl.knobs import KNOBS
from tunectl.knobs.drivers.unitfile import LINK, UNIT, WRITTEN_BY_APPLY
from tunectl.tuning.journal import Journal, few


def signs(root: Sysroot, bootloader: str = "") -> tuple[str, ...]:
    """The files and boot arguments that apply wrote and that still stand. `bootloader` as the host file has it.

    The apply service's unit is none: `tunectl service install` writes it, too.
    """
    files = dict.fromkeys(path[1:] for knob in KNOBS.values() for path in knob.driver.describe())
    ours = [f"/{path}" for path in files if path.startswith("etc/") and path not in (UNIT, LINK)]
    standing = [path for path in ours if _is_ours(root, path[1:])]
    family = FAMILIES.get(detect(root, bootloader).name)
    return (*standing, *(f"the boot argument {word}" for word in (family.ours(root, {}) if family else ())))


def journal_lost(root: Sysroot, journal: Journal, bootloader: str = "") -> str:
    """What is wrong where apply ran here and its journal is gone or holds no record; "" where nothing is missing."""
    # A recording holds no journal. Only where its state directory was made is one missing there.
    if not journal.is_new or not (root.live or os.path.isdir(journal.directory)):
        return ""
    found = signs(root, bootloader)
    return f"{journal.path} {_state(journal.path)}, and tunectl applied here before ({few(found)})" if found else ""


def left_standing(root: Sysroot, known: Iterable[str]) -> str:
    """What of ours stands besides the `known` paths after a restore that did not have the whole journal; else ""."""
    found = [one for one in signs(root) if one not in set(known)]
    if not found:
        return ""
    verb = "stands" if len(found) == 1 else "stand"
    return f"{few(found)} of an earlier apply still {verb}: what the journal had on that is lost"


def _state(path: str) -> str:
    return "holds no record" if os.path.exists(path) else "is gone"


def _is_ours(root: Sysroot, path: str) -> bool:
    return root.exists(path) and root.get_text(path).startswith(WRITTEN_BY_APPLY)
