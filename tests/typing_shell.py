"""What a shell makes of a line that the product prints: typed by nobody, where every program only records its words."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tunectl.command import Command

NOBODY = 65534
# Every program that a printed line may start; `touch` is the attacker's.
PROGRAMS = (
    *("sudo", "tunectl", "tee", "systemctl", "sed", "taskset", "chrt", "sysctl", "rm", "rmdir", "kill", "modprobe"),
    *("mount", "swapoff", "udevadm", "update-grub", "grub2-mkconfig", "grub-editenv", "kernel-install", "chmod"),
    *("apt", "reboot", "curl", "sh"),
)
# Names that anybody may choose, each in its own way more than a name.
HOSTILE = (
    "a.b; touch PWNED;#",
    "$(touch PWNED)",
    "`touch PWNED`",
    "x' && touch PWNED #",
    'y" ; touch PWNED ; "',
    "one\ntouch PWNED\n",
    "--help",
    "-rf",
    "-n",
    "\x1b[31mred\x1b[0m",
    "left\u202etouch PWNED",
    "*",
    "~root",
    "a\\c",
    "%s%n",
    "\udcff\udcfe",
    "{a,b}",
    "tunectl apply",
)


class Started(NamedTuple):
    """A program that the shell started: its words, and what it read."""

    words: tuple[str, ...]
    read: str


class Typist:
    """Types lines into shells, in a directory of its own."""

    def __init__(self, place: Path) -> None:
        self._place = place
        for name in PROGRAMS:
            self._stub(name, 'case "$1" in tee) /bin/cat >"$here.read" ;; *) : >"$here.read" ;; esac')
        self._stub("touch", ": >PWNED")

    def _stub(self, name: str, does: str) -> None:
        lines = (
            "#!/bin/sh",
            'n=0; while [ -e "record.$n.words" ]; do n=$((n+1)); done; here=record.$n',
            f'printf \'%s\\0\' {name} "$@" >"$here.words"',
            does,
        )
        place = self._place / "bin" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text("\n".join(lines) + "\n")
        place.chmod(0o755)

    def types(self, line: str, shell: str = "/bin/sh") -> list[Started]:
        """What a line starts, in its order. AssertionError where it did what only a name in it says."""
        with tempfile.TemporaryDirectory(dir=self._place) as scratch:
            os.chmod(scratch, 0o777)  # nobody records there
            os.symlink(self._place / "bin", f"{scratch}/bin")
            who = NOBODY if os.geteuid() == 0 else None
            subprocess.run(
                [shell, "-c", line], cwd=scratch, env={"PATH": str(self._place / "bin")}, capture_output=True,
                stdin=subprocess.DEVNULL, timeout=60, check=True,
                user=who, group=who, extra_groups=() if who else None,
            )  # fmt: skip
            assert not (Path(scratch) / "PWNED").exists(), line
            records = sorted(Path(scratch).glob("record.*.words"), key=lambda one: int(one.name.split(".")[1]))
            return [
                Started(
                    tuple(os.fsdecode(one.read_bytes()).split("\0")[:-1]),
                    os.fsdecode(one.with_suffix(".read").read_bytes()),
                )
                for one in records
            ]


@contextmanager
def typist() -> Iterator[Typist]:
    """In a directory that nobody may enter."""
    place = Path(tempfile.mkdtemp(prefix="tunectl-typist-"))
    place.chmod(0o755)
    try:
        yield Typist(place)
    finally:
        shutil.rmtree(place)


def meant(command: Command) -> list[Started]:
    """What a command is, by its words."""
    return [Started(step.words, "" if step.fed is None else f"{step.fed}\n") for step in command.steps]
