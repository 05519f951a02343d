"""Exit codes, the same for every command. INTERFACE, "Exit codes"."""

from __future__ import annotations

OK = 0
FAILED = 1
USAGE = 2
DRIFTED = 3
REBOOT = 4

_BY_VERDICT = {
    "compliant": OK,
    "go": OK,
    "drifted": DRIFTED,
    "no-go": DRIFTED,
    "pending-reboot": REBOOT,
    "unreadable": FAILED,
    "unknown": FAILED,
}
NAGIOS_UNKNOWN = 3
_NAGIOS = {OK: 0, REBOOT: 1, DRIFTED: 2, FAILED: NAGIOS_UNKNOWN, USAGE: NAGIOS_UNKNOWN}


def exit_code(verdict: str, fmt: str = "text") -> int:
    """The exit code for a verdict; with the nagios format, that plugin's own."""
    return in_format(_BY_VERDICT[verdict], fmt)


def in_format(code: int, fmt: str) -> int:
    """An exit code as the format's readers know it."""
    return _NAGIOS[code] if fmt == "nagios" else code
