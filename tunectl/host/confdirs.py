"""Drop-in directories: which of their files a program reads, and in which order."""

from __future__ import annotations

from collections.abc import Iterable

from tunectl.host.sysroot import Sysroot


def files_in_force(root: Sysroot, directories: Iterable[str], suffix: str = ".conf") -> list[str]:
    """The files with this suffix, sorted by name; of two of one name the earlier directory's counts. Never raises."""
    by_name: dict[str, str] = {}
    for directory in directories:
        for name in root.listdir(directory):
            if name.endswith(suffix):
                by_name.setdefault(name, f"{directory}/{name}")
    return [by_name[name] for name in sorted(by_name)]
