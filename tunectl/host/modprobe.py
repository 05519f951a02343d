"""Modules that this host keeps from being loaded by themselves, and the lines that say so.

Source: modprobe.d(5); libkmod-module.c of kmod: the name of an `install` line is a shell pattern, that of a `blacklist`
is not, and an `alias` is a pattern for what is asked for: a module's name, or what a device says of itself.
"""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from glob import escape
from typing import NamedTuple

from tunectl.command import Command, all_of, argv
from tunectl.host.inifiles import continued_lines
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import directories_of, files_in_force

DIRECTORIES = directories_of("modprobe.d")
CPU = "sys/devices/system/cpu/modalias"
_NOTHING = frozenset({"true", "false", ":"})  # what stands in the place of modprobe, and loads nothing


class Barred(NamedTuple):
    """One line: its modules, as /sys/module has their names, and the file without a leading slash."""

    modules: str  # a shell pattern
    file: str
    line: int
    last: int  # its last line, where backslashes join several
    text: str

    def bars(self, module: str) -> bool:
        """Does it keep this module away?"""
        return fnmatchcase(module, self.modules)

    def __str__(self) -> str:
        return f"/{self.file}:{self.line} says {self.text}"


def read_barred(root: Sysroot) -> tuple[Barred, ...]:
    """Each `blacklist NAME`, `install NAME COMMAND` whose command does nothing, and `alias NAME off`. Never raises."""
    files, cpu = files_in_force(root, DIRECTORIES), root.get(CPU)
    return tuple(barred for file in files for barred in parse_modprobe(root.get_text(file), file, cpu))


def parse_modprobe(text: str, file: str = "", cpu: str = "") -> Iterator[Barred]:
    """The same of one file's text; `cpu` is what the CPU says of itself, by which its drivers are loaded. Pure."""
    for line in continued_lines(text):
        words = line.text.split()
        if words[:1] == ["blacklist"] and len(words) > 1:
            yield Barred(escape(_name(words[1])), file, line.first, line.last, f"blacklist {words[1]}")
        elif words[:1] == ["install"] and len(words) > 2 and words[2].rpartition("/")[2] in _NOTHING:
            yield Barred(_name(words[1]), file, line.first, line.last, " ".join(words))
        elif words[:1] == ["alias"] and words[2:3] == ["off"]:
            of_all = bool(cpu) and fnmatchcase(cpu.strip(), words[1])
            yield Barred("*" if of_all else _name(words[1]), file, line.first, line.last, " ".join(words[:3]))


def _name(word: str) -> str:
    return word.replace("-", "_")


def taking_out_lines(lines: Iterable[Barred]) -> Command:
    """The command that takes these lines out of their files."""
    by_file: dict[str, list[str]] = {}
    for line in lines:
        by_file.setdefault(line.file, []).append(
            f"{line.line},{line.last}d" if line.last > line.line else f"{line.line}d"
        )
    return all_of(argv("sudo", "sed", "-i", ";".join(edits), of=[f"/{file}"]) for file, edits in by_file.items())
