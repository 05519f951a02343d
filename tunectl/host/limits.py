"""How much memory a process may lock: what logins (pam_limits) and services (systemd) start with. KiB.

Source: limits.conf(5); systemd-system.conf(5), DefaultLimitMEMLOCK=; systemd.exec(5) for its units.
"""

import math
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tunectl.host.inifiles import values_of
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import MANAGER, files_in_force, files_of

_LOGINS, _MORE_LOGINS = "etc/security/limits.conf", "etc/security/limits.d"
LOGIN_FILES = (_LOGINS, f"{_MORE_LOGINS}/*.conf")  # as shell patterns
_SUFFIXES = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


class Limit(NamedTuple):
    """KiB, math.inf for no limit; None where nobody says and the program's own default holds."""

    kib: float | None
    where: str = ""


def parse_logins(text: str) -> float | None:
    """The last limit for everybody (`*`) of one limits.conf: `* - memlock unlimited`. None where it has none."""
    found: float | None = None
    for line in text.split("\n"):
        words = line.partition("#")[0].split()
        if len(words) == 4 and words[0] == "*" and words[1] in ("-", "soft") and words[2] == "memlock":
            if words[3] in ("unlimited", "infinity", "-1"):
                found = math.inf
            elif words[3].isdecimal():
                found = int(words[3])
    return found


def parse_services(text: str) -> float | None:
    """The last DefaultLimitMEMLOCK= of a system.conf's [Manager]: bytes with a suffix, `soft:hard` or both in one."""
    found: float | None = None
    for value in values_of(text, "Manager", "DefaultLimitMEMLOCK"):
        soft = value.partition(":")[0]
        if soft == "infinity":
            found = math.inf
        elif match := re.fullmatch(r"([0-9]+)([KMGT]?)", soft):
            found = int(match[1]) * _SUFFIXES[match[2]] // 1024
    return found


def read_logins(root: Sysroot) -> Limit:
    """What a login starts with: limits.conf, then limits.d by name; the last line counts. Never raises."""
    return _last(root, (_LOGINS, *files_in_force(root, (_MORE_LOGINS,))), parse_logins)


def read_services(root: Sysroot) -> Limit:
    """What a service without a LimitMEMLOCK= of its own starts with. Never raises."""
    return _last(root, files_of(root, MANAGER), parse_services)


def _last(root: Sysroot, files: Iterable[str], parse: Callable[[str], float | None]) -> Limit:
    limits = [Limit(kib, "/" + path) for path in files if (kib := parse(root.get_text(path))) is not None]
    return limits[-1] if limits else Limit(None)
