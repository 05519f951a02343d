"""Files that a command writes for its user: whole, or not at all."""

from __future__ import annotations

from tunectl.durable import replace_file
from tunectl.errors import TunectlError


def write_whole(path: str, text: str) -> None:
    """Replaces the file, readable by all. TunectlError when it cannot, and nothing is left beside it."""
    try:
        replace_file(path, text.encode("utf-8"))
    except OSError as error:
        raise TunectlError(f"cannot write {path}: {error.strerror}") from error
