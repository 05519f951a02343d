"""Exit codes, the same for every command: docs/interface.md, "Exit codes"."""

from __future__ import annotations

OK = 0
FAILED = 1
USAGE = 2
DRIFTED = 3
REBOOT = 4
NAGIOS_UNKNOWN = 3  # as report/nagios.py has it, for words that must not depend on another import

FAILURE = {FAILED: "could not find out, or the command failed", USAGE: "the command line or the host file is wrong"}
VERDICT = {OK: "compliant", DRIFTED: "drifted", REBOOT: "only a reboot is pending"}
GO = {OK: "GO", DRIFTED: "NO-GO", REBOOT: "only a reboot is pending"}

_BY_VERDICT = {
    "compliant": OK,
    "go": OK,
    "ok": OK,
    "warning": DRIFTED,
    "critical": DRIFTED,
    "drifted": DRIFTED,
    "no-go": DRIFTED,
    "pending-reboot": REBOOT,
    "unreadable": FAILED,
    "unknown": FAILED,
}


def exit_code(verdict: str, fmt: str = "text") -> int:
    """The exit code for a verdict; with the nagios format, that plugin's own."""
    if fmt != "nagios":
        return _BY_VERDICT[verdict]
    from tunectl.report import nagios  # the status line takes its word from there, too

    return nagios.exit_code(verdict)
