"""What can go wrong, as one line a user can act on: what happened, where, and what would be right."""

from __future__ import annotations

from tunectl.shortened import shortened


class TunectlError(Exception):
    """A failure that ends the command: `message` says what and where, `hint` what would be right."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        message = shortened(message)
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class UsageError(TunectlError):
    """Bad input from the operator: an option, a host file, a profile, a CPU list."""

    exit_code = 2
