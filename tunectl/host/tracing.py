"""A root that remembers what was read through it, so that it can be asked later whether any of that has changed."""

from __future__ import annotations

from tunectl.cpulist import CpuSet
from tunectl.host.nonintrusive import NonIntrusiveSysroot


class TracingSysroot(NonIntrusiveSysroot):
    """`files` are the files opened and `directories` those listed, since begin()."""

    def __init__(self, root: str, quiet: CpuSet) -> None:
        super().__init__(root, quiet)
        self.files: dict[str, None] = {}  # in order
        self.directories: dict[str, None] = {}
        self._open_directories: dict[int, str] = {}

    def begin(self) -> None:
        """Forgets what was read so far."""
        self.files, self.directories = {}, {}

    def open(self, path: str) -> int:
        """A file, or a directory as `path/.`: open_below() needs its name."""
        if not path.endswith("/."):
            self.files[path] = None
            return super().open(path)
        fd = super().open(path)
        self.directories[path[:-2]] = None
        self._open_directories[fd] = path[:-2]
        return fd

    def read_bytes(self, path: str, size: int | None = None, offset: int = 0) -> bytes:
        """A whole file, or a part of it; one that this look has read before is not opened for that."""
        self.files[path] = None
        return super().read_bytes(path, size, offset)

    def open_below(self, directory: int, path: str) -> int:
        """A file below an open directory."""
        self.files[f"{self._open_directories.get(directory, '')}/{path}"] = None
        return super().open_below(directory, path)

    def listdir(self, path: str) -> list[str]:
        """The names in a directory."""
        self.directories[path] = None
        return super().listdir(path)
