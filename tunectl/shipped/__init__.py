"""Files for other programs, shipped with tunectl: units for systemd."""

from __future__ import annotations

import pkgutil


def read_shipped(name: str) -> str:
    """The text of a shipped file, by its path below this directory."""
    data = pkgutil.get_data(__name__, name)
    assert data is not None, name
    return data.decode()
