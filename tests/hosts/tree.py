"""Writes a directory tree the way the kernel shows one: short files that end in a newline, relative links."""

import os
from pathlib import Path


class Tree:
    """Files below `root`; paths are relative, parents are made as needed."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._made: set[str] = set()

    def _parent(self, path: str) -> str:
        place = f"{self._root}/{path}"
        parent = place.rpartition("/")[0]
        if parent not in self._made:
            Path(parent).mkdir(parents=True, exist_ok=True)
            self._made.add(parent)
        return place

    def text(self, path: str, text: str, mode: int = 0o644) -> None:
        """A whole file, as given."""
        fd = os.open(self._parent(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            data = memoryview(text.encode("utf-8", "surrogateescape"))
            while data:
                data = data[os.write(fd, data) :]
            if mode != 0o644:
                os.fchmod(fd, mode)
        finally:
            os.close(fd)

    def value(self, path: str, value: object, mode: int = 0o644) -> None:
        """A kernel attribute: its value and a newline."""
        self.text(path, f"{value}\n", mode)

    def values(self, directory: str, **values: object) -> None:
        """Several attributes of one directory."""
        for name, value in values.items():
            self.value(f"{directory}/{name}", value)

    def link(self, path: str, target: str) -> None:
        """A symbolic link, as the kernel or the distribution makes it."""
        os.symlink(target, self._parent(path))

    def stacked(self, name: str, *lowers: str) -> None:
        """A network interface without a device, such as a bond, above others."""
        self.value(f"sys/class/net/{name}/operstate", "up")
        for lower in lowers:
            self.link(f"sys/class/net/{name}/lower_{lower}", f"../{lower}")

    def directory(self, path: str) -> None:
        """An empty directory."""
        Path(f"{self._root}/{path}").mkdir(parents=True, exist_ok=True)
