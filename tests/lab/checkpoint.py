"""A machine at rest: what is needed to continue it at the instruction it was saved at."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from .machine import Nic
from .shell import LabError


@dataclass(frozen=True)
class Checkpoint:
    """A saved machine: its memory, its disk (which later disks build on) and its extra cards."""

    folder: Path
    nics: tuple[Nic, ...] = ()

    @property
    def memory(self) -> Path:
        return self.folder / "memory"

    @property
    def disk(self) -> Path:
        return self.folder / "disk.qcow2"

    def save(self) -> None:
        (self.folder / "nics.json").write_text(json.dumps([asdict(nic) for nic in self.nics]))

    @staticmethod
    def load(folder: Path) -> "Checkpoint":
        try:
            nics = json.loads((folder / "nics.json").read_text())
        except FileNotFoundError as error:
            raise LabError(f"no saved machine at {folder}") from error
        return Checkpoint(folder, tuple(Nic(**nic) for nic in nics))
