"""Resource limits that a trading process is started with."""

import math

from tunectl.host.limits import LOGIN_FILES, Limit, read_logins, read_services
from tunectl.host.systemdconf import MANAGER, patterns_of
from tunectl.knobs.codecs import NATURAL, Codec, integer
from tunectl.knobs.drivers.dropin import DropIn
from tunectl.knobs.row import Knob
from tunectl.model import Match, Severity

_UNLIMITED = "unlimited"
_HEAD = "# Written by `tunectl apply`; `tunectl restore` removes it.\n"


def _text(value: float) -> str:
    return _UNLIMITED if value == math.inf else str(int(value))


_KIB = Codec(
    "memory limit",
    'KiB, or "unlimited"',
    lambda text: math.inf if text.strip() == _UNLIMITED else float(integer(text)),
    _text,
    lambda value: _UNLIMITED if value == math.inf else int(value),
    lambda value, scope: math.inf if value == _UNLIMITED else float(NATURAL.want(value, scope)),
)


def _shown(limit: Limit) -> tuple[float, str, str]:
    """No limit in any file counts as 0: the built-in defaults (64 KiB or 8 MiB) are too small for an engine."""
    if limit.kib is None:
        return 0.0, "no file says how much memory may be locked: the default of 64 KiB or 8 MiB holds", ""
    amount = _text(limit.kib) + ("" if limit.kib == math.inf else " KiB")
    return limit.kib, f"{limit.where} says how much memory may be locked: {amount}", limit.where


def _login_lines(kib: float) -> str:
    # `*` is everybody but root.
    return f"{_HEAD}* - memlock {_text(kib)}\nroot - memlock {_text(kib)}\n"


def _manager_lines(kib: float) -> str:
    return f"{_HEAD}[Manager]\nDefaultLimitMEMLOCK={'infinity' if kib == math.inf else f'{_text(kib)}K'}\n"


def _row(name: str, driver: DropIn, who: str, source: str) -> Knob:
    return Knob(
        f"limits.{name}",
        driver,
        _KIB,
        Severity.STALL,
        match=Match.AT_LEAST,
        why=f"A page that is not locked may be taken away, and the next touch waits for the disk; {who} beyond this "
        "limit mlockall() fails. A site's choice: who runs as root needs no limit raised.",
        source=source,
        risk="a program may lock all memory; the limit holds for programs that start from then on",
    )


KNOBS = (
    _row(
        "memlock_logins",
        DropIn(
            "etc/security/limits.d/99-tunectl.conf",
            "etc/security",
            lambda view: _shown(read_logins(view.root)),
            _login_lines,
            LOGIN_FILES,
        ),
        "in a program that a login started,",
        "mlock(2); limits.conf(5)",
    ),
    _row(
        "memlock_services",
        DropIn(
            "etc/systemd/system.conf.d/99-tunectl.conf",
            "etc/systemd",
            lambda view: _shown(read_services(view.root)),
            _manager_lines,
            patterns_of(MANAGER),
            commands=("reexec-systemd",),
        ),
        "in a service without a LimitMEMLOCK= of its own,",
        "mlock(2); systemd-system.conf(5)",
    ),
)
