"""The table of leap seconds that chronyd was told to use, and whether it still says something about today.

Source: chrony.conf(5), leapsectz and leapseclist; tzdata's leap-seconds.list (`#@`, seconds since 1900) and
leapseconds (`#expires`, seconds since 1970).
"""

import re
from collections.abc import Iterable

from tunectl.host.sysroot import Sysroot
from tunectl.host.timekeepers import Timekeeper

_CONFS = ("etc/chrony/chrony.conf", "etc/chrony.conf")
_TABLES = ("usr/share/zoneinfo/leap-seconds.list", "usr/share/zoneinfo/leapseconds")
_USED = re.compile(r"^\s*(leapsectz|leapseclist)\s+(\S+)", re.MULTILINE | re.IGNORECASE)
_MORE = re.compile(r"^\s*confdir\s+(\S+)", re.MULTILINE | re.IGNORECASE)
_EXPIRES = re.compile(r"^#(@|expires)\s+(\d{1,12})\b", re.MULTILINE)
_FROM_1900_S = 2_208_988_800


def expired_leap_table(root: Sysroot, keepers: Iterable[Timekeeper], now_s: float) -> str:
    """The file that chronyd uses and that has expired; "" where it uses none, or one that holds. Never raises."""
    for keeper in keepers:
        if keeper.name == "chronyd":
            said = re.findall(r"\0-f\0([^\0]+)", "\0".join(("", *keeper.args)))
            confs = [path.lstrip("/") for path in said] or [path for path in _CONFS if root.exists(path)][:1]
            for table in _used(root, confs):
                expires = _expires(root.get_named(table))
                if expires is not None and expires < now_s:
                    return f"/{table}"
    return ""


def _used(root: Sysroot, confs: list[str]) -> list[str]:
    texts = [root.get_named(path) for path in confs]
    for folder in [found.strip("/") for text in texts for found in _MORE.findall(text)]:
        texts += [root.get_named(f"{folder}/{name}") for name in root.listdir(folder) if name.endswith(".conf")]
    used = [match for text in texts for match in _USED.findall(text)]
    zones = [table for table in _TABLES if root.exists(table)][:1]
    return [path for key, value in used for path in (zones if key.lower() == "leapsectz" else [value.lstrip("/")])]


def _expires(text: str) -> float | None:
    """Seconds since 1970; None for a text that does not say."""
    match = _EXPIRES.search(text)
    return int(match[2]) - (_FROM_1900_S if match[1] == "@" else 0) if match else None
