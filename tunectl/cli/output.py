"""Files that a command writes for its user: whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress

from tunectl.errors import TunectlError


def write_whole(path: str, text: str) -> None:
    """Writes beside `path` and renames; readable by all. TunectlError when it cannot, and nothing is left behind."""
    temporary = ""
    try:
        fd, temporary = tempfile.mkstemp(prefix=".tunectl-", dir=os.path.dirname(os.path.abspath(path)))
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(file.fileno(), 0o644)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise TunectlError(f"cannot write {path}: {error.strerror}") from error
