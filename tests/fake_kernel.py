"""A recorded host with a kernel's manners: it refuses, brackets and clamps what is written to it."""

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path

from tunectl.host.writable import WritableSysroot
from tunectl.knobs.codecs import CHOICE


@dataclass
class Manners:
    """How this kernel answers. Paths are without a leading slash."""

    managed_irqs: frozenset[str] = frozenset()
    managed_errno: int = errno.EIO  # EPERM since 6.12
    clamp: dict[str, str] = field(default_factory=dict)  # path -> what it holds whatever is written
    errors: dict[str, int] = field(default_factory=dict)  # path, or the start of one -> errno


class KernelRoot(WritableSysroot):
    """Hand it in where a WritableSysroot is wanted."""

    def __init__(self, root: str | Path, manners: Manners) -> None:
        super().__init__(str(root))
        self.manners = manners
        self.written: list[str] = []

    def write_value(self, path: str, text: str) -> None:
        """As the kernel takes it."""
        parts = path.split("/")
        if parts[:2] == ["proc", "irq"] and parts[2] in self.manners.managed_irqs:
            raise OSError(self.manners.managed_errno, os.strerror(self.manners.managed_errno), path)
        self._refuse(path)
        self.written.append(path)
        super().write_value(path, self._taken(path, text))

    def reschedule(self, path: str, content: str) -> None:
        """As sched_setscheduler(2) answers."""
        self._refuse(path)
        super().reschedule(path, content)

    def _refuse(self, path: str) -> None:
        for start, number in self.manners.errors.items():
            if path.startswith(start):
                raise OSError(number, os.strerror(number), path)

    def _taken(self, path: str, text: str) -> str:
        if path in self.manners.clamp:
            return self.manners.clamp[path] + "\n"
        if "transparent_hugepage" in path:
            words = [word.strip("[]") for word in self.read_value(path).split()]
            chosen = CHOICE.decode(text)
            return " ".join(f"[{word}]" if word == chosen else word for word in words) + "\n"
        return text
